/* outline.c - see outline.h */
#include "output/outline.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/scan.h"
#include "base/text.h"
#include "output/clean.h"
#include "output/cut.h"

#define NODES 256
#define KEY_BYTES 48

enum kind {
        KIND_NULL,
        KIND_BOOLEAN,
        KIND_NUMBER,
        KIND_STRING,
        KIND_ARRAY,
        KIND_OBJECT,
        KINDS,
};

/* Everything that was found at one place of the document, merged. */
struct node {
        struct str key;             /* raw, between its quotes */
        unsigned kinds;             /* bits of enum kind */
        uint64_t seen;              /* number of objects that had this key */
        uint64_t objects;           /* how often this was an object */
        uint64_t keys;              /* the largest number of keys that one of them had */
        uint64_t shortest, longest; /* lengths of arrays */
        uint16_t child;             /* first key; 0: none */
        uint16_t next;              /* next key of the same object */
        uint16_t element;           /* the node for the elements of an array */
        uint16_t children;
};

struct walk {
        const char *p;
        const char *end;
        struct node nodes[NODES];
        uint16_t used;
};

static uint16_t new_node(struct walk *w)
{
        return w->used < NODES ? w->used++ : 0;
}

static void blanks(struct walk *w)
{
        while (w->p < w->end && (*w->p == ' ' || *w->p == '\n' || *w->p == '\t' || *w->p == '\r'))
                w->p++;
}

static bool string(struct walk *w, struct str *inner)
{
        bool escaped = false;
        if (w->p >= w->end || *w->p != '"')
                return false;
        const char *from = ++w->p;
        if (scan_string_body(&w->p, w->end, &escaped) != SCAN_QUOTE)
                return false;
        *inner = str_span(from, (size_t)(w->p - from));
        w->p++;
        return true;
}

static int kind_at(const struct walk *w)
{
        switch (w->p < w->end ? *w->p : 0) {
        case '{':
                return KIND_OBJECT;
        case '[':
                return KIND_ARRAY;
        case '"':
                return KIND_STRING;
        case 't':
        case 'f':
                return KIND_BOOLEAN;
        case 'n':
                return KIND_NULL;
        default:
                return w->p < w->end && (*w->p == '-' || (*w->p >= '0' && *w->p <= '9'))
                           ? KIND_NUMBER
                           : -1;
        }
}

static bool skip_scalar(struct walk *w)
{
        struct str inner;
        if (*w->p == '"')
                return string(w, &inner);
        while (w->p < w->end && !strchr(",]} \n\t\r", *w->p))
                w->p++;
        return true;
}

/* Skips a value of any depth, without recursion. */
static bool skip_value(struct walk *w)
{
        size_t depth = 0;
        do {
                blanks(w);
                if (w->p >= w->end)
                        return false;
                char c = *w->p;
                if (c == '{' || c == '[') {
                        if (++depth > JSON_DEPTH_MAX)
                                return false;
                        w->p++;
                } else if (c == '}' || c == ']') {
                        if (depth == 0)
                                return false;
                        depth--;
                        w->p++;
                } else if (c == ',' || c == ':') {
                        if (depth == 0)
                                return false;
                        w->p++;
                } else if (!skip_scalar(w)) {
                        return false;
                }
        } while (depth);
        return true;
}

static bool value(struct walk *w, uint16_t at, unsigned depth);

static bool array(struct walk *w, uint16_t at, unsigned depth)
{
        uint64_t count = 0;
        struct node *n = &w->nodes[at];
        bool first = !(n->kinds & 1u << KIND_ARRAY);
        n->kinds |= 1u << KIND_ARRAY;
        if (!n->element && depth < OUTLINE_DEPTH)
                n->element = new_node(w);
        uint16_t element = n->element;
        w->p++;
        for (blanks(w); w->p < w->end && *w->p != ']'; blanks(w)) {
                if (count++ > 0) {
                        if (*w->p++ != ',')
                                return false;
                        blanks(w);
                }
                int kind = kind_at(w);
                if (kind < 0)
                        return false;
                bool sampled = element && count <= OUTLINE_SAMPLE;
                if (element && !sampled)
                        w->nodes[element].kinds |= 1u << kind;
                if (!(sampled ? value(w, element, depth + 1) : skip_value(w)))
                        return false;
        }
        if (w->p >= w->end)
                return false;
        w->p++;
        n->shortest = first || count < n->shortest ? count : n->shortest;
        n->longest = first || count > n->longest ? count : n->longest;
        return true;
}

/* Returns the node for a key; 0 if there is no room for one. */
static uint16_t key_node(struct walk *w, uint16_t at, struct str key)
{
        struct node *n = &w->nodes[at];
        uint16_t last = 0;
        for (uint16_t k = n->child; k; k = w->nodes[k].next) {
                if (str_eq(w->nodes[k].key, key))
                        return k;
                last = k;
        }
        uint16_t fresh = n->children < OUTLINE_KEYS ? new_node(w) : 0;
        if (!fresh)
                return 0;
        w->nodes[fresh].key = key;
        n->children++;
        if (last)
                w->nodes[last].next = fresh;
        else
                n->child = fresh;
        return fresh;
}

static bool object(struct walk *w, uint16_t at, unsigned depth)
{
        uint64_t count = 0;
        struct node *n = &w->nodes[at];
        n->kinds |= 1u << KIND_OBJECT;
        n->objects++;
        w->p++;
        for (blanks(w); w->p < w->end && *w->p != '}'; blanks(w)) {
                struct str key;
                if (count++ > 0) {
                        if (*w->p++ != ',')
                                return false;
                        blanks(w);
                }
                if (!string(w, &key))
                        return false;
                blanks(w);
                if (w->p >= w->end || *w->p++ != ':')
                        return false;
                blanks(w);
                uint16_t k = depth < OUTLINE_DEPTH ? key_node(w, at, key) : 0;
                /* A key that occurs twice in an object counts once. */
                if (k && w->nodes[k].seen < n->objects)
                        w->nodes[k].seen++;
                if (!(k ? value(w, k, depth + 1) : skip_value(w)))
                        return false;
        }
        if (w->p >= w->end)
                return false;
        w->p++;
        n->keys = count > n->keys ? count : n->keys;
        return true;
}

