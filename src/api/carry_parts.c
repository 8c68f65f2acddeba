/*
 * carry_parts.c - large tokens of a message leave its log line for artifacts/parts; see carry.h.
 */
#include "api/carry.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"

/* What a log line may hold of a message; the rest of LINE_MAX_BYTES is its header. */
#define MESSAGE_INLINE_MAX (LINE_MAX_BYTES - 128 * KIB)
/* What a part takes in the record's header: a place, a size and a sha256. */
#define PART_ENTRY 100
/* Strings that are shorter than this stay in the line. */
#define TOKEN_WORTH 256

bool carry_parts_needed(const struct json *j, json_ref msg)
{
        if (json_raw(j, msg).n > MESSAGE_INLINE_MAX)
                return true;
        for (json_ref r = msg; r < j->nodes[msg].next; r++)
                if (json_type(j, r) == JSON_STRING && j->nodes[r].len > TOKEN_INLINE_MAX)
                        return true;
        return false;
}

/* One bit for each node that is a key: only values can be given back in place of "". */
static unsigned char *mark_keys(const struct json *j, json_ref msg)
{
        unsigned char *keys = calloc((j->nodes[msg].next - msg) / 8 + 1, 1);
        for (json_ref r = msg; keys && r < j->nodes[msg].next; r++) {
                if (json_type(j, r) != JSON_OBJECT)
                        continue;
                for (json_ref k = json_child(j, r); k != JSON_NONE; k = json_next_key(j, r, k))
                        keys[(k - msg) / 8] |= (unsigned char)(1u << (k - msg) % 8);
        }
        return keys;
}

/* Chooses what leaves the line: string values of more than `over` bytes. */
static size_t choose_strings(
    const struct json *j, json_ref msg, const unsigned char *keys, size_t over, json_ref *cuts)
{
        size_t n = 0;
        for (json_ref r = msg + 1; r < j->nodes[msg].next; r++) {
                bool key = keys[(r - msg) / 8] >> (r - msg) % 8 & 1;
                if (!key && json_type(j, r) == JSON_STRING && json_raw(j, r).n > over)
                        cuts[n++] = r;
        }
        return n;
}

static size_t choose_members(const struct json *j, json_ref msg, json_ref *cuts)
{
        size_t n = 0;
        for (json_ref k = json_child(j, msg); k != JSON_NONE; k = json_next_key(j, msg, k))
                if (json_raw(j, json_value(j, k)).n > TOKEN_WORTH)
                        cuts[n++] = json_value(j, k);
        return n;
}

/* What is left of the line, and the names of what left it, must fit. */
static bool fits(const struct json *j, json_ref msg, const json_ref *cuts, size_t n)
{
        size_t size = json_raw(j, msg).n;
        for (size_t i = 0; i < n; i++)
                size -= json_raw(j, cuts[i]).n - 2;
        return size + n * PART_ENTRY <= MESSAGE_INLINE_MAX;
}

struct cuts {
        const json_ref *list;
        size_t count;
};

/* Writes the message with `""` for each cut and stores the tokens. */
static int cut_tokens(struct steno_conv *conv, const struct json *j, json_ref msg,
    const struct cuts *cuts, struct carried *to, struct buf *out, struct steno_error *err)
{
        struct str raw = json_raw(j, msg);
        struct about *about = to->about;
        size_t n = cuts->count;
        const char *from = raw.p;
        about->parts = arena_zalloc(to->arena, n * sizeof *about->parts);
        if (n && !about->parts)
                return error_nomem(err);
        for (size_t i = 0; i < n; i++) {
                struct str token = json_raw(j, cuts->list[i]);
                char name[PART_NAME];
                int rc = backend_part_put(conv->backend, token, name, err);
                if (rc)
                        return rc;
                buf_put(out, from, (size_t)(token.p - from));
                about->parts[i] = (struct about_part){
                    .at = out->n, .size = token.n, .name = arena_dup(to->arena, str_of(name))};
                buf_puts(out, "\"\"");
                from = token.p + token.n;
        }
        buf_put(out, from, (size_t)(raw.p + raw.n - from));
        about->part_count = n;
        return to->arena->failed ? error_nomem(err) : buf_check(out, err);
}

/*
 * Strings over TOKEN_INLINE_MAX leave the line. Where many smaller tokens still make it too long,
 * shorter strings follow, then whole members, then the whole message. Cuts are in order.
 */
int carry_parts_cut(struct steno_conv *conv, const struct json *j, json_ref msg, struct carried *to,
    struct buf *out, struct steno_error *err)
{
        size_t nodes = j->nodes[msg].next - msg;
        json_ref *cuts = malloc((nodes + 1) * sizeof *cuts);
        unsigned char *keys = mark_keys(j, msg);
        size_t n = 0;
        bool fit = false;
        int rc = cuts && keys ? 0 : error_nomem(err);
        for (size_t over = TOKEN_INLINE_MAX; rc == 0 && !fit && over >= TOKEN_WORTH; over /= 4) {
                n = choose_strings(j, msg, keys, over, cuts);
                fit = fits(j, msg, cuts, n);
        }
        if (rc == 0 && !fit) {
                n = choose_members(j, msg, cuts);
                fit = fits(j, msg, cuts, n);
        }
        if (rc == 0 && !fit) {
                cuts[0] = msg;
                n = 1;
        }
        if (rc == 0)
                rc = cut_tokens(conv, j, msg, &(struct cuts){cuts, n}, to, out, err);
        free(cuts);
        free(keys);
        return rc;
}
