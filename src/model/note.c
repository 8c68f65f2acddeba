/* note.c - see note.h */
#include "model/note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"

#define PRIVATE "PRIVATE+KEY+"
#define ALGORITHM 1 /* Ed25519 */
#define DASH "\xe2\x80\x94 "

/* ---- keys ---- */

/* C2SP allows no white space and no plus. Our own rules: printable characters, and a limited
 * length. */
static bool is_name(struct str name)
{
        if (name.n == 0 || name.n > NOTE_NAME_MAX)
                return false;
        for (size_t i = 0; i < name.n; i++)
                if (name.p[i] <= ' ' || name.p[i] > '~' || name.p[i] == '+')
                        return false;
        return true;
}

static int key_id(struct note_key *k)
{
        struct sha256 s;
        unsigned char sum[SHA256_SIZE];
        if (hash_sha256_init(&s))
                return STENO_ENOMEM;
        hash_sha256_update(&s, k->name, strlen(k->name));
        hash_sha256_update(&s, "\n\1", 2);
        hash_sha256_update(&s, k->public, sizeof k->public);
        hash_sha256_finish(&s, sum);
        memcpy(k->id, sum, sizeof k->id);
        return 0;
}

int note_key_make(struct str name, const unsigned char seed[ED25519_SEED], struct note_key *out,
    struct steno_error *err)
{
        struct note_key k = {.private = true};
        if (!is_name(name))
                return error_set(err, STENO_EINVAL,
                    "a key's name is 1 to %d printable ASCII characters without spaces and +",
                    NOTE_NAME_MAX);
        memcpy(k.name, name.p, name.n);
        memcpy(k.seed, seed, sizeof k.seed);
        if (ed25519_public(seed, k.public) || key_id(&k))
                return error_nomem(err);
        *out = k;
        note_key_wipe(&k);
        return 0;
}

static bool take_until(struct str *text, char end, struct str *out)
{
        const char *at = memchr(text->p, end, text->n);
        if (!at)
                return false;
        *out = str_span(text->p, (size_t)(at - text->p));
        *text = str_span(at + 1, (size_t)(text->p + text->n - at - 1));
        return true;
}

static struct str trimmed(struct str s)
{
        while (s.n && strchr(" \t\r\n", s.p[0]))
                s = str_span(s.p + 1, s.n - 1);
        while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
                s.n--;
        return s;
}

int note_key_read(struct str text, struct note_key *out, struct steno_error *err)
{
        struct note_key k = {0};
        struct str name, id;
        unsigned char bytes[1 + ED25519_SEED];
        char hex[9];
        text = trimmed(text);
        k.private = str_starts(text, PRIVATE);
        if (k.private)
                text = str_span(text.p + strlen(PRIVATE), text.n - strlen(PRIVATE));
        if (!take_until(&text, '+', &name) || !is_name(name) || !take_until(&text, '+', &id) ||
            !base64_take(text, bytes, sizeof bytes) || bytes[0] != ALGORITHM)
                return error_set(err, STENO_EINVAL, "not a key: NAME+ID+BASE64 of C2SP is one");
        memcpy(k.name, name.p, name.n);
        memcpy(k.private ? k.seed : k.public, bytes + 1, ED25519_SEED);
        int rc = k.private ? ed25519_public(k.seed, k.public) : 0;
        if (rc == 0)
                rc = key_id(&k);
        ed25519_wipe(bytes, sizeof bytes);
        hash_hex(k.id, sizeof k.id, hex);
        if (rc == 0 && !str_is(id, hex))
                rc = error_set(err, STENO_EINVAL, "the key's id is not that of its name and bytes");
        else if (rc)
                error_nomem(err);
        else
                *out = k;
        note_key_wipe(&k);
        return rc;
}

static void put_key(struct buf *out, const struct note_key *k, const unsigned char *bytes)
{
        unsigned char coded[1 + ED25519_SEED] = {ALGORITHM};
        char hex[9];
        hash_hex(k->id, sizeof k->id, hex);
        memcpy(coded + 1, bytes, ED25519_SEED);
        buf_printf(out, "%s+%s+", k->name, hex);
        base64_put(out, coded, sizeof coded);
        ed25519_wipe(coded, sizeof coded);
}

void note_key_put_private(struct buf *out, const struct note_key *key)
{
        buf_puts(out, PRIVATE);
        put_key(out, key, key->seed);
}

void note_key_put_public(struct buf *out, const struct note_key *key)
{
        put_key(out, key, key->public);
}

void note_key_wipe(struct note_key *key)
{
        ed25519_wipe(key->seed, sizeof key->seed);
}

/* ---- notes ---- */

int note_put(struct buf *out, struct str origin, uint64_t size, const struct merkle_hash *root,
    struct str purged, const struct note_key *key)
{
        unsigned char coded[4 + ED25519_SIGNATURE];
        size_t start = out->n;
        buf_put_str(out, origin);
        buf_putc(out, '\n');
        buf_put_u64(out, size);
        buf_putc(out, '\n');
        base64_put(out, root->b, sizeof root->b);
        buf_putc(out, '\n');
        if (purged.n)
                buf_printf(out, "purged %.*s\n", (int)purged.n, purged.p);
        if (out->failed)
                return STENO_ENOMEM;
        memcpy(coded, key->id, sizeof key->id);
        if (ed25519_make(key->seed, str_span(out->p + start, out->n - start), coded + 4))
                return STENO_ENOMEM;
        buf_printf(out, "\n" DASH "%s ", key->name);
        base64_put(out, coded, sizeof coded);
        buf_putc(out, '\n');
        return out->failed ? STENO_ENOMEM : 0;
}

