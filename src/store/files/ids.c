/* ids.c - see ids.h */
#include "store/files/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/limits.h"

#define NAME "ids.idx"
#define TMP_NAME "ids.idx.tmp"
#define NEW_NAME "ids.idx.new"
#define VERSION 2
#define FIRST_BUCKETS 16
#define BUCKET 16 /* slots */
#define BUCKETS_AT 256
#define SEAL UINT64_MAX
/* A reader may meet a bucket that is just being written. */
#define READ_TRIES 4
/* A table is written as a whole when that costs no more than this many bytes an entry. */
#define WHOLE_TABLE 96
/* Else, where many wait, so many buckets are read and written at once when this many are for them.
 */
#define TOGETHER_BUCKETS 64
#define TOGETHER_FROM 4
/* Buckets of the new table that are in memory while a table grows: 1 MiB. */
#define GROWING_BUCKETS 4096
/* So much of the log may be synced before the mark is written again. */
#define MARK_EVERY (256 * KIB)

struct header {
        char magic[8];
        uint64_t boot;
        uint64_t buckets;
        uint64_t count;
        uint64_t covered;
        uint64_t mark_size;
        uint64_t mark_seq;
        uint64_t last_amend;
        uint64_t log;
        uint64_t lasting; /* 0 in files of older versions */
        uint64_t lasting_amend;
        uint32_t version;
        uint32_t crc;
};
_Static_assert(sizeof(struct header) == 96, "the header is 96 bytes on the disk");

/* Entries, the seal behind them, and nothing. */
struct bucket {
        struct ids_entry slot[BUCKET];
};
_Static_assert(sizeof(struct bucket) == 256, "a bucket is 256 bytes on the disk");

static const char MAGIC[8] = {'S', 't', 'e', 'n', 'o', 'I', 'd', 's'};

static uint32_t header_crc(const struct header *h)
{
        return hash_crc32c(0, h, offsetof(struct header, crc));
}

static off_t bucket_at(uint64_t number)
{
        return (off_t)(BUCKETS_AT + number * sizeof(struct bucket));
}

/* ---- buckets ---- */

static struct ids_entry seal_of(const struct bucket *b, unsigned fill, uint64_t number)
{
        uint64_t sum = hash_64(b->slot, fill * sizeof *b->slot);
        return (struct ids_entry){sum ^ (number + 1) * UINT64_C(0x9E3779B97F4A7C15), SEAL};
}

/* How many entries it has, or -EIO where the seal says that it had others (I5). */
static int bucket_fill(const struct bucket *b, uint64_t number)
{
        unsigned fill = 0;
        while (fill < BUCKET && b->slot[fill].at != SEAL)
                fill++;
        if (fill == BUCKET || b->slot[fill].hash != seal_of(b, fill, number).hash)
                return -EIO;
        return (int)fill;
}

static bool bucket_has(const struct bucket *b, int fill, struct ids_entry e)
{
        for (int i = 0; i < fill; i++)
                if (b->slot[i].hash == e.hash && b->slot[i].at == e.at)
                        return true;
        return false;
}

static void bucket_put(struct bucket *b, int fill, struct ids_entry e, uint64_t number)
{
        b->slot[fill] = e;
        b->slot[fill + 1] = seal_of(b, (unsigned)fill + 1, number);
}

/* Reads one: how many entries it has, or negative. */
static int bucket_read(const struct ids *ids, uint64_t number, struct bucket *out)
{
        const struct fs *fs = ids->env->fs;
        int fill = -EIO;
        for (int tries = 0; tries < READ_TRIES && fill < 0; tries++) {
                ssize_t got = fs_pread_all(fs, ids->fd, out, sizeof *out, bucket_at(number));
                if (got != (ssize_t)sizeof *out)
                        return got < 0 ? (int)got : -EIO;
                fill = bucket_fill(out, number);
        }
        return fill;
}

