/*
 * api_run.c - runs as callers of include/steno.h see them: a writer, and readers by run id.
 */
#include "api/api_run.h"
#include "api/api_recover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"
#include "model/event.h"

struct steno_run {
        struct steno_store *store;
        struct backend_claim *claim;
        struct backend_run *log; /* NULL until it is started */
        struct backend_conv *conv;
        char *id;
        char *mode;
        steno_run_mail_fn listen;
        void *listen_ctx;
        uint64_t caller; /* seq of the message whose calls are carried out, 0: not known */
};

/* Between completing a dead run and claiming, another one may have begun and died. */
#define CLAIM_TRIES 8
/* A claim is let go after its run's last event is there for all to read. */
#define ENDING_MS 10000
#define ENDING_PAUSE_MS 10

/* ---- finding one ---- */

int api_run_find(struct steno_store *store, const char *project, const char *run_id,
    struct backend_conv **conv, char name[65], struct steno_error *err)
{
        struct str p;
        struct str id = str_of(run_id);
        int rc = api_store_project(project, &p, err);
        if (rc)
                return rc;
        if (id_is_legal(id, ID_MAX)) {
                if (id_file_name(id, name))
                        return error_nomem(err);
                rc = backend_run_find(store->backend, p, name, conv, err);
        } else {
                rc = STENO_ENOTFOUND;
        }
        if (rc == STENO_ENOTFOUND)
                error_set(err, rc, "no run \"%.100s\" in project \"%.100s\"", run_id, p.p);
        return rc;
}

/* ---- writing ---- */

static int check_mode(const char *mode, struct steno_error *err)
{
        if (mode &&
            (strcmp(mode, "chat") == 0 || strcmp(mode, "agent") == 0 || strcmp(mode, "run") == 0))
                return 0;
        return error_set(err, STENO_EINVAL, "a run's mode is chat, agent or run, not \"%.40s\"",
            mode ? mode : "");
}

/* ---- ids ---- */

void steno_run_make_id(struct steno_store *store, const char *prefix, char id[48])
{
        id_make(store->env, prefix, id);
        pthread_mutex_lock(&store->mutex);
        store->made[store->made_next++ % MADE_IDS] = hash_64(id, strlen(id));
        pthread_mutex_unlock(&store->mutex);
}

static bool was_made(struct steno_store *store, const char *id)
{
        uint64_t hash = hash_64(id, strlen(id));
        size_t i = 0;
        pthread_mutex_lock(&store->mutex);
        while (i < MADE_IDS && store->made[i] != hash)
                i++;
        pthread_mutex_unlock(&store->mutex);
        return i < MADE_IDS;
}

/* An id that a caller chose must be free in the whole project: runs are found by it alone. */
static int check_free(struct steno_conv *conv, const char *id, struct steno_error *err)
{
        struct backend_conv *other;
        char name[65];
        if (!id_is_legal(str_of(id), ID_MAX))
                return error_set(err, STENO_EINVAL,
                    "a run id is 1 to %d bytes of UTF-8 without control characters", ID_MAX);
        if (was_made(conv->store, id))
                return 0;
        int rc = api_run_find(conv->store, steno_conv_project(conv), id, &other, name, err);
        if (rc == STENO_ENOTFOUND)
                return 0;
        if (rc)
                return rc;
        backend_conv_release(other);
        return error_set(err, STENO_ECONFLICT, "run \"%.100s\" exists already", id);
}

/* The last run has written its last event, and its holder has not let go of its claim yet. */
static bool is_ending(struct steno_run *run)
{
        char name[PLAIN_NAME_MAX + 1];
        enum run_life life;
        return backend_run_last(run->conv, name, &life, NULL) == 0 && life == RUN_ENDED;
}

/* A dead run is completed before another one begins (run.h, J7). A client that has read the end of
 * a run may begin the next one at once, so this waits until the claim is released. */
