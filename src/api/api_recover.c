/*
 * api_recover.c - completes the log after a crash, from the journal of a dead run.
 *
 * A tool's outcome is synced to the journal before any event about it, and appended to the log
 * afterwards under its own id. If a crash comes in between, this file appends it. Doing that twice
 * has no further effect, because an id is stored only once (F1, F2). No tool is run again (F16).
 * The process that completes a run holds the lock of its journal, and writes the run's end last. So
 * a crash during recovery leaves a dead run again.
 */
#include "api/api_recover.h"
#include "api/api_aside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"
#include "api/rescue.h"
#include "model/pairing.h"
#include "model/event.h"
#include "store/backend.h"

struct recovery {
        struct steno_conv *conv;
        struct buf completed; /* members of the report's arrays */
        struct buf refused;
        struct buf ended;
        struct buf open;
        struct backend_run *log; /* the journal at work */
        char *run;               /* its run's id */
        struct steno_error *err;
};

/* ---- outcomes ---- */

static int found(void *ctx, const struct backend_record *r)
{
        (void)r;
        *(bool *)ctx = true;
        return 0;
}

static bool in_log(struct recovery *r, struct str id)
{
        bool there = false;
        return backend_read_id(r->conv->backend, id, found, &there, NULL) == 0 && there;
}

static void put_item(struct buf *list, const char *run, struct str call, const char *key,
    const char *word, uint64_t seq)
{
        struct jsonw w = jsonw_to(list);
        if (list->n)
                buf_putc(list, ',');
        jsonw_object(&w);
        jsonw_field_str(&w, "call", call);
        if (word) {
                jsonw_field_cstr(&w, key, word);
        }
        jsonw_field_cstr(&w, "run", run);
        if (seq) {
                jsonw_field_u64(&w, "seq", seq);
        }
        jsonw_object_end(&w);
}

/* Pairing only looks at the last records (PAIRING_WINDOW). A result that comes later must name the
 * message with its call. */
static int place_late(struct recovery *r, const char *id, uint64_t of, uint64_t seq)
{
        return id && of && seq > of + PAIRING_WINDOW ? rescue_place(r->conv, id, of, r->err) : 0;
}

/* Appends an outcome's message unless its id is there. */
static int complete(void *ctx, const struct run_outcome *o)
{
        struct recovery *r = ctx;
        struct steno_append_options opt = {
            .size = sizeof opt, .flags = STENO_RECOVERED | STENO_DECIDED, .of_seq = o->of};
        struct steno_receipt *receipt = NULL;
        struct steno_error why = {0};
        struct json j;
        char key[128];
        json_init(&j);
        int rc = json_parse(&j, o->message.p, o->message.n, NULL, r->err);
        char *id = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "id"));
        json_release(&j);
        if (rc)
                return rc == STENO_ENOMEM ? rc : 0;
        if (id && in_log(r, str_of(id))) {
                free(id);
                return 0;
        }
        if (!id) {
                /* A message without an id is known by its place in the journal. */
                snprintf(key, sizeof key, "outcome/%.80s/%llu", r->run, (unsigned long long)o->seq);
                opt.idempotency_key = key;
        }
        rc = steno_append(r->conv, o->message.p, o->message.n, &opt, &receipt, &why);
        if (rc == 0 && !steno_receipt_replayed(receipt)) {
                put_item(
                    &r->completed, r->run, o->call, NULL, NULL, steno_receipt_first_seq(receipt));
        } else if (rc == STENO_EPROTO || rc == STENO_ECONFLICT) {
                /* The call has another result, or is not in the log. The outcome stays in the
                 * journal only. */
                put_item(&r->refused, r->run, o->call, "why", why.msg, 0);
                rc = 0;
        } else if (rc && r->err) {
                *r->err = why;
        }
        if (rc == 0 && receipt)
                rc = place_late(r, id, o->of, steno_receipt_first_seq(receipt));
        steno_receipt_free(receipt);
        free(id);
        return rc;
}

/* ---- ending dead runs ---- */

static int end_run(struct recovery *r, const char *message_id)
{
        static const char SAYS[] = "the process that ran this died";
        struct buf b;
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "runId", r->run);
        if (message_id[0])
                jsonw_field_cstr(&w, "messageId", message_id);
        jsonw_field_cstr(&w, "code", "RUN_DIED");
        jsonw_field_cstr(&w, "message", SAYS);
        jsonw_field_bool(&w, "retryable", true);
        jsonw_object_end(&w);
        int rc = buf_check(&b, r->err);
        if (rc == 0)
                rc = backend_run_write(r->log, str_of(event_name(STENO_EVENT_RUN_ERROR)),
                    buf_str(&b), false, NULL, r->err);
        buf_clear(&b);
        w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "runId", r->run);
        jsonw_field_cstr(&w, "reason", "died");
        jsonw_object_end(&w);
        if (rc == 0)
                rc = buf_check(&b, r->err);
        if (rc == 0)
                rc = backend_run_write(r->log, str_of(event_name(STENO_EVENT_RUN_FINISHED)),
                    buf_str(&b), true, NULL, r->err);
        buf_release(&b);
        return rc;
}