static int table_read(const struct ids *ids, struct bucket *table)
{
        size_t size = ids->buckets * sizeof *table;
        ssize_t got = fs_pread_all(ids->env->fs, ids->fd, table, size, bucket_at(0));
        if (got != (ssize_t)size)
                return got < 0 ? (int)got : -EIO;
        for (uint64_t i = 0; i < ids->buckets; i++)
                if (bucket_fill(&table[i], i) < 0)
                        return -EIO;
        return 0;
}

/* Puts an entry into a table in memory that is whole: 1, or 0 when it is there already. */
static int table_put(struct bucket *table, uint64_t buckets, struct ids_entry e)
{
        uint64_t number = e.hash & (buckets - 1);
        for (uint64_t seen = 0; seen < buckets; seen++) {
                int fill = bucket_fill(&table[number], number);
                if (fill < 0)
                        return fill;
                if (bucket_has(&table[number], fill, e))
                        return 0;
                if (fill < BUCKET - 1) {
                        bucket_put(&table[number], fill, e, number);
                        return 1;
                }
                number = (number + 1) & (buckets - 1);
        }
        return -EIO;
}

/* ---- windows: a part of a table, in memory ---- */

struct window {
        struct bucket *table;
        uint64_t at; /* number of its first bucket */
        uint64_t count;
};

static void window_clear(struct window *w)
{
        memset(w->table, 0, w->count * sizeof *w->table);
        for (uint64_t i = 0; i < w->count; i++)
                w->table[i].slot[0] = seal_of(&w->table[i], 0, w->at + i);
}

static int window_read(const struct ids *ids, struct window *w)
{
        size_t size = w->count * sizeof *w->table;
        ssize_t got = fs_pread_all(ids->env->fs, ids->fd, w->table, size, bucket_at(w->at));
        return got == (ssize_t)size ? 0 : got < 0 ? (int)got : -EIO;
}

static int window_write(const struct ids *ids, int fd, const struct window *w)
{
        return fs_pwrite_all(
            ids->env->fs, fd, w->table, w->count * sizeof *w->table, bucket_at(w->at));
}

/* Puts an entry of bucket `number`: 1, 0 when it is there already, or -ENOSPC when its place is
 * outside of the window. */
static int window_put(struct window *w, uint64_t number, struct ids_entry e)
{
        if (number < w->at)
                return -ENOSPC;
        for (uint64_t i = number - w->at; i < w->count; i++) {
                int fill = bucket_fill(&w->table[i], w->at + i);
                if (fill < 0)
                        return fill;
                if (bucket_has(&w->table[i], fill, e))
                        return 0;
                if (fill < BUCKET - 1) {
                        bucket_put(&w->table[i], fill, e, w->at + i);
                        return 1;
                }
        }
        return -ENOSPC;
}

/* ---- opening ---- */

static void forget_file(struct ids *ids)
{
        if (ids->fd >= 0)
                ids->env->fs->close(ids->env->fs, ids->fd);
        ids->fd = -1;
        ids->buckets = ids->count = ids->covered = ids->last_amend = 0;
        ids->lasting = ids->lasting_amend = 0;
        ids->pending_count = 0;
        ids->pending_covered = 0;
}

uint64_t ids_boot(const struct env *env)
{
        char boot[40];
        env->boot(env, boot);
        return hash_64(boot, strlen(boot));
}

