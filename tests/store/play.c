/* play.c - see play.h */
#include "play.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "support/seed.h"
#include "api/api_store.h"

#define PLAY_ROOM ((uint64_t)2 << 30) /* bytes; a container may have little memory for files */

/* ---- the world ---- */

static int no_sync(const struct fs *self, int fd)
{
        (void)self;
        (void)fd;
        return 0;
}

const struct fs *play_fs(void)
{
        static struct fs table;
        static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&once);
        if (!table.open) {
                table = *fs_real();
                table.fsync = table.fdatasync = no_sync;
        }
        pthread_mutex_unlock(&once);
        return &table;
}

void play_in_memory(void)
{
        const char *given = getenv("STENO_TEST_RAM");
        const char *ram = given && *given ? given : "/dev/shm";
        struct statvfs room;
        if (access(ram, W_OK) == 0 && statvfs(ram, &room) == 0 &&
            (uint64_t)room.f_bavail * room.f_frsize >= PLAY_ROOM)
                setenv("STENO_TEST_TMP", ram, ram == given);
}

static struct play *of(const struct env *env)
{
        return (struct play *)(uintptr_t)env;
}

static void play_random(const struct env *env, void *to, size_t n)
{
        struct play *p = of(env);
        pthread_mutex_lock(&p->mutex);
        for (size_t i = 0; i < n; i++)
                ((unsigned char *)to)[i] = (unsigned char)(seed_mix(++p->chance) >> 24);
        pthread_mutex_unlock(&p->mutex);
}

static void play_boot(const struct env *env, char out[40])
{
        memcpy(out, of(env)->boot, 40);
}

void play_init(struct play *p, const struct fs *fs, const char *root)
{
        memset(p, 0, sizeof *p);
        p->env = *env_real(); /* first member: env callbacks find the play */
        p->env.fs = fs;
        p->env.random = play_random;
        p->env.boot = play_boot;
        snprintf(p->boot, sizeof p->boot, "first");
        snprintf(p->root, sizeof p->root, "%s", root);
        pthread_mutex_init(&p->mutex, NULL);
        p->pad = 40;
}

void play_release(struct play *p)
{
        play_close(p);
        for (int i = 0; i < p->batch_count; i++) {
                struct play_batch *b = &p->batches[i];
                for (int k = 0; k < b->count; k++)
                        free(b->want[k]);
                free(b->want);
                free(b->json);
        }
        pthread_mutex_destroy(&p->mutex);
}

static size_t calls(struct play *p)
{
        return p->calls ? p->calls(p->calls_ctx) : 0;
}

static int told(struct play *p, const char *what, int rc, const struct steno_error *err)
{
        if (rc && !p->quiet)
                printf("# %s: %d: %s\n", what, rc, err->msg);
        return rc;
}

/* ---- acting ---- */

static void allocations_on(struct play *p)
{
        if (!p->alloc_start)
                return;
        long left = p->alloc_nth - p->alloc_seen;
        if (p->alloc_nth && left < 1)
                left = p->alloc_for_good ? 1 : LONG_MAX;
        p->alloc_start(p->alloc_nth ? left : 0);
}

static void allocations_off(struct play *p)
{
        if (!p->alloc_start)
                return;
        p->alloc_seen += p->alloc_count();
        p->alloc_fired = p->alloc_stop() || p->alloc_fired;
}

/* A call of the library with the allocations under watch. */
#define WATCH(p, rc, call)                                                                         \
        do {                                                                                       \
                allocations_on(p);                                                                 \
                (rc) = (call);                                                                     \
                allocations_off(p);                                                                \
        } while (0)

int play_open(struct play *p)
{
        struct steno_error err = {0};
        int rc;
        WATCH(p, rc, api_store_open_in(&p->env, p->root, NULL, &p->store, &err));
        return told(p, "open", rc, &err);
}

void play_close(struct play *p)
{
        for (int i = 0; i < PLAY_CONVS; i++) {
                steno_conv_close(p->open[i]);
                p->open[i] = NULL;
        }
        steno_close(p->store);
        p->store = NULL;
}

static void know(struct play *p, int c)
{
        if (p->conv_count <= c)
                p->conv_count = c + 1;
        snprintf(p->convs[c].id, sizeof p->convs[c].id, "conv-%d", c);
}

