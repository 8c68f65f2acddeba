/*
 * fake_store.c - see fake_store.h.
 */
#include "fake_store.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

#define MAX 512

struct steno_output {
        char *call_id;
        char *tool;
        struct buf text;
};

struct steno_run {
        char id[64];
        char mode[16];
        char state[16];
        char reason[32];
        struct {
                char *type;
                char *data;
        } events[MAX];
        size_t count;
};

struct steno_receipt {
        int unused;
};

static struct {
        pthread_mutex_t lock;
        struct buf trace;
        char without[8][32];
        char *messages[MAX];
        size_t count;
        struct steno_run *runs[64];
        size_t run_count;
        unsigned writes;
        unsigned fail_at;
        unsigned next_id;
        void (*told)(void *ctx, const char *type);
        void *told_ctx;
        steno_run_mail_fn listen;
        void *listen_ctx;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int conv_thing, store_thing;
static atomic_int conv_holds;

struct steno_conv *fake_conv(void)
{
        return (struct steno_conv *)&conv_thing;
}

struct steno_store *fake_store(void)
{
        return (struct steno_store *)&store_thing;
}

void fake_reset(void)
{
        for (size_t i = 0; i < fake.count; i++)
                free(fake.messages[i]);
        for (size_t r = 0; r < fake.run_count; r++) {
                for (size_t i = 0; i < fake.runs[r]->count; i++) {
                        free(fake.runs[r]->events[i].type);
                        free(fake.runs[r]->events[i].data);
                }
                free(fake.runs[r]);
        }
        buf_release(&fake.trace);
        buf_init(&fake.trace, 0);
        memset(fake.without, 0, sizeof(fake.without));
        fake.count = fake.run_count = 0;
        fake.told = NULL;
        fake.writes = fake.fail_at = fake.next_id = 0;
}

static void trace_locked(const char *fmt, va_list ap)
{
        char line[512];
        vsnprintf(line, sizeof(line), fmt, ap);
        for (int i = 0; i < 8; i++)
                if (fake.without[i][0] &&
                    strncmp(line, fake.without[i], strlen(fake.without[i])) == 0)
                        return;
        buf_puts(&fake.trace, line);
        buf_putc(&fake.trace, '\n');
}

void fake_trace(const char *fmt, ...)
{
        va_list ap;
        pthread_mutex_lock(&fake.lock);
        va_start(ap, fmt);
        trace_locked(fmt, ap);
        va_end(ap);
        pthread_mutex_unlock(&fake.lock);
}

void fake_trace_without(const char *prefix)
{
        for (int i = 0; i < 8; i++)
                if (!fake.without[i][0]) {
                        snprintf(fake.without[i], sizeof(fake.without[i]), "%s", prefix);
                        return;
                }
}

const char *fake_trace_text(void)
{
        return fake.trace.n ? buf_cstr(&fake.trace) : "";
}

bool fake_traced(const char *text)
{
        pthread_mutex_lock(&fake.lock);
        bool found = strstr(fake_trace_text(), text) != NULL;
        pthread_mutex_unlock(&fake.lock);
        return found;
}

void fake_fail_after(unsigned n)
{
        fake.fail_at = n ? fake.writes + n : 0;
}

unsigned fake_writes(void)
{
        return fake.writes;
}

static int write_allowed(struct steno_error *err)
{
        pthread_mutex_lock(&fake.lock);
        fake.writes++;
        bool fails = fake.fail_at && fake.writes >= fake.fail_at;
        pthread_mutex_unlock(&fake.lock);
        return fails ? error_set(err, STENO_EFULL, "the fake is full") : 0;
}

size_t fake_count(void)
{
        return fake.count;
}

const char *fake_message(size_t i)
{
        return i < fake.count ? fake.messages[i] : NULL;
}

bool fake_has(const char *json, size_t n)
{
        for (size_t i = 0; i < fake.count; i++)
                if (strlen(fake.messages[i]) == n && memcmp(fake.messages[i], json, n) == 0)
                        return true;
        return false;
}

const char *fake_event(const char *type, size_t i)
{
        for (size_t r = 0; r < fake.run_count; r++)
                for (size_t k = 0; k < fake.runs[r]->count; k++)
                        if (strcmp(fake.runs[r]->events[k].type, type) == 0 && i-- == 0)
                                return fake.runs[r]->events[k].data;
        return NULL;
}

void fake_on_event(void (*told)(void *ctx, const char *type), void *ctx)
{
        fake.told = told;
        fake.told_ctx = ctx;
}

void fake_kill(size_t messages_kept)
{
        while (fake.count > messages_kept)
                free(fake.messages[--fake.count]);
        if (!fake.run_count)
                return;
        struct steno_run *run = fake.runs[fake.run_count - 1];
        snprintf(run->state, sizeof(run->state), "dead");
        run->reason[0] = '\0';
}

/* ---- steno.h ---- */

const char *steno_code_name(int code)
{
        static const char *const names[] = {"ok", "out of memory", "invalid", "protocol",
            "conflict", "not found", "corrupt", "i/o", "full", "limit", "poisoned", "denied",
            "timed out", "interrupted", "unsupported"};
        return code <= 0 && code > -15 ? names[-code] : "?";
}

void steno_free(void *p)
{
        free(p);
}

void steno_conv_keep(struct steno_conv *conv)
{
        (void)conv;
        conv_holds++;
}

void steno_conv_close(struct steno_conv *conv)
{
        (void)conv;
        conv_holds--;
}

int fake_conv_holds(void)
{
        return conv_holds;
}

const char *steno_conv_id(const struct steno_conv *conv)
{
        (void)conv;
        return "conv";
}

const char *steno_conv_project(const struct steno_conv *conv)
{
        (void)conv;
        return "default";
}

int steno_conv_last_seq(struct steno_conv *conv, uint64_t *seq, struct steno_error *err)
{
        (void)conv;
        (void)err;
        *seq = fake.count;
        return 0;
}

static char *member(const char *json, const char *key)
{
        struct json j;
        json_init(&j);
        char *z = NULL;
        if (json_parse(&j, json, strlen(json), NULL, NULL) == 0)
                z = json_dup_string(&j, json_get(&j, 0, key));
        json_release(&j);
        return z;
}

static void describe(const char *json, char out[200])
{
        char *role = member(json, "role");
        char *call = member(json, "tool_call_id");
        char *part = member(json, "partType");
        snprintf(out, 200, "%s%s%s%s%s", role ? role : "?", call ? " " : "", call ? call : "",
            part ? " " : "", part ? part : "");
        free(role);
        free(call);
        free(part);
}

int steno_append(struct steno_conv *conv, const char *json, size_t n,
    const struct steno_append_options *opt, struct steno_receipt **receipt, struct steno_error *err)
{
        (void)conv;
        (void)opt;
        int rc = write_allowed(err);
        if (rc)
                return rc;
        if (!json_valid(json, n, NULL) || fake.count == MAX)
                return error_set(err, STENO_EPROTO, "not JSON");
        char *copy = strndup(json, n);
        char what[200];
        describe(copy, what);
        fake_trace("append %s", what);
        fake.messages[fake.count++] = copy;
        if (receipt)
                *receipt = NULL;
        return 0;
}

uint64_t steno_receipt_first_seq(const struct steno_receipt *r)
{
        (void)r;
        return fake.count;
}

void steno_receipt_free(struct steno_receipt *r)
{
        (void)r;
}

struct steno_record {
        const char *json;
        uint64_t seq;
};

uint64_t steno_record_seq(const struct steno_record *r)
{
        return r->seq;
}

const char *steno_record_kind(const struct steno_record *r)
{
        (void)r;
        return "message";
}

int steno_record_message(
    const struct steno_record *r, char **json, size_t *n, struct steno_error *err)
{
        (void)err;
        *json = strdup(r->json);
        *n = strlen(r->json);
        return 0;
}

int steno_read(struct steno_conv *conv, uint64_t after, uint64_t limit, steno_record_fn each,
    void *ctx, struct steno_error *err)
{
        (void)conv;
        (void)limit;
        (void)err;
        for (size_t i = after; i < fake.count; i++) {
                struct steno_record r = {fake.messages[i], i + 1};
                int rc = each(ctx, &r);
                if (rc)
                        return rc;
        }
        return 0;
}

int steno_read_id(struct steno_conv *conv, const char *id, steno_record_fn each, void *ctx,
    struct steno_error *err)
{
        (void)conv;
        for (size_t i = 0; i < fake.count; i++) {
                char *z = member(fake.messages[i], "id");
                bool same = z && strcmp(z, id) == 0;
                free(z);
                struct steno_record r = {fake.messages[i], i + 1};
                if (same)
                        return each(ctx, &r);
        }
        return error_set(err, STENO_ENOTFOUND, "no message \"%s\"", id);
}

/* The view `chat`, by the library's own folding. */
static int fold_all(uint64_t after, steno_sink sink, void *ctx, struct steno_error *err)
{
        struct steno_fold *f;
        char *json = NULL;
        int rc = steno_fold_new(&f, err);
        for (size_t i = after; rc == 0 && i < fake.count; i++)
                rc = steno_fold_push(f, fake.messages[i], strlen(fake.messages[i]), err);
        if (rc == 0)
                rc = steno_fold_json(f, &json, err);
        if (rc == 0)
                rc = sink(ctx, json, strlen(json));
        steno_free(json);
        steno_fold_free(f);
        return rc;
}

int steno_view(struct steno_conv *conv, const struct steno_view_options *opt, steno_sink sink,
    void *ctx, char **report, struct steno_error *err)
{
        (void)conv;
        if (strcmp(opt->format, "chat") == 0)
                return fold_all(opt->after_seq, sink, ctx, err);
        bool stored = strcmp(opt->format, "stored") == 0;
        const char *last = NULL;
        if (!opt->last && !stored)
                fake_trace("view");
        sink(ctx, "[", 1);
        for (size_t i = opt->after_seq; i < (stored ? opt->after_seq + 1 : fake.count); i++) {
                if (!stored && strstr(fake.messages[i], "\"includeInContext\":false"))
                        continue;
                if (last)
                        sink(ctx, ",", 1);
                last = fake.messages[i];
                if (stored)
                        sink(ctx, "{\"m\":", 5);
                sink(ctx, last, strlen(last));
                if (stored)
                        sink(ctx, "}", 1);
        }
        if (report) {
                char *id = last ? member(last, "id") : NULL;
                if (asprintf(report, "{\"ids\":[\"%s\"]}", id ? id : "") < 0)
                        *report = NULL;
                free(id);
        }
        return sink(ctx, "]", 1);
}

uint64_t steno_count_tokens(const char *text, size_t n, bool *exact)
{
        (void)text;
        if (exact)
                *exact = false;
        return n / 4;
}

/* ---- outputs ---- */

int steno_output_begin(struct steno_conv *conv, const struct steno_output_options *opt,
    struct steno_output **out, struct steno_error *err)
{
        (void)conv;
        int rc = write_allowed(err);
        if (rc)
                return rc;
        struct steno_output *o = calloc(1, sizeof(*o));
        o->call_id = strdup(opt->call_id);
        o->tool = strdup(opt->tool);
        buf_init(&o->text, 0);
        *out = o;
        return 0;
}

int steno_output_write(struct steno_output *o, const void *p, size_t n, struct steno_error *err)
{
        int rc = write_allowed(err);
        if (rc == 0)
                buf_put(&o->text, p, n);
        return rc;
}

const char *steno_output_ref(const struct steno_output *o)
{
        (void)o;
        return NULL;
}

int steno_output_message(
    struct steno_output *o, const char *fields, char **message, size_t *n, struct steno_error *err)
{
        int rc = write_allowed(err);
        if (rc)
                return rc;
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "id");
        char id[32];
        snprintf(id, sizeof(id), "msg_out%u", ++fake.next_id);
        jsonw_cstr(&w, id);
        jsonw_key(&w, "role");
        jsonw_cstr(&w, "tool");
        jsonw_key(&w, "tool_call_id");
        jsonw_cstr(&w, o->call_id);
        jsonw_key(&w, "toolName");
        jsonw_cstr(&w, o->tool);
        jsonw_key(&w, "content");
        jsonw_str(&w, buf_str(&o->text));
        buf_putc(&b, ',');
        buf_put(&b, fields + 1, strlen(fields) - 1);
        *message = buf_take(&b, n);
        buf_release(&b);
        return 0;
}

