/* scenarios.c - see scenarios.h */
#include "scenarios.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api_store.h"
#include "store/files/conv.h"

#define LOG "projects/default/conversations/conv-0/messages.jsonl"
#define IDS "projects/default/conversations/conv-0/ids.idx"
#define META "projects/default/conversations/conv-0/meta.json"

/* Remembers the first failure and goes on. */
#define STEP(rc, call)                                                                             \
        do {                                                                                       \
                int step_rc = (call);                                                              \
                if ((rc) == 0)                                                                     \
                        (rc) = step_rc;                                                            \
        } while (0)

/* ---- beginnings ---- */

static int one_conversation(struct play *p)
{
        int rc = play_open(p);
        if (rc == 0)
                rc = play_create(p, 0);
        for (int i = 0; rc == 0 && i < 3; i++)
                rc = play_append(p, 0, 1, STENO_FULL, 0);
        play_close(p);
        return rc;
}

static int path_in(struct play *p, const char *name, char out[512])
{
        return snprintf(out, 512, "%s/%s", p->root, name) < 512 ? 0 : 1;
}

static int add_bytes(struct play *p, const char *name, const void *bytes, size_t n)
{
        char path[512];
        path_in(p, name, path);
        int fd = open(path, O_WRONLY | O_APPEND);
        int rc = fd < 0 || write(fd, bytes, n) != (ssize_t)n;
        close(fd);
        return rc;
}

static int torn_line(struct play *p)
{
        static const char torn[] = "{\"v\":1,\"seq\":4,\"id\":\"m9\",\"at\":\"2026-";
        int rc = one_conversation(p);
        p->torn = torn;
        p->torn_size = sizeof torn - 1;
        return rc ? rc : add_bytes(p, LOG, torn, sizeof torn - 1);
}

static int nul_tail(struct play *p)
{
        static const char nuls[5000];
        int rc = one_conversation(p);
        p->torn = nuls;
        p->torn_size = sizeof nuls;
        return rc ? rc : add_bytes(p, LOG, nuls, sizeof nuls);
}

/* The second of two records of a batch is missing: the first must not be visible. */
static int half_batch(struct play *p)
{
        char path[512];
        struct stat st, two;
        int rc = one_conversation(p);
        path_in(p, LOG, path);
        if (rc || stat(path, &st))
                return 1;
        rc = play_open(p);
        if (rc == 0)
                rc = play_reopen(p, 0);
        if (rc == 0)
                rc = play_append(p, 0, 2, STENO_FULL, 0);
        play_close(p);
        if (rc || stat(path, &two))
                return 1;
        off_t half = st.st_size + (two.st_size - st.st_size) / 2;
        rc = truncate(path, half + 20);
        path_in(p, IDS, path);
        unlink(path); /* its mark is about what was cut */
        p->batches[p->batch_count - 1].acked = SIZE_MAX;
        return rc;
}

/*
 * A torn record, followed by a whole one that was written with it. The next record is as long as
 * the torn one: if the cut were not synced before it is written, the old record behind it would
 * come back to life.
 */
static int torn_and_whole(struct play *p)
{
        char path[512];
        struct stat st;
        int rc = one_conversation(p);
        path_in(p, LOG, path);
        if (rc || stat(path, &st))
                return 1;
        rc = play_open(p);
        if (rc == 0)
                rc = play_reopen(p, 0);
        if (rc == 0)
                rc = play_append(p, 0, 1, STENO_PROCESS, 0);
        if (rc == 0)
                rc = play_append(p, 0, 1, STENO_PROCESS, 0);
        play_close(p);
        int fd = open(path, O_RDWR);
        if (rc || fd < 0 || pwrite(fd, "#", 1, st.st_size + 100) != 1)
                return 1;
        close(fd);
        path_in(p, IDS, path);
        unlink(path);
        p->batches[3].acked = p->batches[4].acked = SIZE_MAX;
        return 0;
}

/* A store that another process has begun to make: its folders are there, but not synced. */
static int empty_store(struct play *p)
{
        char path[512];
        int rc = play_open(p);
        play_close(p);
        path_in(p, "projects", path);
        return rc ? rc : rmdir(path);
}

static int no_ids(struct play *p)
{
        char path[512];
        int rc = one_conversation(p);
        path_in(p, IDS, path);
        unlink(path);
        return rc;
}