void ids_open(struct ids *ids, const struct env *env, uint64_t boot, int dir, uint64_t log)
{
        const struct fs *fs = env->fs;
        struct header h;
        *ids = (struct ids){.env = env, .dir = dir, .fd = -1, .boot = boot, .log = log};
        int fd = fs->open(fs, dir, NAME, O_RDWR, 0);
        if (fd == -EROFS || fd == -EACCES)
                fd = fs->open(fs, dir, NAME, O_RDONLY,
                    0); /* a reader without the right to write still reads the mark */
        if (fd < 0)
                return;
        ssize_t got = fs_pread_all(fs, fd, &h, sizeof h, 0);
        if (got != (ssize_t)sizeof h || memcmp(h.magic, MAGIC, sizeof MAGIC) != 0 ||
            h.version != VERSION || h.crc != header_crc(&h) || (log && h.log != log)) { /* I4 */
                fs->close(fs, fd);
                return;
        }
        ids->mark = (struct log_mark){h.mark_size, h.mark_seq};
        ids->mark_written = h.mark_size;
        struct stat st;
        bool whole = fs->fstat(fs, fd, &st) == 0 && st.st_size >= bucket_at(h.buckets);
        bool booted = h.boot != ids->boot;
        if (!log || h.buckets == 0 || (h.buckets & (h.buckets - 1)) || !whole ||
            h.lasting > h.covered || (booted && h.lasting == 0)) {
                fs->close(fs, fd);
                return;
        }
        ids->fd = fd;
        ids->buckets = h.buckets;
        ids->count = h.count;
        ids->lasting = h.lasting;
        ids->lasting_amend = h.lasting_amend;
        ids->covered = ids->pending_covered = booted ? h.lasting : h.covered; /* I2 */
        ids->last_amend = booted ? h.lasting_amend : h.last_amend;
}

void ids_close(struct ids *ids)
{
        if (!ids->env)
                return;
        forget_file(ids);
        free(ids->pending);
        ids->pending = NULL;
        ids->pending_cap = 0;
}

uint64_t ids_hash_id(struct str id)
{
        return hash_64(id.p, id.n);
}

uint64_t ids_hash_key(struct str key)
{
        return hash_64(key.p, key.n) ^ UINT64_C(0x9E3779B97F4A7C15);
}

uint64_t ids_covered(const struct ids *ids)
{
        return ids->pending_covered;
}

/* ---- looking up ---- */

static bool flush(struct ids *ids);

int ids_lookup(struct ids *ids, uint64_t hash, int (*each)(void *ctx, uint64_t at), void *ctx)
{
        if (ids->pending_count > IDS_PENDING && !flush(ids))
                return -EIO;
        for (unsigned i = 0; i < ids->pending_count; i++) {
                if (ids->pending[i].hash != hash)
                        continue;
                int rc = each(ctx, ids->pending[i].at - 1);
                if (rc)
                        return rc;
        }
        uint64_t number = hash & (ids->buckets - 1);
        for (uint64_t seen = 0; seen < ids->buckets; seen++) {
                struct bucket b;
                int fill = bucket_read(ids, number, &b);
                if (fill < 0) {
                        forget_file(ids);
                        return fill;
                }
                for (int i = 0; i < fill; i++) {
                        int rc = b.slot[i].hash == hash ? each(ctx, b.slot[i].at - 1) : 0;
                        if (rc)
                                return rc;
                }
                if (fill < BUCKET - 1)
                        return 0;
                number = (number + 1) & (ids->buckets - 1);
        }
        return 0;
}

/* ---- adding ---- */

static int write_header(struct ids *ids, int fd)
{
        struct header h = {.boot = ids->boot,
            .buckets = ids->buckets,
            .count = ids->count,
            .covered = ids->covered,
            .mark_size = ids->mark.size,
            .mark_seq = ids->mark.seq,
            .last_amend = ids->last_amend,
            .log = ids->log,
            .lasting = ids->lasting,
            .lasting_amend = ids->lasting_amend,
            .version = VERSION};
        memcpy(h.magic, MAGIC, sizeof MAGIC);
        h.crc = header_crc(&h);
        int rc = fs_pwrite_all(ids->env->fs, fd, &h, sizeof h, 0);
        if (rc == 0)
                ids->mark_written = ids->mark.size;
        return rc;
}

static uint64_t buckets_for(uint64_t at_least, uint64_t count)
{
        while (at_least * BUCKET < count * 2)
                at_least *= 4;
        return at_least;
}