void steno_output_free(struct steno_output *o)
{
        if (!o)
                return;
        free(o->call_id);
        free(o->tool);
        buf_release(&o->text);
        free(o);
}

/* ---- context tools ---- */

int steno_context_tools(const char *flavour, char **json, struct steno_error *err)
{
        (void)flavour;
        (void)err;
        *json = strdup("[{\"type\":\"function\",\"function\":{\"name\":\"context_read\","
                       "\"description\":\"reads\",\"parameters\":{\"type\":\"object\"}}}]");
        return 0;
}

int steno_context_call(struct steno_conv *conv, const char *name, const char *args, size_t n,
    char **text, bool *is_error, struct steno_error *err)
{
        (void)conv;
        (void)args;
        (void)n;
        (void)err;
        *is_error = false;
        *text = NULL;
        return asprintf(text, "answer of %s", name) < 0 ? STENO_ENOMEM : 0;
}

/* ---- runs ---- */

int steno_run_claim(struct steno_conv *conv, const char *id, const char *mode,
    struct steno_run **out, struct steno_error *err)
{
        (void)conv;
        for (size_t i = 0; i < fake.run_count; i++)
                if (strcmp(fake.runs[i]->state, "running") == 0)
                        return error_set(err, STENO_ECONFLICT,
                            "run \"%s\" is active in this conversation", fake.runs[i]->id);
        struct steno_run *run = calloc(1, sizeof(*run));
        if (id)
                snprintf(run->id, sizeof(run->id), "%s", id);
        else
                snprintf(run->id, sizeof(run->id), "run_%zu", fake.run_count + 1);
        snprintf(run->mode, sizeof(run->mode), "%s", mode);
        *out = run;
        return 0;
}

