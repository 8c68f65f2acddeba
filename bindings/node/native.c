/*
 * native.c - the calls of steno.h for Node.js, over Node-API.
 *
 * One function is exported, call(name, handle, text, numbers), which returns a promise. Each call
 * of the library is a row of the table at the end: a function that runs on a thread of Node's pool,
 * reads its arguments from the job and leaves its answer there. What is comfortable (options,
 * classes, iterators) is index.js.
 *
 * Handles are externals that keep their parent alive and are closed by close() or by the garbage
 * collector, never while a call uses them: a call holds a reference to its handle until its promise
 * is settled, and a close that comes earlier is done by the last call.
 */
#define _GNU_SOURCE
#define NAPI_VERSION 8
#include <node_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <steno.h>

enum { MAX_TEXT = 8, MAX_NUM = 8 };

enum handle_kind { STORE, CONV };

struct handle {
        enum handle_kind kind;
        void *p;       /* NULL once it is closed */
        unsigned busy; /* calls at work */
        bool closing;
};

struct job {
        napi_async_work work;
        napi_deferred deferred;
        napi_ref keeps; /* the handle's value, so that it is not collected meanwhile */
        struct handle *handle;
        int (*run)(struct job *j);
        char *text[MAX_TEXT]; /* NULL where null or undefined was given */
        size_t text_n[MAX_TEXT];
        double num[MAX_NUM];
        /* the answer */
        int rc;
        struct steno_error err;
        char *json; /* JSON text, or NULL */
        size_t json_n;
        char *report;  /* JSON text, or NULL */
        bool bytes;    /* json holds bytes for a Buffer */
        double number; /* when there is no json */
        struct handle *made;
};

/* ---- what the calls share ---- */

static void *of(struct job *j)
{
        return j->handle->p;
}

/* The text that the call has put into j->json is the answer. */
static int answered(struct job *j, int rc)
{
        j->json_n = rc >= 0 && j->json ? strlen(j->json) : 0;
        return rc < 0 ? rc : 0;
}

static int out_of_memory(struct job *j)
{
        j->err.code = STENO_ENOMEM;
        snprintf(j->err.msg, sizeof(j->err.msg), "out of memory");
        return STENO_ENOMEM;
}

static int make_handle(struct job *j, enum handle_kind kind, void *p)
{
        j->made = calloc(1, sizeof(*j->made));
        if (!j->made) {
                if (kind == STORE)
                        steno_close(p);
                else
                        steno_conv_close(p);
                return out_of_memory(j);
        }
        j->made->kind = kind;
        j->made->p = p;
        return 0;
}

static int gather(void *ctx, const void *p, size_t n)
{
        struct job *j = ctx;
        /* Room grows by doubling; json_n counts what is used, number the room. */
        size_t room = (size_t)j->number;
        if (j->json_n + n + 1 > room) {
                while (room < j->json_n + n + 1)
                        room = room ? room * 2 : 4096;
                char *more = realloc(j->json, room);
                if (!more)
                        return -1;
                j->json = more;
                j->number = (double)room;
        }
        memcpy(j->json + j->json_n, p, n);
        j->json_n += n;
        return 0;
}

static int receipt(struct job *j, int rc, struct steno_receipt *r)
{
        if (rc < 0)
                return rc;
        j->json = strdup(steno_receipt_json(r));
        j->json_n = j->json ? strlen(j->json) : 0;
        j->number = steno_receipt_replayed(r);
        steno_receipt_free(r);
        return j->json ? 0 : out_of_memory(j);
}

/* ---- the calls; each says what it takes ---- */

/* text: url, seal key; num: flags */
static int call_open(struct job *j)
{
        struct steno_open_options opt = {
            .size = sizeof(opt), .flags = (uint32_t)j->num[0], .seal_key = j->text[1]};
        struct steno_store *s;
        int rc = steno_open(j->text[0], &opt, &s, &j->err);
        return rc < 0 ? rc : make_handle(j, STORE, s);
}

