/*
 * crash_state.c - from the log of crashfs.c to what a disk may hold after a power cut.
 *
 * For a crash point: which operations are durable (a sync of their file or directory follows),
 * then which of the others survive, which the state decides; then the names that result and,
 * behind each, the bytes.
 */
#include "crashfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crash_log.h"
#include "seed.h"

/* What becomes of the unsynced part of one file. */
enum bytes_fate {
        BYTES_NONE,
        BYTES_ALL,
        BYTES_TORN_512,
        BYTES_TORN_512_NULS,
        BYTES_TORN_4096,
        BYTES_TORN_4096_NULS,
        BYTES_LAST,
        BYTES_SIZE,
        BYTES_BLOCKS, /* each block by chance */
        BYTES_FATES,
};

enum names_fate { NAMES_NONE, NAMES_ALL, NAMES_LAST, NAMES_CHANCE };

static const struct {
        enum bytes_fate bytes;
        enum names_fate names;
        const char *words;
} fates[] = {
    [CRASH_NOTHING] = {BYTES_NONE, NAMES_NONE, "nothing unsynced survives"},
    [CRASH_EVERYTHING] = {BYTES_ALL, NAMES_ALL, "everything survives"},
    [CRASH_NAMES_ONLY] = {BYTES_NONE, NAMES_ALL, "names survive, bytes do not"},
    [CRASH_BYTES_ONLY] = {BYTES_ALL, NAMES_NONE, "bytes survive, names do not"},
    [CRASH_TORN_512] = {BYTES_TORN_512, NAMES_ALL, "torn at 512 bytes"},
    [CRASH_TORN_512_NULS] = {BYTES_TORN_512_NULS, NAMES_ALL, "torn at 512 bytes, NULs behind"},
    [CRASH_TORN_4096] = {BYTES_TORN_4096, NAMES_ALL, "torn at 4 KiB"},
    [CRASH_TORN_4096_NULS] = {BYTES_TORN_4096_NULS, NAMES_ALL, "torn at 4 KiB, NULs behind"},
    [CRASH_REORDERED] = {BYTES_LAST, NAMES_ALL, "only the last write of each file survives"},
    [CRASH_NAMES_LAST] = {BYTES_ALL, NAMES_LAST, "only the last change of a name survives"},
    [CRASH_SIZES] = {BYTES_SIZE, NAMES_ALL, "sizes survive, NULs for bytes"},
};

struct entry {
        size_t dir;
        size_t object;
        const char *name;
};

struct content {
        char *p;
        size_t n;
};

/* One crash point in one state. */
struct world {
        const struct crashfs *c;
        size_t end; /* ops from here on did not happen */
        int state;
        uint64_t seed;
        bool *durable;
        struct entry *entries;
        size_t entry_count;
};

static bool is_name_op(const struct crash_op *op)
{
        return op->kind == OP_LINK || op->kind == OP_RENAME || op->kind == OP_UNLINK;
}

/* Chance that depends on the arguments only, not on the order of questions. */
static uint64_t chance(const struct world *w, uint64_t what)
{
        uint64_t z = seed_mix(w->seed + 0x9e3779b97f4a7c15u * (w->end + 1));

        return seed_mix(z ^ seed_mix((uint64_t)w->state << 48 ^ what));
}

/* ---- what is durable ---- */

static void mark_durable(struct world *w)
{
        const struct crashfs *c = w->c;
        bool *synced = calloc(c->object_count, sizeof(*synced));

        w->durable = calloc(c->count + 1, sizeof(*w->durable));
        if (!synced || !w->durable)
                abort();
        for (size_t i = w->end; i-- > 0;) {
                const struct crash_op *op = &c->ops[i];
                if (op->kind == OP_SYNC)
                        synced[op->object] = true;
                else if (op->kind == OP_RENAME)
                        w->durable[i] = synced[op->to_dir];
                else if (is_name_op(op))
                        w->durable[i] = synced[op->dir];
                else
                        w->durable[i] = synced[op->object];
                if (i < c->base)
                        w->durable[i] = true;
        }
        free(synced);
}

static bool anything_unsynced(const struct world *w)
{
        for (size_t i = 0; i < w->end; i++) {
                if (!w->durable[i] && w->c->ops[i].kind != OP_SYNC)
                        return true;
        }
        return false;
}