static bool read_number(struct str s, uint64_t *out)
{
        uint64_t v = 0;
        if (s.n == 0 || s.n > 18 || (s.n > 1 && s.p[0] == '0'))
                return false;
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
                v = v * 10 + (uint64_t)(s.p[i] - '0');
        }
        *out = v;
        return true;
}

bool note_read(struct str text, struct note *out, size_t *n)
{
        struct note note = {0};
        struct str rest = text, line, size, root;
        if (!take_until(&rest, '\n', &note.origin) || note.origin.n == 0 ||
            note.origin.n > NOTE_ORIGIN_MAX || !take_until(&rest, '\n', &size) ||
            !read_number(size, &note.size) || !take_until(&rest, '\n', &root) ||
            !base64_take(root, note.root.b, sizeof note.root.b))
                return false;
        for (;;) { /* unknown lines are signed like all others */
                if (!take_until(&rest, '\n', &line))
                        return false;
                if (line.n == 0)
                        break;
                if (str_starts(line, "purged "))
                        note.purged = str_span(line.p + 7, line.n - 7);
        }
        note.text = str_span(text.p, (size_t)(rest.p - 1 - text.p));
        note.signatures = str_span(rest.p, 0);
        while (str_starts(rest, DASH) && take_until(&rest, '\n', &line))
                note.signatures.n = (size_t)(rest.p - note.signatures.p);
        if (note.signatures.n == 0)
                return false;
        if (rest.n && rest.p[0] == '\n')
                rest = str_span(rest.p + 1, rest.n - 1);
        *n = (size_t)(rest.p - text.p);
        *out = note;
        return true;
}

int note_check(const struct note *note, const struct note_key *key)
{
        struct str rest = note->signatures, line, name;
        unsigned char coded[4 + ED25519_SIGNATURE];
        while (take_until(&rest, '\n', &line)) {
                line = str_span(line.p + strlen(DASH), line.n - strlen(DASH));
                if (!take_until(&line, ' ', &name) || !str_is(name, key->name) ||
                    !base64_take(line, coded, sizeof coded) ||
                    memcmp(coded, key->id, sizeof key->id) != 0)
                        continue;
                int rc = ed25519_check(key->public, note->text, coded + 4);
                if (rc)
                        return rc;
        }
        return 0;
}

/* ---- ranges ---- */

int note_ranges_add(struct note_ranges *r, uint64_t first, uint64_t last)
{
        size_t at = r->count, end;
        while (at > 0 && r->list[at - 1][1] + 1 >= first) /* most come in order */
                at--;
        for (end = at; end < r->count && r->list[end][0] <= last + 1; end++) {
                first = r->list[end][0] < first ? r->list[end][0] : first;
                last = r->list[end][1] > last ? r->list[end][1] : last;
        }
        if (end == at && !grow_room(r->list, r->count, r->cap))
                return STENO_ENOMEM;
        if (end == at || end - at > 1)
                memmove(&r->list[at + 1], &r->list[end], (r->count - end) * sizeof *r->list);
        r->count = r->count - (end - at) + 1;
        r->list[at][0] = first;
        r->list[at][1] = last;
        return 0;
}

bool note_ranges_read(struct note_ranges *r, struct str text)
{
        while (text.n) {
                struct str one = text, first;
                uint64_t from, to;
                if (!take_until(&text, ',', &one))
                        text = (struct str){0};
                struct str last = one;
                if (!take_until(&last, '-', &first))
                        first = last;
                if (!read_number(first, &from) || !read_number(last, &to) || from == 0 ||
                    from > to || note_ranges_add(r, from, to))
                        return false;
        }
        return true;
}

bool note_ranges_have(const struct note_ranges *r, uint64_t seq)
{
        size_t lo = 0, hi = r->count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (r->list[mid][1] < seq)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo < r->count && r->list[lo][0] <= seq;
}

void note_ranges_put(const struct note_ranges *r, struct buf *out)
{
        for (size_t i = 0; i < r->count; i++) {
                buf_printf(out, "%s%llu", i ? "," : "", (unsigned long long)r->list[i][0]);
                if (r->list[i][1] > r->list[i][0])
                        buf_printf(out, "-%llu", (unsigned long long)r->list[i][1]);
        }
}

void note_ranges_release(struct note_ranges *r)
{
        free(r->list);
        *r = (struct note_ranges){0};
}

bool note_last(struct str text, struct note *out, size_t *end)
{
        size_t at = 0, n;
        bool found = false;
        struct note note;
        while (note_read(str_span(text.p + at, text.n - at), &note, &n)) {
                *out = note;
                at += n;
                found = true;
        }
        *end = at;
        return found;
}