static int damage_in_the_middle(struct play *p)
{
        char path[512];
        int rc = one_conversation(p);
        path_in(p, LOG, path);
        int fd = open(path, O_RDWR);
        char byte = '#';
        if (rc || fd < 0 || pwrite(fd, &byte, 1, 220) != 1)
                return 1;
        close(fd);
        /* What was there before is only counted. */
        for (int i = 0; i < p->batch_count; i++)
                p->batches[i].refused = true;
        p->damaged = 3;
        return 0;
}

/* ---- work ---- */

static int enter(struct play *p, bool make)
{
        int rc = play_open(p);
        return rc ? rc : make ? play_create(p, 0) : play_reopen(p, 0);
}

static int single_appends(struct play *p)
{
        int rc = enter(p, true);
        for (int i = 0; i < 4; i++)
                STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        return rc;
}

static int large_messages(struct play *p)
{
        int rc = enter(p, true);
        p->pad = 6000;
        for (int i = 0; i < 3; i++)
                STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        p->pad = 40;
        return rc;
}

static int batches(struct play *p)
{
        int rc = enter(p, true);
        p->pad = 700;
        STEP(rc, play_append(p, 0, 5, STENO_FULL, 0));
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        STEP(rc, play_append(p, 0, 12, STENO_FULL, 0));
        p->pad = 40;
        return rc;
}

static int longer_then_shorter(struct play *p)
{
        int rc = enter(p, true);
        for (int i = 0; i < 5; i++) {
                p->pad = i % 2 ? 10 : 3000;
                STEP(rc, play_append(p, 0, 1 + i % 3, STENO_FULL, 0));
        }
        p->pad = 40;
        return rc;
}

struct sender {
        struct play *p;
        int conv;
        int rounds;
        int count;
        int rc;
};

static void *send_some(void *arg)
{
        struct sender *s = arg;
        for (int i = 0; i < s->rounds; i++)
                STEP(s->rc, play_append(s->p, s->conv, s->count, STENO_FULL, 0));
        return NULL;
}

static int at_once(struct play *p, int threads, int convs)
{
        pthread_t t[8];
        struct sender s[8];
        int rc = 0;
        p->concurrent = true;
        for (int i = 0; i < threads; i++) {
                s[i] = (struct sender){p, i % convs, 2, 1 + i % 3, 0};
                pthread_create(&t[i], NULL, send_some, &s[i]);
        }
        for (int i = 0; i < threads; i++) {
                pthread_join(t[i], NULL);
                STEP(rc, s[i].rc);
        }
        return rc;
}

static int groups(struct play *p)
{
        int rc = enter(p, true);
        return rc ? rc : at_once(p, 6, 1);
}

static int groups_on_two(struct play *p)
{
        int rc = enter(p, true);
        STEP(rc, play_create(p, 1));
        return rc ? rc : at_once(p, 4, 2);
}

static int keyed(struct play *p)
{
        int rc = enter(p, true);
        STEP(rc, play_append(p, 0, 2, STENO_FULL, PLAY_KEYED));
        STEP(rc, play_append(p, 0, 1, STENO_FULL, PLAY_KEYED));
        STEP(rc, play_resend(p, 0, NULL));
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        return rc;
}

static int replayed(struct play *p)
{
        int rc = enter(p, false);
        for (int i = 0; i < 3; i++)
                STEP(rc, play_resend(p, i, NULL));
        STEP(rc, play_append(p, 0, 2, STENO_FULL, 0));
        STEP(rc, play_resend(p, 3, NULL));
        return rc;
}

static int expecting(struct play *p)
{
        int rc = enter(p, true);
        for (int i = 0; i < 3; i++)
                STEP(rc, play_append(p, 0, 1 + i, STENO_FULL, PLAY_EXPECT));
        return rc;
}

static int amending(struct play *p)
{
        int rc = enter(p, true);
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        STEP(rc, play_amend(p, 0, "meta", 0));
        STEP(rc, play_amend(p, 0, "supersede", 1));
        STEP(rc, play_amend(p, 0, "delete", 0));
        return rc;
}

static int calling(struct play *p)
{
        int rc = enter(p, true);
        STEP(rc, play_append(p, 0, 2, STENO_FULL, PLAY_CALLS));
        int refused = play_append(p, 0, 1, STENO_FULL, PLAY_ORPHAN);
        STEP(rc, play_append(p, 0, 2, STENO_FULL, PLAY_CALLS));
        return rc ? rc : refused == 0;
}

static int creating(struct play *p)
{
        int rc = play_open(p);
        for (int i = 0; i < 3; i++)
                STEP(rc, play_create(p, i));
        return rc;
}

