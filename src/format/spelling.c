/* spelling.c - see spelling.h */
#include "format/spelling.h"

#include <string.h>

#include "steno.h"

static int hex_digit(char c)
{
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* Returns the character at `p` and how many bytes it takes; -1: no word has this character. */
static int word_character(const char *p, const char *end, size_t *n)
{
        int c = (unsigned char)*p;
        *n = 1;
        if (c == '\\' && end - p >= 2 && p[1] == '/') {
                *n = 2;
                return '/';
        }
        if (c == '\\' && end - p >= 6 && p[1] == 'u' && p[2] == '0' && p[3] == '0') {
                int high = hex_digit(p[4]), low = hex_digit(p[5]);
                *n = 6;
                c = high < 0 || low < 0 ? -1 : high * 16 + low;
        } else if (c == '\\') {
                return -1;
        }
        return c > 0x20 && c < 0x7f && c != '"' && c != '\\' ? c : -1;
}

static bool is_escaped_word(struct str inner)
{
        size_t n;
        for (const char *p = inner.p, *end = p + inner.n; p < end; p += n)
                if (word_character(p, end, &n) < 0)
                        return false;
        return true;
}

static bool has_escaped_word(const struct json *j, json_ref msg)
{
        for (json_ref i = msg; i < j->nodes[msg].next; i++)
                if ((j->nodes[i].info & JSON_ESCAPED) && is_escaped_word(json_inner(j, i)))
                        return true;
        return false;
}

/* Is it a member whose strings are prose? Readers never compare prose with words. */
static bool is_prose(const struct json *j, json_ref key)
{
        static const char *const keys[] = {"text", "content", "thinking", "refusal", "output",
            "arguments", "result", "error", "reasoning_content", NULL};
        for (size_t i = 0; keys[i]; i++)
                if (json_is(j, key, keys[i]))
                        return true;
        return false;
}

/* The input of a tool, which is never compared with words. */
static bool is_input(const struct json *j, json_ref key)
{
        return json_is(j, key, "arguments") || json_is(j, key, "input") || json_is(j, key, "args");
}

/* Calls `each` for every string that has escapes and that a reader compares with words. */
static bool find_words(
    const struct json *j, json_ref v, bool (*each)(void *ctx, json_ref v), void *ctx)
{
        switch (json_type(j, v)) {
        case JSON_STRING:
                return (j->nodes[v].info & JSON_ESCAPED) && is_escaped_word(json_inner(j, v)) &&
                       each(ctx, v);
        case JSON_ARRAY:
                for (json_ref e = json_child(j, v); e != JSON_NONE; e = json_next(j, v, e))
                        if (find_words(j, e, each, ctx))
                                return true;
                return false;
        case JSON_OBJECT:
                for (json_ref k = json_child(j, v); k != JSON_NONE; k = json_next_key(j, v, k)) {
                        json_ref value = json_value(j, k);
                        if ((j->nodes[k].info & JSON_ESCAPED) &&
                            is_escaped_word(json_inner(j, k)) && each(ctx, k))
                                return true;
                        if (is_input(j, k) ||
                            (json_type(j, value) == JSON_STRING && is_prose(j, k)))
                                continue;
                        if (find_words(j, value, each, ctx))
                                return true;
                }
                return false;
        default:
                return false;
        }
}

static bool take_any(void *ctx, json_ref v)
{
        (void)ctx, (void)v;
        return true;
}

/* Writes the string `node` of the copy without escapes. */
static void respell(char *text, struct json_node *node)
{
        char *to = text + node->off + 1;
        const char *end = text + node->off + node->len;
        size_t n;
        for (const char *p = to; p < end - 1; p += n)
                *to++ = (char)word_character(p, end - 1, &n);
        *to++ = '"';
        node->len = (uint32_t)(to - (text + node->off));
        node->info &= ~JSON_ESCAPED;
        memset(to, ' ', (size_t)(end - to));
}

struct respelling {
        char *text;
        struct json_node *nodes; /* nodes of the copy; the first is the message */
        json_ref msg;
};

static bool respell_one(void *ctx, json_ref v)
{
        struct respelling *r = ctx;
        respell(r->text, &r->nodes[v - r->msg]);
        return false;
}

int spelling_of(const struct json *j, json_ref msg, struct arena *arena, struct spelling *s)
{
        *s = (struct spelling){.j = j, .msg = msg, .plain = true, .text = json_raw(j, msg)};
        if (msg == JSON_NONE || !has_escaped_word(j, msg) || !find_words(j, msg, take_any, NULL))
                return 0;
        uint32_t first = j->nodes[msg].off;
        uint32_t count = j->nodes[msg].next - msg;
        char *text = arena_alloc(arena, s->text.n);
        struct json_node *nodes = arena_alloc(arena, count * sizeof *nodes);
        if (!text || !nodes)
                return STENO_ENOMEM;
        memcpy(text, s->text.p, s->text.n);
        for (uint32_t i = 0; i < count; i++) {
                nodes[i] = j->nodes[msg + i];
                nodes[i].off -= first;
                nodes[i].next -= msg;
        }
        find_words(j, msg, respell_one, &(struct respelling){text, nodes, msg});
        s->copy = (struct json){
            .text = text, .size = s->text.n, .nodes = nodes, .count = count, .cap = count};
        s->j = &s->copy;
        s->msg = 0;
        s->plain = false;
        return 0;
}

/* Returns the closing quote of a string that begins before `p`. */
static const char *closing_quote(const char *p, const char *end)
{
        while (p < end && *p != '"')
                p += *p == '\\' ? 2 : 1;
        return p;
}

/* Sets a value of the copy, or the inside of a string there, back to the original bytes. */
static void restore(const struct spelling *s, struct str *value)
{
        if (!value->p || value->p < s->copy.text || value->p >= s->copy.text + s->copy.size)
                return;
        const char *p = s->text.p + (value->p - s->copy.text);
        const char *end = s->text.p + s->text.n;
        if (p > s->text.p && p[-1] == '"' && value->p[value->n] == '"')
                *value = str_span(p, (size_t)(closing_quote(p, end) - p));
        else if (*p == '"')
                *value = str_span(p, (size_t)(closing_quote(p + 1, end) + 1 - p));
        else
                *value = str_span(p, value->n);
}

/* Does a reader compare the value of this member with words, though the hub has no field for it? */
static bool is_looked_at(struct str key)
{
        static const char *const keys[] = {
            "\"partType\"", "\"status\"", "\"state\"", "\"type\"", "\"role\"", NULL};
        for (size_t i = 0; keys[i]; i++)
                if (str_is(key, keys[i]))
                        return true;
        return false;
}

static void restore_extras(const struct spelling *s, struct extra *list)
{
        for (; list; list = list->next)
                if (!is_looked_at(list->key))
                        restore(s, &list->value);
}

static void restore_part(const struct spelling *s, struct part *p)
{
        restore(s, &p->text);
        restore(s, &p->signature);
        restore(s, &p->arguments);
        restore(s, &p->output_raw);
        restore(s, &p->output);
        restore_extras(s, p->extras);
        if (p->kind != PART_OPAQUE) /* readers search opaque parts for words */
                restore(s, &p->raw);
        for (size_t k = 0; k < p->child_count; k++)
                restore_part(s, &p->children[k]);
}

void spelling_restore(const struct spelling *s, struct message *m)
{
        if (s->plain)
                return;
        m->raw = s->text;
        m->respelled = true;
        restore_extras(s, m->extras);
        for (size_t i = 0; i < m->count; i++)
                restore_part(s, &m->parts[i]);
}