static int claim_in_turn(struct steno_conv *conv, struct steno_run *run, struct steno_error *err)
{
        int64_t until = time_monotonic_ms() + ENDING_MS;
        int rc = 1;
        for (int tries = 0; rc == 1 && tries < CLAIM_TRIES;) {
                rc = api_recover(conv, err);
                if (rc == 0)
                        rc = backend_run_claim(run->conv, str_of(run->id), &run->claim, err);
                if (rc == STENO_ECONFLICT && time_monotonic_ms() < until && is_ending(run)) {
                        wait_sleep(ENDING_PAUSE_MS);
                        rc = 1;
                } else {
                        tries++;
                }
        }
        return rc == 1 ? error_set(err, STENO_ECONFLICT,
                             "the last run of this conversation may be alive on another machine")
                       : rc;
}

int steno_run_claim(struct steno_conv *conv, const char *id, const char *mode,
    struct steno_run **out, struct steno_error *err)
{
        char made[48];
        int rc = check_mode(mode, err);
        if (rc == 0 && id)
                rc = check_free(conv, id, err);
        if (rc)
                return rc;
        if (!id) {
                id_make(conv->store->env, "run_", made);
                id = made;
        }
        struct steno_run *run = calloc(1, sizeof *run);
        if (!run)
                return error_nomem(err);
        /* References of its own: the caller may close its handles before the run. */
        run->store = conv->store;
        api_store_hold(run->store);
        run->id = strdup(id);
        run->mode = strdup(mode);
        rc = run->id && run->mode ? 0 : error_nomem(err);
        if (rc == 0)
                rc = backend_conv_open(conv->store->backend, str_of(steno_conv_project(conv)),
                    str_of(steno_conv_id(conv)), &run->conv, err);
        if (rc == 0)
                rc = claim_in_turn(conv, run, err);
        if (rc) {
                steno_run_close(run);
                return rc;
        }
        *out = run;
        return 0;
}

int steno_run_start(struct steno_run *run, struct steno_error *err)
{
        if (run->log)
                return error_set(err, STENO_EINVAL, "run \"%.100s\" was started before", run->id);
        return backend_run_create(run->conv, str_of(run->id), str_of(run->mode), &run->log, err);
}

int steno_run_begin(struct steno_conv *conv, const char *id, const char *mode,
    struct steno_run **out, struct steno_error *err)
{
        struct steno_run *run;
        int rc = steno_run_claim(conv, id, mode, &run, err);
        if (rc)
                return rc;
        rc = steno_run_start(run, err);
        if (rc)
                steno_run_close(run);
        else
                *out = run;
        return rc;
}

const char *steno_run_id(const struct steno_run *run)
{
        return run->id;
}

void steno_run_close(struct steno_run *run)
{
        if (!run)
                return;
        backend_run_close(run->log);
        backend_run_claim_release(run->claim, false);
        backend_conv_release(run->conv);
        api_store_release(run->store);
        free(run->id);
        free(run->mode);
        free(run);
}

/* Copies a JSON object onto one line behind what is in `out`. */
static int put_object(
    struct buf *out, const char *what, const char *json, size_t n, struct steno_error *err)
{
        struct json_fault fault = {0};
        size_t first = 0;
        while (first < n && strchr(" \t\r\n", json[first]))
                first++;
        if (n > MESSAGE_MAX)
                return error_set(
                    err, STENO_ELIMIT, "%s of %zu bytes; the most is %zu", what, n, MESSAGE_MAX);
        if (!json_valid(json, n, &fault))
                return error_set(err, STENO_EPROTO, "%s: byte %zu: %s", what, fault.offset,
                    fault.what ? fault.what : "not JSON");
        if (json[first] != '{')
                return error_set(err, STENO_EPROTO, "%s must be an object", what);
        size_t at = out->n;
        buf_put(out, json, n);
        if (!out->failed)
                json_single_line(out->p + at, n);
        return 0;
}

static int write_event(struct steno_run *run, const char *type, const struct buf *data, bool sync,
    uint64_t *seq, struct steno_error *err)
{
        int rc = buf_check(data, err);
        if (rc == 0 && !run->log)
                rc = error_set(err, STENO_EINVAL, "run \"%.100s\" is not started", run->id);
        if (rc == 0)
                rc = backend_run_claim_check(run->claim, err);
        return rc ? rc : backend_run_write(run->log, str_of(type), buf_str(data), sync, seq, err);
}