int steno_run_start(struct steno_run *run, struct steno_error *err)
{
        int rc = write_allowed(err);
        if (rc)
                return rc;
        snprintf(run->state, sizeof(run->state), "running");
        fake.runs[fake.run_count++] = run;
        return 0;
}

int steno_run_begin(struct steno_conv *conv, const char *id, const char *mode,
    struct steno_run **out, struct steno_error *err)
{
        int rc = steno_run_claim(conv, id, mode, out, err);
        return rc ? rc : steno_run_start(*out, err);
}

const char *steno_run_id(const struct steno_run *run)
{
        return run->id;
}

int steno_run_check(struct steno_run *run, struct steno_error *err)
{
        (void)run;
        (void)err;
        return 0;
}

void steno_run_listen(struct steno_run *run, steno_run_mail_fn fn, void *ctx)
{
        (void)run;
        fake.listen = fn;
        fake.listen_ctx = ctx;
}

void fake_mail(const char *approval, bool allow)
{
        if (fake.listen)
                fake.listen(fake.listen_ctx, approval, allow);
}

void steno_run_set_caller(struct steno_run *run, uint64_t seq)
{
        (void)run;
        (void)seq;
}

static int add_event(struct steno_run *run, const char *type, const char *data, size_t n)
{
        pthread_mutex_lock(&fake.lock);
        run->events[run->count].type = strdup(type);
        run->events[run->count++].data = strndup(data, n);
        pthread_mutex_unlock(&fake.lock);
        return 0;
}

