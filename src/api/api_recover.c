/*
 * api_recover.c - after a crash: what a dead run's journal knows and the log does not.
 *
 * A tool's outcome is synced to the journal before anyone is told, and appended to the log
 * afterwards under the id that it carries. A crash in between is completed here; doing it twice
 * is doing it once, because ids are (F1, F2). No tool is run again (F16).
 */
#include "api/api_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/pairing.h"
#include "model/event.h"

struct recovery {
        struct steno_conv *conv;
        struct buf completed; /* members of the report's arrays */
        struct buf refused;
        struct buf ended;
        struct buf open;
        struct run_log *log; /* the journal at work */
        char *run;           /* its run's id */
        struct steno_error *err;
};

/* ---- outcomes ---- */

static int found(void *ctx, const struct files_record *r)
{
        (void)r;
        *(bool *)ctx = true;
        return 0;
}

static bool in_log(struct recovery *r, struct str id)
{
        bool there = false;
        return files_read_id(r->conv->files, id, found, &there, NULL) == 0 && there;
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

/* Appends an outcome's message unless its id is there. */
static int complete(void *ctx, const struct run_outcome *o)
{
        struct recovery *r = ctx;
        struct steno_append_options opt = {.size = sizeof opt};
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
        free(id);
        rc = steno_append(r->conv, o->message.p, o->message.n, &opt, &receipt, &why);
        if (rc == 0 && !steno_receipt_replayed(receipt)) {
                put_item(
                    &r->completed, r->run, o->call, NULL, NULL, steno_receipt_first_seq(receipt));
        } else if (rc == STENO_EPROTO || rc == STENO_ECONFLICT) {
                /* The call was answered otherwise, or is not in the log. The journal keeps it. */
                put_item(&r->refused, r->run, o->call, "why", why.msg, 0);
                rc = 0;
        } else if (rc && r->err) {
                *r->err = why;
        }
        steno_receipt_free(receipt);
        return rc;
}

/* ---- ending dead runs ---- */

static int end_run(struct recovery *r)
{
        static const char SAYS[] = "the process that ran this died";
        struct buf b;
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "runId", r->run);
        jsonw_field_cstr(&w, "code", "RUN_DIED");
        jsonw_field_cstr(&w, "message", SAYS);
        jsonw_field_bool(&w, "retryable", true);
        jsonw_object_end(&w);
        int rc = buf_check(&b, r->err);
        if (rc == 0)
                rc = run_write(r->log, str_of(event_name(STENO_EVENT_RUN_ERROR)), buf_str(&b),
                    false, NULL, r->err);
        buf_clear(&b);
        w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "runId", r->run);
        jsonw_field_cstr(&w, "reason", "died");
        jsonw_object_end(&w);
        if (rc == 0)
                rc = buf_check(&b, r->err);
        if (rc == 0)
                rc = run_write(r->log, str_of(event_name(STENO_EVENT_RUN_FINISHED)), buf_str(&b),
                    true, NULL, r->err);
        buf_release(&b);
        return rc;
}

/* The id that the first line says, else the journal's name. */
static char *run_id_of(const struct run_state *s, const char *name)
{
        struct json j;
        json_init(&j);
        char *id = NULL;
        if (json_parse(&j, s->head, strlen(s->head), NULL, NULL) == 0)
                id = json_dup_string(&j, json_get(&j, 0, "id"));
        json_release(&j);
        return id ? id : strdup(name);
}

static int recover_run(void *ctx, const char *name)
{
        struct recovery *r = ctx;
        struct files_conv *conv = r->conv->files;
        struct run_state s = {0};
        int rc = run_look(conv, name, &s, r->err);
        if (rc || s.finished || s.held)
                goto out;
        rc = run_take_over(conv, name, &r->log, r->err);
        if (rc == 1) {
                rc = 0; /* someone was quicker */
                goto out;
        }
        run_state_release(&s);
        if (rc == 0)
                rc = run_look(conv, name, &s, r->err);
        if (rc || s.finished)
                goto out;
        r->run = run_id_of(&s, name);
        rc = r->run ? api_run_each_outcome(conv, name, complete, r, r->err) : error_nomem(r->err);
        if (rc == 0)
                rc = end_run(r);
        if (rc == 0) {
                if (r->ended.n)
                        buf_putc(&r->ended, ',');
                json_put_string(&r->ended, str_of(r->run));
        }
out:
        run_log_close(r->log);
        r->log = NULL;
        free(r->run);
        r->run = NULL;
        run_state_release(&s);
        return rc;
}

/* ---- open calls ---- */

/* A message with calls: whose run it is of. */
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

/* The last word about a place counts: what stood there before makes no calls any more. */
static int add_caller(struct callers *c, uint64_t place, const struct about *about)
{
        for (size_t i = 0; i < c->count; i++) {
                if (c->list[i].seq != place)
                        continue;
                c->list[i].run = about->run;
                return 0;
        }
        if (c->count == c->cap) {
                size_t cap = c->cap ? c->cap * 2 : 32;
                struct caller *list = realloc(c->list, cap * sizeof *list);
                if (!list)
                        return STENO_ENOMEM;
                c->list = list;
                c->cap = cap;
        }
        c->list[c->count++] = (struct caller){.seq = place, .run = about->run};
        return 0;
}

static int follow(void *ctx, const struct files_record *r)
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
                enum repair_class class = api_run_classify(&c->knowledge, it->run, seq, call);
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
        api_run_knowledge_init(&c.knowledge, r->conv->files);
        int rc = files_read_last(r->conv->files, PAIRING_WINDOW, follow, &c, r->err);
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

int steno_conv_recover(struct steno_conv *conv, char **report, struct steno_error *err)
{
        struct recovery r = {.conv = conv, .err = err};
        struct buf *lists[] = {&r.completed, &r.refused, &r.ended, &r.open};
        for (size_t i = 0; i < 4; i++)
                buf_init(lists[i], 0);
        int rc = run_each(conv->files, recover_run, &r, err);
        if (rc == 0 && report)
                rc = list_open(&r);
        if (rc == 0 && report)
                rc = put_report(&r, report);
        for (size_t i = 0; i < 4; i++)
                buf_release(lists[i]);
        return rc;
}
