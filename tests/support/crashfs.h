/*
 * crashfs.h - a power cut at every call.
 *
 * crashfs_fs() is a struct fs over a real scratch directory. It passes every call on and writes
 * down those that change something: create, write (with its bytes), truncate, rename, unlink,
 * mkdir, fsync, fdatasync. From that log crashfs_crash() makes, in another directory, what a disk
 * may hold when the power went off after the k-th of these calls:
 *
 * - What was synced is there for certain. fsync or fdatasync of a file keeps its bytes and its
 *   size, not its name; fsync of a directory keeps its names, not the bytes behind them.
 * - What was not synced is there, or not, or in part: writes torn at 512 bytes or 4 KiB, later
 *   ones present and earlier ones absent (NULs in their place where the file grew), the size
 *   grown and only NULs in it. Names are independent of bytes and of each other.
 * - A rename is one event, and lasts once the directory of the new name is synced.
 *
 * What the scratch directory held when crashfs_new() was called counts as synced. Files that are
 * made behind crashfs's back (by SQLite, say) are passed through and never appear in a crash.
 *
 * The usual test does its work once, notes crashfs_calls() after each acknowledgement, and then
 * opens every state of every crash point:
 *
 *      struct crashfs *c = crashfs_new(fs_real(), scratch);
 *      ... env.fs = crashfs_fs(c); work; acked[i] = crashfs_calls(c); ...
 *      crashfs_sweep(c, seed.state, 4, 1, check, ctx, NULL);
 *
 * Calls are thread-safe; the log is of one process.
 */
#ifndef SUPPORT_CRASHFS_H
#define SUPPORT_CRASHFS_H

#include <stddef.h>
#include <stdint.h>

#include "base/fs.h"

struct crashfs;

/* `root` must exist; `under` works on real files (fs_real, or a wrapper of it). NULL when out of
 * memory or `root` cannot be read. */
struct crashfs *crashfs_new(const struct fs *under, const char *root);
void crashfs_free(struct crashfs *c);
/* Lives as long as `c`. open_root takes `root` itself or a path that begins with it. */
const struct fs *crashfs_fs(struct crashfs *c);

/* How many calls are in the log; a crash point is 0 (before the first) to this. */
size_t crashfs_calls(const struct crashfs *c);

/* The states that are always made, where anything is unsynced; from CRASH_RANDOM on, seeded mixes
 * of all of them, file by file and name by name. */
enum crash_state {
        CRASH_NOTHING,       /* nothing unsynced survives */
        CRASH_EVERYTHING,    /* everything does */
        CRASH_NAMES_ONLY,    /* names do, bytes do not: empty files */
        CRASH_BYTES_ONLY,    /* bytes do, names do not */
        CRASH_TORN_512,      /* each file's last write is cut at a multiple of 512 */
        CRASH_TORN_512_NULS, /* and its size is that of the whole write */
        CRASH_TORN_4096,
        CRASH_TORN_4096_NULS,
        CRASH_REORDERED,  /* each file's last write only (or its later blocks); names survive */
        CRASH_NAMES_LAST, /* only the last change of a name; bytes survive */
        CRASH_SIZES,      /* sizes as after all writes, NULs for bytes; names survive */
        CRASH_RANDOM,
};

/* States worth making at crash point k: 1 where nothing is unsynced, else CRASH_RANDOM + random. */
int crashfs_states(const struct crashfs *c, size_t k, int random);

/* Makes a state in `into`, an empty directory. The same arguments give the same bytes. 0 or a
 * negative errno. */
int crashfs_crash(const struct crashfs *c, size_t k, int state, uint64_t seed, const char *into);

/* "crash after call 17 (fdatasync messages.jsonl), torn at 512 bytes": for a failing test. */
void crashfs_describe(const struct crashfs *c, size_t k, int state, char *out, size_t n);

/*
 * Every state of every crash point, or of one in `every`, which one the seed says. Each is made in
 * a fresh directory that is removed afterwards. `check` returns 0 when the state is as it should
 * be; its first other value ends the sweep and is returned, after the state was described on stdout
 * as a comment. Negative errno when a state could not be made. *made (may be NULL) counts the
 * states.
 */
typedef int (*crashfs_check)(void *ctx, const char *dir, size_t k, int state);
int crashfs_sweep(const struct crashfs *c, uint64_t seed, int random, int every,
    crashfs_check check, void *ctx, size_t *made);

#endif
