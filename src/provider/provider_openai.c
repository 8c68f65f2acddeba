/*
 * provider_openai.c - chat completions of any OpenAI-compatible endpoint.
 *
 * Owns the request's shape, the choice between a stream and a whole body, and retries: on 408,
 * 429, 5xx, a refused or dropped connection, and only while no token has arrived, because what
 * was streamed to a watcher cannot be unsaid.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "provider/provider.h"
#include "net/sse.h"
#include "net/transfer.h"

#define BACKOFF_FIRST_MS 500
#define BACKOFF_MAX_MS 8000
#define RETRY_AFTER_MAX_MS 60000 /* an endpoint that wants longer gets its error reported */
#define LINGER_MS 2000           /* for [DONE] and usage after finish_reason */
#define ERROR_BODY_MAX (256 * KIB)

struct openai {
        struct provider base;
        struct provider_openai_options opt;
        struct transfer_pool *pool;
        char *url;
        char *auth; /* header, or NULL */
};

enum body_kind {
        BODY_UNKNOWN,
        BODY_STREAM,
        BODY_WHOLE,
};

struct attempt {
        struct assemble assemble;
        struct sse sse;
        struct buf body;
        enum body_kind kind;
        const struct provider_hooks *hooks;
};

/* ---- the request ---- */

static void put_params(struct jsonw *w, struct str params)
{
        struct json j;
        json_init(&j);
        if (params.n && json_parse(&j, params.p, params.n, NULL, NULL) == 0)
                for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k)) {
                        struct str raw = json_raw(&j, k);
                        buf_putc(w->b, ',');
                        buf_put_str(w->b, raw);
                        buf_putc(w->b, ':');
                        buf_put_str(w->b, json_raw(&j, json_value(&j, k)));
                }
        json_release(&j);
}

static void put_request(const struct provider_request *r, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "model", r->model ? r->model : "");
        jsonw_field_raw(&w, "messages", r->messages);
        if (r->tools.n > 2) {
                jsonw_field_raw(&w, "tools", r->tools);
                if (r->tool_choice.n) {
                        jsonw_field_raw(&w, "tool_choice", r->tool_choice);
                }
        }
        if (r->stream) {
                jsonw_field_bool(&w, "stream", true);
                jsonw_field_raw(&w, "stream_options", STR("{\"include_usage\":true}"));
        }
        put_params(&w, r->params);
        jsonw_object_end(&w);
}

/* ---- the answer ---- */

static int on_event(void *ctx, struct str name, struct str data)
{
        (void)name;
        struct attempt *a = ctx;
        return assemble_chunk(&a->assemble, data);
}

static enum body_kind kind_of(const char *type, struct str start)
{
        size_t i = 0;
        while (i < start.n && (start.p[i] == ' ' || start.p[i] == '\n' || start.p[i] == '\r' ||
                                  start.p[i] == '\t'))
                i++;
        if (i == start.n)
                return BODY_UNKNOWN;
        char c = start.p[i];
        if (c == '{' || c == '[' || c == '<')
                return BODY_WHOLE;
        if (strstr(type, "event-stream") || c == 'd' || c == ':')
                return BODY_STREAM;
        return BODY_WHOLE;
}

static int feed(struct attempt *a, struct transfer *t, struct str bytes)
{
        int rc = sse_feed(&a->sse, bytes.p, bytes.n);
        if (a->assemble.finish[0] && t->idle_ms > LINGER_MS)
                t->idle_ms = LINGER_MS;
        return rc;
}

static int on_data(void *ctx, struct transfer *t, const char *p, size_t n)
{
        struct attempt *a = ctx;
        if (t->status / 100 != 2) {
                if (a->body.n + n < ERROR_BODY_MAX)
                        buf_put(&a->body, p, n);
                return a->body.failed;
        }
        if (a->kind == BODY_STREAM)
                return feed(a, t, str_span(p, n));
        buf_put(&a->body, p, n);
        if (a->body.failed)
                return a->body.failed;
        if (a->kind == BODY_UNKNOWN)
                a->kind = kind_of(t->type, buf_str(&a->body));
        if (a->kind != BODY_STREAM)
                return 0;
        int rc = feed(a, t, buf_str(&a->body));
        buf_clear(&a->body);
        return rc;
}

