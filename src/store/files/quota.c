/* quota.c - see quota.h */
#include "store/files/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "store/files/conv.h"

#define USAGE "usage"
#define CONV_USAGE "artifacts/.idx/" USAGE
#define DIGITS 20
/* Taken in advance by an output that goes on: it need not ask for every piece. */
#define AHEAD_MAX (16 * MIB)
#define WARN_PERCENT 80

/* ---- counting ---- */

static const char *const KINDS[] = {"artifacts/tool", "artifacts/terminal", "artifacts/parts"};

struct sum {
        const struct fs *fs;
        int dir;
        uint64_t bytes;
};

static int add_file(void *ctx, const char *name, unsigned char type)
{
        struct sum *s = ctx;
        struct stat st;
        (void)type;
        if (s->fs->stat(s->fs, s->dir, name, &st) == 0 && S_ISREG(st.st_mode))
                s->bytes += (uint64_t)st.st_size;
        return 0;
}

/* Of the conversation's folder `dir`. */
static uint64_t count_folder(const struct fs *fs, int dir)
{
        struct sum s = {.fs = fs};
        for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
                s.dir = fs->open(fs, dir, KINDS[i], O_RDONLY | O_DIRECTORY, 0);
                if (s.dir < 0)
                        continue;
                fs->list(fs, s.dir, add_file, &s);
                fs->close(fs, s.dir);
        }
        return s.bytes;
}

/* ---- the two files ---- */

/* An account, locked while it is open. */
struct account {
        const struct fs *fs;
        int fd; /* negative: there is none, and nothing is limited (Q2) */
        uint64_t used;
        bool known; /* else it must be counted, */
        bool fresh; /* and it was, just now */
};

static void account_read(struct account *a)
{
        char text[DIGITS + 1];
        ssize_t n = fs_pread_all(a->fs, a->fd, text, DIGITS, 0);
        text[DIGITS] = '\0';
        a->known = n == DIGITS && strspn(text, "0123456789") == DIGITS;
        a->used = a->known ? strtoull(text, NULL, 10) : 0;
}

static void account_write(struct account *a, uint64_t used)
{
        char text[DIGITS + 1];
        snprintf(text, sizeof text, "%0*llu", DIGITS, (unsigned long long)used);
        if (used != a->used || !a->known)
                fs_pwrite_all(a->fs, a->fd, text, DIGITS, 0);
        a->used = used;
        a->known = true;
}

static void account_close(struct account *a)
{
        if (a->fd >= 0)
                a->fs->close(a->fs, a->fd); /* lets go of the lock as well */
        a->fd = -1;
}

static void account_open(struct account *a, const struct fs *fs, int dir, const char *path)
{
        *a = (struct account){.fs = fs};
        a->fd = fs->open(fs, dir, path, O_RDWR | O_CREAT, 0600);
        if (a->fd >= 0 && fs->flock(fs, a->fd, LOCK_EX))
                account_close(a);
        if (a->fd >= 0)
                account_read(a);
}

/* `.idx` may not be there yet. */
static void open_conv(struct files_conv *conv, struct account *a)
{
        const struct fs *fs = conv->store->env->fs;
        account_open(a, fs, conv->dir, CONV_USAGE);
        if (a->fd == -ENOENT) {
                int artifacts = fs_open_dir(fs, conv->dir, "artifacts", true);
                int idx = artifacts < 0 ? artifacts : fs_open_dir(fs, artifacts, ".idx", true);
                if (artifacts >= 0)
                        fs->close(fs, artifacts);
                if (idx >= 0)
                        fs->close(fs, idx);
                account_open(a, fs, conv->dir, CONV_USAGE);
        }
        if (a->fd >= 0 && !a->known) {
                account_write(a, count_folder(fs, conv->dir));
                a->fresh = true;
        }
}

struct store_sum {
        struct files_store *store;
        uint64_t bytes;
};