int play_create(struct play *p, int c)
{
        struct steno_error err = {0};
        know(p, c);
        p->convs[c].begun = calls(p);
        p->convs[c].acked = SIZE_MAX;
        p->convs[c].tried = true;
        if (!p->store)
                return STENO_ENOTFOUND;
        int rc;
        WATCH(p, rc,
            steno_conv_create(
                p->store, NULL, p->convs[c].id, "{\"title\":\"title 0\"}", &p->open[c], &err));
        if (rc == 0)
                p->convs[c].acked = calls(p);
        return told(p, "create", rc, &err);
}

int play_reopen(struct play *p, int c)
{
        struct steno_error err = {0};
        know(p, c);
        if (!p->convs[c].tried)
                p->convs[c].acked = SIZE_MAX;
        p->convs[c].tried = true;
        if (!p->store)
                return STENO_ENOTFOUND;
        steno_conv_close(p->open[c]);
        p->open[c] = NULL;
        int rc;
        WATCH(p, rc, steno_conv_open(p->store, NULL, p->convs[c].id, &p->open[c], &err));
        return told(p, "open conversation", rc, &err);
}

static char *message_text(struct play *p, int batch, int i, int flags)
{
        char *text = NULL;
        char *pad = malloc(p->pad + 1);
        char id[48];
        memset(pad, 'a' + batch % 26, p->pad);
        pad[p->pad] = '\0';
        if (flags & PLAY_KEYED)
                id[0] = '\0';
        else
                snprintf(id, sizeof id, "\"id\":\"m%d.%d\",", batch, i);
        int n;
        if (flags & PLAY_CALLS && i == 0)
                n = asprintf(&text,
                    "{%s\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"call_0\","
                    "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
                    id);
        else if (flags & (PLAY_CALLS | PLAY_ORPHAN))
                n = asprintf(&text,
                    "{%s\"role\":\"tool\",\"tool_call_id\":\"%s\",\"content\":\"%s\"}", id,
                    flags & PLAY_ORPHAN ? "nobody" : "call_0", pad);
        else
                n = asprintf(&text,
                    "{%s\"role\":\"user\",\"content\":\"%s \\u00e9\\ud83d\\ude00 \xc3\xa9 %d.%d\","
                    "\"n\":1.50e+2}",
                    id, pad, batch, i);
        free(pad);
        return n < 0 ? NULL : text;
}

static int new_batch(struct play *p, int c, int count)
{
        pthread_mutex_lock(&p->mutex);
        int n = p->batch_count++;
        pthread_mutex_unlock(&p->mutex);
        if (n >= PLAY_BATCHES)
                abort();
        struct play_batch *b = &p->batches[n];
        *b = (struct play_batch){.conv = c, .count = count, .acked = SIZE_MAX};
        b->want = calloc((size_t)count, sizeof *b->want);
        return n;
}

static int send(struct play *p, int n, int flags, uint64_t expected, bool *replayed)
{
        struct play_batch *b = &p->batches[n];
        if (!p->open[b->conv] && (!p->store || play_reopen(p, b->conv)))
                return STENO_ENOTFOUND;
        struct steno_receipt *r = NULL;
        struct steno_error err = {0};
        struct steno_append_options opt = {.size = sizeof opt,
            .durability = b->durability,
            .expected_seq = expected,
            .flags = flags & PLAY_EXPECT ? STENO_EXPECT_SEQ : 0,
            .idempotency_key = b->key[0] ? b->key : NULL};
        int rc;
        if (b->kind[0])
                WATCH(p, rc,
                    steno_amend(p->open[b->conv], b->kind, b->target, b->json,
                        b->json ? strlen(b->json) : 0, &opt, &r, &err));
        else
                WATCH(p, rc,
                    steno_append(p->open[b->conv], b->json, strlen(b->json), &opt, &r, &err));
        if (rc == 0) {
                if (b->first_seq && b->first_seq != steno_receipt_first_seq(r) &&
                    steno_receipt_replayed(r)) {
                        printf("# batch %d was at %llu and is replayed from %llu\n", n,
                            (unsigned long long)b->first_seq,
                            (unsigned long long)steno_receipt_first_seq(r));
                        rc = 1;
                }
                b->first_seq = steno_receipt_first_seq(r);
                if (replayed)
                        *replayed = steno_receipt_replayed(r);
        }
        steno_receipt_free(r);
        return told(p, "append", rc, &err);
}