static bool value(struct walk *w, uint16_t at, unsigned depth)
{
        int kind = kind_at(w);
        if (kind < 0)
                return false;
        if (kind == KIND_OBJECT)
                return object(w, at, depth);
        if (kind == KIND_ARRAY)
                return array(w, at, depth);
        w->nodes[at].kinds |= 1u << kind;
        return skip_scalar(w);
}

/* ---- showing ---- */

static void put_array(struct buf *b, const struct walk *w, const struct node *n);

/* Writes the kinds of values at a place; *object becomes the node whose keys are listed below
 * it. */
static void put_kinds(struct buf *b, const struct walk *w, const struct node *n)
{
        static const char *const names[KINDS] = {
            "null", "boolean", "number", "string", "array", "object"};
        bool first = true;
        for (int k = KINDS - 1; k >= 0; k--) {
                if (!(n->kinds & 1u << k))
                        continue;
                buf_puts(b, first ? "" : " | ");
                first = false;
                if (k == KIND_ARRAY)
                        put_array(b, w, n);
                else
                        buf_puts(b, names[k]);
        }
}

static void put_array(struct buf *b, const struct walk *w, const struct node *n)
{
        buf_puts(b, "array[");
        text_put_grouped(b, n->shortest);
        if (n->longest != n->shortest) {
                buf_putc(b, '-');
                text_put_grouped(b, n->longest);
        }
        buf_putc(b, ']');
        if (n->element && w->nodes[n->element].kinds) {
                buf_puts(b, " of ");
                put_kinds(b, w, &w->nodes[n->element]);
        }
}

static bool is_identifier(struct str key)
{
        for (size_t i = 0; i < key.n; i++) {
                char c = key.p[i];
                bool letter = ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' || c == '$';
                bool inner = (c >= '0' && c <= '9') || c == '-' || c == '.';
                if (!letter && !(inner && i > 0))
                        return false;
        }
        return key.n > 0 && key.n <= KEY_BYTES;
}

static void put_key(struct buf *b, struct str key)
{
        char probe[KEY_BYTES + 1];
        if (is_identifier(key)) {
                memcpy(probe, key.p, key.n);
                probe[key.n] = ':';
                if (!clean_looks_framed(str_span(probe, key.n + 1))) {
                        buf_put_str(b, key);
                        return;
                }
        }
        bool cut = key.n > KEY_BYTES;
        buf_putc(b, '"');
        clean_put(b, str_span(key.p, cut ? cut_before(key.p, key.n, KEY_BYTES) : key.n));
        buf_puts(b, cut ? "...\"" : "\"");
}

static void put_keys(struct buf *b, const struct walk *w, const struct node *n, unsigned indent)
{
        uint64_t shown = 0;
        while (n->element && !n->child)
                n = &w->nodes[n->element];
        for (uint16_t k = n->child; k; k = w->nodes[k].next) {
                const struct node *c = &w->nodes[k];
                buf_printf(b, "%*s", (int)indent * 2, "");
                put_key(b, c->key);
                buf_puts(b, c->seen < n->objects ? "?: " : ": ");
                put_kinds(b, w, c);
                buf_putc(b, '\n');
                put_keys(b, w, c, indent + 1);
                shown++;
        }
        if (n->child && n->keys > shown) {
                buf_printf(b, "%*s... ", (int)indent * 2, "");
                text_put_grouped(b, n->keys - shown);
                buf_puts(b, " more keys\n");
        }
}

static void put_root(struct buf *b, const struct walk *w)
{
        const struct node *root = &w->nodes[1];
        put_kinds(b, w, root);
        if (root->kinds & 1u << KIND_OBJECT) {
                buf_puts(b, ", ");
                text_put_grouped(b, root->keys);
                buf_puts(b, root->keys == 1 ? " key" : " keys");
        }
        buf_putc(b, '\n');
        put_keys(b, w, root, 1);
}

/* Writes whole lines of at most max_bytes. The last line says that there is more. */
static void put_bounded(struct buf *out, struct str text, size_t max_bytes)
{
        static const char more[] = "  ...\n";
        if (text.n <= max_bytes) {
                buf_put_str(out, text);
                return;
        }
        size_t room = max_bytes > sizeof(more) ? max_bytes - sizeof(more) + 1 : 0;
        const char *nl = room ? memrchr(text.p, '\n', room) : NULL;
        if (nl) {
                buf_put(out, text.p, (size_t)(nl + 1 - text.p));
                buf_puts(out, more);
        }
}

bool outline_put(struct buf *out, struct str text, size_t max_bytes)
{
        struct buf b;
        bool ok = false;
        struct walk *w = calloc(1, sizeof(*w));
        if (!w)
                return false;
        buf_init(&b, 0);
        w->p = text.p;
        w->end = text.p + text.n;
        w->used = 2; /* 0 is "no node", 1 the root */
        blanks(w);
        if (!value(w, 1, 0))
                goto out;
        blanks(w);
        if (w->p != w->end)
                goto out;
        put_root(&b, w);
        if (b.failed)
                goto out;
        put_bounded(out, buf_str(&b), max_bytes);
        ok = true;
out:
        buf_release(&b);
        free(w);
        return ok;
}