static int on_tick(void *ctx)
{
        struct attempt *a = ctx;
        return a->hooks->tick ? a->hooks->tick(a->hooks->ctx) : -1;
}

static bool on_done(void *ctx)
{
        struct attempt *a = ctx;
        return a->assemble.done || a->assemble.fault.code;
}

static int take_body(struct attempt *a)
{
        struct str body = buf_str(&a->body);
        size_t i = 0;
        while (i < body.n && strchr(" \t\r\n", body.p[i]) && body.p[i])
                i++;
        if (i < body.n && body.p[i] == '{')
                return assemble_body(&a->assemble, body);
        char words[121];
        size_t n = body.n - i < 120 ? body.n - i : 120;
        memcpy(words, n ? body.p + i : "", n);
        words[n] = '\0';
        for (size_t k = 0; k < n; k++)
                if ((unsigned char)words[k] < 0x20)
                        words[k] = ' ';
        reply_fault_set(&a->assemble.fault, "LLM_BAD_REPLY", false,
            body.n ? "the endpoint answered something else than a completion: %s"
                   : "the endpoint's answer was empty%s",
            words);
        return 0;
}

/* What the end of a transfer means for the reply. */
static int settle(struct attempt *a, const struct transfer *t, int rc)
{
        struct reply_fault *fault = &a->assemble.fault;
        if (rc != 0 && rc != STENO_EIO)
                return rc;
        if (rc == 0 && t->status / 100 != 2) {
                reply_fault_http(fault, t->status, buf_str(&a->body));
                return 0;
        }
        if (rc == 0 && a->kind == BODY_STREAM)
                return sse_finish(&a->sse);
        if (rc == 0)
                return take_body(a);
        bool complete = a->assemble.finish[0] || a->assemble.done;
        if (!complete && !fault->code)
                reply_fault_set(fault, t->timed_out ? "LLM_TIMEOUT" : "LLM_NETWORK", true,
                    t->timed_out ? "the model call timed out: %s" : "the connection failed: %s",
                    t->why);
        return 0;
}

/* ---- attempts ---- */

struct outcome {
        bool again;
        int wait_ms;
};

static int backoff_ms(unsigned attempt)
{
        int ms = BACKOFF_FIRST_MS;
        while (attempt-- > 0 && ms < BACKOFF_MAX_MS)
                ms *= 2;
        uint32_t r;
        const struct env *env = env_real();
        env->random(env, &r, sizeof(r));
        return ms - (int)(r % (uint32_t)(ms / 4)); /* so that many clients do not come at once */
}

static struct outcome judge(const struct openai *o, const struct attempt *a,
    const struct transfer *t, const struct reply_fault *fault, unsigned attempt)
{
        struct outcome no = {false, 0};
        if (!fault->code || a->assemble.any || attempt >= o->opt.retries)
                return no;
        bool dropped = strcmp(fault->code, "LLM_NETWORK") == 0;
        bool told = t->status == 408 || t->status == 429 || t->status >= 500;
        if (!dropped && !told)
                return no;
        if (t->retry_after_ms > RETRY_AFTER_MAX_MS)
                return no;
        int wait = t->retry_after_ms >= 0 && told ? (int)t->retry_after_ms : backoff_ms(attempt);
        return (struct outcome){true, wait};
}