/* These have calls of their own, because recovery relies on what is in them. */
static bool is_of_the_store(const char *type)
{
        enum steno_event event = event_find(type);
        return event == STENO_EVENT_DISPATCH || event == STENO_EVENT_OUTCOME;
}

/* A run that failed may have failed to store what it had shown. */
static bool says_error(struct str data)
{
        struct json j;
        json_init(&j);
        bool error = json_parse(&j, data.p, data.n, NULL, NULL) == 0 &&
                     json_is(&j, json_get(&j, 0, "reason"), "error");
        json_release(&j);
        return error;
}

int steno_run_event(struct steno_run *run, const char *type, const char *data, size_t n,
    int durability, uint64_t *seq, struct steno_error *err)
{
        struct buf b;
        if (!id_is_legal(str_of(type), ID_MAX) || is_of_the_store(type))
                return error_set(err, STENO_EINVAL, "\"%.40s\" is not a type of event", type);
        if (durability != STENO_FULL && durability != STENO_PROCESS)
                return error_set(err, STENO_EINVAL, "there is no durability %d", durability);
        buf_init(&b, 0);
        int rc = put_object(&b, "an event", data, n, err);
        if (rc == 0)
                rc = write_event(run, type, &b, durability == STENO_FULL, seq, err);
        bool failed =
            rc == 0 && event_is(str_of(type), STENO_EVENT_RUN_FINISHED) && says_error(buf_str(&b));
        buf_release(&b);
        if (rc == 0 && event_is(str_of(type), STENO_EVENT_RUN_FINISHED)) {
                /* A process that reads that the run has ended may begin the next one. */
                backend_run_claim_release(run->claim, durability == STENO_FULL && !failed);
                run->claim = NULL;
        }
        return rc;
}

int api_run_claim(const struct steno_run *run, const struct steno_conv *conv,
    const struct backend_claim **out, struct steno_error *err)
{
        if (strcmp(backend_conv_id(run->conv), steno_conv_id(conv)) != 0 ||
            strcmp(backend_conv_project(run->conv), steno_conv_project(conv)) != 0)
                return error_set(
                    err, STENO_EINVAL, "run \"%.100s\" is of another conversation", run->id);
        *out = run->claim;
        return 0;
}

int steno_run_check(struct steno_run *run, struct steno_error *err)
{
        return backend_run_claim_check(run->claim, err);
}

static void hand_mail(void *ctx, struct str line)
{
        struct steno_run *run = ctx;
        api_mail_read(line, run->id, run->listen, run->listen_ctx);
}

void steno_run_listen(struct steno_run *run, steno_run_mail_fn fn, void *ctx)
{
        backend_run_claim_listen(run->claim, NULL, NULL);
        run->listen = fn;
        run->listen_ctx = ctx;
        if (fn)
                backend_run_claim_listen(run->claim, hand_mail, run);
}

void steno_run_set_caller(struct steno_run *run, uint64_t seq)
{
        run->caller = seq;
}

static void begin_lifecycle(const struct steno_run *run, struct jsonw *w, struct buf *b,
    uint64_t request, const char *call_id)
{
        *w = jsonw_to(b);
        jsonw_object(w);
        jsonw_field_u64(w, "request", request);
        jsonw_field_cstr(w, "call", call_id);
        if (run->caller)
                jsonw_field_u64(w, "of", run->caller);
}

static int check_call(const char *call_id, struct steno_error *err)
{
        if (call_id && strlen(call_id) <= CALL_ID_MAX)
                return 0;
        return error_set(err, STENO_EINVAL, "a call id has at most %d bytes", CALL_ID_MAX);
}