/* A member of the first line, or a copy of `fallback`. */
static char *head_member(const struct run_state *s, const char *key, const char *fallback)
{
        struct json j;
        json_init(&j);
        char *text = NULL;
        if (json_parse(&j, s->head, strlen(s->head), NULL, NULL) == 0)
                text = json_dup_string(&j, json_get(&j, 0, key));
        json_release(&j);
        return text ? text : strdup(fallback);
}

/* The journal is ours, and has no end. */
static int complete_run(struct recovery *r, const char *name, const struct run_state *s)
{
        struct backend_conv *conv = r->conv->backend;
        struct rescue half;
        rescue_init(&half);
        char *mode = head_member(s, "mode", "chat");
        r->run = head_member(s, "id", name);
        int rc = r->run && mode ? 0 : error_nomem(r->err);
        if (rc == 0)
                rc = api_run_each_outcome(conv, name, complete, r, r->err);
        if (rc == 0)
                rc = rescue_read(&half, conv, name, r->err);
        if (rc == 0)
                rc = rescue_store(&half, r->conv, r->run, mode, r->err);
        if (rc == 0)
                rc = end_run(r, half.text.n || half.thinking.n ? half.message_id : "");
        if (rc == 0) {
                if (r->ended.n)
                        buf_putc(&r->ended, ',');
                json_put_string(&r->ended, str_of(r->run));
        }
        rescue_release(&half);
        free(mode);
        return rc;
}

/* How long to wait for another process that completes the same run. */
#define COMPLETING_MS 20000
#define LOOK_AGAIN_MS 5

/* 0 with r->log, or without it when the run has ended meanwhile. */
static int take_over(struct recovery *r, const char *name, struct run_state *s)
{
        struct backend_conv *conv = r->conv->backend;
        for (int waited = 0;; waited += LOOK_AGAIN_MS) {
                int rc = backend_run_fence(conv, name, r->err);
                if (rc == 0)
                        rc = backend_run_take_over(conv, name, &r->log, r->err);
                if (rc < 0)
                        return rc;
                backend_run_state_release(s);
                int looked = backend_run_look(conv, name, s, r->err);
                if (looked || s->finished || rc == 0)
                        return looked;
                if (waited >= COMPLETING_MS)
                        return error_set(r->err, STENO_ETIMEOUT,
                            "run \"%.64s\" is still being completed by another process after %d s",
                            name, COMPLETING_MS / 1000);
                wait_sleep(LOOK_AGAIN_MS);
        }
}

/* By its journal the run has ended, but text that it had shown may still be missing in the log. */
static int look_for_text(struct recovery *r, const char *name)
{
        struct backend_conv *conv = r->conv->backend;
        struct run_state s;
        struct rescue half;
        int rc = backend_run_look(conv, name, &s, r->err);
        if (rc)
                return rc;
        rescue_init(&half);
        char *mode = head_member(&s, "mode", "chat");
        char *id = head_member(&s, "id", name);
        rc = mode && id ? rescue_read(&half, conv, name, r->err) : error_nomem(r->err);
        if (rc == 0)
                rc = rescue_store(&half, r->conv, id, mode, r->err);
        free(mode);
        free(id);
        rescue_release(&half);
        backend_run_state_release(&s);
        if (rc == 0)
                backend_run_settle(conv, name);
        return rc;
}

static int recover_run(void *ctx, const char *name)
{
        struct recovery *r = ctx;
        struct backend_conv *conv = r->conv->backend;
        struct run_state s = {0};
        if (!backend_run_is_dead(conv, name))
                return 0;
        int rc = take_over(r, name, &s);
        if (rc == 0 && !s.finished)
                rc = complete_run(r, name, &s);
        backend_run_close(r->log);
        r->log = NULL;
        free(r->run);
        r->run = NULL;
        backend_run_state_release(&s);
        if (rc == 0)
                backend_run_settle(conv, name);
        return rc;
}

/* ---- open calls ---- */

/* A message with calls: remembers which run wrote it. */
struct caller {
        uint64_t seq;
        struct str run;
};

struct callers {
        struct recovery *r;
        struct pairing *pairing;
        struct arena arena;
        struct caller *list;
        size_t count;
        size_t cap;
        struct api_run_knowledge knowledge;
};