/* text: project, id or null, meta or null */
static int call_create(struct job *j)
{
        struct steno_conv *c;
        int rc = steno_conv_create(of(j), j->text[0], j->text[1], j->text[2], &c, &j->err);
        return rc < 0 ? rc : make_handle(j, CONV, c);
}

/* text: project, id */
static int call_conversation(struct job *j)
{
        struct steno_conv *c;
        int rc = steno_conv_open(of(j), j->text[0], j->text[1], &c, &j->err);
        return rc < 0 ? rc : make_handle(j, CONV, c);
}

static int call_id(struct job *j)
{
        j->json = strdup(steno_conv_id(of(j)));
        return j->json ? answered(j, 0) : out_of_memory(j);
}

/* text: project or null, cursor, query; num: limit, complete */
static int call_list(struct job *j)
{
        struct steno_list_options opt = {.size = sizeof(opt),
            .limit = (uint32_t)j->num[0],
            .cursor = j->text[1],
            .query = j->text[2],
            .complete = (int)j->num[1]};
        return answered(j, steno_list(of(j), j->text[0], &opt, &j->json, &j->err));
}

/* text: project, id */
static int call_remove(struct job *j)
{
        return answered(j, steno_remove(of(j), j->text[0], j->text[1], &j->json, &j->err));
}

/* text: messages, format, idempotency key, message id, via; num: flags, durability, expected seq */
static int call_append(struct job *j)
{
        struct steno_append_options opt = {.size = sizeof(opt),
            .flags = (uint32_t)j->num[0],
            .durability = (int)j->num[1],
            .expected_seq = (uint64_t)j->num[2],
            .format = j->text[1],
            .idempotency_key = j->text[2],
            .message_id = j->text[3],
            .via = j->text[4]};
        struct steno_receipt *r = NULL;
        int rc = steno_append(of(j), j->text[0], j->text_n[0], &opt, &r, &j->err);
        return receipt(j, rc, r);
}

/* text: kind, target, json or null, format; num: flags */
static int call_amend(struct job *j)
{
        struct steno_append_options opt = {
            .size = sizeof(opt), .flags = (uint32_t)j->num[0], .format = j->text[3]};
        struct steno_receipt *r = NULL;
        int rc =
            steno_amend(of(j), j->text[0], j->text[1], j->text[2], j->text_n[2], &opt, &r, &j->err);
        return receipt(j, rc, r);
}

/* text: format, edits, pin, via; num: budget, after, before, limit, last, outputs,
 * flags (1 strict, 2 all messages, 4 own bytes, 8 count tokens, 16 every message) */
static int call_view(struct job *j)
{
        unsigned flags = (unsigned)j->num[6];
        struct steno_view_options opt = {.size = sizeof(opt),
            .format = j->text[0],
            .edit_strategies = j->text[1],
            .pin = j->text[2],
            .via = j->text[3],
            .budget = (uint64_t)j->num[0],
            .after_seq = (uint64_t)j->num[1],
            .before_seq = (uint64_t)j->num[2],
            .limit = (uint64_t)j->num[3],
            .last = (uint64_t)j->num[4],
            .outputs = (int)j->num[5],
            .strict = flags & 1,
            .all_messages = flags & 2,
            .own_bytes = flags & 4,
            .count_tokens = flags & 8,
            .every_message = flags & 16};
        return steno_view(of(j), &opt, gather, j, &j->report, &j->err);
}

static int call_last_seq(struct job *j)
{
        uint64_t seq = 0;
        int rc = steno_conv_last_seq(of(j), &seq, &j->err);
        j->number = (double)seq;
        return rc;
}

static int call_meta(struct job *j)
{
        return answered(j, steno_conv_meta(of(j), &j->json, &j->err));
}

/* text: patch */
static int call_set_meta(struct job *j)
{
        return steno_conv_set_meta(of(j), j->text[0], &j->err);
}

/* num: after seq, milliseconds */
static int call_wait(struct job *j)
{
        int rc = steno_conv_wait(of(j), (uint64_t)j->num[0], (int)j->num[1], &j->err);
        j->number = rc;
        return rc < 0 ? rc : 0;
}

