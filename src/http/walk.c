/* walk.c - see walk.h */
#include "http/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/error.h"
#include "base/json.h"

struct telling {
        const struct walk *to;
        const struct steno_record *record;
        struct arena arena;
        struct json about;
        struct json j;
        struct json own; /* the message as it was stored, where `j` is another format's */
        int64_t at;
        bool error; /* Steno's mark on the record */
        size_t max; /* bytes of a text */
};

/* ---- texts ---- */

/* The inside of a string token, cut so that neither an escape nor a character is split. */
static struct str cut_inner(struct str s, size_t n)
{
        if (s.n <= n)
                return s;
        for (size_t i = n - 12; i < n; i++) {
                if (s.p[i] == '\\') {
                        n = i;
                        break;
                }
        }
        while (n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
                n--;
        return str_span(s.p, n);
}

/* Decoded into the arena; empty when it is not a string. */
static struct str text_of(struct telling *t, json_ref r)
{
        struct buf b;
        if (json_type(&t->j, r) != JSON_STRING)
                return STR("");
        buf_init(&b, 0);
        json_unescape(cut_inner(json_inner(&t->j, r), t->max), &b, NULL);
        struct str out = arena_dup(&t->arena, buf_str(&b));
        buf_release(&b);
        return out.p ? out : STR("");
}

/* What stands there, a text as text and anything else as its JSON. */
static struct str value_of(struct telling *t, json_ref r)
{
        if (json_type(&t->j, r) == JSON_STRING)
                return text_of(t, r);
        if (r == JSON_NONE)
                return STR("");
        struct str raw = json_raw(&t->j, r);
        size_t n = raw.n < t->max ? raw.n : t->max;
        while (n && n < raw.n && ((unsigned char)raw.p[n] & 0xc0) == 0x80)
                n--;
        return str_span(raw.p, n);
}

/* The first text of a content: a string, or a list of parts. */
static struct str content_of(struct telling *t, json_ref content)
{
        if (json_type(&t->j, content) == JSON_NULL)
                return STR("");
        if (json_type(&t->j, content) != JSON_ARRAY)
                return value_of(t, content);
        for (json_ref p = json_child(&t->j, content); p != JSON_NONE;
             p = json_next(&t->j, content, p)) {
                json_ref text = json_get(&t->j, p, "text");
                if (json_type(&t->j, text) == JSON_STRING)
                        return text_of(t, text);
        }
        return STR("");
}

/* How long a text is, of which the JSON has `inner`. Texts may be long, so nothing is decoded. */
static uint64_t decoded_size(struct str inner)
{
        uint64_t n = inner.n;
        const char *end = inner.p + inner.n;
        const char *at = inner.p;
        while ((at = memchr(at, '\\', (size_t)(end - at))) && end - at > 1) {
                if (at[1] != 'u' || end - at < 6) {
                        n -= 1;
                        at += 2;
                        continue;
                }
                char hex[5] = {at[2], at[3], at[4], at[5], 0};
                unsigned long c = strtoul(hex, NULL, 16);
                /* A half of a pair is counted as half of the four bytes of both. */
                n -= 6 - (c < 0x80 ? 1 : c < 0x800 || (c >= 0xd800 && c <= 0xdfff) ? 2 : 3);
                at += 6;
        }
        return n;
}

/* The bytes of what a result says: of a text as text, of anything else as its JSON. */
static uint64_t size_of(const struct json *j, json_ref said)
{
        return json_type(j, said) == JSON_STRING ? decoded_size(json_inner(j, said))
                                                 : json_raw(j, said).n;
}

/* ---- results ---- */

/* `m` is the message of a result. Results of older versions say it in their words only. */
static enum walk_state state_of(const struct json *j, json_ref m, bool failed, struct str text)
{
        if (json_bool(j, json_get(j, m, "denied"), false))
                return WALK_DENIED;
        if (json_bool(j, json_get(j, m, "interrupted"), false) || str_starts(text, "[interrupted]"))
                return WALK_STOPPED;
        if (json_bool(j, json_get(j, m, "cut"), false))
                return WALK_CUT;
        if (!failed)
                return WALK_DONE;
        return str_starts(text, "Permission denied: the call was not run.") ? WALK_DENIED
                                                                            : WALK_FAILED;
}

const char *walk_state_name(enum walk_state state)
{
        static const char *const NAMES[] = {"complete", "error", "denied", "interrupted", "cut"};
        return NAMES[state];
}

/* `m` has the members that Steno knows of a result, `said` is what it says. */
static int tell_result(struct telling *t, json_ref m, struct str call, json_ref said, bool failed)
{
        const struct json *j = &t->j;
        struct walk_result r = {
            .seq = steno_record_seq(t->record), .at = t->at, .call = call, .duration = -1};
        t->max = failed ? WALK_FAILURE_MAX : WALK_TEXT_MAX;
        r.text = content_of(t, said);
        t->max = WALK_TEXT_MAX;
        json_ref ref = json_get(j, m, "ref");
        json_i64(j, json_get(j, m, "duration"), &r.duration);
        r.has_exit = json_i64(j, json_get(j, m, "exitCode"), &r.exit);
        r.ref = text_of(t, json_get(j, ref, "id"));
        json_u64(j, json_get(j, ref, "byteSize"), &r.bytes);
        uint64_t shown = size_of(j, said);
        if (!r.bytes)
                r.bytes = shown;
        r.excerpt = r.ref.n && str_starts(r.text, "[INCOMPLETE:");
        if (r.excerpt && r.bytes > shown)
                r.kept = r.bytes - shown;
        r.state = state_of(j, m, failed, r.text);
        return t->to->result ? t->to->result(t->to->ctx, &r) : 0;
}

static int tell_tool(struct telling *t, json_ref m, bool failed)
{
        const struct json *j = &t->j;
        return tell_result(
            t, m, text_of(t, json_get(j, m, "tool_call_id")), json_get(j, m, "content"), failed);
}

/* ---- calls ---- */

static int tell_call(struct telling *t, json_ref c)
{
        const struct json *j = &t->j;
        json_ref function = json_get(j, c, "function");
        json_ref in = function == JSON_NONE ? c : function;
        struct walk_call call = {.seq = steno_record_seq(t->record),
            .at = t->at,
            .id = text_of(t, json_get(j, c, "id")),
            .name = text_of(t, json_get(j, in, "name")),
            .arguments = value_of(t, json_get(j, in, "arguments"))};
        int rc = t->to->call ? t->to->call(t->to->ctx, &call) : 0;
        /* A call that carries its own result. */
        json_ref error = json_get(j, c, "error"), result = json_get(j, c, "result");
        if (rc == 0 && (error != JSON_NONE || result != JSON_NONE))
                rc = tell_result(
                    t, c, call.id, error != JSON_NONE ? error : result, error != JSON_NONE);
        return rc;
}

static int tell_calls(struct telling *t, json_ref m)
{
        json_ref list = json_get(&t->j, m, "tool_calls");
        if (list == JSON_NONE)
                list = json_get(&t->j, m, "toolCalls");
        if (json_type(&t->j, list) != JSON_ARRAY)
                return 0;
        int rc = 0;
        for (json_ref c = json_child(&t->j, list); rc == 0 && c != JSON_NONE;
             c = json_next(&t->j, list, c))
                rc = tell_call(t, c);
        return rc;
}

/* ---- messages ---- */

/* The message as it was stored. */
static const struct json *stored(const struct telling *t)
{
        return json_type(&t->own, 0) == JSON_OBJECT ? &t->own : &t->j;
}

/* "endpoint model" of the record, or what the message says of itself. */
static struct str model_of(struct telling *t)
{
        struct str via = json_inner(&t->about, json_get(&t->about, 0, "via"));
        const char *space = via.n ? memrchr(via.p, ' ', via.n) : NULL;
        if (space)
                return str_span(space + 1, via.n - (size_t)(space - via.p) - 1);
        json_ref own = json_get(stored(t), 0, "model");
        return json_type(stored(t), own) == JSON_STRING ? json_inner(stored(t), own) : STR("");
}

/* Of replies that others have recorded: a run of Steno has it in its journal. */
static void take_usage(struct telling *t, struct walk_message *said)
{
        const struct json *j = stored(t);
        json_ref usage = json_get(j, 0, "usage");
        if (usage == JSON_NONE)
                usage = json_get(j, 0, "usageMetadata");
        if (json_type(j, usage) != JSON_OBJECT || json_get(&t->about, 0, "run") != JSON_NONE)
                return;
        said->usage = json_raw(j, usage);
        said->reply = json_inner(j, json_get(j, 0, "id"));
}

static int tell_message(struct telling *t, json_ref m, const char *role)
{
        const struct json *j = &t->j;
        json_ref error = json_get(j, m, "error");
        struct walk_message said = {.seq = steno_record_seq(t->record),
            .at = t->at,
            .id = steno_record_id(t->record),
            .role = role,
            .text = content_of(t, json_get(j, m, "content")),
            .part = text_of(t, json_get(j, json_at(j, json_get(j, m, "content"), 0), "type")),
            .model = model_of(t),
            .failed = json_type(j, error) == JSON_OBJECT,
            .error = STR(""),
            .usage = STR(""),
            .reply = STR("")};
        if (strcmp(role, "assistant") == 0)
                take_usage(t, &said);
        if (said.failed)
                said.error = text_of(t, json_get(j, error, "message"));
        int rc = t->to->message ? t->to->message(t->to->ctx, &said) : 0;
        return rc ? rc : tell_calls(t, m);
}

static int tell_one(struct telling *t, json_ref m)
{
        static const char *const ROLES[] = {"user", "assistant", "system", "developer"};
        const struct json *j = &t->j;
        json_ref role = json_get(j, m, "role");
        if (json_is(j, role, "tool"))
                return tell_tool(t, m,
                    t->error || json_bool(j, json_get(j, m, "isError"), false) ||
                        json_bool(j, json_get(j, m, "is_error"), false));
        bool langchain = role == JSON_NONE && json_is(j, json_get(j, m, "type"), "tool");
        json_ref result = langchain ? json_get(j, m, "data") : JSON_NONE;
        if (result != JSON_NONE)
                return tell_tool(t, result, json_is(j, json_get(j, result, "status"), "error"));
        for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++)
                if (json_is(j, role, ROLES[i]))
                        return tell_message(t, m, ROLES[i]);
        return 0;
}