int steno_run_event(struct steno_run *run, const char *type, const char *data, size_t n,
    int durability, uint64_t *seq, struct steno_error *err)
{
        int rc = write_allowed(err);
        if (rc)
                return rc;
        if (!json_valid(data, n, NULL) || run->count == MAX)
                return error_set(err, STENO_EINVAL, "event %s is not JSON", type);
        if (strcmp(type, "request") == 0) /* other tests look at where the model is asked */
                return add_event(run, type, data, n);
        bool delta = strcmp(type, "message") == 0 || strcmp(type, "thinking") == 0 ||
                     strcmp(type, "tool_call_running") == 0;
        fake_trace("event %s%s", type,
            delta == (durability == STENO_PROCESS) ? "" : " with the wrong durability");
        add_event(run, type, data, n);
        if (fake.told)
                fake.told(fake.told_ctx, type);
        if (strcmp(type, "run_finished") == 0) {
                char *z = strndup(data, n);
                char *reason = member(z, "reason");
                snprintf(run->state, sizeof(run->state), "finished");
                snprintf(run->reason, sizeof(run->reason), "%s", reason ? reason : "");
                free(reason);
                free(z);
        }
        if (seq)
                *seq = run->count;
        return 0;
}

int steno_run_dispatch(struct steno_run *run, uint64_t request, const char *call_id,
    const char *tool, const char *args, size_t n, struct steno_error *err)
{
        int rc = write_allowed(err);
        if (rc)
                return rc;
        fake_trace(
            "dispatch %llu %s %s %.*s", (unsigned long long)request, call_id, tool, (int)n, args);
        return add_event(run, "dispatch", "{}", 2);
}