/* ---- names ---- */

static enum names_fate names_fate(const struct world *w)
{
        return w->state >= CRASH_RANDOM ? NAMES_CHANCE : fates[w->state].names;
}

static bool name_survives(const struct world *w, size_t i, size_t last)
{
        if (w->durable[i])
                return true;
        switch (names_fate(w)) {
        case NAMES_ALL:
                return true;
        case NAMES_LAST:
                return i == last;
        case NAMES_CHANCE:
                return chance(w, i * 2 + 1) & 1;
        default:
                return false;
        }
}

static void drop_name(struct world *w, size_t dir, const char *name)
{
        for (size_t i = 0; i < w->entry_count; i++) {
                if (w->entries[i].dir == dir && strcmp(w->entries[i].name, name) == 0) {
                        w->entries[i] = w->entries[--w->entry_count];
                        return;
                }
        }
}

/* There are no hard links, so an object loses every other name it still has: a surviving rename may
 * follow one that did not survive. */
static void set_name(struct world *w, size_t dir, const char *name, size_t object)
{
        drop_name(w, dir, name);
        for (size_t i = 0; i < w->entry_count;) {
                if (w->entries[i].object == object)
                        w->entries[i] = w->entries[--w->entry_count];
                else
                        i++;
        }
        w->entries[w->entry_count++] = (struct entry){dir, object, name};
}

static void settle_names(struct world *w)
{
        const struct crashfs *c = w->c;
        size_t last = NO_OBJECT;

        w->entries = calloc(c->count + 1, sizeof(*w->entries));
        if (!w->entries)
                abort();
        for (size_t i = 0; i < w->end; i++) {
                if (is_name_op(&c->ops[i]))
                        last = i;
        }
        for (size_t i = 0; i < w->end; i++) {
                const struct crash_op *op = &c->ops[i];
                if (!is_name_op(op) || !name_survives(w, i, last))
                        continue;
                if (op->kind == OP_LINK)
                        set_name(w, op->dir, op->name, op->object);
                else if (op->kind == OP_RENAME)
                        set_name(w, op->to_dir, op->to_name, op->object);
                else
                        drop_name(w, op->dir, op->name);
        }
}

/* ---- bytes ---- */

static void content_resize(struct content *f, size_t n)
{
        if (n > f->n) {
                f->p = realloc(f->p, n);
                if (!f->p)
                        abort();
                memset(f->p + f->n, 0, n - f->n);
        }
        f->n = n;
}

static void content_put(struct content *f, const struct crash_op *op, size_t from, size_t to)
{
        if (from >= to)
                return;
        if (f->n < (size_t)op->at + to)
                content_resize(f, (size_t)op->at + to);
        memcpy(f->p + op->at + from, op->data + from, to - from);
}

static void content_apply(struct content *f, const struct crash_op *op)
{
        if (op->kind == OP_WRITE)
                content_put(f, op, 0, op->n);
        else
                content_resize(f, (size_t)op->at);
}

/* Where the block that holds the write's byte `from` ends, counted from the write's start. */
static size_t block_end(const struct crash_op *op, size_t from, size_t block)
{
        size_t end = ((size_t)op->at + from) / block * block + block - (size_t)op->at;

        return end < op->n ? end : op->n;
}

/* Bytes of a write before a block boundary inside it; 0 when it has none. */
static size_t cut_of(const struct world *w, size_t i, size_t block)
{
        const struct crash_op *op = &w->c->ops[i];
        size_t cuts = 0;

        for (size_t at = block_end(op, 0, block); at < op->n; at = block_end(op, at, block))
                cuts++;
        if (cuts == 0)
                return 0;
        size_t pick = chance(w, i * 2) % cuts;
        size_t at = block_end(op, 0, block);
        while (pick-- > 0)
                at = block_end(op, at, block);
        return at;
}

static void tear(const struct world *w, struct content *f, size_t i, size_t block, bool nuls)
{
        const struct crash_op *op = &w->c->ops[i];

        if (op->kind != OP_WRITE)
                return;
        content_put(f, op, 0, cut_of(w, i, block));
        if (nuls && f->n < (size_t)op->at + op->n)
                content_resize(f, (size_t)op->at + op->n);
}

