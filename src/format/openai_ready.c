/*
 * openai_ready.c - decides whether a stored openai message can be sent to a provider unchanged
 * (format.h, ready).
 *
 * Most messages of most histories can, and then a view is a copy. The message is not parsed: the
 * code walks the top level and the calls, and skips strings with fast searches. It accepts only
 * simple shapes that fit.c would not change. All other messages take the slower way through the
 * hub, which is always correct. The text is known to be valid JSON, so only its shape is checked.
 */
#include "format/openai.h"

#include <string.h>

#include "base/scan.h"
#include "format/rules.h"
#include "format/turns.h"

struct walk {
        const char *p;
        const char *end;
};

static void skip_space(struct walk *w)
{
        while (w->p < w->end && (*w->p == ' ' || *w->p == '\t' || *w->p == '\r' || *w->p == '\n'))
                w->p++;
}

static char peek(struct walk *w)
{
        skip_space(w);
        return w->p < w->end ? *w->p : '\0';
}

static bool take(struct walk *w, char c)
{
        if (peek(w) != c)
                return false;
        w->p++;
        return true;
}

/* Takes a string; *inner is its inside. False: it is not a string. */
static bool take_string(struct walk *w, struct str *inner)
{
        if (!take(w, '"'))
                return false;
        const char *start = w->p;
        const char *q = scan_short_string(w->p, w->end);
        while (!q) {
                q = scan_string(w->p, w->end);
                if (q >= w->end)
                        return false;
                if (*q == '"')
                        break;
                w->p = q + (*q == '\\' ? 2 : 1);
                if (w->p > w->end)
                        return false;
                q = NULL;
        }
        *inner = str_span(start, (size_t)(q - start));
        w->p = q + 1;
        return true;
}

/* Skips any value. */
static bool skip_value(struct walk *w)
{
        struct str s;
        int depth = 0;
        do {
                char c = peek(w);
                if (c == '"') {
                        if (!take_string(w, &s))
                                return false;
                } else if (c == '{' || c == '[') {
                        depth++;
                        w->p++;
                } else if (c == '}' || c == ']') {
                        depth--;
                        w->p++;
                } else if (c == ',' || c == ':') {
                        w->p++;
                } else if (c == '\0') {
                        return false;
                } else {
                        while (w->p < w->end && *w->p != ',' && *w->p != '}' && *w->p != ']' &&
                               *w->p != ' ')
                                w->p++;
                }
        } while (depth > 0);
        return true;
}

/* Takes the next key of an object, behind its '{' or its last value. False at the object's end.
 * *bad: it is not an object, or a key has escapes. */
static bool next_key(struct walk *w, bool *first, struct str *key, bool *bad)
{
        if (take(w, '}'))
                return false;
        if (!*first && !take(w, ',')) {
                *bad = true;
                return false;
        }
        *first = false;
        *bad = !take_string(w, key) || (key->n && memchr(key->p, '\\', key->n)) || !take(w, ':');
        return !*bad;
}

/* Is it short enough and without an escape? */
static bool is_plain_id(struct str id)
{
        return id.n && id.n <= rules_openai.id_max && !memchr(id.p, '\\', id.n);
}

static bool walk_function(struct walk *w)
{
        struct str key, s;
        bool first = true, bad = false, name = false, arguments = false;
        if (!take(w, '{'))
                return false;
        while (next_key(w, &first, &key, &bad)) {
                if (str_is(key, "name"))
                        name = take_string(w, &s) && rules_is_name(&rules_openai, s);
                else if (str_is(key, "arguments"))
                        arguments = take_string(w, &s);
                else if (!skip_value(w))
                        return false;
        }
        return !bad && name && arguments;
}

/* Takes {"id":...,"type":"function","function":{...}}, and members that the provider may have
 * added. */
static bool walk_call(struct walk *w)
{
        struct str key, s;
        bool first = true, bad = false, id = false, type = false, function = false;
        if (!take(w, '{'))
                return false;
        while (next_key(w, &first, &key, &bad)) {
                if (str_is(key, "id"))
                        id = take_string(w, &s) && is_plain_id(s);
                else if (str_is(key, "type"))
                        type = take_string(w, &s) && str_is(s, "function");
                else if (str_is(key, "function"))
                        function = walk_function(w);
                else if (!skip_value(w))
                        return false;
        }
        return !bad && id && type && function;
}

static bool walk_calls(struct walk *w)
{
        if (!take(w, '['))
                return false;
        do {
                if (!walk_call(w))
                        return false;
        } while (take(w, ','));
        return take(w, ']');
}

enum content {
        CONTENT_NONE,
        CONTENT_NULL,
        CONTENT_BLANK, /* a text without visible characters */
        CONTENT_STRING,
        CONTENT_PARTS, /* texts and images of a user */
        CONTENT_OTHER,
};

/* Is it an address, or an image of a type that is accepted? The image's bytes are not checked,
 * because there may be many. */