int steno_run_dispatch(struct steno_run *run, uint64_t request, const char *call_id,
    const char *tool, const char *args, size_t n, struct steno_error *err)
{
        char hex[SHA256_HEX];
        uint64_t after;
        struct buf b;
        struct jsonw w;
        int rc = check_call(call_id, err);
        /* Which message's call this is, where ids come back every turn: the last in the log. */
        if (rc == 0)
                rc = backend_last(run->conv, &after, NULL, err);
        if (rc)
                return rc;
        if (hash_sha256_hex(args, n, hex))
                return error_nomem(err);
        buf_init(&b, 0);
        begin_lifecycle(run, &w, &b, request, call_id);
        jsonw_field_cstr(&w, "tool", tool ? tool : "");
        jsonw_field_cstr(&w, "sha256", hex);
        jsonw_field_u64(&w, "after", after);
        jsonw_object_end(&w);
        rc = write_event(run, event_name(STENO_EVENT_DISPATCH), &b, true, NULL, err);
        buf_release(&b);
        return rc;
}

int steno_run_outcome(struct steno_run *run, uint64_t request, const char *call_id,
    const char *message, size_t n, struct steno_error *err)
{
        struct buf b;
        struct jsonw w;
        int rc = check_call(call_id, err);
        if (rc)
                return rc;
        buf_init(&b, 0);
        begin_lifecycle(run, &w, &b, request, call_id);
        jsonw_key(&w, "message");
        rc = put_object(&b, "an outcome", message, n, err);
        buf_putc(&b, '}');
        if (rc == 0)
                rc = write_event(run, event_name(STENO_EVENT_OUTCOME), &b, true, NULL, err);
        buf_release(&b);
        return rc;
}

/* ---- reading ---- */

struct reading {
        steno_event_fn each;
        void *ctx;
        struct buf type;
        struct buf data;
        int answer;
};

static int hand_out(void *ctx, const struct run_event *e)
{
        struct reading *r = ctx;
        char at[TIME_TEXT];
        buf_clear(&r->type);
        buf_clear(&r->data);
        json_unescape(e->type, &r->type, NULL);
        buf_put_str(&r->data, e->data);
        snprintf(at, sizeof at, "%.*s", (int)e->at.n, e->at.p);
        const char *type = buf_cstr(&r->type);
        const char *data = buf_cstr(&r->data);
        if (!type || !data)
                return STENO_ENOMEM;
        r->answer = r->each(r->ctx, e->seq, at, type, data, e->data.n);
        return r->answer != 0;
}

int steno_run_read(struct steno_store *store, const char *project, const char *run_id,
    uint64_t after_seq, steno_event_fn each, void *ctx, struct steno_error *err)
{
        struct backend_conv *conv;
        char name[65];
        struct reading r = {.each = each, .ctx = ctx};
        int rc = api_run_find(store, project, run_id, &conv, name, err);
        if (rc)
                return rc;
        buf_init(&r.type, 0);
        buf_init(&r.data, 0);
        rc = backend_run_read(conv, name, after_seq, hand_out, &r, err);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        buf_release(&r.type);
        buf_release(&r.data);
        backend_conv_release(conv);
        return rc < 0 ? rc : r.answer;
}

int steno_run_wait(struct steno_store *store, const char *project, const char *run_id,
    uint64_t after_seq, int timeout_ms, struct steno_error *err)
{
        struct backend_conv *conv;
        char name[65];
        int rc = api_run_find(store, project, run_id, &conv, name, err);
        if (rc)
                return rc;
        rc = backend_run_wait(conv, name, after_seq, timeout_ms, err);
        backend_conv_release(conv);
        return rc;
}

/* ---- what there is ---- */

/* A text member of a small object, or a fallback. */
static void put_member(struct jsonw *w, const char *key, const struct json *j, const char *fallback)
{
        char *text = json_dup_string(j, json_get(j, 0, key));
        jsonw_field_cstr(w, key, text ? text : fallback);
        free(text);
}

static void put_reason(struct jsonw *w, const struct run_state *s)
{
        struct json j;
        json_init(&j);
        if (s->finished && json_parse(&j, s->last, strlen(s->last), NULL, NULL) == 0 &&
            json_type(&j, json_get(&j, 0, "reason")) == JSON_STRING)
                put_member(w, "reason", &j, "");
        json_release(&j);
}