/* What the outputs in a conversation's folder take, without making anything there. */
static uint64_t used_in(const struct fs *fs, int dir)
{
        struct account a = {.fs = fs};
        a.fd = fs->open(fs, dir, CONV_USAGE, O_RDONLY, 0);
        if (a.fd >= 0) {
                account_read(&a);
                account_close(&a);
        }
        return a.known ? a.used : count_folder(fs, dir);
}

static int add_conv(void *ctx, const char *project_folder, const char *folder, bool link)
{
        struct store_sum *s = ctx;
        const struct fs *fs = s->store->env->fs;
        char path[2 * PLAIN_NAME_MAX + 40];
        if (link)
                return 0;
        snprintf(path, sizeof path, "projects/%s/conversations/%s", project_folder, folder);
        int dir = fs->open(fs, s->store->root, path, O_RDONLY | O_DIRECTORY, 0);
        if (dir < 0)
                return 0;
        s->bytes += used_in(fs, dir);
        fs->close(fs, dir);
        return 0;
}

static void open_store(struct files_store *store, struct account *a)
{
        struct store_sum sum = {.store = store};
        account_open(a, store->env->fs, store->root, USAGE);
        if (a->fd < 0 || a->known)
                return;
        files_each_conv(store, add_conv, &sum, NULL);
        account_write(a, sum.bytes);
        a->fresh = true;
}

/* ---- taking and giving back ---- */

void quota_set(struct files_store *store, const struct quota *quota, quota_warn_fn warn, void *ctx)
{
        store->quota = *quota;
        store->quota_warn = warn;
        store->quota_ctx = ctx;
}

static int refuse(const char *whose, uint64_t limit, struct steno_error *err)
{
        char size[32] = "";
        struct buf b;
        buf_init(&b, 64);
        text_put_size(&b, limit);
        if (b.n < sizeof size)
                snprintf(size, sizeof size, "%.*s", (int)b.n, b.p);
        buf_release(&b);
        return error_set(
            err, STENO_EQUOTA, "the quota of %s is reached: %s (steno init sets it)", whose, size);
}

static void warn_when_passed(
    struct files_store *store, const char *whose, uint64_t before, uint64_t after, uint64_t limit)
{
        uint64_t mark = limit / 100 * WARN_PERCENT;
        char line[160];
        if (!store->quota_warn || before >= mark || after < mark)
                return;
        snprintf(line, sizeof line, "%s take %d %% of their quota of %llu bytes", whose,
            WARN_PERCENT, (unsigned long long)limit);
        store->quota_warn(store->quota_ctx, line);
}

/* Takes `n` bytes of both accounts, or of none. */
static int take(struct files_conv *conv, uint64_t n, struct steno_error *err)
{
        struct files_store *store = conv->store;
        const struct quota *q = &store->quota;
        struct account of_conv = {.fd = -1}, of_store = {.fd = -1};
        uint64_t before;
        int rc = 0;
        open_conv(conv, &of_conv);
        if (of_conv.fd >= 0 && q->conversation && of_conv.used + n > q->conversation)
                rc = refuse("the outputs of this conversation", q->conversation, err);
        if (rc == 0)
                open_store(store, &of_store);
        if (rc == 0 && of_store.fd >= 0 && q->store && of_store.used + n > q->store)
                rc = refuse("the outputs of this store", q->store, err);
        if (rc == 0 && of_store.fd >= 0) {
                before = of_store.used;
                account_write(&of_store, before + n);
                warn_when_passed(store, "the outputs of the store", before, before + n, q->store);
        }
        if (rc == 0 && of_conv.fd >= 0) {
                before = of_conv.used;
                account_write(&of_conv, before + n);
                warn_when_passed(
                    store, "the outputs of a conversation", before, before + n, q->conversation);
        }
        account_close(&of_store);
        account_close(&of_conv);
        return rc;
}