/* The last amendment of a message counts: the message before it no longer makes calls. */
static int add_caller(struct callers *c, uint64_t place, const struct about *about)
{
        for (size_t i = 0; i < c->count; i++) {
                if (c->list[i].seq != place)
                        continue;
                c->list[i].run = about->run;
                return 0;
        }
        if (!grow_room(c->list, c->count, c->cap))
                return STENO_ENOMEM;
        c->list[c->count++] = (struct caller){.seq = place, .run = about->run};
        return 0;
}

static int follow(void *ctx, const struct backend_record *r)
{
        struct callers *c = ctx;
        struct about about;
        struct buf id;
        uint64_t place;
        if (r->damaged || about_read(r->rec.x, &c->arena, &about, NULL))
                return c->arena.failed;
        struct pairing_match *m = arena_alloc(&c->arena, (about.answer_count + 1) * sizeof *m);
        buf_init(&id, 0);
        json_unescape(r->rec.id, &id, NULL);
        int rc = !m || id.failed
                     ? STENO_ENOMEM
                     : pairing_follow(c->pairing, r->rec.seq, buf_str(&id), &about, m, &place);
        buf_release(&id);
        if (rc == 0 && about.call_count && place)
                rc = add_caller(c, place, &about);
        return rc;
}

static int put_open(void *ctx, uint64_t seq, uint32_t index, struct str call)
{
        struct callers *c = ctx;
        char run[ID_MAX + 1];
        (void)index;
        for (size_t i = 0; i < c->count; i++) {
                struct caller *it = &c->list[i];
                if (it->seq != seq)
                        continue;
                enum repair_class class = api_run_classify(&c->knowledge, it->run, seq, call, NULL);
                snprintf(run, sizeof run, "%.*s", (int)it->run.n, it->run.n ? it->run.p : "");
                put_item(&c->r->open, it->run.n ? run : NULL, call, "class",
                    repair_class_name(class), seq);
        }
        return 0;
}

static int list_open(struct recovery *r)
{
        struct callers c = {.r = r, .pairing = pairing_new()};
        if (!c.pairing)
                return error_nomem(r->err);
        arena_init(&c.arena);
        api_run_knowledge_init(&c.knowledge, r->conv->backend);
        int rc = backend_read_last(r->conv->backend, PAIRING_WINDOW, follow, &c, r->err);
        if (rc == STENO_ENOMEM)
                error_nomem(r->err);
        if (rc == 0)
                rc = pairing_each_open(c.pairing, put_open, &c);
        api_run_knowledge_release(&c.knowledge);
        arena_release(&c.arena);
        free(c.list);
        pairing_free(c.pairing);
        return rc;
}

/* ---- the call ---- */

static int put_report(struct recovery *r, char **report)
{
        struct buf b;
        buf_init(&b, 0);
        const struct {
                const char *key;
                const struct buf *items;
        } lists[] = {{"completed", &r->completed}, {"refused", &r->refused}, {"ended", &r->ended},
            {"open", &r->open}};
        int failed = 0;
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
                buf_printf(&b, "%c\"%s\":[", i ? ',' : '{', lists[i].key);
                buf_put_str(&b, buf_str(lists[i].items));
                buf_putc(&b, ']');
                failed = failed ? failed : lists[i].items->failed;
        }
        buf_putc(&b, '}');
        char *text = failed ? NULL : buf_take(&b, NULL);
        buf_release(&b);
        if (!text)
                return error_nomem(r->err);
        *report = text;
        return 0;
}

static void recovery_init(struct recovery *r, struct steno_conv *conv, struct steno_error *err)
{
        *r = (struct recovery){.conv = conv, .err = err};
        buf_init(&r->completed, 0);
        buf_init(&r->refused, 0);
        buf_init(&r->ended, 0);
        buf_init(&r->open, 0);
}

static void recovery_release(struct recovery *r)
{
        buf_release(&r->completed);
        buf_release(&r->refused);
        buf_release(&r->ended);
        buf_release(&r->open);
}

/* Earlier versions ended a dead run without the text that it had shown. */
static bool ended_as_dead(struct backend_conv *conv, const char *name)
{
        struct run_state s;
        struct json j;
        if (backend_run_look(conv, name, &s, NULL))
                return false;
        json_init(&j);
        bool died = s.finished && json_parse(&j, s.last, strlen(s.last), NULL, NULL) == 0 &&
                    json_is(&j, json_get(&j, 0, "reason"), "died");
        json_release(&j);
        backend_run_state_release(&s);
        return died;
}