static int creating_and_appending(struct play *p)
{
        int rc = play_open(p);
        for (int i = 0; i < 3; i++) {
                STEP(rc, play_create(p, i));
                STEP(rc, play_append(p, i, 1 + i, STENO_FULL, 0));
        }
        return rc;
}

static int titles(struct play *p)
{
        int rc = enter(p, false);
        STEP(rc, play_title(p, 0));
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        STEP(rc, play_title(p, 0));
        STEP(rc, play_title(p, 0));
        return rc;
}

static int process_only(struct play *p)
{
        int rc = enter(p, false);
        for (int i = 0; i < 4; i++)
                STEP(rc, play_append(p, 0, 1 + i % 2, STENO_PROCESS, 0));
        return rc;
}

static int process_then_full(struct play *p)
{
        int rc = enter(p, false);
        STEP(rc, play_append(p, 0, 1, STENO_PROCESS, 0));
        STEP(rc, play_append(p, 0, 2, STENO_PROCESS, 0));
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        STEP(rc, play_append(p, 0, 3, STENO_PROCESS, 0));
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        return rc;
}

/* A process-durable append that is sent again with full durability must be synced then. */
static int process_replayed_full(struct play *p)
{
        int rc = enter(p, false);
        STEP(rc, play_append(p, 0, 2, STENO_PROCESS, 0));
        struct play_batch *b = &p->batches[p->batch_count - 1];
        size_t acked = b->acked;
        b->acked = SIZE_MAX;
        b->durability = STENO_FULL;
        STEP(rc, play_resend(p, p->batch_count - 1, NULL));
        if (b->acked == SIZE_MAX) {
                b->acked = acked; /* only the full durability was not acknowledged */
                b->durability = STENO_PROCESS;
        }
        return rc;
}

/* Closing a store syncs what was waiting for the background sync. */
static int process_then_close(struct play *p)
{
        int rc = enter(p, false);
        STEP(rc, play_append(p, 0, 1, STENO_PROCESS, 0));
        STEP(rc, play_append(p, 0, 1, STENO_PROCESS, 0));
        play_close(p);
        for (int i = 3; rc == 0 && i < 5; i++) {
                p->batches[i].durability = STENO_FULL;
                p->batches[i].acked = p->calls ? p->calls(p->calls_ctx) : 0;
        }
        return rc;
}

static int reopening(struct play *p)
{
        int rc = 0;
        for (int i = 0; rc == 0 && i < 3; i++) {
                rc = enter(p, i == 0);
                STEP(rc, play_append(p, 0, 1 + i, STENO_FULL, 0));
                play_close(p);
        }
        return rc;
}

/* Two stores in one process do what two processes would do, in a known order. */
static int two_handles(struct play *p)
{
        struct steno_store *first, *second;
        struct steno_conv *c1, *c2;
        int rc = enter(p, true);
        first = p->store;
        c1 = p->open[0];
        p->store = NULL;
        p->open[0] = NULL;
        STEP(rc, enter(p, false));
        second = p->store;
        c2 = p->open[0];
        for (int i = 0; i < 6; i++) {
                p->open[0] = i % 2 ? c2 : c1;
                STEP(rc, play_append(p, 0, 1 + i % 3, i == 3 ? STENO_PROCESS : STENO_FULL, 0));
                *(i % 2 ? &c2 : &c1) = p->open[0]; /* opened on the way, after a failure */
        }
        p->open[0] = c2;
        p->store = second;
        steno_conv_close(c1);
        steno_close(first);
        return rc;
}

static int two_appends(struct play *p)
{
        int rc = enter(p, false);
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        STEP(rc, play_append(p, 0, 2, STENO_FULL, 0));
        return rc;
}

static int append_the_half_again(struct play *p)
{
        int rc = enter(p, false);
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        return rc;
}

/* What a process had made and not synced before it died: the next writer has to sync it. */
static int unsynced_folders(struct play *p)
{
        const struct fs *fs = p->env.fs;
        int root = fs->open_root(fs, p->root, true);
        if (root < 0)
                return root;
        fs->mkdir(fs, root, "projects", 0700);
        int projects = fs->open(fs, root, "projects", O_RDONLY | O_DIRECTORY, 0);
        fs->mkdir(fs, projects, "default", 0700);
        int project = fs->open(fs, projects, "default", O_RDONLY | O_DIRECTORY, 0);
        fs->mkdir(fs, project, "conversations", 0700);
        fs->close(fs, project);
        fs->close(fs, projects);
        fs->close(fs, root);
        int rc = enter(p, true);
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        return rc;
}

