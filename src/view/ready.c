/* ready.c - see ready.h. The text is known to be valid JSON, so only its shape is looked at. */
#include "view/ready.h"

#include "base/scan.h"

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

/* The inside of a string; false: it is not one. */
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

/* Steps over any value. */
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

/* The next key of an object whose '{' or last value was passed; false at its end (*bad: it is no
 * object, or a key has escapes). */
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

static bool walk_function(struct walk *w)
{
        struct str key, s;
        bool first = true, bad = false, name = false, arguments = false;
        if (!take(w, '{'))
                return false;
        while (next_key(w, &first, &key, &bad)) {
                if (str_is(key, "name"))
                        name = take_string(w, &s) && s.n > 0;
                else if (str_is(key, "arguments"))
                        arguments = take_string(w, &s);
                else if (!skip_value(w))
                        return false;
        }
        return !bad && name && arguments;
}

/* {"id":...,"type":"function","function":{...}}, and what the provider may have added. */
static bool walk_call(struct walk *w)
{
        struct str key, s;
        bool first = true, bad = false, id = false, type = false, function = false;
        if (!take(w, '{'))
                return false;
        while (next_key(w, &first, &key, &bad)) {
                if (str_is(key, "id"))
                        id = take_string(w, &s) && s.n > 0;
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
        CONTENT_STRING,
        CONTENT_PARTS, /* texts and pictures, of a user */
        CONTENT_OTHER,
};

/* {"url":...}, and what else may stand there. */
static bool walk_url(struct walk *w)
{
        struct str key, s;
        bool first = true, bad = false, url = false;
        if (!take(w, '{'))
                return false;
        while (next_key(w, &first, &key, &bad)) {
                if (str_is(key, "url"))
                        url = take_string(w, &s);
                else if (!skip_value(w))
                        return false;
        }
        return !bad && url;
}

/* A text that is not empty, or a picture. Pictures are why: they may be too large to be held. */
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
                return take_string(w, &s) ? CONTENT_STRING : CONTENT_OTHER;
        case 'n':
                return skip_value(w) ? CONTENT_NULL : CONTENT_OTHER;
        case '[':
                return walk_parts(w) ? CONTENT_PARTS : CONTENT_OTHER;
        default:
                return CONTENT_OTHER;
        }
}

/* Members that cannot go out as they stand: the older way to call, and figures that only newer
 * records are marked for (about.own_fields). */
static bool is_refused(struct str key)
{
        return str_is(key, "function_call") || str_is(key, "exitCode") || str_is(key, "signal") ||
               str_is(key, "timedOut");
}

bool ready_openai(struct str m)
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
                        right = take_string(&w, &answers);
                else if (is_refused(key))
                        right = false;
                else if (str_is(key, "name") || (str_is(key, "refusal") && peek(&w) != 'n'))
                        right = take_string(&w, &other);
                else
                        right = skip_value(&w);
                if (!right)
                        return false;
        }
        if (bad || peek(&w) != '\0')
                return false;
        if (str_is(role, "assistant"))
                return !answers.p &&
                       (content == CONTENT_STRING || (content != CONTENT_PARTS && calls));
        if (content == CONTENT_PARTS)
                return !answers.p && !calls && str_is(role, "user");
        if (content != CONTENT_STRING || calls)
                return false;
        if (str_is(role, "tool"))
                return answers.n > 0;
        return !answers.p &&
               (str_is(role, "user") || str_is(role, "system") || str_is(role, "developer"));
}