/* text: operation, arguments */
static int call_context(struct job *j)
{
        int rc = steno_context(of(j), j->text[0], j->text[1], j->text_n[1], &j->json, &j->err);
        return answered(j, rc);
}

/* text: ref; num: offset, length */
static int call_context_raw(struct job *j)
{
        j->bytes = true;
        return steno_context_raw(
            of(j), j->text[0], (uint64_t)j->num[0], (uint64_t)j->num[1], gather, j, &j->err);
}

/* text: the output's bytes, tool, call id, server or null, fields or null; num: terminal */
static int call_output(struct job *j)
{
        struct steno_output_options opt = {.size = sizeof(opt),
            .tool = j->text[1],
            .call_id = j->text[2],
            .server = j->text[3],
            .terminal = j->num[0] != 0};
        struct steno_output *o;
        int rc = steno_output_begin(of(j), &opt, &o, &j->err);
        if (rc < 0)
                return rc;
        rc = steno_output_write(o, j->text[0], j->text_n[0], &j->err);
        if (rc == 0)
                rc = steno_output_finish(o, j->text[4], &j->json, &j->err);
        steno_output_free(o);
        return answered(j, rc);
}

/* text: id or null, project or null, at or null, before or null; num: at seq */
static int call_fork(struct job *j)
{
        struct steno_fork_options opt = {.size = sizeof(opt),
            .id = j->text[0],
            .project = j->text[1],
            .at = j->text[2],
            .before = j->text[3],
            .at_seq = (uint64_t)j->num[0]};
        struct steno_conv *c;
        int rc = steno_fork(of(j), &opt, &c, &j->err);
        return rc < 0 ? rc : make_handle(j, CONV, c);
}

/* text: from or null, to, json; num: strict */
static int call_convert(struct job *j)
{
        struct steno_convert_options opt = {
            .size = sizeof(opt), .from = j->text[0], .to = j->text[1], .strict = j->num[0] != 0};
        return steno_convert_with(&opt, j->text[2], j->text_n[2], gather, j, &j->report, &j->err);
}

/* text: provider, json */
static int call_check_history(struct job *j)
{
        int rc = steno_check_history(j->text[0], j->text[1], j->text_n[1], &j->json, &j->err);
        return answered(j, rc);
}

static int call_version(struct job *j)
{
        j->json = strdup(steno_version());
        return j->json ? answered(j, 0) : out_of_memory(j);
}

enum needs { NOTHING, A_STORE, A_CONV };

static const struct row {
        const char *name;
        enum needs needs;
        int (*run)(struct job *j);
} rows[] = {
    {"open", NOTHING, call_open},
    {"create", A_STORE, call_create},
    {"conversation", A_STORE, call_conversation},
    {"list", A_STORE, call_list},
    {"remove", A_STORE, call_remove},
    {"id", A_CONV, call_id},
    {"append", A_CONV, call_append},
    {"amend", A_CONV, call_amend},
    {"view", A_CONV, call_view},
    {"lastSeq", A_CONV, call_last_seq},
    {"meta", A_CONV, call_meta},
    {"setMeta", A_CONV, call_set_meta},
    {"wait", A_CONV, call_wait},
    {"context", A_CONV, call_context},
    {"contextRaw", A_CONV, call_context_raw},
    {"output", A_CONV, call_output},
    {"fork", A_CONV, call_fork},
    {"convert", NOTHING, call_convert},
    {"checkHistory", NOTHING, call_check_history},
    {"version", NOTHING, call_version},
};

/* ---- handles ---- */

static void handle_shut(struct handle *h)
{
        void *p = h->p;
        h->p = NULL;
        if (p && h->kind == STORE)
                steno_close(p);
        else if (p)
                steno_conv_close(p);
}

static void handle_collected(napi_env env, void *data, void *hint)
{
        (void)env, (void)hint;
        handle_shut(data); /* no call is at work: each would have kept the value */
        free(data);
}