/* The record's message in a form that is understood here. */
static int load(struct telling *t, char **text, size_t *n, struct steno_error *err)
{
        const struct steno_record *r = t->record;
        if (strcmp(steno_record_format(r), "openai") == 0)
                return steno_record_message(r, text, n, err);
        bool answers = json_count(&t->about, json_get(&t->about, 0, "answers")) > 0;
        bool calls = json_count(&t->about, json_get(&t->about, 0, "calls")) > 0;
        /* Of several results the mark on the record does not say which of them failed; this format
         * does, and has their ids as they are. */
        const char *results =
            strcmp(steno_record_format(r), "langchain") == 0 ? "openai" : "langchain";
        return steno_record_as(r, answers && !calls ? results : "chat", text, n, err);
}

/* Replies in other formats are looked at as they were stored, too. *text lives as long as t->own.
 */
static int load_own(struct telling *t, char **text, struct steno_error *err)
{
        size_t n = 0;
        if (strcmp(steno_record_format(t->record), "openai") == 0 ||
            !json_is(&t->about, json_get(&t->about, 0, "role"), "assistant"))
                return 0;
        int rc = steno_record_message(t->record, text, &n, err);
        return rc ? rc : json_parse(&t->own, *text, n, NULL, err);
}

static int tell_record(struct telling *t, struct steno_error *err)
{
        char *text = NULL, *own = NULL;
        size_t n = 0, about_n = 0;
        const char *about = steno_record_about(t->record, &about_n);
        int rc = json_parse(&t->about, about, about_n, NULL, err);
        if (rc == 0)
                rc = load(t, &text, &n, err);
        if (rc == 0)
                rc = load_own(t, &own, err);
        if (rc == 0)
                rc = json_parse(&t->j, text, n, NULL, err);
        if (rc) {
                steno_free(text);
                steno_free(own);
                return rc == STENO_ENOMEM ? rc : 0; /* what is damaged tells nothing */
        }
        t->error = json_bool(&t->about, json_get(&t->about, 0, "error"), false);
        if (json_type(&t->j, 0) == JSON_ARRAY)
                for (json_ref m = json_child(&t->j, 0); rc == 0 && m != JSON_NONE;
                     m = json_next(&t->j, 0, m))
                        rc = tell_one(t, m);
        else
                rc = tell_one(t, 0);
        steno_free(text);
        steno_free(own);
        return rc;
}

int walk_record(const struct walk *to, const struct steno_record *r, struct steno_error *err)
{
        struct telling t = {.to = to, .record = r, .max = WALK_TEXT_MAX};
        const char *at = steno_record_at(r);
        if (strcmp(steno_record_kind(r), "message") != 0)
                return 0;
        time_parse(at, strlen(at), &t.at);
        arena_init(&t.arena);
        json_init(&t.about);
        json_init(&t.j);
        json_init(&t.own);
        int rc = tell_record(&t, err);
        json_release(&t.own);
        json_release(&t.j);
        json_release(&t.about);
        arena_release(&t.arena);
        return rc;
}