int play_append(struct play *p, int c, int count, int durability, int flags)
{
        uint64_t last = 0;
        int n = new_batch(p, c, count);
        struct play_batch *b = &p->batches[n];
        size_t len = 2;
        b->durability = durability;
        for (int i = 0; i < count; i++) {
                b->want[i] = message_text(p, n, i, flags);
                len += strlen(b->want[i]) + 2;
        }
        b->json = malloc(len + 1);
        char *at = b->json;
        *at++ = '[';
        for (int i = 0; i < count; i++)
                at += sprintf(at, "%s%s", i ? ", " : "", b->want[i]);
        *at++ = ']';
        *at = '\0';
        if (flags & PLAY_KEYED)
                snprintf(b->key, sizeof b->key, "key-%d", n);
        if (flags & PLAY_EXPECT && p->open[c] && steno_conv_last_seq(p->open[c], &last, NULL))
                return 1;
        b->begun = calls(p);
        int rc = send(p, n, flags, last, NULL);
        if (rc == 0)
                b->acked = calls(p);
        else if (flags & PLAY_ORPHAN)
                b->refused = true;
        return rc;
}

int play_amend(struct play *p, int c, const char *kind, int target)
{
        int n = new_batch(p, c, 1);
        struct play_batch *b = &p->batches[n];
        snprintf(b->kind, sizeof b->kind, "%s", kind);
        snprintf(b->target, sizeof b->target, "m%d.0", target);
        snprintf(b->key, sizeof b->key, "key-%d", n);
        if (strcmp(kind, "delete") == 0)
                b->want[0] = strdup("null");
        else if (strcmp(kind, "meta") == 0)
                b->want[0] = strdup("{\"seen\":true}");
        else
                b->want[0] = message_text(p, n, 0, 0);
        if (strcmp(kind, "delete") != 0)
                b->json = strdup(b->want[0]);
        b->begun = calls(p);
        int rc = send(p, n, 0, 0, NULL);
        if (rc == 0)
                b->acked = calls(p);
        return rc;
}

int play_resend(struct play *p, int batch, bool *replayed)
{
        bool was_there = true;
        int rc = send(p, batch, 0, 0, &was_there);
        if (rc == 0 && p->batches[batch].acked == SIZE_MAX) {
                p->batches[batch].acked = calls(p);
                if (!was_there)
                        p->batches[batch].late = p->batch_count * 2 - 1;
        }
        if (replayed)
                *replayed = was_there;
        return rc;
}

int play_title(struct play *p, int c)
{
        struct steno_error err = {0};
        char patch[40];
        if (!p->open[c] && (!p->store || play_reopen(p, c)))
                return STENO_ENOTFOUND;
        struct play_title *t = &p->titles[p->title_count++];
        *t = (struct play_title){.conv = c, .number = p->title_count, .acked = SIZE_MAX};
        snprintf(patch, sizeof patch, "{\"title\":\"title %d\"}", t->number);
        t->begun = calls(p);
        int rc;
        WATCH(p, rc, steno_conv_set_meta(p->open[c], patch, &err));
        if (rc == 0)
                t->acked = calls(p);
        return told(p, "title", rc, &err);
}

/* ---- judging ---- */

struct judge {
        struct play *p;
        int conv;
        size_t k;
        bool power;
        int order[PLAY_BATCHES]; /* batches of the conversation in the order that they must have */
        int order_count;
        int at;     /* in order */
        int inside; /* records of it seen */
        uint64_t seq;
        int must;     /* batches that must be there */
        int hopeless; /* amendments that cannot be made any more */
        char *why;
};

static int fault(struct judge *j, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        int n = snprintf(j->why, 400, "conversation %d: ", j->conv);
        vsnprintf(j->why + n, 400 - (size_t)n, fmt, ap);
        va_end(ap);
        return 1;
}

/* Is this the first message of the batch at `place` in the order? */
static bool begins(const struct judge *j, int place, const char *m, size_t n)
{
        const char *want = j->p->batches[j->order[place]].want[0];
        return strlen(want) == n && memcmp(m, want, n) == 0;
}

/* Nobody knows the order of batches that were sent at once and got no receipt: the batch that
 * begins in this way takes the next place. */
static bool bring(struct judge *j, const char *m, size_t n)
{
        int from = j->at;
        if (!j->p->concurrent || j->p->batches[j->order[from]].acked <= j->k)
                return false;
        for (int i = from + 1; i < j->order_count; i++) {
                if (j->p->batches[j->order[i]].acked <= j->k || !begins(j, i, m, n))
                        continue;
                int moved = j->order[i];
                memmove(&j->order[from + 1], &j->order[from], (size_t)(i - from) * sizeof moved);
                j->order[from] = moved;
                return true;
        }
        return false;
}