/* close(handle): at once, or when the last call that uses it has ended. */
static napi_value js_close(napi_env env, napi_callback_info info)
{
        napi_value arg;
        size_t n = 1;
        void *p = NULL;
        napi_get_cb_info(env, info, &n, &arg, NULL, NULL);
        if (n == 1 && napi_get_value_external(env, arg, &p) == napi_ok) {
                struct handle *h = p;
                if (h->busy)
                        h->closing = true;
                else
                        handle_shut(h);
        }
        return NULL;
}

/* ---- calls ---- */

static void job_free(napi_env env, struct job *j)
{
        for (size_t i = 0; i < MAX_TEXT; i++)
                free(j->text[i]);
        free(j->json); /* what the library gives is of malloc, as its header's steno_free says */
        steno_free(j->report);
        if (j->keeps)
                napi_delete_reference(env, j->keeps);
        if (j->work)
                napi_delete_async_work(env, j->work);
        free(j);
}

static void job_execute(napi_env env, void *data)
{
        struct job *j = data;
        (void)env;
        j->rc = j->run(j);
}

static napi_value text_value(napi_env env, const char *p, size_t n)
{
        napi_value v = NULL;
        napi_create_string_utf8(env, p, n, &v);
        return v;
}

static napi_value answer_value(napi_env env, struct job *j)
{
        napi_value v = NULL, part;
        if (j->made) {
                if (napi_create_external(env, j->made, handle_collected, NULL, &v) != napi_ok)
                        return NULL;
                j->made = NULL;
                return v;
        }
        if (j->bytes) {
                napi_create_buffer_copy(env, j->json_n, j->json ? j->json : "", NULL, &v);
                return v;
        }
        napi_create_object(env, &v);
        part = text_value(env, j->json ? j->json : "", j->json_n);
        if (!part)
                return NULL; /* longer than a string may be */
        napi_set_named_property(env, v, "json", part);
        if (j->report)
                napi_set_named_property(
                    env, v, "report", text_value(env, j->report, NAPI_AUTO_LENGTH));
        napi_create_double(env, j->number, &part);
        napi_set_named_property(env, v, "number", part);
        return v;
}

static napi_value error_value(napi_env env, int code, const char *msg)
{
        napi_value text = text_value(env, msg, NAPI_AUTO_LENGTH), word, number, e = NULL;
        word = text_value(env, steno_code_name(code), NAPI_AUTO_LENGTH);
        napi_create_error(env, word, text, &e);
        napi_create_int32(env, code, &number);
        napi_set_named_property(env, e, "errno", number);
        return e;
}

static void job_complete(napi_env env, napi_status status, void *data)
{
        struct job *j = data;
        napi_value v = NULL;
        if (j->handle && --j->handle->busy == 0 && j->handle->closing)
                handle_shut(j->handle);
        if (status == napi_cancelled) {
                j->rc = STENO_EINTERRUPTED;
                snprintf(j->err.msg, sizeof(j->err.msg), "the call was cancelled");
        }
        if (j->rc >= 0 && !(v = answer_value(env, j))) {
                bool pending;
                if (napi_is_exception_pending(env, &pending) == napi_ok && pending)
                        napi_get_and_clear_last_exception(env, &v);
                j->rc = STENO_ELIMIT;
                snprintf(j->err.msg, sizeof(j->err.msg),
                    "the answer is longer than a string of JavaScript may be; ask for a part");
        }
        if (j->rc < 0)
                napi_reject_deferred(env, j->deferred, error_value(env, j->rc, j->err.msg));
        else
                napi_resolve_deferred(env, j->deferred, v);
        if (j->made) { /* nobody got it */
                handle_shut(j->made);
                free(j->made);
        }
        job_free(env, j);
}

