/*
 * loop_text.c - calls as text, for models without function calling.
 *
 * The tools are described in the system text, and calls are read out of the reply:
 *
 *   <function_call>{"name":...,"arguments":...}</function_call>
 *   {"function_call_record":{"name":...,"arguments":...}}
 *   {"function_call":{"name":...,"arguments":...}}
 *
 * They are stored as calls of an OpenAI message. So every view of the history is valid, and they
 * are handled like all other calls. The request gets the history in the format `legacy`, in which
 * calls and results stand in the assistant's text again.
 *
 * A record with a response is one that the model has seen before and repeats, so it is text. So is
 * what stands in a code block, in a span of code or in <think>, because a model that explains or
 * considers a call does not make it, and a tag that is not closed. If the text between closed tags
 * cannot be read as a call, it becomes a call with this text as its arguments. It is refused like
 * any call with bad arguments, so that the model learns why nothing happened.
 */
#include "loop/loop.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

static const char OPEN[] = "<function_call>";
static const char CLOSE[] = "</function_call>";
/* Objects and spans of code that do not end, each of which is read to the end of the text to find
 * that out. What comes behind so many is text. */
#define OPEN_MOST 16

/* ---- the request ---- */

int loop_text_system(const struct loop *c, const char *require, struct buf *out)
{
        if (c->opt.system)
                buf_printf(out, "%s\n\n", c->opt.system);
        if (c->tools.count == 0)
                return out->failed;
        buf_puts(out,
            "You can use tools. To call one, write exactly this, and end your reply after it:\n"
            "<function_call>{\"name\":\"NAME\",\"arguments\":{...}}</function_call>\n"
            "The result is then put into your call as \"response\". Never write a response "
            "yourself. A call in a code block, between backticks or in <think> is not run.\n");
        if (require && strcmp(require, "any") == 0)
                buf_puts(out, "Your next reply must call a tool.\n");
        else if (require)
                buf_printf(out, "Your next reply must call the tool %s.\n", require);
        buf_puts(out, "The tools:\n");
        for (size_t i = 0; i < c->tools.count; i++) {
                const struct provider_tool *t = &c->offered[i];
                buf_printf(out, "- %s%s%s\n  arguments: ", t->name, t->description ? ": " : "",
                    t->description ? t->description : "");
                buf_put_str(out, t->schema.n ? t->schema : STR("{\"type\":\"object\"}"));
                buf_putc(out, '\n');
        }
        return out->failed;
}

/* ---- the reply ---- */

/* Something in the text that may be a call: [from, to) with its tags, the object in it. */
struct found {
        size_t from;
        size_t to;
        struct str object;
        bool endless;  /* the object does not end, for which all of the text was read */
        bool open;     /* and no tag ends it */
        bool unclosed; /* it has ended, and its tag has not */
        bool tagged;   /* it stands between two tags */
};

/* The bytes of the JSON object at the start of `s`; 0: it does not end. */
static size_t object_size(struct str s)
{
        size_t depth = 0;
        bool quoted = false;
        for (size_t i = 0; i < s.n; i++) {
                char ch = s.p[i];
                if (quoted) {
                        i += ch == '\\';
                        quoted = ch != '"';
                        continue;
                }
                quoted = ch == '"';
                depth += ch == '{' || ch == '[';
                if ((ch == '}' || ch == ']') && --depth == 0)
                        return i + 1;
        }
        return 0;
}

static size_t skip_white(struct str s, size_t at)
{
        while (
            at < s.n && (s.p[at] == ' ' || s.p[at] == '\n' || s.p[at] == '\r' || s.p[at] == '\t'))
                at++;
        return at;
}

static bool has_at(struct str s, size_t at, const char *word)
{
        return str_starts(str_span(s.p + at, s.n - at), word);
}

/* The bytes before the closing tag, when it comes before another opening one; or s.n. */
static size_t before_close(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] == '<' && (has_at(s, i, CLOSE) || has_at(s, i, OPEN)))
                        return has_at(s, i, CLOSE) ? i : s.n;
        return s.n;
}