/* Writes one entry, and the seal behind it, where the seal was. */
static int insert(struct ids *ids, struct ids_entry e)
{
        uint64_t number = e.hash & (ids->buckets - 1);
        for (uint64_t seen = 0; seen < ids->buckets; seen++) {
                struct bucket b;
                int fill = bucket_read(ids, number, &b);
                if (fill < 0)
                        return fill;
                if (bucket_has(&b, fill, e))
                        return 0;
                if (fill < BUCKET - 1) {
                        off_t at = bucket_at(number) + (off_t)(fill * (int)sizeof e);
                        bucket_put(&b, fill, e, number);
                        ids->count++;
                        return fs_pwrite_all(
                            ids->env->fs, ids->fd, &b.slot[fill], 2 * sizeof e, at);
                }
                number = (number + 1) & (ids->buckets - 1);
        }
        return -EIO;
}

/*
 * Growing: a table grows with its conversation, and memory must not, so it is moved a window at a
 * time. Numbers of buckets are powers of two: what is in a window of the old table belongs into as
 * many windows of the new one as that is larger, each at the same distance from the other.
 */
struct growing {
        uint64_t old;         /* buckets of the old table, */
        uint64_t parts;       /* and how often the new one has as many */
        struct window from;   /* of the old table */
        struct window *to;    /* of the new one: one in each part */
        struct ids_list rest; /* what finds no place in its window */
};

static int move_window(struct growing *g, const struct ids *ids)
{
        int rc = window_read(ids, &g->from);
        for (uint64_t i = 0; rc >= 0 && i < g->from.count; i++) {
                const struct bucket *b = &g->from.table[i];
                int fill = rc = bucket_fill(b, g->from.at + i);
                for (int k = 0; rc >= 0 && k < fill; k++) {
                        uint64_t number = b->slot[k].hash & (g->old * g->parts - 1);
                        rc = window_put(&g->to[number / g->old], number, b->slot[k]);
                        if (rc == -ENOSPC)
                                rc = ids_list_add(&g->rest, b->slot[k].hash, b->slot[k].at - 1);
                }
        }
        return rc < 0 ? rc : 0;
}

static int move_windows(struct growing *g, const struct ids *ids, int fd)
{
        int rc = 0;
        for (uint64_t at = 0; rc == 0 && at < g->old; at += g->from.count) {
                g->from.at = at;
                for (uint64_t k = 0; k < g->parts; k++) {
                        g->to[k].at = k * g->old + at;
                        window_clear(&g->to[k]);
                }
                rc = ids->buckets ? move_window(g, ids) : 0;
                for (uint64_t k = 0; rc == 0 && k < g->parts; k++)
                        rc = window_write(ids, fd, &g->to[k]);
        }
        struct ids grown = *ids;
        grown.fd = fd;
        grown.buckets = g->old * g->parts;
        for (size_t i = 0; rc == 0 && i < g->rest.n; i++)
                rc = insert(&grown, g->rest.p[i]);
        return rc;
}

/* Writes an empty table of so many buckets, or the one in the file moved to as many. */
static int write_grown(const struct ids *ids, int fd, uint64_t buckets)
{
        struct growing g = {.old = ids->buckets ? ids->buckets : buckets};
        g.parts = buckets / g.old;
        uint64_t count = g.parts < GROWING_BUCKETS ? GROWING_BUCKETS / g.parts : 1;
        count = count < g.old ? count : g.old;
        struct bucket *tables = malloc((g.parts + 1) * count * sizeof *tables);
        g.to = calloc(g.parts, sizeof *g.to);
        int rc = tables && g.to ? 0 : -ENOMEM;
        for (uint64_t k = 0; rc == 0 && k < g.parts; k++)
                g.to[k] = (struct window){.table = tables + (k + 1) * count, .count = count};
        g.from = (struct window){.table = tables, .count = count};
        if (rc == 0)
                rc = move_windows(&g, ids, fd);
        ids_list_release(&g.rest);
        free(g.to);
        free(tables);
        return rc;
}

