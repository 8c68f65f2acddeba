/* level.c - see level.h */
#include "output/level.h"

#include <string.h>

#include "base/limits.h"

const char *level_type_name(enum level_type type)
{
        static const char *const NAMES[] = {
            "nothing", "object", "array", "string", "number", "boolean", "null"};
        return NAMES[type];
}

static enum level_type type_of(char c)
{
        switch (c) {
        case '{':
                return LEVEL_OBJECT;
        case '[':
                return LEVEL_ARRAY;
        case '"':
                return LEVEL_STRING;
        case 't':
        case 'f':
                return LEVEL_BOOLEAN;
        case 'n':
                return LEVEL_NULL;
        default:
                return LEVEL_NUMBER;
        }
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool has_children(const struct level *l)
{
        return l->type == LEVEL_OBJECT || l->type == LEVEL_ARRAY;
}

void level_init(struct level *l, uint64_t at, size_t head_max, level_fn each, void *ctx)
{
        *l = (struct level){.each = each, .ctx = ctx, .pos = at, .head_max = head_max};
        json_stream_init(&l->json);
        buf_init(&l->key, CONTEXT_JSON_KEY);
        buf_init(&l->head, head_max);
}

void level_resume(struct level *l, uint64_t at, enum level_type type, uint64_t index)
{
        const char *before = type == LEVEL_OBJECT ? "{\"\":0," : "[0,";
        json_stream_feed(&l->json, before, strlen(before));
        l->type = type;
        l->pos = l->start = l->end = at;
        l->child.index = index;
}

void level_release(struct level *l)
{
        buf_release(&l->key);
        buf_release(&l->head);
}

bool level_failed(const struct level *l)
{
        return l->key.failed || l->head.failed;
}

static void keep(struct buf *b, size_t max, const char *p, size_t n)
{
        buf_put(b, p, n < max - b->n ? n : max - b->n);
}

/* Takes bytes of the current child, at l->pos. */
static void take(struct level *l, const char *p, size_t n)
{
        struct level_child *c = &l->child;
        if (l->type == LEVEL_OBJECT && !l->colon) {
                if (c->key_bytes == 0)
                        c->key_offset = l->pos;
                c->key_bytes = l->pos + n - c->key_offset;
                keep(&l->key, CONTEXT_JSON_KEY, p, n);
                return;
        }
        if (!l->begun) {
                l->begun = true;
                c->offset = l->pos;
                c->type = type_of(*p);
        }
        c->bytes = l->pos + n - c->offset;
        keep(&l->head, l->head_max, p, n);
}

/* Ends a child, at a comma or at the end of the value. */
static void flush(struct level *l)
{
        if (!l->begun)
                return;
        l->child.key = buf_str(&l->key);
        l->child.head = buf_str(&l->head);
        if (l->each(l->ctx, &l->child))
                l->stop = true;
        l->child = (struct level_child){.index = l->child.index + 1};
        l->begun = l->colon = false;
        buf_clear(&l->key);
        buf_clear(&l->head);
}

/* Takes a byte before or behind the value, or a byte of a value that has no children. False: the
 * value ended before this byte. */
static bool outside(struct level *l, char c)
{
        if (l->type == LEVEL_NOTHING) {
                if (is_blank(c))
                        return true;
                l->type = type_of(c);
                l->start = l->pos;
                l->end = l->pos + 1;
                return true;
        }
        if (is_blank(c) || c == ',' || c == ']' || c == '}') {
                l->state = json_stream_finish(&l->json) ? LEVEL_DONE : LEVEL_BAD;
                return false;
        }
        l->end = l->pos + 1;
        return true;
}

/* Takes a byte between the brackets, outside of strings and deeper levels. */
static void between(struct level *l, char c)
{
        if (c == ',') {
                flush(l);
                if (l->stop)
                        l->state = LEVEL_STOPPED;
        } else if (l->json.depth == 0) {
                flush(l);
                l->state = LEVEL_DONE;
        } else if (c == ':') {
                l->colon = true;
        } else if (!is_blank(c)) {
                take(l, &c, 1);
        }
}

/* Takes a string or a deeper level, up to its end or the end of the bytes. */
static size_t pass(struct level *l, const char *p, size_t n)
{
        uint32_t depth = has_children(l) ? 1 : 0;
        size_t fed = json_stream_feed_to(&l->json, depth, p, n);
        if (depth)
                take(l, p, fed);
        return fed;
}

static size_t step(struct level *l, const char *p, size_t n)
{
        uint32_t depth = l->json.depth;
        if (json_stream_in_string(&l->json) || depth > 1) {
                size_t fed = pass(l, p, n);
                l->end = l->pos + fed;
                if (l->json.depth == 0 && !json_stream_in_string(&l->json))
                        l->state = LEVEL_DONE; /* the whole value is a string */
                return fed;
        }
        if (depth == 0 && !outside(l, *p))
                return 0;
        if (!json_stream_feed(&l->json, p, 1))
                l->state = LEVEL_BAD;
        else if (depth == 1)
                between(l, *p);
        if (depth == 1)
                l->end = l->pos + 1;
        return 1;
}

enum level_state level_feed(struct level *l, const char *p, size_t n)
{
        size_t at = 0;
        while (at < n && l->state == LEVEL_MORE) {
                size_t fed = step(l, p + at, n - at);
                at += fed;
                l->pos += fed;
                if (l->state != LEVEL_BAD && !json_stream_feed(&l->json, p, 0))
                        l->state = LEVEL_BAD;
        }
        return l->state;
}

enum level_state level_finish(struct level *l)
{
        if (l->state == LEVEL_MORE && !has_children(l) && json_stream_finish(&l->json))
                l->state = LEVEL_DONE;
        return l->state;
}