static bool at_tag(struct str s, size_t at, struct found *out)
{
        if (!has_at(s, at, OPEN))
                return false;
        size_t begin = skip_white(s, at + sizeof OPEN - 1);
        struct str rest = str_span(s.p + begin, s.n - begin);
        if (rest.n == 0 || rest.p[0] != '{')
                return false;
        size_t size = object_size(rest);
        *out =
            (struct found){.from = at, .to = s.n, .object = rest, .endless = !size, .open = !size};
        /* A tag in a string of the object is not its end. */
        size_t close = size + before_close(str_span(rest.p + size, rest.n - size));
        if (close < rest.n) {
                bool whole = size && skip_white(rest, size) == close;
                out->object.n = whole ? size : close;
                out->to = begin + close + sizeof CLOSE - 1;
                out->open = false;
                out->tagged = true;
        } else if (size) {
                out->object.n = size;
                out->to = begin + size;
                out->unclosed = true;
        }
        return true;
}

/* {"function_call_record":{...}} or {"function_call":{...}} */
static bool at_record(struct str s, size_t at, struct found *out)
{
        size_t key = skip_white(s, at + 1);
        if (s.p[at] != '{' || s.n - key < 15 || memcmp(s.p + key, "\"function_call", 14) != 0)
                return false;
        struct str rest = str_span(s.p + at, s.n - at);
        size_t size = object_size(rest);
        *out =
            (struct found){.from = at, .to = s.n, .object = rest, .endless = !size, .open = !size};
        if (size == 0)
                return true;
        out->object.n = size;
        out->to = at + size;
        return true;
}

/* ---- what is quoted ---- */

static size_t run_of(struct str s, size_t at, char ch)
{
        size_t n = 0;
        while (at + n < s.n && s.p[at + n] == ch)
                n++;
        return n;
}

/* Is it the beginning of a line, but for three blanks at most? */
static bool begins_line(struct str s, size_t at)
{
        size_t blanks = 0;
        while (blanks < at && blanks < 4 && s.p[at - 1 - blanks] == ' ')
                blanks++;
        return blanks < 4 && (blanks == at || s.p[at - 1 - blanks] == '\n');
}

/* Behind the line that closes the code block whose fence is `n` times `ch`, or the end. */
static size_t behind_block(struct str s, size_t at, char ch, size_t n)
{
        for (at += n; at < s.n; at++) {
                if (s.p[at] != ch || !begins_line(s, at))
                        continue;
                size_t have = run_of(s, at, ch);
                at += have;
                if (have < n)
                        continue;
                while (at < s.n && (s.p[at] == ' ' || s.p[at] == '\t' || s.p[at] == '\r'))
                        at++;
                if (at == s.n || s.p[at] == '\n')
                        return at;
        }
        return s.n;
}

/* Behind the span of code that `n` backticks open; 0: none close it. It ends with its paragraph. */
static size_t behind_span(struct str s, size_t at, size_t n)
{
        for (at += n; at < s.n; at++) {
                if (s.p[at] == '\n' && at + 1 < s.n && s.p[at + 1] == '\n')
                        return 0;
                size_t have = run_of(s, at, '`');
                if (have == n)
                        return at + n;
                at += have ? have - 1 : 0;
        }
        return 0;
}

static size_t behind_word(struct str s, size_t at, const char *word)
{
        const char *end = memmem(s.p + at, s.n - at, word, strlen(word));
        return end ? (size_t)(end - s.p) + strlen(word) : s.n;
}

/* Where the text goes on behind what is quoted at `at`; `at`: nothing is. */
static size_t skip_quoted(struct str s, size_t at, unsigned *opened)
{
        static const char *const THINK[][2] = {
            {"<think>", "</think>"}, {"<thinking>", "</thinking>"}};
        char ch = s.p[at];
        for (size_t i = 0; ch == '<' && i < 2; i++)
                if (has_at(s, at, THINK[i][0]))
                        return behind_word(s, at, THINK[i][1]);
        if (ch != '`' && ch != '~')
                return at;
        size_t n = run_of(s, at, ch);
        if (n >= 3 && begins_line(s, at))
                return behind_block(s, at, ch, n);
        size_t end = ch == '`' ? behind_span(s, at, n) : at + n;
        *opened += end == 0;
        return end ? end : at + n;
}