/* Moves to a new file with room for `count` entries: the old one stays whole for its readers. */
static int grow(struct ids *ids, uint64_t count)
{
        const struct fs *fs = ids->env->fs;
        uint64_t buckets = buckets_for(ids->buckets ? ids->buckets : FIRST_BUCKETS, count);
        int fd = fs->open(fs, ids->dir, TMP_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0)
                return fd;
        int rc = write_grown(ids, fd, buckets);
        if (rc)
                goto out;
        struct ids old = *ids;
        ids->buckets = buckets;
        ids->lasting = ids->lasting_amend = 0; /* nothing of this file is synced */
        rc = write_header(ids, fd);
        if (rc == 0)
                rc = fs->rename(fs, ids->dir, TMP_NAME, ids->dir, NAME);
        if (rc) {
                *ids = old;
                goto out;
        }
        if (ids->fd >= 0)
                fs->close(fs, ids->fd);
        ids->fd = fd;
        fd = -1;
out:
        if (fd >= 0)
                fs->close(fs, fd);
        return rc;
}

/* All of them at once, into a table that is small enough to be written as a whole. */
static int insert_whole(struct ids *ids)
{
        size_t size = ids->buckets * sizeof(struct bucket);
        struct bucket *table = malloc(size);
        if (!table)
                return -ENOMEM;
        int rc = table_read(ids, table);
        for (unsigned i = 0; rc >= 0 && i < ids->pending_count; i++) {
                rc = table_put(table, ids->buckets, ids->pending[i]);
                ids->count += rc == 1;
        }
        if (rc >= 0)
                rc = fs_pwrite_all(ids->env->fs, ids->fd, table, size, bucket_at(0));
        free(table);
        return rc;
}

static int by_bucket(const void *a, const void *b, void *ids)
{
        const struct ids_entry *x = a, *y = b;
        uint64_t mask = ((const struct ids *)ids)->buckets - 1;
        uint64_t m = x->hash & mask, n = y->hash & mask;
        if (m != n)
                return m < n ? -1 : 1;
        return x->at < y->at ? -1 : x->at > y->at;
}

/* Entries of one window, which is read and written once for all of them. Uses up `list`. */
static int insert_window(struct ids *ids, uint64_t at, struct ids_entry *list, unsigned count)
{
        struct bucket table[TOGETHER_BUCKETS];
        struct window w = {table, at, TOGETHER_BUCKETS};
        unsigned left = 0;
        int rc = window_read(ids, &w);
        for (unsigned i = 0; rc >= 0 && i < count; i++) {
                rc = window_put(&w, list[i].hash & (ids->buckets - 1), list[i]);
                ids->count += rc == 1;
                if (rc == -ENOSPC) {
                        list[left++] = list[i];
                        rc = 0;
                }
        }
        if (rc >= 0)
                rc = window_write(ids, ids->fd, &w);
        for (unsigned i = 0; rc == 0 && i < left; i++)
                rc = insert(ids, list[i]);
        return rc;
}

/* Many that wait, in the order of the table: neighbours are written together. */
static int insert_sorted(struct ids *ids)
{
        struct ids_entry *list = ids->pending;
        unsigned count = ids->pending_count, end;
        int rc = 0;
        qsort_r(list, count, sizeof *list, by_bucket, ids);
        for (unsigned i = 0; rc == 0 && i < count; i = end) {
                uint64_t at = list[i].hash & (ids->buckets - 1) & ~(uint64_t)(TOGETHER_BUCKETS - 1);
                for (end = i; end < count; end++)
                        if ((list[end].hash & (ids->buckets - 1)) >= at + TOGETHER_BUCKETS)
                                break;
                if (end - i >= TOGETHER_FROM && ids->buckets >= TOGETHER_BUCKETS)
                        rc = insert_window(ids, at, list + i, end - i);
                else
                        for (unsigned k = i; rc == 0 && k < end; k++)
                                rc = insert(ids, list[k]);
        }
        return rc;
}

static bool flush(struct ids *ids)
{
        int rc = 0;
        if (ids->fd < 0 || (ids->count + ids->pending_count) * 2 > ids->buckets * BUCKET)
                rc = grow(ids, ids->count + ids->pending_count + 1);
        /* I1: before the header. */
        if (rc == 0 && ids->buckets * sizeof(struct bucket) <= ids->pending_count * WHOLE_TABLE)
                rc = insert_whole(ids);
        else if (rc == 0 && ids->pending_count > IDS_PENDING)
                rc = insert_sorted(ids);
        else
                for (unsigned i = 0; rc == 0 && i < ids->pending_count; i++)
                        rc = insert(ids, ids->pending[i]);
        if (rc == 0) {
                ids->pending_count = 0;
                ids->covered = ids->pending_covered;
                rc = write_header(ids, ids->fd);
        }
        if (rc)
                ids_reset(ids, true);
        return rc == 0;
}