static int try_once(struct openai *o, const struct provider_request *r,
    const struct provider_hooks *hooks, struct str body, unsigned attempt, struct reply *out,
    struct outcome *next, struct steno_error *err)
{
        struct attempt a = {.kind = BODY_UNKNOWN, .hooks = hooks};
        assemble_init(&a.assemble, &hooks->assemble);
        sse_init(&a.sse, MESSAGE_MAX, on_event, &a);
        buf_init(&a.body, MESSAGE_MAX);
        const char *headers[] = {"Content-Type: application/json",
            "Expect:", r->stream ? "Accept: text/event-stream" : "Accept: application/json",
            "User-Agent: steno/" STENO_VERSION, o->auth, NULL};
        struct transfer t = {
            .pool = o->pool,
            .url = o->url,
            .headers = headers,
            .body = body,
            .connect_ms = o->opt.connect_ms,
            .idle_ms = o->opt.idle_ms,
            .deadline = r->deadline,
            .stop = r->stop,
            .data = on_data,
            .tick = on_tick,
            .done = on_done,
            .ctx = &a,
        };
        int rc = settle(&a, &t, transfer_run(&t, err));
        struct steno_error *why = rc ? NULL : err; /* the first failure is the one to report */
        int made = assemble_finish(&a.assemble, out, why);
        *next = judge(o, &a, &t, &out->fault, attempt);
        assemble_release(&a.assemble);
        sse_release(&a.sse);
        buf_release(&a.body);
        return rc ? rc : made;
}

static int openai_complete(struct provider *self, const struct provider_request *r,
    const struct provider_hooks *hooks, struct reply *out, struct steno_error *err)
{
        struct openai *o = (struct openai *)self;
        struct buf body;
        buf_init(&body, 0);
        put_request(r, &body);
        int rc = buf_check(&body, err);
        for (unsigned attempt = 0; rc == 0; attempt++) {
                struct outcome next;
                reply_clear(out);
                rc = try_once(o, r, hooks, buf_str(&body), attempt, out, &next, err);
                if (rc || !next.again)
                        break;
                if (hooks->retry)
                        hooks->retry(hooks->ctx, &out->fault, attempt + 1, next.wait_ms);
                rc = transfer_wait(r->stop, r->deadline, next.wait_ms, hooks->tick, hooks->ctx);
                if (rc)
                        error_set(err, rc, "%s", steno_code_name(rc));
        }
        buf_release(&body);
        return rc;
}

static void openai_free(struct provider *self)
{
        struct openai *o = (struct openai *)self;
        transfer_pool_free(o->pool);
        free(o->url);
        free(o->auth);
        free(o);
}

static char *make_url(const char *base)
{
        size_t n = strlen(base);
        while (n && base[n - 1] == '/')
                n--;
        char *url = NULL;
        if (asprintf(&url, "%.*s/chat/completions", (int)n, base) < 0)
                return NULL;
        return url;
}

int provider_openai_new(
    const struct provider_openai_options *opt, struct provider **out, struct steno_error *err)
{
        const char *base = opt->base_url ? opt->base_url : "https://api.openai.com/v1";
        if (!str_starts(str_of(base), "http://") && !str_starts(str_of(base), "https://"))
                return error_set(
                    err, STENO_EINVAL, "base URL \"%.100s\" is not http or https", base);
        if (opt->api_key && strpbrk(opt->api_key, "\r\n"))
                return error_set(err, STENO_EINVAL, "the API key contains a line end");
        struct openai *o = calloc(1, sizeof(*o));
        if (!o)
                return error_nomem(err);
        o->base = (struct provider){openai_complete, openai_free};
        o->opt = *opt;
        o->opt.base_url = o->opt.api_key = NULL;
        o->pool = transfer_pool_new(err);
        if (!o->pool) {
                openai_free(&o->base);
                return err ? err->code : STENO_EIO;
        }
        o->url = make_url(base);
        bool keyed = opt->api_key && opt->api_key[0];
        if (keyed && asprintf(&o->auth, "Authorization: Bearer %s", opt->api_key) < 0)
                o->auth = NULL;
        if (!o->url || (keyed && !o->auth)) {
                openai_free(&o->base);
                return error_nomem(err);
        }
        *out = &o->base;
        return 0;
}