static bool is_picture(struct str url)
{
        if (!str_starts(url, "data:"))
                return rules_is_address(url, false) && !memchr(url.p, '\\', url.n);
        const char *end = memmem(url.p, url.n < 64 ? url.n : 64, ";base64,", 8);
        if (!end || (size_t)(end - url.p) + 8 == url.n)
                return false;
        struct str type = str_span(url.p + 5, (size_t)(end - url.p) - 5);
        struct str data = str_span(end + 8, (size_t)(url.p + url.n - end) - 8);
        const char *real = rules_image_type(data);
        return real && str_is(type, real) && !memchr(data.p, '\\', data.n);
}

/* Takes {"url":...} and the other members that are allowed there. */
static bool walk_url(struct walk *w)
{
        struct str key, s;
        bool first = true, bad = false, url = false;
        if (!take(w, '{'))
                return false;
        while (next_key(w, &first, &key, &bad)) {
                if (str_is(key, "url"))
                        url = take_string(w, &s) && is_picture(s);
                else if (str_is(key, "detail") ? !take_string(w, &s) : !skip_value(w))
                        return false;
        }
        return !bad && url;
}

/* Takes a text that is not empty, or an image. Messages with images are checked here because they
 * may be too large to be held in memory. */
static bool walk_part(struct walk *w)
{
        struct str key, s, type = {0};
        bool first = true, bad = false, text = false, image = false, other = false;
        if (!take(w, '{'))
                return false;
        while (next_key(w, &first, &key, &bad)) {
                if (str_is(key, "type") && take_string(w, &s))
                        type = s;
                else if (str_is(key, "text"))
                        text = take_string(w, &s) && s.n > 0;
                else if (str_is(key, "image_url"))
                        image = walk_url(w);
                else
                        other = true;
                if (other)
                        return false;
        }
        return !bad && ((str_is(type, "text") && text && !image) ||
                           (str_is(type, "image_url") && image && !text));
}

static bool walk_parts(struct walk *w)
{
        if (!take(w, '['))
                return false;
        do {
                if (!walk_part(w))
                        return false;
        } while (take(w, ','));
        return take(w, ']');
}

static enum content walk_content(struct walk *w)
{
        struct str s;
        switch (peek(w)) {
        case '"':
                if (!take_string(w, &s))
                        return CONTENT_OTHER;
                return turns_is_blank(s) ? CONTENT_BLANK : CONTENT_STRING;
        case 'n':
                return skip_value(w) ? CONTENT_NULL : CONTENT_OTHER;
        case '[':
                return walk_parts(w) ? CONTENT_PARTS : CONTENT_OTHER;
        default:
                return CONTENT_OTHER;
        }
}

/* Is it a member that cannot be sent unchanged? These are the older kind of call, and figures that
 * only newer records are marked for (about.own_fields). */
static bool is_refused(struct str key)
{
        static const char *const keys[] = {
            "function_call", "exitCode", "signal", "timedOut", "interrupted", "denied", "cut"};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
                if (str_is(key, keys[i]))
                        return true;
        return false;
}

/* Does it contain half of a surrogate pair? Few messages have such an escape at all. */
static bool has_half(struct str m)
{
        const char *end = m.p + m.n, *p = m.p;
        while (end - p > 2 && (p = memchr(p, '\\', (size_t)(end - p) - 2))) {
                if (p[1] == 'u' && (p[2] == 'd' || p[2] == 'D'))
                        return rules_has_lone(m);
                p += 2;
        }
        return false;
}

bool openai_ready(struct str m)
{
        struct walk w = {m.p, m.p + m.n};
        struct str key, other, role = {0}, answers = {0};
        enum content content = CONTENT_NONE;
        bool first = true, bad = false, calls = false;
        if (!take(&w, '{'))
                return false;
        while (next_key(&w, &first, &key, &bad)) {
                bool right = true;
                if (str_is(key, "role"))
                        right = take_string(&w, &role);
                else if (str_is(key, "content"))
                        right = (content = walk_content(&w)) != CONTENT_OTHER;
                else if (str_is(key, "tool_calls"))
                        right = calls = walk_calls(&w);
                else if (str_is(key, "tool_call_id"))
                        right = take_string(&w, &answers) && is_plain_id(answers);
                else if (is_refused(key))
                        right = false;
                else if (str_is(key, "name"))
                        right = take_string(&w, &other) && rules_is_name(&rules_openai, other);
                else if (str_is(key, "refusal") && peek(&w) != 'n')
                        right = take_string(&w, &other);
                else
                        right = skip_value(&w);
                if (!right)
                        return false;
        }
        if (bad || peek(&w) != '\0' || has_half(m))
                return false;
        bool said = content == CONTENT_STRING || content == CONTENT_BLANK;
        if (str_is(role, "assistant"))
                return !answers.p &&
                       (content == CONTENT_STRING || (content != CONTENT_PARTS && calls));
        if (content == CONTENT_PARTS)
                return !answers.p && !calls && str_is(role, "user");
        if (!said || calls)
                return false;
        if (str_is(role, "tool"))
                return answers.n > 0;
        return !answers.p &&
               (str_is(role, "user") || str_is(role, "system") || str_is(role, "developer"));
}