/* Some models begin in the middle of their thinking: only its end is in the text. */
static size_t skip_thinking(struct str s)
{
        static const char BEGIN[] = "<think>", END[] = "</think>";
        const char *end = s.n ? memmem(s.p, s.n, END, sizeof END - 1) : NULL;
        const char *begin = s.n ? memmem(s.p, s.n, BEGIN, sizeof BEGIN - 1) : NULL;
        return end && (!begin || begin > end) ? (size_t)(end - s.p) + sizeof END - 1 : 0;
}

/* ---- taking them ---- */

/* The object that has the name and the arguments: itself, or the one in it. */
static json_ref inner_call(const struct json *j)
{
        static const char *const WRAPPED[] = {"function_call_record", "function_call"};
        json_ref call = 0;
        for (size_t i = 0; i < 2; i++)
                if (json_type(j, json_get(j, 0, WRAPPED[i])) == JSON_OBJECT)
                        call = json_get(j, 0, WRAPPED[i]);
        return call;
}

static bool is_answered(const struct json *j)
{
        json_ref response = json_get(j, inner_call(j), "response");
        return response != JSON_NONE && json_type(j, response) != JSON_NULL;
}

/* The call in an object; JSON_NONE: it is none, or it has been answered. */
static json_ref call_in(const struct json *j)
{
        json_ref call = inner_call(j);
        bool named = json_type(j, json_get(j, call, "name")) == JSON_STRING;
        return named && !is_answered(j) ? call : JSON_NONE;
}

struct taking {
        struct reply *reply;
        const struct reply_hooks *hooks;
        struct buf text;  /* without the calls */
        struct buf calls; /* elements of tool_calls */
};

static int add_call(struct taking *t, const char *id, const char *name, struct str args)
{
        if (t->reply->count == CALLS_MAX)
                return STENO_ELIMIT;
        const char *given = reply_add_call(t->reply, t->hooks, id, name, args);
        if (!given)
                return STENO_ENOMEM;
        struct jsonw w = jsonw_to(&t->calls);
        if (t->calls.n)
                buf_putc(&t->calls, ',');
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", given);
        jsonw_field_cstr(&w, "type", "function");
        jsonw_key(&w, "function");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "name", name);
        jsonw_field_str(&w, "arguments", args);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        return t->calls.failed;
}

/* 1: it was a call; 0: it is text. */
static int take_object(struct taking *t, struct str object)
{
        struct json j;
        struct buf args;
        int rc = 0;
        json_init(&j);
        buf_init(&args, 0);
        json_ref call =
            json_parse(&j, object.p, object.n, NULL, NULL) == 0 ? call_in(&j) : JSON_NONE;
        if (call != JSON_NONE) {
                json_ref a = json_get(&j, call, "arguments");
                a = a == JSON_NONE ? json_get(&j, call, "parameters") : a;
                if (!json_string(&j, a, &args, NULL) && a != JSON_NONE)
                        buf_put_str(&args, json_raw(&j, a));
                char *name = json_dup_string(&j, json_get(&j, call, "name"));
                char *id = json_type(&j, json_get(&j, call, "id")) == JSON_STRING
                               ? json_dup_string(&j, json_get(&j, call, "id"))
                               : strdup("");
                rc = !name || !id || args.failed ? STENO_ENOMEM
                                                 : add_call(t, id, name, buf_str(&args));
                rc = rc ? rc : 1;
                free(name);
                free(id);
        }
        buf_release(&args);
        json_release(&j);
        return rc;
}

/* The name in an object that cannot be read. */
static void guess_name(struct str object, char name[80])
{
        static const char KEY[] = "\"name\"";
        const char *at = memmem(object.p, object.n, KEY, sizeof KEY - 1);
        name[0] = '\0';
        if (!at)
                return;
        struct str rest = str_span(at + 6, object.n - (size_t)(at + 6 - object.p));
        const char *from = memchr(rest.p, '"', rest.n);
        size_t n = 0;
        while (from && from + 1 + n < rest.p + rest.n && from[1 + n] != '"' && n + 1 < 80)
                n++;
        if (from) {
                memcpy(name, from + 1, n);
                name[n] = '\0';
        }
}

/* A call that the end of the reply cut off: it is told of, and not run. */
static int take_cut(struct taking *t, struct str object)
{
        char name[80];
        guess_name(object, name);
        if (t->reply->finish != FINISH_LENGTH || !name[0])
                return 0;
        int rc = add_call(t, "", name, object);
        if (rc)
                return rc;
        t->reply->calls[t->reply->count - 1].state = CALL_CUT;
        return 1;
}