int steno_run_outcome(struct steno_run *run, uint64_t request, const char *call_id,
    const char *message, size_t n, struct steno_error *err)
{
        int rc = write_allowed(err);
        if (rc)
                return rc;
        fake_trace("outcome %llu %s", (unsigned long long)request, call_id);
        return add_event(run, "outcome", message, n);
}

void steno_run_close(struct steno_run *run)
{
        if (run && !run->state[0])
                free(run); /* claimed and never started */
        else if (run && strcmp(run->state, "running") == 0)
                snprintf(run->state, sizeof(run->state), "dead");
}

int steno_run_info(struct steno_store *store, const char *project, const char *run_id, char **json,
    struct steno_error *err)
{
        (void)store;
        (void)project;
        for (size_t i = 0; i < fake.run_count; i++)
                if (strcmp(fake.runs[i]->id, run_id) == 0)
                        return asprintf(json, "{\"reason\":\"%s\"}", fake.runs[i]->reason) < 0
                                   ? STENO_ENOMEM
                                   : 0;
        return error_set(err, STENO_ENOTFOUND, "no run \"%s\"", run_id);
}

int steno_run_read(struct steno_store *store, const char *project, const char *run_id,
    uint64_t after, steno_event_fn each, void *ctx, struct steno_error *err)
{
        (void)store;
        (void)project;
        (void)err;
        for (size_t r = 0; r < fake.run_count; r++)
                if (strcmp(fake.runs[r]->id, run_id) == 0)
                        for (size_t i = after; i < fake.runs[r]->count; i++)
                                each(ctx, i + 1, "", fake.runs[r]->events[i].type,
                                    fake.runs[r]->events[i].data,
                                    strlen(fake.runs[r]->events[i].data));
        return 0;
}

int steno_run_list(struct steno_conv *conv, char **json, struct steno_error *err)
{
        (void)conv;
        (void)err;
        struct buf b;
        buf_init(&b, 0);
        buf_puts(&b, "{\"items\":[");
        for (size_t r = fake.run_count; r > 0; r--) {
                struct steno_run *run = fake.runs[r - 1];
                buf_printf(&b, "%s{\"id\":\"%s\",\"mode\":\"%s\",\"state\":\"%s\"",
                    r == fake.run_count ? "" : ",", run->id, run->mode, run->state);
                if (run->reason[0])
                        buf_printf(&b, ",\"reason\":\"%s\"", run->reason);
                buf_putc(&b, '}');
        }
        buf_puts(&b, "]}");
        *json = buf_take(&b, NULL);
        buf_release(&b);
        return 0;
}

/* Nothing is sealed here: a test with a real store shows that sealing is requested. */
int steno_seal(struct steno_store *store, const char *project, const char *id,
    steno_progress progress, void *progress_ctx, char **report, struct steno_error *err)
{
        (void)store, (void)project, (void)id, (void)progress, (void)progress_ctx, (void)report;
        (void)err;
        return 0;
}