static int recover_any(void *ctx, const char *name)
{
        struct recovery *r = ctx;
        return ended_as_dead(r->conv->backend, name) ? look_for_text(r, name)
                                                     : recover_run(r, name);
}

/* Every run, whatever the claim says. */
static int recover_all(struct recovery *r)
{
        int rc = backend_run_each(r->conv->backend, recover_any, r, r->err);
        if (rc == 0)
                backend_run_settle_all(r->conv->backend);
        return rc;
}

int api_recover(struct steno_conv *conv, struct steno_error *err)
{
        char name[PLAIN_NAME_MAX + 1];
        enum run_life life;
        struct recovery r;
        int rc = backend_run_last(conv->backend, name, &life, err);
        if (rc || life == RUN_ENDED || life == RUN_LIVE)
                return rc;
        recovery_init(&r, conv, err);
        rc = life == RUN_UNKNOWN  ? recover_all(&r)
             : life == RUN_FAILED ? look_for_text(&r, name)
                                  : recover_run(&r, name);
        recovery_release(&r);
        return rc;
}

/* The conversation as it would be if it could be written to. NULL: not even that is possible. */
static struct steno_conv *recover_aside(struct steno_conv *conv)
{
        struct steno_conv *shown = NULL;
        char name[PLAIN_NAME_MAX + 1];
        enum run_life life;
        if (backend_run_last(conv->backend, name, &life, NULL) || life == RUN_ENDED ||
            life == RUN_LIVE || api_aside_open(conv, name, &shown, NULL))
                return NULL;
        if (api_recover(shown, NULL)) {
                steno_conv_close(shown);
                return NULL;
        }
        return shown;
}

struct steno_conv *api_recover_to_read(struct steno_conv *conv)
{
        struct steno_error err = {0};
        int rc = api_recover(conv, &err);
        if (rc == 0)
                return NULL;
        bool cannot_write = rc == STENO_EDENIED || rc == STENO_EFULL;
        struct steno_conv *shown = cannot_write ? recover_aside(conv) : NULL;
        api_store_warn(conv->store,
            shown
                ? "a run of conversation \"%.100s\" died. What it left is shown, but could not be "
                  "stored: %s"
                : "a run of conversation \"%.100s\" died, and what it left could not be "
                  "completed: %s",
            steno_conv_id(conv), err.msg);
        return shown;
}

/* 1 when its last run was dead and is completed now. */
static uint32_t recover_one(struct steno_store *store, const char *project, const char *id)
{
        struct steno_conv *conv;
        struct backend_conv *backend;
        char name[PLAIN_NAME_MAX + 1];
        enum run_life before, after = RUN_DEAD;
        if (backend_conv_open(store->backend, str_of(project), str_of(id), &backend, NULL) ||
            api_conv_wrap(store, backend, &conv, NULL))
                return 0;
        bool dead = backend_run_last(conv->backend, name, &before, NULL) == 0 &&
                    before != RUN_ENDED && before != RUN_LIVE;
        if (dead)
                steno_conv_close(api_recover_to_read(conv));
        dead =
            dead && backend_run_last(conv->backend, name, &after, NULL) == 0 && after == RUN_ENDED;
        steno_conv_close(conv);
        return dead;
}

uint32_t api_recover_listed(struct steno_store *store, const char *project, uint32_t max)
{
        char *list = NULL;
        struct json j;
        uint32_t completed = 0;
        if (backend_unfinished(store->backend, project, max, &list, NULL))
                return 0;
        json_init(&j);
        int rc = json_parse(&j, list, strlen(list), NULL, NULL);
        for (json_ref e = rc ? JSON_NONE : json_child(&j, 0); e != JSON_NONE;
             e = json_next(&j, 0, e)) {
                json_ref first = json_child(&j, e);
                char *of = json_dup_string(&j, first);
                char *id = json_dup_string(&j, json_next(&j, e, first));
                if (of && id)
                        completed += recover_one(store, of, id);
                free(of);
                free(id);
        }
        json_release(&j);
        free(list);
        return completed;
}

int steno_recover(struct steno_store *store, uint64_t *completed, struct steno_error *err)
{
        int rc = api_store_catch_up(store, err);
        uint32_t n = rc ? 0 : api_recover_listed(store, NULL, UINT32_MAX);
        if (rc == 0 && completed)
                *completed = n;
        return rc;
}

int steno_conv_recover(struct steno_conv *conv, char **report, struct steno_error *err)
{
        struct recovery r;
        recovery_init(&r, conv, err);
        int rc = recover_all(&r);
        if (rc == 0 && report)
                rc = list_open(&r);
        if (rc == 0 && report)
                rc = put_report(&r, report);
        recovery_release(&r);
        return rc;
}