/* The last operation alone; of an only write, its later blocks. */
static void apply_last(struct content *f, const struct crash_op *op, bool only)
{
        size_t from = 0;

        if (only && op->kind == OP_WRITE) {
                from = block_end(op, 0, 512);
                if (from == op->n)
                        from = 0;
        }
        if (op->kind == OP_WRITE)
                content_put(f, op, from, op->n);
        else
                content_apply(f, op);
}

static void apply_by_chance(const struct world *w, struct content *f, size_t i)
{
        const struct crash_op *op = &w->c->ops[i];
        uint64_t luck = chance(w, i * 2);

        if (op->kind == OP_TRUNCATE) {
                if (luck & 1)
                        content_apply(f, op);
                return;
        }
        size_t block = luck & 1 ? 512 : 4096;
        for (size_t at = 0; at < op->n;) {
                size_t to = block_end(op, at, block);
                if (seed_mix(luck ^ (at + 1) << 8) & 1)
                        content_put(f, op, at, to);
                at = to;
        }
        if ((luck & 2) && f->n < (size_t)op->at + op->n)
                content_resize(f, (size_t)op->at + op->n);
}

static enum bytes_fate bytes_fate(const struct world *w, size_t object)
{
        if (w->state < CRASH_RANDOM)
                return fates[w->state].bytes;
        return (enum bytes_fate)(chance(w, ~(uint64_t)object) % BYTES_FATES);
}

static size_t size_after(const struct crashfs *c, size_t end, size_t object)
{
        size_t n = 0;

        for (size_t i = 0; i < end; i++) {
                const struct crash_op *op = &c->ops[i];
                if (op->object != object)
                        continue;
                if (op->kind == OP_TRUNCATE)
                        n = (size_t)op->at;
                else if (op->kind == OP_WRITE && n < (size_t)op->at + op->n)
                        n = (size_t)op->at + op->n;
        }
        return n;
}

static void apply_unsynced(
    const struct world *w, struct content *f, size_t object, size_t i, size_t left, size_t total)
{
        const struct crash_op *op = &w->c->ops[i];

        switch (bytes_fate(w, object)) {
        case BYTES_ALL:
                content_apply(f, op);
                break;
        case BYTES_TORN_512:
        case BYTES_TORN_512_NULS:
        case BYTES_TORN_4096:
        case BYTES_TORN_4096_NULS:
                if (left > 0)
                        content_apply(f, op);
                else
                        tear(w, f, i, bytes_fate(w, object) <= BYTES_TORN_512_NULS ? 512 : 4096,
                            bytes_fate(w, object) == BYTES_TORN_512_NULS ||
                                bytes_fate(w, object) == BYTES_TORN_4096_NULS);
                break;
        case BYTES_LAST:
                if (left == 0)
                        apply_last(f, op, total == 1);
                break;
        case BYTES_SIZE:
                if (left == 0)
                        content_resize(f, size_after(w->c, w->end, object));
                break;
        case BYTES_BLOCKS:
                apply_by_chance(w, f, i);
                break;
        default:
                break;
        }
}

static bool is_bytes_op(const struct crash_op *op, size_t object)
{
        return op->object == object && (op->kind == OP_WRITE || op->kind == OP_TRUNCATE);
}

/* Durable operations of a file come before its unsynced ones, since a sync covers all before. */
static struct content settle_bytes(const struct world *w, size_t object)
{
        struct content f = {NULL, 0};
        size_t total = 0;
        size_t seen = 0;

        for (size_t i = 0; i < w->end; i++)
                total += is_bytes_op(&w->c->ops[i], object) && !w->durable[i];
        for (size_t i = 0; i < w->end; i++) {
                if (!is_bytes_op(&w->c->ops[i], object))
                        continue;
                if (w->durable[i])
                        content_apply(&f, &w->c->ops[i]);
                else
                        apply_unsynced(w, &f, object, i, total - ++seen, total);
        }
        return f;
}

/* ---- onto the disk ---- */

static int put_file(const struct world *w, int dir, const struct entry *e)
{
        const struct fs *fs = fs_real();
        struct content f = settle_bytes(w, e->object);

        int fd = fs->open(fs, dir, e->name, O_CREAT | O_EXCL | O_WRONLY, 0600);
        int rc = fd < 0 ? fd : fs_write_all(fs, fd, f.p, f.n);
        if (fd >= 0)
                fs->close(fs, fd);
        free(f.p);
        return rc;
}