void ids_flush(struct ids *ids)
{
        flush(ids);
}

bool ids_is_flushed(const struct ids *ids)
{
        return ids->pending_count == 0 && ids->mark_written == ids->mark.size;
}

/* Makes room for one more entry: writes the waiting entries if there may not be more. */
static bool make_room(struct ids *ids)
{
        unsigned max = ids->large_groups ? IDS_PENDING_MAX : IDS_PENDING;
        if (ids->pending_count >= max && !flush(ids))
                return false;
        if (ids->pending_count < ids->pending_cap)
                return true;
        unsigned cap = ids->pending_cap ? ids->pending_cap * 2 : IDS_PENDING;
        struct ids_entry *list = realloc(ids->pending, cap * sizeof *list);
        if (!list) {
                ids_reset(ids, true);
                return false;
        }
        ids->pending = list;
        ids->pending_cap = cap;
        return true;
}

bool ids_add(struct ids *ids, uint64_t hash, uint64_t at)
{
        if (!make_room(ids))
                return false;
        ids->pending[ids->pending_count++] = (struct ids_entry){hash, at + 1};
        return true;
}

bool ids_cover(struct ids *ids, uint64_t from, uint64_t to)
{
        if (ids->pending_covered != from)
                return false;
        ids->pending_covered = to;
        return true;
}

void ids_set_amend(struct ids *ids, uint64_t seq)
{
        ids->last_amend = seq;
}

void ids_set_mark(struct ids *ids, struct log_mark mark)
{
        ids->mark = mark;
        if (mark.size - ids->mark_written < MARK_EVERY)
                return;
        if (ids->fd < 0)
                flush(ids);
        else if (write_header(ids, ids->fd))
                ids_reset(ids, true);
}

/* ---- entries that last ---- */

uint64_t ids_unsettled(const struct ids *ids)
{
        return ids->pending_covered - ids->lasting;
}

bool ids_settle_begin(struct ids *ids, struct ids_settling *out)
{
        const struct fs *fs = ids->env->fs;
        struct stat mine, named;
        if (ids_unsettled(ids) == 0 || ids->mark.size < ids->pending_covered) /* I6 */
                return false;
        if (ids->pending_count && !flush(ids))
                return false;
        /* A descriptor of its own, because others may close this one during the sync. */
        int fd = fs->open(fs, ids->dir, NAME, O_RDWR, 0);
        if (fd < 0)
                return false;
        if (fs->fstat(fs, ids->fd, &mine) || fs->fstat(fs, fd, &named) ||
            mine.st_ino != named.st_ino) {
                fs->close(fs, fd);
                return false;
        }
        *out = (struct ids_settling){fd, ids->pending_covered, ids->last_amend};
        return true;
}

int ids_settle_sync(const struct env *env, const struct ids_settling *s)
{
        return env->fs->fdatasync(env->fs, s->fd);
}

void ids_settle_end(struct ids *ids, struct ids_settling *s, bool synced)
{
        const struct fs *fs = ids->env->fs;
        struct stat mine, theirs;
        bool same = ids->fd >= 0 && fs->fstat(fs, ids->fd, &mine) == 0 &&
                    fs->fstat(fs, s->fd, &theirs) == 0 && mine.st_ino == theirs.st_ino;
        fs->close(fs, s->fd);
        if (!same || ids->covered < s->covered || ids->lasting >= s->covered)
                return;
        if (synced) {
                ids->lasting = s->covered;
                ids->lasting_amend = s->amend;
        }
        /* After a failed sync nobody knows what the disk has, and the next one may succeed without
         * having written it. */
        if (!synced || write_header(ids, ids->fd))
                ids_reset(ids, true);
}

