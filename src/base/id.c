/*
 * id.c - ids that Steno makes, and file names for ids that others made.
 *
 * Owns the one piece of mutable state below the store: the last ULID of this process, so that
 * ids grow however fast they are asked for and whatever the clock does.
 */
#include "base/env.h"

#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/text.h"
#include "steno.h"

/* 128 bits: 48 of milliseconds, 80 of chance. */
struct ulid {
        uint64_t ms;
        uint16_t high;
        uint64_t low;
};

static struct {
        pthread_mutex_t lock;
        struct ulid ulid;
        /* Random bits that are not used yet: asking the kernel for each id takes longer than all
         * the rest of making it. */
        const struct env *env;
        uint64_t chance[64];
        size_t left;
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A forked child must not continue with its parent's random bits: both would make the same ids. */
static void forget_chance(void)
{
        pthread_mutex_init(&last.lock, NULL);
        last.left = 0;
}

static void watch_forks(void)
{
        pthread_atfork(NULL, NULL, forget_chance);
}

static uint64_t chance(const struct env *env)
{
        if (last.left == 0 || last.env != env) {
                env->random(env, last.chance, sizeof(last.chance));
                last.left = sizeof(last.chance) / sizeof(*last.chance);
                last.env = env;
        }
        return last.chance[--last.left];
}

static void ulid_draw(const struct env *env, uint64_t ms, struct ulid *u)
{
        u->ms = ms;
        u->high = (uint16_t)chance(env);
        u->low = chance(env);
}

/* The next one after *u in the same millisecond, by a step that nobody can guess. */
static void ulid_step(const struct env *env, struct ulid *u)
{
        uint64_t step = (chance(env) >> 24) + 1;

        u->low += step;
        if (u->low >= step)
                return;
        if (++u->high == 0)
                ulid_draw(env, u->ms + 1, u);
}

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static void ulid_text(const struct ulid *u, char *out)
{
        uint64_t low = u->low;
        uint64_t high = u->high | u->ms << 16; /* the upper 64 of the 128 bits */

        for (int i = 25; i >= 0; i--) {
                out[i] = digits[low & 31];
                low = low >> 5 | high << 59;
                high >>= 5;
        }
        out[26] = '\0';
}

int64_t id_time(struct str id)
{
        int64_t ms = 0;
        if (id.n < 26)
                return 0;
        for (const char *p = id.p + id.n - 26; p < id.p + id.n - 16; p++) {
                const char *d = *p ? strchr(digits, *p) : NULL;
                if (!d)
                        return 0;
                ms = ms << 5 | (d - digits);
        }
        return ms;
}

void id_make(const struct env *env, const char *prefix, char *out)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        size_t n = strlen(prefix);
        uint64_t now = (uint64_t)env->now(env) & UINT64_C(0xFFFFFFFFFFFF);

        pthread_once(&once, watch_forks);
        pthread_mutex_lock(&last.lock);
        if (now > last.ulid.ms)
                ulid_draw(env, now, &last.ulid);
        else
                ulid_step(env, &last.ulid);
        struct ulid mine = last.ulid;
        pthread_mutex_unlock(&last.lock);

        memcpy(out, prefix, n);
        ulid_text(&mine, out + n);
}

bool id_is_plain(struct str id)
{
        if (id.n < 1 || id.n > PLAIN_NAME_MAX)
                return false;
        for (size_t i = 0; i < id.n; i++) {
                char c = id.p[i];
                bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
                if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-')
                        return false;
        }
        return true;
}

int id_file_name(struct str id, char *out)
{
        char hex[SHA256_HEX];

        if (id_is_plain(id)) {
                memcpy(out, id.p, id.n);
                out[id.n] = '\0';
                return 0;
        }
        int rc = hash_sha256_hex(id.p, id.n, hex);
        if (rc < 0)
                return rc;
        out[0] = '~';
        memcpy(out + 1, hex, 32);
        out[33] = '\0';
        return 0;
}

bool id_is_file_name(struct str name)
{
        if (name.n == 0 || name.p[0] != '~')
                return id_is_plain(name);
        return name.n == 33 && id_is_plain((struct str){name.p + 1, name.n - 1});
}

bool id_is_legal(struct str id, size_t max)
{
        if (id.n < 1 || id.n > max || !text_is_utf8(id.p, id.n))
                return false;
        for (size_t i = 0; i < id.n; i++) {
                unsigned char c = (unsigned char)id.p[i];
                if (c < 0x20 || c == 0x7f)
                        return false;
                /* U+0080 to U+009F, which terminals obey as well. */
                if (c == 0xc2 && (unsigned char)id.p[i + 1] < 0xa0)
                        return false;
        }
        return true;
}