int quota_take(
    struct files_conv *conv, struct quota_share *share, uint64_t n, struct steno_error *err)
{
        const struct quota *q = &conv->store->quota;
        if (q->output && share->used + n > q->output)
                return refuse("one output", q->output, err);
        if ((q->conversation || q->store) && share->used + n > share->taken) {
                uint64_t need = share->used + n - share->taken;
                uint64_t ahead = share->used < AHEAD_MAX ? share->used : AHEAD_MAX;
                int rc = ahead > need ? take(conv, ahead, NULL) : STENO_EQUOTA;
                uint64_t got = ahead;
                if (rc) {
                        rc = take(conv, need, err);
                        got = need;
                }
                if (rc)
                        return rc;
                share->taken += got;
        }
        share->used += n;
        return 0;
}

int quota_take_folder(struct files_store *store, int dir, struct steno_error *err)
{
        const struct quota *q = &store->quota;
        struct account a;
        if (!q->conversation && !q->store)
                return 0;
        uint64_t n = count_folder(store->env->fs, dir);
        if (q->conversation && n > q->conversation)
                return refuse("the outputs of one conversation", q->conversation, err);
        open_store(store, &a);
        bool room = a.fd < 0 || !q->store || a.used + n <= q->store;
        if (a.fd >= 0 && room) {
                uint64_t before = a.used;
                account_write(&a, before + n);
                warn_when_passed(store, "the outputs of the store", before, before + n, q->store);
        }
        account_close(&a);
        return room ? 0 : refuse("the outputs of this store", q->store, err);
}

int quota_take_part(struct files_conv *conv, uint64_t n, struct steno_error *err)
{
        const struct quota *q = &conv->store->quota;
        return q->conversation || q->store ? take(conv, n, err) : 0;
}

/* What is gone already was not counted. */
static void account_less(struct account *a, uint64_t n)
{
        if (a->fd >= 0 && !a->fresh)
                account_write(a, a->used > n ? a->used - n : 0);
        account_close(a);
}

void quota_give_back(struct files_conv *conv, uint64_t n)
{
        struct account a;
        if (!n || (!conv->store->quota.conversation && !conv->store->quota.store))
                return;
        open_conv(conv, &a);
        account_less(&a, n);
        open_store(conv->store, &a);
        account_less(&a, n);
}

void quota_settle(struct files_conv *conv, struct quota_share *share)
{
        if (share->taken > share->used)
                quota_give_back(conv, share->taken - share->used);
        *share = (struct quota_share){0};
}

void quota_forget(struct files_store *store)
{
        store->env->fs->unlink(store->env->fs, store->root, USAGE, 0);
}

static bool is_limited(const struct files_store *store)
{
        return store->quota.conversation || store->quota.store;
}

/* An account that is not there yet is counted when it is needed, without what is gone. */
static void store_less(struct files_store *store, uint64_t n)
{
        struct account a = {.fs = store->env->fs};
        a.fd = n ? a.fs->open(a.fs, store->root, USAGE, O_RDWR, 0) : -1;
        if (a.fd >= 0 && a.fs->flock(a.fs, a.fd, LOCK_EX))
                account_close(&a);
        if (a.fd < 0)
                return;
        account_read(&a);
        a.fresh = !a.known;
        account_less(&a, n);
}

void quota_recount(struct files_conv *conv)
{
        struct account a;
        if (!is_limited(conv->store))
                return;
        open_conv(conv, &a);
        uint64_t before = a.used, now = count_folder(conv->store->env->fs, conv->dir);
        if (a.fd >= 0)
                account_write(&a, now);
        account_close(&a);
        store_less(conv->store, before > now ? before - now : 0);
}

uint64_t quota_leaving(struct files_conv *conv)
{
        return is_limited(conv->store) ? used_in(conv->store->env->fs, conv->dir) : 0;
}

void quota_left(struct files_store *store, uint64_t n)
{
        store_less(store, n);
}