/* A folder without a log, which a person made, or which another process has just made. */
static int folder_without_a_log(struct play *p)
{
        char path[512];
        int rc = play_open(p);
        STEP(rc, play_create(p, 0));
        play_close(p);
        path_in(p, LOG, path);
        unlink(path);
        path_in(p, META, path);
        unlink(path);
        return rc;
}

/* From here on ids.idx survives, as far as it goes. */
static int settle(struct play *p)
{
        return p->open[0] ? conv_settle_ids((struct files_conv *)p->open[0]->backend, NULL) : 0;
}

/* Buckets get entries after they were synced: these entries may be lost, the others not. */
static int lasting_ids(struct play *p)
{
        int rc = enter(p, true);
        for (int i = 0; i < 3; i++) {
                STEP(rc, play_append(p, 0, 20, STENO_FULL, i ? 0 : PLAY_KEYED));
                STEP(rc, settle(p));
                STEP(rc, play_append(p, 0, 3, STENO_FULL, PLAY_KEYED));
                play_close(p);
                STEP(rc, enter(p, false));
        }
        STEP(rc, play_amend(p, 0, "delete", 2));
        STEP(rc, settle(p));
        STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
        STEP(rc, play_amend(p, 0, "delete", 4));
        return rc;
}

/* An index whose entries are on the disk, in buckets with room. */
static int settled(struct play *p)
{
        int rc = enter(p, true);
        STEP(rc, play_append(p, 0, 20, STENO_FULL, 0));
        STEP(rc, settle(p));
        play_close(p);
        return rc;
}

/* Without a sync before it, the header may survive and cover entries that do not: their buckets are
 * then in an older state, whose seals are valid. */
static int lasting_ids_go_on(struct play *p)
{
        int rc = enter(p, false);
        for (int i = 0; i < 3; i++) {
                STEP(rc, play_append(p, 0, 2, STENO_FULL, 0));
                STEP(rc, settle(p));
        }
        return rc;
}

/* The table moves to a larger file, which is not synced, and then is. */
static int lasting_ids_grow(struct play *p)
{
        int rc = enter(p, true);
        for (int i = 0; i < 3; i++) {
                STEP(rc, play_append(p, 0, 60, STENO_FULL, 0));
                play_close(p); /* its entries are written */
                STEP(rc, enter(p, false));
                STEP(rc, play_append(p, 0, 1, STENO_FULL, 0));
                if (i != 1)
                        STEP(rc, settle(p));
        }
        STEP(rc, play_append(p, 0, 2, STENO_PROCESS, 0));
        STEP(rc, settle(p)); /* not yet: the log is not synced */
        play_close(p);
        return rc;
}

const struct scenario SCENARIOS[] = {
    {"single appends", NULL, single_appends},
    {"messages of several pages", NULL, large_messages},
    {"batches", NULL, batches},
    {"long and short ones in turn", NULL, longer_then_shorter},
    {"concurrent batches share a sync", NULL, groups},
    {"concurrent batches on two conversations", NULL, groups_on_two},
    {"idempotency keys", NULL, keyed},
    {"everything sent again", one_conversation, replayed},
    {"expected seqs", NULL, expecting},
    {"amendments", NULL, amending},
    {"calls, results and a refusal", NULL, calling},
    {"new conversations", NULL, creating},
    {"new conversations with messages", NULL, creating_and_appending},
    {"changed titles", one_conversation, titles},
    {"process durability alone", one_conversation, process_only},
    {"process durability, then a full append", one_conversation, process_then_full},
    {"process durability, sent again in full", one_conversation, process_replayed_full},
    {"process durability, then close", one_conversation, process_then_close},
    {"the store opened again", NULL, reopening},
    {"two handles on one conversation", NULL, two_handles},
    {"recovery from a torn line", torn_line, two_appends},
    {"recovery from NULs", nul_tail, two_appends},
    {"recovery from a torn record before a whole one", torn_and_whole, append_the_half_again},
    {"recovery from half a batch", half_batch, append_the_half_again},
    {"without its index", no_ids, two_appends},
    {"an index that lasts", NULL, lasting_ids},
    {"an index that lasts, and grows", NULL, lasting_ids_grow},
    {"an index that lasted, and goes on", settled, lasting_ids_go_on},
    {"damage in the middle", damage_in_the_middle, two_appends},
    {"folders that somebody else made and did not sync", empty_store, unsynced_folders},
    {"a folder without a log", folder_without_a_log, two_appends},
};
const int SCENARIO_COUNT = sizeof SCENARIOS / sizeof *SCENARIOS;
