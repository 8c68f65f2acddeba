/* leaf.c - see leaf.h */
#include "model/leaf.h"

#include <string.h>

/* Writes everything before the x. */
static void put_head(struct buf *out, const struct record *rec)
{
        buf_puts(out, "{\"v\":1,\"seq\":");
        buf_put_u64(out, rec->seq);
        buf_puts(out, ",\"id\":\"");
        buf_put_str(out, rec->id);
        buf_putc(out, '"');
        record_put_fields(out, rec, 0);
}

void leaf_put(struct buf *out, const struct record *rec)
{
        put_head(out, rec);
        buf_put_str(out, rec->x);
        buf_puts(out, ",\"m\":");
        buf_put_str(out, rec->m);
        buf_putc(out, '}');
}

bool leaf_from_hex(struct str hex, struct merkle_hash *out)
{
        static const char digits[] = "0123456789abcdef";
        struct merkle_hash h;
        if (hex.n != 2 * SHA256_SIZE)
                return false;
        for (size_t i = 0; i < SHA256_SIZE; i++) {
                const char *hi = memchr(digits, hex.p[2 * i], 16);
                const char *lo = memchr(digits, hex.p[2 * i + 1], 16);
                if (!hi || !lo)
                        return false;
                h.b[i] = (unsigned char)((hi - digits) << 4 | (lo - digits));
        }
        *out = h;
        return true;
}

bool leaf_said(struct str x, struct merkle_hash *out)
{
        /* In a string the quotes would be escaped, so this text can only be the member. */
        static const char MEMBER[] = ",\"leaf\":\"";
        if (!str_starts(x, "{\"kind\":\"tombstone\""))
                return false;
        const char *at = memmem(x.p, x.n, MEMBER, sizeof MEMBER - 1);
        if (!at)
                return false;
        const char *hex = at + sizeof MEMBER - 1;
        size_t left = (size_t)(x.p + x.n - hex);
        return left > 2 * SHA256_SIZE && hex[2 * SHA256_SIZE] == '"' &&
               leaf_from_hex(str_span(hex, 2 * SHA256_SIZE), out);
}

bool leaf_of_own(
    struct merkle *t, const struct record *rec, struct buf *scratch, struct merkle_hash *out)
{
        /* From the x on, the stored line is the same as C except for the checksum at its end, so
         * most of it need not be copied. */
        const char *behind = rec->m.p + rec->m.n;
        bool in_place = rec->x.p > rec->line.p && rec->m.p == rec->x.p + rec->x.n + 5 &&
                        behind <= rec->line.p + rec->line.n;
        buf_clear(scratch);
        if (in_place)
                put_head(scratch, rec);
        else
                leaf_put(scratch, rec);
        if (scratch->failed)
                return false;
        hash_sha256_update(&t->sha, "\0", 1);
        hash_sha256_update(&t->sha, scratch->p, scratch->n);
        if (in_place) {
                hash_sha256_update(&t->sha, rec->x.p, (size_t)(behind - rec->x.p));
                hash_sha256_update(&t->sha, "}", 1);
        }
        t->failed = !hash_sha256_take(&t->sha, out->b) || t->failed;
        return !t->failed;
}

bool leaf_of(
    struct merkle *t, const struct record *rec, struct buf *scratch, struct merkle_hash *out)
{
        return leaf_said(rec->x, out) || leaf_of_own(t, rec, scratch, out);
}