static const char *state_of(struct backend_conv *conv, const char *name, const struct run_state *s)
{
        if (s->finished)
                return "finished";
        return s->held || !backend_run_is_dead(conv, name) ? "running" : "dead";
}

int api_run_put_info(struct backend_conv *conv, const char *name, struct jsonw *w,
    char at[TIME_TEXT], struct steno_error *err)
{
        struct run_state s;
        struct json j;
        int rc = backend_run_look(conv, name, &s, err);
        if (rc)
                return rc;
        json_init(&j);
        /* With a damaged first line only the mode is unknown. */
        json_parse(&j, s.head, strlen(s.head), NULL, NULL);
        jsonw_object(w);
        put_member(w, "id", &j, name);
        jsonw_field_cstr(w, "conversation", backend_conv_id(conv));
        jsonw_field_cstr(w, "project", backend_conv_project(conv));
        put_member(w, "mode", &j, NULL);
        jsonw_field_cstr(w, "state", state_of(conv, name, &s));
        jsonw_field_cstr(w, "startedAt", s.at[0] ? s.at : NULL);
        jsonw_field_u64(w, "lastSeq", s.seq);
        put_reason(w, &s);
        jsonw_object_end(w);
        if (at)
                memcpy(at, s.at, TIME_TEXT);
        json_release(&j);
        backend_run_state_release(&s);
        return 0;
}

static int take_json(struct buf *b, char **json, struct steno_error *err)
{
        int rc = buf_check(b, err);
        char *text = rc ? NULL : buf_take(b, NULL);
        if (rc == 0 && !text)
                rc = error_nomem(err);
        if (rc == 0)
                *json = text;
        return rc;
}

int steno_run_info(struct steno_store *store, const char *project, const char *run_id, char **json,
    struct steno_error *err)
{
        struct backend_conv *conv;
        char name[65];
        struct buf b;
        int rc = api_run_find(store, project, run_id, &conv, name, err);
        if (rc)
                return rc;
        buf_init(&b, MIB);
        struct jsonw w = jsonw_to(&b);
        rc = api_run_put_info(conv, name, &w, NULL, err);
        if (rc == 0)
                rc = take_json(&b, json, err);
        buf_release(&b);
        backend_conv_release(conv);
        return rc;
}

/* ---- a conversation's runs ---- */

struct listed {
        char at[TIME_TEXT];
        char name[65];
        char *json;
};

struct listing {
        struct backend_conv *conv;
        struct listed *list;
        size_t count;
        size_t cap;
        struct steno_error *err;
};

static int list_one(void *ctx, const char *name)
{
        struct listing *l = ctx;
        struct buf b;
        if (!grow_room(l->list, l->count, l->cap))
                return error_nomem(l->err);
        struct listed *it = &l->list[l->count];
        snprintf(it->name, sizeof it->name, "%s", name);
        buf_init(&b, MIB);
        struct jsonw w = jsonw_to(&b);
        int rc = api_run_put_info(l->conv, name, &w, it->at, l->err);
        if (rc == 0)
                rc = take_json(&b, &it->json, l->err);
        buf_release(&b);
        if (rc == 0)
                l->count++;
        return rc == STENO_ENOTFOUND ? 0 : rc;
}

static int newest_first(const void *a, const void *b)
{
        const struct listed *x = a, *y = b;
        int by_time = strcmp(y->at, x->at);
        return by_time ? by_time : strcmp(y->name, x->name);
}

int steno_run_list(struct steno_conv *conv, char **json, struct steno_error *err)
{
        struct listing l = {.conv = conv->backend, .err = err};
        struct buf b;
        buf_init(&b, 0);
        int rc = backend_run_each(conv->backend, list_one, &l, err);
        if (rc == 0 && l.count)
                qsort(l.list, l.count, sizeof *l.list, newest_first);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "items");
        jsonw_array(&w);
        for (size_t i = 0; i < l.count; i++) {
                jsonw_raw(&w, str_of(l.list[i].json));
                free(l.list[i].json);
        }
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        if (rc == 0)
                rc = take_json(&b, json, err);
        free(l.list);
        buf_release(&b);
        return rc;
}