static int judge_record(void *ctx, const struct steno_record *r)
{
        struct judge *j = ctx;
        if (strcmp(steno_record_kind(r), "damaged") == 0) {
                if (j->conv != 0 || j->p->damaged == 0)
                        return fault(
                            j, "damage at seq %llu", (unsigned long long)steno_record_seq(r));
                j->seq++;
                return 0;
        }
        if (steno_record_seq(r) != j->seq + 1)
                return fault(j, "seq %llu follows %llu", (unsigned long long)steno_record_seq(r),
                    (unsigned long long)j->seq);
        j->seq++;
        if (j->conv == 0 && j->seq <= j->p->damaged)
                return 0; /* what the scenario began with */
        if (j->inside == 0) {
                char *m;
                size_t n;
                if (steno_record_message(r, &m, &n, NULL))
                        return fault(j, "seq %llu cannot be read", (unsigned long long)j->seq);
                while (j->at < j->order_count && !begins(j, j->at, m, n) && !bring(j, m, n) &&
                       j->p->batches[j->order[j->at]].acked > j->k)
                        j->at++; /* was not kept; what follows it was */
                steno_free(m);
        }
        if (j->at == j->order_count)
                return fault(j, "seq %llu was never sent", (unsigned long long)j->seq);
        struct play_batch *b = &j->p->batches[j->order[j->at]];
        char *m;
        size_t n;
        if (steno_record_message(r, &m, &n, NULL))
                return fault(j, "seq %llu cannot be read", (unsigned long long)j->seq);
        bool same = strlen(b->want[j->inside]) == n && memcmp(m, b->want[j->inside], n) == 0;
        if (!same) {
                fault(j, "seq %llu should be record %d of batch %d: %.60s, is %.60s",
                    (unsigned long long)j->seq, j->inside, j->order[j->at], b->want[j->inside], m);
                steno_free(m);
                return 1;
        }
        steno_free(m);
        if (j->p->strict && b->acked > j->k)
                return fault(j, "batch %d was refused and is there", j->order[j->at]);
        if (++j->inside == b->count) {
                j->inside = 0;
                j->at++;
        }
        return 0;
}

static int by_seq(const void *a, const void *b, void *ctx)
{
        struct play *p = ctx;
        const struct play_batch *x = &p->batches[*(const int *)a],
                                *y = &p->batches[*(const int *)b];
        if (!p->concurrent) {
                int px = x->late ? x->late : *(const int *)a * 2;
                int py = y->late ? y->late : *(const int *)b * 2;
                return px - py;
        }
        uint64_t sx = x->first_seq ? x->first_seq : UINT64_MAX;
        uint64_t sy = y->first_seq ? y->first_seq : UINT64_MAX;
        if (sx != sy)
                return sx < sy ? -1 : 1;
        return *(const int *)a - *(const int *)b;
}

/* Where each batch of the conversation must be: by seq, those without a receipt last. */
static void judge_order(struct judge *j)
{
        struct play *p = j->p;
        for (int i = 0; i < p->batch_count; i++)
                if (p->batches[i].conv == j->conv && !p->batches[i].refused)
                        j->order[j->order_count++] = i;
        qsort_r(j->order, (size_t)j->order_count, sizeof *j->order, by_seq, p);
        bool later_synced = false;
        for (int i = j->order_count - 1; i >= 0; i--) {
                struct play_batch *b = &p->batches[j->order[i]];
                if (b->acked <= j->k && (b->durability == STENO_FULL || !j->power))
                        later_synced = true;
                if (later_synced) {
                        j->must = i + 1;
                        break;
                }
        }
}

static int read_all(struct judge *j, struct steno_conv *conv)
{
        struct steno_error err = {0};
        uint64_t last;
        j->at = j->inside = 0;
        j->seq = 0;
        int rc = steno_read(conv, 0, 0, judge_record, j, &err);
        if (rc < 0)
                return fault(j, "reading: %s", err.msg);
        if (rc)
                return rc;
        if (j->inside)
                return fault(j, "batch %d is half there", j->order[j->at]);
        if (steno_conv_last_seq(conv, &last, &err) || last != j->seq)
                return fault(j, "the last seq is %llu, %llu were read", (unsigned long long)last,
                    (unsigned long long)j->seq);
        return 0;
}