/* A string, or the bytes of a Buffer; null and undefined stay NULL. */
static bool read_text(napi_env env, napi_value v, char **text, size_t *n)
{
        napi_valuetype type;
        bool is_buffer = false;
        void *bytes;
        napi_typeof(env, v, &type);
        if (type == napi_null || type == napi_undefined)
                return true;
        napi_is_buffer(env, v, &is_buffer);
        if (is_buffer) {
                if (napi_get_buffer_info(env, v, &bytes, n) != napi_ok)
                        return false;
                *text = malloc(*n + 1);
                if (!*text)
                        return false;
                memcpy(*text, bytes, *n);
                (*text)[*n] = 0;
                return true;
        }
        if (type != napi_string || napi_get_value_string_utf8(env, v, NULL, 0, n) != napi_ok)
                return false;
        *text = malloc(*n + 1);
        return *text && napi_get_value_string_utf8(env, v, *text, *n + 1, n) == napi_ok;
}

static bool read_arguments(napi_env env, napi_value text, napi_value num, struct job *j)
{
        uint32_t n = 0;
        napi_value v;
        if (napi_get_array_length(env, text, &n) != napi_ok || n > MAX_TEXT)
                return false;
        for (uint32_t i = 0; i < n; i++) {
                napi_get_element(env, text, i, &v);
                if (!read_text(env, v, &j->text[i], &j->text_n[i]))
                        return false;
        }
        if (napi_get_array_length(env, num, &n) != napi_ok || n > MAX_NUM)
                return false;
        for (uint32_t i = 0; i < n; i++) {
                napi_get_element(env, num, i, &v);
                if (napi_get_value_double(env, v, &j->num[i]) != napi_ok || !(j->num[i] >= 0))
                        return false;
        }
        return true;
}

static const struct row *find_row(napi_env env, napi_value name)
{
        char text[32];
        if (napi_get_value_string_utf8(env, name, text, sizeof(text), NULL) != napi_ok)
                return NULL;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (strcmp(rows[i].name, text) == 0)
                        return &rows[i];
        return NULL;
}

static napi_value refuse(napi_env env, const char *msg)
{
        napi_throw(env, error_value(env, STENO_EINVAL, msg));
        return NULL;
}

/* call(name, handle or null, [text...], [number...]): a promise. */
static napi_value js_call(napi_env env, napi_callback_info info)
{
        napi_value arg[4], promise, name;
        size_t n = 4;
        void *p = NULL;
        napi_get_cb_info(env, info, &n, arg, NULL, NULL);
        const struct row *row = n == 4 ? find_row(env, arg[0]) : NULL;
        if (!row)
                return refuse(env, "no such call");
        if (row->needs != NOTHING) {
                if (napi_get_value_external(env, arg[1], &p) != napi_ok)
                        return refuse(env, "it is closed");
                struct handle *h = p;
                if (!h->p || h->closing || (h->kind == STORE) != (row->needs == A_STORE))
                        return refuse(env, "it is closed");
        }
        struct job *j = calloc(1, sizeof(*j));
        if (!j)
                return refuse(env, "out of memory");
        j->run = row->run;
        if (!read_arguments(env, arg[2], arg[3], j)) {
                job_free(env, j);
                return refuse(env, "an argument is of the wrong type");
        }
        if (p && napi_create_reference(env, arg[1], 1, &j->keeps) != napi_ok) {
                job_free(env, j);
                return refuse(env, "out of memory");
        }
        if (p) {
                j->handle = p;
                j->handle->busy++;
        }
        napi_create_string_utf8(env, "steno", NAPI_AUTO_LENGTH, &name);
        napi_create_promise(env, &j->deferred, &promise);
        if (napi_create_async_work(env, NULL, name, job_execute, job_complete, j, &j->work) !=
                napi_ok ||
            napi_queue_async_work(env, j->work) != napi_ok) {
                napi_reject_deferred(
                    env, j->deferred, error_value(env, STENO_ENOMEM, "out of memory"));
                if (j->handle)
                        j->handle->busy--;
                job_free(env, j);
        }
        return promise;
}

NAPI_MODULE_INIT()
{
        napi_value f;
        napi_create_function(env, "call", NAPI_AUTO_LENGTH, js_call, NULL, &f);
        napi_set_named_property(env, exports, "call", f);
        napi_create_function(env, "close", NAPI_AUTO_LENGTH, js_close, NULL, &f);
        napi_set_named_property(env, exports, "close", f);
        return exports;
}