static int put_dir(const struct world *w, int dir, size_t object)
{
        const struct fs *fs = fs_real();
        int rc = 0;

        for (size_t i = 0; i < w->entry_count && rc == 0; i++) {
                const struct entry *e = &w->entries[i];
                if (e->dir != object)
                        continue;
                if (!w->c->objects[e->object].is_dir) {
                        rc = put_file(w, dir, e);
                        continue;
                }
                rc = fs->mkdir(fs, dir, e->name, 0700);
                int fd = rc < 0 ? rc : fs->open(fs, dir, e->name, O_RDONLY | O_DIRECTORY, 0);
                rc = fd < 0 ? fd : put_dir(w, fd, e->object);
                if (fd >= 0)
                        fs->close(fs, fd);
        }
        return rc;
}

static struct world world_at(const struct crashfs *c, size_t k, int state, uint64_t seed)
{
        struct world w = {.c = c, .end = c->base + k, .state = state, .seed = seed};

        if (w.end > c->count)
                w.end = c->count;
        mark_durable(&w);
        return w;
}

static void world_release(struct world *w)
{
        free(w->durable);
        free(w->entries);
}

int crashfs_states(const struct crashfs *c, size_t k, int random)
{
        struct world w = world_at(c, k, 0, 0);
        int n = anything_unsynced(&w) ? CRASH_RANDOM + random : 1;

        world_release(&w);
        return n;
}

int crashfs_crash(const struct crashfs *c, size_t k, int state, uint64_t seed, const char *into)
{
        const struct fs *fs = fs_real();

        int dir = fs->open_root(fs, into, false);
        if (dir < 0)
                return dir;
        struct world w = world_at(c, k, state, seed);
        settle_names(&w);
        int rc = put_dir(&w, dir, 0);
        world_release(&w);
        fs->close(fs, dir);
        return rc;
}

void crashfs_describe(const struct crashfs *c, size_t k, int state, char *out, size_t n)
{
        const char *words = state < CRASH_RANDOM ? fates[state].words : "by chance";

        if (k == 0 || c->base + k > c->count) {
                snprintf(out, n, "crash before the first call, %s", words);
                return;
        }
        const struct crash_op *op = &c->ops[c->base + k - 1];
        snprintf(out, n, "crash after call %zu (%s %s), state %d: %s", k, op->call,
            op->name ? op->name : c->objects[op->object].name, state, words);
}

/* In memory rather than on the disk, where there is such a place: a sweep makes thousands. The
 * runner names a place that it removes even if a test dies in the middle. */
static int sweep_dir(char *out, size_t n)
{
        const char *ram = getenv("STENO_TEST_RAM");
        const char *shm = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

        snprintf(out, n, "%s/steno-crash-XXXXXX", ram && *ram ? ram : shm);
        return mkdtemp(out) ? 0 : -errno;
}

int crashfs_sweep(const struct crashfs *c, uint64_t seed, int random, int every,
    crashfs_check check, void *ctx, size_t *made)
{
        const struct fs *fs = fs_real();
        char top[256];
        char dir[300];
        char words[400];
        size_t count = 0;

        int rc = sweep_dir(top, sizeof(top));
        int at = rc < 0 ? rc : fs->open_root(fs, top, false);
        if (at < 0)
                return at;
        snprintf(dir, sizeof(dir), "%s/state", top);
        for (size_t k = seed % (uint64_t)every; k <= crashfs_calls(c) && rc == 0;
             k += (size_t)every) {
                int states = crashfs_states(c, k, random);
                for (int s = 0; s < states && rc == 0; s++) {
                        rc = fs->mkdir(fs, at, "state", 0700);
                        if (rc == 0)
                                rc = crashfs_crash(c, k, s, seed, dir);
                        if (rc < 0)
                                break;
                        count++;
                        rc = check(ctx, dir, k, s);
                        if (rc != 0) {
                                crashfs_describe(c, k, s, words, sizeof(words));
                                printf("# %s\n", words);
                        }
                        fs_remove_tree(fs, at, "state");
                }
        }
        fs->close(fs, at);
        rmdir(top);
        if (made)
                *made = count;
        return rc;
}