static int judge_title(struct judge *j, struct steno_conv *conv)
{
        struct steno_error err = {0};
        char *meta, *title;
        struct json doc;
        if (!j->p->convs[j->conv].acked && !j->p->title_count)
                return 0;
        if (steno_conv_meta(conv, &meta, &err))
                return fault(j, "meta: %s", err.msg);
        json_init(&doc);
        int rc = json_parse(&doc, meta, strlen(meta), NULL, &err);
        title = rc ? NULL : json_dup_string(&doc, json_get(&doc, 0, "title"));
        int number = title ? atoi(title + 6) : -1;
        json_release(&doc);
        steno_free(meta);
        free(title);
        int least = 0, most = 0;
        for (int i = 0; i < j->p->title_count; i++) {
                struct play_title *t = &j->p->titles[i];
                if (t->conv != j->conv)
                        continue;
                if (t->acked <= j->k)
                        least = t->number;
                if (t->begun <= j->k)
                        most = t->number;
        }
        if (number < least || number > most)
                return fault(j, "title %d, must be %d to %d", number, least, most);
        return 0;
}

/* After recovery the store must work as if nothing had happened: send everything again, then one
 * more. */
static int judge_going_on(struct judge *j, struct play *again)
{
        struct play *p = j->p;
        struct steno_error err = {0};
        for (int i = 0; i < j->order_count; i++) {
                struct play_batch *b = &p->batches[j->order[i]];
                bool replayed = false;
                uint64_t seq = b->first_seq;
                b->first_seq = 0; /* those that were lost get a new place */
                int rc = send(again, j->order[i], 0, 0, &replayed);
                b->first_seq = seq;
                if (rc == STENO_ENOTFOUND && b->kind[0] && b->acked > j->k) {
                        j->hopeless++; /* its target has gone meanwhile */
                        continue;
                }
                if (rc)
                        return fault(j, "sending batch %d again failed: %d", j->order[i], rc);
                if (!replayed && i < j->must && b->acked <= j->k)
                        return fault(j, "batch %d was stored twice", j->order[i]);
        }
        static const char one[] = "{\"role\":\"user\",\"content\":\"one more\"}";
        uint64_t before = 0, after = 0;
        steno_conv_last_seq(again->open[j->conv], &before, NULL);
        if (steno_append(again->open[j->conv], one, sizeof one - 1, NULL, NULL, &err))
                return fault(j, "one more: %s", err.msg);
        steno_conv_last_seq(again->open[j->conv], &after, NULL);
        return after == before + 1 ? 0
                                   : fault(j, "one more went to %llu after %llu",
                                         (unsigned long long)after, (unsigned long long)before);
}

struct seek {
        const struct fs *fs;
        int dir;
        const char *bytes;
        size_t n;
        bool found;
};

static int seek_torn(void *ctx, const char *name, unsigned char type)
{
        struct seek *s = ctx;
        char note[128];
        char *p = NULL, *q = NULL;
        size_t n = 0, m = 0;
        size_t len = strlen(name);
        (void)type;
        if (len < 6 || strcmp(name + len - 6, ".bytes") != 0)
                return 0;
        snprintf(note, sizeof note, "%.*s.json", (int)len - 6, name);
        if (fs_slurp(s->fs, s->dir, name, 1 << 20, &p, &n) == 0 &&
            fs_slurp(s->fs, s->dir, note, 1 << 20, &q, &m) == 0)
                s->found = s->found || (n == s->n && memcmp(p, s->bytes, n) == 0 && m > 2 &&
                                           q[m - 2] == '}' && strstr(q, "\"why\":\"torn tail\""));
        free(p);
        free(q);
        return 0;
}

/* Torn bytes are never thrown away: after the next append they are in the quarantine, with a
 * note. */
static int judge_quarantine(struct judge *j, const char *root)
{
        const struct fs *fs = play_fs();
        struct seek s = {.fs = fs, .bytes = j->p->torn, .n = j->p->torn_size};
        int dir = fs->open_root(fs, root, false);
        s.dir = dir < 0 ? dir : fs->open(fs, dir, "quarantine", 0, 0);
        if (s.dir >= 0) {
                fs->list(fs, s.dir, seek_torn, &s);
                fs->close(fs, s.dir);
        }
        if (dir >= 0)
                fs->close(fs, dir);
        return s.found ? 0 : fault(j, "the torn bytes are not in the quarantine");
}

