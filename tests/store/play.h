/*
 * play.h - work on a store that is written down while it is done, so that whatever a crash leaves
 * can be judged afterwards.
 *
 * A play acts through the public API on any struct fs, and notes for every batch what was sent,
 * when it was begun and when it was acknowledged (in calls of the crashfs). play_check opens what
 * is in a directory and holds it to the promise: every acknowledged batch is there byte for byte,
 * once and in order; no batch is half there; seqs have no gap; the next append works; sending
 * everything again converges.
 */
#ifndef STORE_PLAY_H
#define STORE_PLAY_H

#include <pthread.h>

#include "base/env.h"
#include "support/crashfs.h"
#include "steno.h"

#define PLAY_BATCHES 256
#define PLAY_CONVS 8
#define PLAY_TITLES 16

struct play_batch {
        int conv;
        int count;
        char *json;  /* what is sent */
        char **want; /* what must be read, one a record */
        char kind[12];
        char target[24];
        char key[24]; /* made ids need one to be sent again */
        int durability;
        bool refused;       /* was meant to be, and was */
        size_t begun;       /* calls before it */
        size_t acked;       /* calls when its receipt came; SIZE_MAX: never */
        uint64_t first_seq; /* of the receipt */
        int late;           /* stored when it was sent again: comes behind all before that */
};

struct play_title {
        int conv;
        int number;
        size_t begun;
        size_t acked;
};

struct play_conv {
        char id[24];
        size_t acked; /* creation; 0 for those that were there */
        size_t begun;
        bool tried;
};

struct play {
        struct env env;
        char root[256];
        size_t (*calls)(void *ctx); /* how far the world has come; NULL: always 0 */
        void *calls_ctx;
        struct steno_store *store;
        struct play_conv convs[PLAY_CONVS];
        struct steno_conv *open[PLAY_CONVS];
        int conv_count;
        struct play_batch batches[PLAY_BATCHES];
        int batch_count;
        struct play_title titles[PLAY_TITLES];
        int title_count;
        pthread_mutex_t mutex;
        char boot[40];
        uint64_t chance; /* of env.random */
        /* Around every call of the library: for a sweep of failing allocations over all of them. */
        void (*alloc_start)(long n);
        bool (*alloc_stop)(void);
        long (*alloc_count)(void);
        long alloc_nth; /* 0: only counts */
        long alloc_seen;
        bool alloc_for_good;
        bool alloc_fired;
        bool concurrent;  /* batches stand in the order of their receipts, not of sending */
        bool strict;      /* what was refused must not be there */
        bool quiet;       /* failures of calls are expected: not printed */
        uint64_t damaged; /* records that are known to be unreadable in conversation 0 */
        const char *torn; /* bytes that a recovery must have moved to the quarantine */
        size_t torn_size;
        uint64_t pad; /* bytes of content of the next messages */
};

/* A fs like fs_real in which syncs cost nothing: for directories that no machine will crash on. */
const struct fs *play_fs(void);

/* Scratch directories go to memory where there is a file system for that, with room: STENO_TEST_RAM
 * of the runner, else /dev/shm unless STENO_TEST_TMP is set. Syncs are not real here. */
void play_in_memory(void);

void play_init(struct play *p, const struct fs *fs, const char *root);
void play_release(struct play *p);

int play_open(struct play *p);
void play_close(struct play *p);
/* Makes conversation `c` of the play, or opens it (with `there`). */
int play_create(struct play *p, int c);
int play_reopen(struct play *p, int c);

enum { PLAY_KEYED = 1, PLAY_EXPECT = 2, PLAY_ORPHAN = 4, PLAY_CALLS = 8 };
/* One batch of `count` messages; the return is steno_append's. */
int play_append(struct play *p, int c, int count, int durability, int flags);
int play_amend(struct play *p, int c, const char *kind, int target_batch);
/* Sends a batch again. *replayed may be NULL. */
int play_resend(struct play *p, int batch, bool *replayed);
int play_title(struct play *p, int c);

/* After a real power cut a log still has its inode. A crash state has a copy, beside which ids.idx
 * would be worth nothing: so the index is told the inode of the copy, if it knew that of the
 * original. */
void play_tell_inodes(const struct play *p, const char *dir);
/*
 * Judges what is in `dir` after a crash at call `k` (SIZE_MAX: everything that was acknowledged
 * counts). `power` says that the machine died: what was only acknowledged with process durability
 * may be gone. 0, or 1 with the reason in `why`.
 */
int play_check(struct play *p, const char *dir, size_t k, bool power, char why[400]);

#endif
