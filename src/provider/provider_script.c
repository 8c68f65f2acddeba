/*
 * provider_script.c - a model that plays a script. Its replies are streamed in pieces and assembled
 * like those of a real model. For `steno demo` and for tests.
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "net/transfer.h"
#include "provider/assemble.h"
#include "provider/provider.h"

#define SCRIPT_REPLIES_MAX 4096

struct script {
        struct provider_client base;
        char *text;
        struct json j;
        json_ref replies;
        int64_t piece_ms;
        uint64_t piece_chars;
        uint32_t *asked; /* for each reply: how often it was requested */
};

/* The state of one reply while it is streamed. */
struct playing {
        const struct script *s;
        const struct provider_request *request;
        const struct provider_hooks *hooks;
        struct assemble assemble;
        struct buf chunk;
};

/* If calls are text, an assistant's text contains them, and each has its response by now. */
static bool has_text_call(const struct json *j, json_ref m)
{
        static const char OPEN[] = "<function_call>", RESPONSE[] = "\"response\":";
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        json_string(j, json_get(j, m, "content"), &text, NULL);
        const char *call = text.n ? memmem(text.p, text.n, OPEN, sizeof OPEN - 1) : NULL;
        size_t rest = call ? text.n - (size_t)(call - text.p) : 0;
        bool has = rest && memmem(call, rest, RESPONSE, sizeof RESPONSE - 1);
        buf_release(&text);
        return has;
}

/* Does this message advance the script? */
static bool counts(const struct json *j, json_ref m)
{
        json_ref role = json_get(j, m, "role");
        return json_is(j, role, "user") || json_count(j, json_get(j, m, "tool_calls")) > 0 ||
               (json_is(j, role, "assistant") && has_text_call(j, m));
}

static uint32_t due(const struct script *s, struct str history)
{
        struct json j;
        uint32_t n = 0;
        json_init(&j);
        if (json_parse(&j, history.p, history.n, NULL, NULL) == 0)
                for (json_ref m = json_child(&j, 0); m != JSON_NONE; m = json_next(&j, 0, m))
                        n += counts(&j, m);
        json_release(&j);
        uint32_t count = json_count(&s->j, s->replies);
        n = n ? n - 1 : 0;
        return n < count ? n : count - 1;
}

static json_ref choose(struct script *s, struct str history)
{
        uint32_t i = due(s, history);
        json_ref reply = json_at(&s->j, s->replies, i);
        if (json_type(&s->j, reply) != JSON_ARRAY)
                return reply;
        uint32_t count = json_count(&s->j, reply);
        uint32_t k = s->asked[i]++;
        return json_at(&s->j, reply, k < count ? k : count - 1);
}

static struct jsonw delta_begin(struct playing *p)
{
        buf_clear(&p->chunk);
        buf_puts(&p->chunk, "{\"choices\":[{\"index\":0,\"delta\":");
        return jsonw_to(&p->chunk);
}

static int delta_end(struct playing *p, struct str finish)
{
        buf_puts(&p->chunk, ",\"finish_reason\":");
        if (finish.n)
                json_put_string(&p->chunk, finish);
        else
                buf_puts(&p->chunk, "null");
        buf_puts(&p->chunk, "}]}");
        if (p->chunk.failed)
                return p->chunk.failed;
        int rc = assemble_chunk(&p->assemble, buf_str(&p->chunk));
        if (rc)
                return rc;
        const struct provider_hooks *h = p->hooks;
        rc = transfer_wait(p->request->stop, p->request->deadline, p->s->piece_ms, h->tick, h->ctx);
        if (h->tick)
                h->tick(h->ctx);
        return rc;
}

/* Sends a string member of the reply as deltas of `key`. */
static int play_text(struct playing *p, json_ref reply, const char *member, const char *key)
{
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        json_string(&p->s->j, json_get(&p->s->j, reply, member), &text, NULL);
        int rc = text.failed;
        for (size_t at = 0; at < text.n && rc == 0;) {
                size_t n = text_bytes_of(text.p + at, text.n - at, p->s->piece_chars);
                struct jsonw w = delta_begin(p);
                jsonw_object(&w);
                jsonw_field_str(&w, key, str_span(text.p + at, n));
                jsonw_object_end(&w);
                rc = delta_end(p, (struct str){NULL, 0});
                at += n;
        }
        buf_release(&text);
        return rc;
}

/* Returns the last ref in the history, which replaces "$REF" in a script's arguments. */
static struct str last_ref(struct str history)
{
        struct str found = {"", 0};
        for (size_t i = 0; i + 4 < history.n; i++) {
                if (memcmp(history.p + i, "ctx_", 4) != 0)
                        continue;
                size_t n = 4;
                while (i + n < history.n && isalnum((unsigned char)history.p[i + n]))
                        n++;
                found = str_span(history.p + i, n);
        }
        return found;
}

static void put_args(const struct playing *p, json_ref args, struct buf *out)
{
        struct str raw = args == JSON_NONE ? STR("{}") : json_raw(&p->s->j, args);
        const char *at;
        while (raw.n && (at = memmem(raw.p, raw.n, "$REF", 4))) {
                buf_put(out, raw.p, (size_t)(at - raw.p));
                buf_put_str(out, last_ref(p->request->history));
                raw = str_span(at + 4, raw.n - (size_t)(at - raw.p) - 4);
        }
        buf_put_str(out, raw);
}