static int judge_conv(struct judge *j, struct play *again)
{
        struct play_conv *c = &j->p->convs[j->conv];
        struct steno_error err = {0};
        int rc = steno_conv_open(again->store, NULL, c->id, &again->open[j->conv], &err);
        if (rc == STENO_ENOTFOUND && c->acked > j->k) {
                if (c->begun > j->k)
                        return 0;
                /* A caller that got no answer tries again. */
                rc =
                    steno_conv_create(again->store, NULL, c->id, NULL, &again->open[j->conv], &err);
                return rc ? fault(j, "making it again: %s", err.msg) : 0;
        }
        if (rc)
                return fault(j, "opening: %s", err.msg);
        judge_order(j);
        rc = read_all(j, again->open[j->conv]);
        if (rc == 0 && j->at < j->must)
                rc = fault(j, "batch %d was acknowledged and is not there", j->order[j->at]);
        if (rc == 0)
                rc = judge_title(j, again->open[j->conv]);
        if (rc == 0)
                rc = judge_going_on(j, again);
        if (rc == 0 && j->conv == 0 && j->p->torn)
                rc = judge_quarantine(j, again->root);
        if (rc)
                return rc;
        /* Everything once more: the last record is the one that was added. */
        uint64_t last = 0;
        steno_conv_last_seq(again->open[j->conv], &last, NULL);
        uint64_t want = 1 + (j->conv == 0 ? j->p->damaged : 0) - (uint64_t)j->hopeless;
        for (int i = 0; i < j->order_count; i++)
                want += (uint64_t)j->p->batches[j->order[i]].count;
        return last == want ? 0
                            : fault(j, "%llu records after sending all again, not %llu",
                                  (unsigned long long)last, (unsigned long long)want);
}

/* The header of ids.idx (docs/format.md). */
#define HEADER 96
#define HEADER_LOG 64
#define HEADER_CRC 92

static void path_of(char out[600], const char *root, int conv, const char *file)
{
        snprintf(out, 600, "%s/projects/default/conversations/conv-%d/%s", root, conv, file);
}

static void tell_inode(const struct play *p, const char *dir, int conv)
{
        char path[600];
        unsigned char h[HEADER];
        struct stat was, is;
        uint32_t crc;
        path_of(path, p->root, conv, "messages.jsonl");
        if (stat(path, &was))
                return;
        path_of(path, dir, conv, "messages.jsonl");
        if (stat(path, &is))
                return;
        path_of(path, dir, conv, "ids.idx");
        int fd = open(path, O_RDWR);
        if (fd < 0)
                return;
        uint64_t from = was.st_ino, to = is.st_ino;
        if (pread(fd, h, HEADER, 0) == HEADER && memcmp(h + HEADER_LOG, &from, sizeof from) == 0 &&
            (crc = hash_crc32c(0, h, HEADER_CRC), memcmp(h + HEADER_CRC, &crc, sizeof crc) == 0)) {
                memcpy(h + HEADER_LOG, &to, sizeof to);
                crc = hash_crc32c(0, h, HEADER_CRC);
                memcpy(h + HEADER_CRC, &crc, sizeof crc);
                if (pwrite(fd, h, HEADER, 0) != HEADER)
                        printf("# the header of %s could not be written\n", path);
        }
        close(fd);
}

void play_tell_inodes(const struct play *p, const char *dir)
{
        for (int i = 0; i < p->conv_count; i++)
                tell_inode(p, dir, i);
}

int play_check(struct play *p, const char *dir, size_t k, bool power, char why[400])
{
        struct play *again = malloc(sizeof *again);
        int rc = 0;
        play_init(again, play_fs(), dir);
        memcpy(again->batches, p->batches, sizeof p->batches);
        again->batch_count = p->batch_count;
        again->concurrent = p->concurrent;
        again->strict = p->strict;
        snprintf(again->boot, sizeof again->boot, power ? "second" : "first");
        again->chance = k * 1000003;
        why[0] = '\0';
        if (play_open(again)) {
                snprintf(why, 400, "the store does not open");
                rc = 1;
        }
        for (int c = 0; rc == 0 && c < p->conv_count; c++) {
                struct judge *j = calloc(1, sizeof *j);
                *j = (struct judge){.p = again, .conv = c, .k = k, .power = power, .why = why};
                memcpy(again->convs, p->convs, sizeof p->convs);
                memcpy(again->titles, p->titles, sizeof p->titles);
                again->title_count = p->title_count;
                again->damaged = p->damaged;
                again->torn = p->torn;
                again->torn_size = p->torn_size;
                if (p->convs[c].tried)
                        rc = judge_conv(j, again);
                free(j);
        }
        play_close(again);
        pthread_mutex_destroy(&again->mutex);
        free(again);
        return rc;
}