/* ---- a whole new index ---- */

int ids_list_add(struct ids_list *list, uint64_t hash, uint64_t at)
{
        if (!grow_room(list->p, list->n, list->cap))
                return -ENOMEM;
        list->p[list->n++] = (struct ids_entry){hash, at + 1};
        return 0;
}

void ids_list_release(struct ids_list *list)
{
        free(list->p);
        *list = (struct ids_list){0};
}

int ids_build_begin(struct ids *b, const struct env *env, uint64_t boot, int dir, uint64_t log)
{
        const struct fs *fs = env->fs;
        struct stat mine, named;
        *b = (struct ids){.env = env, .dir = dir, .fd = -1, .boot = boot, .log = log};
        int fd = fs->open(fs, dir, NEW_NAME, O_RDWR | O_CREAT, 0600);
        if (fd < 0)
                return fd;
        int rc = fs->flock(fs, fd, LOCK_EX);
        if (rc == 0)
                rc = fs->fstat(fs, fd, &mine);
        if (rc == 0) {
                rc = fs->stat(fs, dir, NEW_NAME, &named);
                if (rc == -ENOENT || (rc == 0 && named.st_ino != mine.st_ino))
                        rc = 1; /* whoever had the turn renamed or removed it */
        }
        if (rc)
                fs->close(fs, fd);
        else
                b->fd = fd;
        return rc;
}

int ids_build_write(struct ids *b, const struct ids_list *list, uint64_t covered)
{
        const struct fs *fs = b->env->fs;
        uint64_t buckets = buckets_for(FIRST_BUCKETS, list->n + 1);
        struct bucket *table = calloc(buckets, sizeof *table);
        int rc = table ? 0 : -ENOMEM;
        for (uint64_t i = 0; rc == 0 && i < buckets; i++)
                table[i].slot[0] = seal_of(&table[i], 0, i);
        for (size_t i = 0; rc >= 0 && i < list->n; i++) {
                rc = table_put(table, buckets, list->p[i]);
                b->count += rc == 1;
        }
        /* One that died may have left a longer file. */
        if (rc >= 0)
                rc = fs->ftruncate(fs, b->fd, 0);
        if (rc == 0)
                rc = fs_pwrite_all(fs, b->fd, table, buckets * sizeof *table, bucket_at(0));
        free(table);
        if (rc == 0)
                rc = fs->fdatasync(fs, b->fd);
        if (rc)
                return rc;
        b->buckets = buckets;
        b->covered = b->pending_covered = b->lasting = covered;
        b->last_amend = b->lasting_amend = list->last_amend;
        return 0;
}

int ids_build_adopt(struct ids *ids, struct ids *b)
{
        const struct fs *fs = ids->env->fs;
        b->mark = ids->mark;
        int rc = write_header(b, b->fd);
        if (rc == 0)
                rc = fs->rename(fs, b->dir, NEW_NAME, b->dir, NAME);
        if (rc)
                return rc;
        forget_file(ids);
        b->pending = ids->pending;
        b->pending_cap = ids->pending_cap;
        *ids = *b;
        *b = (struct ids){.env = b->env, .fd = -1};
        fs->flock(fs, ids->fd, LOCK_UN);
        return 0;
}

void ids_build_end(struct ids *b)
{
        const struct fs *fs = b->env->fs;
        if (b->fd < 0)
                return;
        fs->unlink(fs, b->dir, NEW_NAME, 0);
        fs->close(fs, b->fd);
        b->fd = -1;
}

int ids_restart(struct ids *ids, struct log_mark mark)
{
        forget_file(ids);
        ids->mark = mark;
        return grow(ids, 1);
}

void ids_reset(struct ids *ids, bool keep_mark)
{
        const struct fs *fs = ids->env->fs;
        forget_file(ids);
        fs->unlink(fs, ids->dir, NAME, 0);
        ids->mark_written = 0;
        if (!keep_mark)
                ids->mark = (struct log_mark){0};
}
