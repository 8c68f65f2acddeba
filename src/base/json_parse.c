/*
 * json_parse.c - the grammar: checking a text, building the tape over it, cutting a stream.
 *
 * One walk serves all three. It keeps its own stack of open containers (JSON_DEPTH_MAX deep), so
 * nesting costs no machine stack. Strings are walked by scan.c without a look at UTF-8, which is
 * checked afterwards over the bytes that were walked: quotes, backslashes and controls are never
 * part of a longer character, and in one sweep the check is many times as fast.
 */
#include "base/json.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/scan.h"

#define INLINE static inline __attribute__((always_inline))

enum outcome {
        WALK_DONE,
        WALK_SHORT, /* right so far, but the bytes ran out */
        WALK_FAULT,
        WALK_LIMIT,
        WALK_NOMEM,
};

struct walk {
        const char *text;
        const char *end;
        const char *at; /* behind the value when done, else where it went wrong */
        const char *what;
        struct json *tape;
};

static const char too_deep[] = "nested deeper than 512 levels";
static const char too_large[] = "larger than a document may be";
static const char not_utf8[] = "not UTF-8";
static const char cut_short[] = "the text ends inside a value";

_Static_assert(JSON_DEPTH_MAX == 512, "too_deep names the number");

INLINE bool is_space(char c)
{
        return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

INLINE const char *skip_space(const char *p, const char *end)
{
        while (p < end && is_space(*p))
                p++;
        return p;
}

INLINE bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

INLINE const char *skip_digits(const char *p, const char *end)
{
        while (p < end && is_digit(*p))
                p++;
        return p;
}

static enum outcome stop(struct walk *w, enum outcome how, const char *at, const char *what)
{
        w->at = at;
        w->what = what;
        return how;
}

/* At least one digit from `p` on. */
INLINE enum outcome need_digits(struct walk *w, const char **p)
{
        if (*p == w->end)
                return stop(w, WALK_SHORT, *p, cut_short);
        if (!is_digit(**p))
                return stop(w, WALK_FAULT, *p, "expected a digit");
        *p = skip_digits(*p, w->end);
        return WALK_DONE;
}

INLINE enum outcome walk_number(struct walk *w, const char **pp)
{
        const char *p = *pp;
        const char *end = w->end;
        enum outcome r;
        if (*p == '-')
                p++;
        if (p < end && *p == '0') {
                p++;
                if (p < end && is_digit(*p))
                        return stop(w, WALK_FAULT, p, "a number with a leading zero");
        } else if ((r = need_digits(w, &p)) != WALK_DONE) {
                return r;
        }
        if (p < end && *p == '.') {
                p++;
                if ((r = need_digits(w, &p)) != WALK_DONE)
                        return r;
        }
        if (p < end && (*p | 0x20) == 'e') {
                p++;
                if (p < end && (*p == '+' || *p == '-'))
                        p++;
                if ((r = need_digits(w, &p)) != WALK_DONE)
                        return r;
        }
        *pp = p;
        return WALK_DONE;
}

INLINE enum outcome walk_word(struct walk *w, const char **pp, const char *word, size_t n)
{
        const char *p = *pp;
        if ((size_t)(w->end - p) >= n && memcmp(p, word, n) == 0) {
                *pp = p + n;
                return WALK_DONE;
        }
        for (size_t i = 0; i < n; i++) {
                if (p + i == w->end)
                        return stop(w, WALK_SHORT, p + i, cut_short);
                if (p[i] != word[i])
                        return stop(w, WALK_FAULT, p, "expected a value");
        }
        return WALK_DONE;
}

static enum outcome string_stopped(struct walk *w, enum scan_stop why, const char *p)
{
        if (why == SCAN_END)
                return stop(w, WALK_SHORT, w->end, "the text ends inside a string");
        return stop(w, WALK_FAULT, p,
            why == SCAN_CONTROL ? "a control character inside a string"
                                : "an escape that does not exist");
}

/* *pp is at the opening quote and is left behind the closing one. */
INLINE enum outcome walk_string(struct walk *w, const char **pp, bool *escaped)
{
        const char *p = *pp + 1;
        const char *quote = scan_short_string(p, w->end);
        if (quote) {
                *pp = quote + 1;
                return WALK_DONE;
        }
        enum scan_stop why = scan_string_body(&p, w->end, escaped);
        if (why != SCAN_QUOTE)
                return string_stopped(w, why, p);
        *pp = p + 1;
        return WALK_DONE;
}

static bool tape_grow(struct json *j)
{
        uint64_t cap = j->cap ? (uint64_t)j->cap * 2 : 64;
        /* A value and what separates it from the next are two bytes at least. */
        uint64_t most = j->size / 2 + 2;
        if (cap > most && most > j->cap)
                cap = most;
        if (cap > UINT32_MAX)
                cap = UINT32_MAX;
        if (cap == j->cap)
                return false;
        struct json_node *nodes = realloc(j->nodes, cap * sizeof *nodes);
        if (!nodes)
                return false;
        j->nodes = nodes;
        j->cap = (uint32_t)cap;
        return true;
}

INLINE bool tape_put(struct json *j, const char *from, const char *to, uint32_t info)
{
        if (j->count == j->cap && !tape_grow(j))
                return false;
        j->nodes[j->count] = (struct json_node){
            .off = (uint32_t)(from - j->text),
            .len = (uint32_t)(to - from),
            .next = j->count + 1,
            .info = info,
        };
        j->count++;
        return true;
}

/* A value that holds no others; *pp is left behind it. */
INLINE enum outcome walk_scalar(struct walk *w, const char **pp, uint32_t *info)
{
        bool escaped = false;
        enum outcome r;
        switch (**pp) {
        case '"':
                r = walk_string(w, pp, &escaped);
                *info = JSON_STRING | (escaped ? JSON_ESCAPED : 0);
                return r;
        case '-':
        case '0':
        case '1':
        case '2':
        case '3':
        case '4':
        case '5':
        case '6':
        case '7':
        case '8':
        case '9':
                *info = JSON_NUMBER;
                return walk_number(w, pp);
        case 't':
                *info = JSON_TRUE;
                return walk_word(w, pp, "true", 4);
        case 'f':
                *info = JSON_FALSE;
                return walk_word(w, pp, "false", 5);
        case 'n':
                *info = JSON_NULL;
                return walk_word(w, pp, "null", 4);
        default:
                return stop(w, WALK_FAULT, *pp, "expected a value");
        }
}

/* The containers that are open around the place of a walk. */
struct levels {
        uint32_t depth;
        uint32_t deepest;
        uint32_t
            held; /* children so far of the innermost; those of the outer ones are in their nodes */
        bool object[JSON_DEPTH_MAX + 1]; /* else an array */
        uint32_t node[JSON_DEPTH_MAX + 1];
};

INLINE bool in_object(const struct levels *v)
{
        return v->object[v->depth - 1];
}

INLINE char closer(const struct levels *v)
{
        return in_object(v) ? '}' : ']';
}

/* Steps over white space to what has to follow. */
INLINE enum outcome walk_space(struct walk *w, const char **pp)
{
        *pp = skip_space(*pp, w->end);
        return *pp == w->end ? stop(w, WALK_SHORT, *pp, cut_short) : WALK_DONE;
}

/* From a bracket to what stands behind it. */
INLINE enum outcome open_level(struct walk *w, struct levels *v, const char **pp, bool build)
{
        struct json *const j = w->tape;
        if (v->depth == v->deepest)
                return stop(w, WALK_LIMIT, *pp, too_deep);
        if (build) {
                if (v->depth)
                        j->nodes[v->node[v->depth - 1]].info = v->held;
                v->node[v->depth] = j->count;
                v->held = 0;
                if (!tape_put(j, *pp, *pp, 0))
                        return stop(w, WALK_NOMEM, *pp, NULL);
        }
        v->object[v->depth++] = **pp == '{';
        ++*pp;
        return walk_space(w, pp);
}

/* Over the bracket that closes the innermost container. */
INLINE void close_level(struct walk *w, struct levels *v, const char **pp, bool build)
{
        struct json *const j = w->tape;
        bool object = in_object(v);
        ++*pp;
        v->depth--;
        if (!build)
                return;
        struct json_node *node = &j->nodes[v->node[v->depth]];
        node->len = (uint32_t)(*pp - j->text) - node->off;
        node->next = j->count;
        node->info = (object ? JSON_OBJECT : JSON_ARRAY) | v->held << JSON_COUNT_SHIFT;
        v->held = v->depth ? j->nodes[v->node[v->depth - 1]].info : 0;
}

/* From a key to its value. */
INLINE enum outcome walk_key(struct walk *w, const char **pp, bool build)
{
        const char *from = *pp;
        bool escaped = false;
        if (*from != '"')
                return stop(w, WALK_FAULT, from, "expected a key in quotes");
        enum outcome r = walk_string(w, pp, &escaped);
        if (r != WALK_DONE)
                return r;
        if (build && !tape_put(w->tape, from, *pp, JSON_STRING | (escaped ? JSON_ESCAPED : 0)))
                return stop(w, WALK_NOMEM, *pp, NULL);
        if ((r = walk_space(w, pp)) != WALK_DONE)
                return r;
        if (**pp != ':')
                return stop(w, WALK_FAULT, *pp, "expected a colon");
        ++*pp;
        return walk_space(w, pp);
}

/* The first value of a container, or the end of one that is empty. */
INLINE enum outcome walk_into(
    struct walk *w, struct levels *v, const char **pp, bool build, bool *empty)
{
        enum outcome r = open_level(w, v, pp, build);
        if (r != WALK_DONE)
                return r;
        *empty = **pp == closer(v);
        if (*empty)
                close_level(w, v, pp, build);
        else if (in_object(v))
                r = walk_key(w, pp, build);
        return r;
}

/* From the end of a value to the next one, out of every container that ends in between. At the end
 * of all of them no level is left. */
INLINE enum outcome walk_on(struct walk *w, struct levels *v, const char **pp, bool build)
{
        while (v->depth > 0) {
                if (build && v->held < JSON_COUNT_MAX)
                        v->held++;
                enum outcome r = walk_space(w, pp);
                if (r != WALK_DONE)
                        return r;
                if (**pp == ',') {
                        ++*pp;
                        r = walk_space(w, pp);
                        return r == WALK_DONE && in_object(v) ? walk_key(w, pp, build) : r;
                }
                if (**pp != closer(v))
                        return stop(w, WALK_FAULT, *pp,
                            in_object(v) ? "expected a comma or }" : "expected a comma or ]");
                close_level(w, v, pp, build);
        }
        return WALK_DONE;
}

INLINE enum outcome walk_leaf(struct walk *w, const char **pp, bool build)
{
        const char *from = *pp;
        uint32_t info = 0;
        enum outcome r = walk_scalar(w, pp, &info);
        if (r == WALK_DONE && build && !tape_put(w->tape, from, *pp, info))
                return stop(w, WALK_NOMEM, *pp, NULL);
        return r;
}

/*
 * Walks one value from `p` on, which is not white space. With `build` the nodes go to w->tape.
 */
INLINE enum outcome walk_value(struct walk *w, const char *p, bool build)
{
        struct levels v;
        v.depth = v.held = 0;
        /* The level of a list of messages is not counted. */
        v.deepest = JSON_DEPTH_MAX + (*p == '[');
        do {
                bool ended = true;
                enum outcome r = *p == '{' || *p == '[' ? walk_into(w, &v, &p, build, &ended)
                                                        : walk_leaf(w, &p, build);
                if (r == WALK_DONE && ended)
                        r = walk_on(w, &v, &p, build);
                if (r != WALK_DONE)
                        return r;
        } while (v.depth > 0);
        w->at = p;
        return WALK_DONE;
}

static enum outcome walk_checking(struct walk *w, const char *p)
{
        return walk_value(w, p, false);
}

static enum outcome walk_building(struct walk *w, const char *p)
{
        return walk_value(w, p, true);
}

/* A UTF-8 fault among the walked bytes comes before whatever ended the walk. */
static enum outcome check_utf8(struct walk *w, enum outcome r, const char *from, const char *to)
{
        size_t n = (size_t)(to - from);
        size_t good = scan_utf8(from, n);
        return good == n ? r : stop(w, WALK_FAULT, from + good, not_utf8);
}

static enum outcome walk_document(struct walk *w, size_t n)
{
        if (n > JSON_SIZE_MAX)
                return stop(w, WALK_LIMIT, w->text, too_large);
        const char *p = skip_space(w->text, w->end);
        if (p == w->end)
                return stop(w, WALK_SHORT, p, "expected a value");
        enum outcome r = w->tape ? walk_building(w, p) : walk_checking(w, p);
        if (r == WALK_NOMEM)
                return r;
        const char *to = w->at;
        if (r == WALK_DONE) {
                w->at = skip_space(w->at, w->end);
                if (w->at != w->end)
                        r = stop(w, WALK_FAULT, w->at, "bytes after the value");
        }
        return check_utf8(w, r, p, to);
}

static void give_fault(struct json_fault *fault, const struct walk *w, bool failed)
{
        if (!fault)
                return;
        *fault = (struct json_fault){0};
        if (!failed)
                return;
        fault->offset = (size_t)(w->at - w->text);
        fault->what = w->what;
}

static struct walk walk_over(const char *text, size_t n, struct json *tape)
{
        if (!text)
                text = "";
        return (struct walk){.text = text, .end = text + n, .tape = tape};
}

void json_init(struct json *j)
{
        *j = (struct json){0};
}

void json_release(struct json *j)
{
        if (!j)
                return;
        free(j->nodes);
        json_init(j);
}

int json_parse(
    struct json *j, const char *text, size_t n, struct json_fault *fault, struct steno_error *err)
{
        struct walk w = walk_over(text, n, j);
        j->text = w.text;
        j->size = n;
        j->count = 0;
        enum outcome r = walk_document(&w, n);
        give_fault(fault, &w, r != WALK_DONE && r != WALK_NOMEM);
        if (r == WALK_DONE)
                return 0;
        j->text = NULL;
        j->size = 0;
        j->count = 0;
        if (r == WALK_NOMEM)
                return error_nomem(err);
        return error_set(err, r == WALK_LIMIT ? STENO_ELIMIT : STENO_EPROTO, "byte %zu: %s",
            (size_t)(w.at - w.text), w.what);
}

int json_parse_named(
    struct json *j, const char *text, size_t n, const char *name, struct steno_error *err)
{
        int rc = json_parse(j, text, n, NULL, err);
        if (rc == 0 || rc == STENO_ENOMEM)
                return rc;
        return error_prefix(
            err, rc, rc == STENO_ELIMIT ? "%s cannot be read" : "%s is not JSON", name);
}

bool json_valid(const char *text, size_t n, struct json_fault *fault)
{
        struct walk w = walk_over(text, n, NULL);
        enum outcome r = walk_document(&w, n);
        give_fault(fault, &w, r != WALK_DONE);
        return r == WALK_DONE;
}

/* Could these bytes be the beginning of a character that is cut off by the end? */
static bool is_cut_character(const unsigned char *p, size_t n)
{
        static const unsigned char fill[][3] = {
            {0x80, 0x80, 0x80}, {0x90, 0x80, 0x80}, {0xA0, 0x80, 0x80}};
        if (n == 0 || n > 3)
                return false;
        for (size_t i = 0; i < sizeof fill / sizeof *fill; i++) {
                unsigned char whole[7];
                memcpy(whole, p, n);
                memcpy(whole + n, fill[i], 3);
                if (scan_sequence(whole, n + 3) > n)
                        return true;
        }
        return false;
}

ptrdiff_t json_scan_value(
    const char *text, size_t n, bool eof, size_t *start, struct json_fault *fault)
{
        struct walk w = walk_over(text, n, NULL);
        give_fault(fault, &w, false);
        const char *p = skip_space(w.text, w.end);
        *start = (size_t)(p - w.text);
        if (p == w.end)
                return 0;
        enum outcome r = walk_checking(&w, p);
        bool number = *p == '-' || is_digit(*p);
        if (r == WALK_DONE && number && w.at == w.end && !eof)
                r = WALK_SHORT;

        const char *to = w.at;
        size_t good = scan_utf8(p, (size_t)(to - p));
        size_t rest = (size_t)(to - p) - good;
        if (rest &&
            (r != WALK_SHORT || eof || !is_cut_character((const unsigned char *)p + good, rest)))
                r = stop(&w, WALK_FAULT, p + good, not_utf8);
        if (r == WALK_DONE && (size_t)(w.at - p) > JSON_SIZE_MAX)
                r = stop(&w, WALK_LIMIT, p, too_large);
        if (r == WALK_DONE)
                return w.at - w.text;
        if (r == WALK_SHORT && !eof)
                return 0;
        give_fault(fault, &w, true);
        return -1;
}