/* What stands between two tags and is not a call, unless it has been answered. It cannot be run:
 * what is JSON gets no name, and anything else is not arguments. */
static int take_unreadable(struct taking *t, struct str object)
{
        struct json j;
        char name[80] = "";
        json_init(&j);
        bool read = json_parse(&j, object.p, object.n, NULL, NULL) == 0;
        bool answered = read && is_answered(&j);
        json_release(&j);
        if (answered)
                return 0;
        if (!read)
                guess_name(object, name);
        int rc = add_call(t, "", name, object);
        return rc ? rc : 1;
}

static int take_found(struct taking *t, const struct found *f)
{
        if (f->open || f->unclosed)
                return take_cut(t, f->object);
        int rc = take_object(t, f->object);
        return rc == 0 && f->tagged ? take_unreadable(t, f->object) : rc;
}

static int take_all(struct taking *t, struct str s)
{
        unsigned opened = 0;
        size_t kept = 0;
        for (size_t i = skip_thinking(s); i < s.n && opened < OPEN_MOST; i++) {
                size_t behind = skip_quoted(s, i, &opened);
                struct found f = {0};
                if (behind > i) {
                        i = behind - 1;
                        continue;
                }
                if (!(s.p[i] == '<' ? at_tag(s, i, &f) : s.p[i] == '{' && at_record(s, i, &f)))
                        continue;
                opened += f.endless;
                int rc = take_found(t, &f);
                if (rc < 0)
                        return rc;
                if (rc == 1) {
                        buf_put(&t->text, s.p + kept, f.from - kept);
                        kept = f.to;
                }
                if (rc == 1 || !f.open)
                        i = f.to - 1; /* nothing in it is another call */
        }
        buf_put(&t->text, s.p + kept, s.n - kept);
        while (t->text.n && skip_white(buf_str(&t->text), t->text.n - 1) == t->text.n)
                t->text.n--;
        return t->text.failed;
}

/* The message with its text as it is without the calls, and the calls. */
static int rewrite(struct taking *t)
{
        struct json j;
        struct buf out;
        json_init(&j);
        buf_init(&out, t->reply->message.max);
        struct jsonw w = jsonw_to(&out);
        int rc = json_parse(&j, t->reply->message.p, t->reply->message.n, NULL, NULL);
        jsonw_object(&w);
        for (json_ref k = rc ? JSON_NONE : json_child(&j, 0); k != JSON_NONE;
             k = json_next_key(&j, 0, k))
                if (!json_is(&j, k, "content") && !json_is(&j, k, "tool_calls"))
                        jsonw_copy_member(&w, &j, k);
        jsonw_key(&w, "content");
        if (t->text.n)
                jsonw_str(&w, buf_str(&t->text));
        else
                jsonw_null(&w);
        jsonw_key(&w, "tool_calls");
        jsonw_array(&w);
        jsonw_raw(&w, buf_str(&t->calls));
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        rc = rc ? rc : out.failed;
        json_release(&j);
        if (rc) {
                buf_release(&out);
                return rc;
        }
        buf_release(&t->reply->message);
        t->reply->message = out;
        return 0;
}

int loop_text_take(struct reply *reply, const struct reply_hooks *hooks, struct steno_error *err)
{
        struct taking t = {.reply = reply, .hooks = hooks};
        if (reply->count || reply->fault.code)
                return 0;
        buf_init(&t.text, 0);
        buf_init(&t.calls, 0);
        int rc = take_all(&t, buf_str(&reply->text));
        if (rc == 0 && reply->count)
                rc = rewrite(&t);
        if (rc == 0 && reply->count) {
                buf_clear(&reply->text);
                buf_put_str(&reply->text, buf_str(&t.text));
                rc = reply->text.failed;
        }
        buf_release(&t.text);
        buf_release(&t.calls);
        if (rc == STENO_ELIMIT)
                return error_set(
                    err, rc, "with the calls in its text it has more than %d calls", CALLS_MAX);
        return rc ? error_set(err, rc, "reading calls out of a reply") : 0;
}