static int play_call(struct playing *p, json_ref call, uint32_t index)
{
        const struct json *j = &p->s->j;
        json_ref args = json_get(j, call, "arguments");
        json_ref id = json_get(j, call, "id");
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        put_args(p, args, &text);
        struct jsonw w = delta_begin(p);
        jsonw_object(&w);
        jsonw_key(&w, "tool_calls");
        jsonw_array(&w);
        jsonw_object(&w);
        jsonw_field_u64(&w, "index", index);
        if (id != JSON_NONE) {
                jsonw_field_copy(&w, "id", j, id);
        }
        jsonw_key(&w, "function");
        jsonw_object(&w);
        jsonw_field_copy(&w, "name", j, json_get(j, call, "name"));
        jsonw_key(&w, "arguments");
        if (json_type(j, args) == JSON_STRING)
                jsonw_raw(&w, buf_str(&text));
        else
                jsonw_str(&w, buf_str(&text));
        buf_release(&text);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        return delta_end(p, (struct str){NULL, 0});
}

static int play_end(struct playing *p, json_ref reply)
{
        const struct json *j = &p->s->j;
        if (json_bool(j, json_get(j, reply, "cut"), false))
                return 0;
        json_ref error = json_get(j, reply, "error");
        if (error != JSON_NONE) {
                buf_clear(&p->chunk);
                buf_puts(&p->chunk, "{\"error\":");
                buf_put_str(&p->chunk, json_raw(j, error));
                buf_putc(&p->chunk, '}');
                return p->chunk.failed ? p->chunk.failed
                                       : assemble_chunk(&p->assemble, buf_str(&p->chunk));
        }
        json_ref finish = json_get(j, reply, "finish");
        struct str word = json_inner(j, finish);
        if (!word.n)
                word = json_count(j, json_get(j, reply, "calls")) ? STR("tool_calls") : STR("stop");
        delta_begin(p);
        buf_puts(&p->chunk, "{}");
        int rc = delta_end(p, word);
        return rc ? rc : assemble_chunk(&p->assemble, STR("[DONE]"));
}

static int play(struct playing *p, json_ref reply)
{
        const struct json *j = &p->s->j;
        int rc = play_text(p, reply, "thinking", "reasoning_content");
        if (rc == 0)
                rc = play_text(p, reply, "text", "content");
        json_ref calls = json_get(j, reply, "calls");
        uint32_t index = 0;
        for (json_ref c = json_child(j, calls); c != JSON_NONE && rc == 0;
             c = json_next(j, calls, c))
                rc = play_call(p, c, index++);
        return rc ? rc : play_end(p, reply);
}

static int script_complete(struct provider_client *self, const struct provider_request *request,
    const struct provider_hooks *hooks, struct reply *out, struct steno_error *err)
{
        struct script *s = (struct script *)self;
        struct playing p = {.s = s, .request = request, .hooks = hooks};
        assemble_init(&p.assemble, &hooks->reply);
        buf_init(&p.chunk, MESSAGE_MAX);
        int rc = play(&p, choose(s, request->history));
        if (rc)
                error_set(err, rc, "%s", steno_code_name(rc));
        int made = assemble_finish(&p.assemble, out, rc ? NULL : err);
        assemble_release(&p.assemble);
        buf_release(&p.chunk);
        return rc ? rc : made;
}

static void script_close(struct provider_client *self)
{
        struct script *s = (struct script *)self;
        json_release(&s->j);
        free(s->asked);
        free(s->text);
        free(s);
}

static int script_read(struct script *s, struct steno_error *err)
{
        int rc = json_parse(&s->j, s->text, strlen(s->text), NULL, err);
        if (rc)
                return error_prefix(err, rc, "script");
        s->replies = json_get(&s->j, 0, "replies");
        uint32_t count = json_count(&s->j, s->replies);
        if (json_type(&s->j, s->replies) != JSON_ARRAY || count == 0 || count > SCRIPT_REPLIES_MAX)
                return error_set(err, STENO_EINVAL, "script: \"replies\" is 1 to %d replies",
                    SCRIPT_REPLIES_MAX);
        s->piece_chars = 12;
        json_u64(&s->j, json_get(&s->j, 0, "pieceChars"), &s->piece_chars);
        json_i64(&s->j, json_get(&s->j, 0, "pieceMs"), &s->piece_ms);
        if (s->piece_chars == 0)
                s->piece_chars = 1;
        s->asked = calloc(count, sizeof(*s->asked));
        return s->asked ? 0 : error_nomem(err);
}

/* ---- the row ---- */

static int script_open(const struct provider *self, const struct provider_options *opt,
    struct provider_client **out, struct steno_error *err)
{
        (void)self;
        if (!opt->script_json)
                return error_set(
                    err, STENO_EINVAL, "the provider \"script\" needs a script: use --script FILE");
        struct script *s = calloc(1, sizeof(*s));
        if (!s)
                return error_nomem(err);
        s->base = (struct provider_client){script_complete, script_close};
        json_init(&s->j);
        s->text = strdup(opt->script_json);
        int rc = s->text ? script_read(s, err) : error_nomem(err);
        if (rc) {
                script_close(&s->base);
                return rc;
        }
        *out = &s->base;
        return 0;
}

const struct provider provider_script = {
    .name = "script",
    .format = "openai",
    .open = script_open,
};
