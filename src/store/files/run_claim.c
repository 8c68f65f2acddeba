/*
 * run_claim.c - one run at a time (run.h, J6 and J7): runs/.claim, locked by the run that is live.
 *
 * The text of the file is three lines: the id of the run that claimed last and has not finished as
 * far as is known, the generation of the claim, and a number that its holder counts up every few
 * seconds. It is empty when the last run came to its end. The first two are written while the
 * conversation's lock is held.
 *
 * On one machine a lock says who is alive, in whatever container or namespace: the kernel lets go
 * of it when the process ends. A lock says nothing about another machine, or about this one before
 * its last boot. There, a run is dead when its lease has not changed for RUN_LEASE_MS of the
 * observer's monotonic clock. Observers of one boot share what they saw in runs/.seen, so that a
 * program that runs for a second can continue an observation that another one began.
 */
#include "store/files/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"
#include "base/watch.h"
#include "store/files/conv.h"

#define CLAIM ".claim"
#define CLAIM_PATH "runs/" CLAIM
#define MAIL_PATH "runs/.mail"
#define SEEN ".seen"

#define BEAT_MS 5000

/* What the text of the claim says. */
struct lease {
        char id[ID_MAX + 1]; /* "": the last run came to its end */
        uint64_t generation; /* grows with every claim, and when a dead run is taken over */
        uint64_t beat;       /* grows while the holder lives */
        bool held;           /* somebody has the claim's lock */
};

struct run_claim {
        struct backend_claim base;
        struct files_conv *conv; /* borrowed */
        const struct fs *fs;
        int fd;
        int mail;           /* runs/.mail */
        uint64_t mail_at;   /* what lies before was handed out */
        run_mail_fn listen; /* NULL: nobody does */
        void *listen_ctx;
        struct lease lease; /* as we wrote it */
        bool lost;          /* somebody else took the run over; under the mutex */
        bool beats;         /* the thread runs */
        bool ending;
        pthread_t thread;
        pthread_mutex_t mutex;
};

/* A run whose last event is written releases the claim within a moment. */
#define LETTING_GO_MS 5000
#define LOOK_AGAIN_MS 5

/* ---- the text ---- */

/* The number that is counted up has a fixed width, so that it is changed in place. */
static void lease_write(const struct lease *l, struct buf *out)
{
        buf_printf(out, "%s\n%llu\n%020llu\n", l->id, (unsigned long long)l->generation,
            (unsigned long long)l->beat);
}

static bool lease_parse(char *text, struct lease *out)
{
        *out = (struct lease){.id = ""};
        size_t n = strcspn(text, "\n");
        if (n > ID_MAX)
                return false;
        memcpy(out->id, text, n);
        if (!text[n])
                return n > 0; /* of an earlier version: the id alone */
        char *end = NULL;
        out->generation = strtoull(text + n + 1, &end, 10);
        out->beat = *end ? strtoull(end + 1, NULL, 10) : 0;
        return n > 0;
}

static bool lease_of(const struct fs *fs, int fd, struct lease *out)
{
        char text[ID_MAX + 64];
        ssize_t n = fs_pread_all(fs, fd, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        return lease_parse(text, out);
}

/* -ENOENT: nobody ever claimed the conversation. Other failures are negative as well. */
static int lease_read(struct files_conv *conv, struct lease *out)
{
        const struct fs *fs = conv->store->env->fs;
        *out = (struct lease){.id = ""};
        int fd = fs->open(fs, conv->dir, CLAIM_PATH, O_RDONLY, 0);
        if (fd < 0)
                return fd;
        lease_of(fs, fd, out);
        out->held = out->id[0] && fs->flock(fs, fd, LOCK_SH | LOCK_NB) == -EWOULDBLOCK;
        fs->close(fs, fd);
        return 0;
}

/* Writes all of it, synced: after a power cut it must still name a run that was begun. Readers take
 * no lock, so it is never empty in between; what is left of a longer text is not a line of it. */
static int lease_store(const struct fs *fs, int fd, const struct lease *l)
{
        struct buf text;
        buf_init(&text, 4 * KIB);
        lease_write(l, &text);
        int rc = text.failed ? -ENOMEM : fs_pwrite_all(fs, fd, text.p, text.n, 0);
        if (rc == 0)
                rc = fs->ftruncate(fs, fd, (off_t)text.n);
        if (rc == 0)
                rc = fs->fdatasync(fs, fd);
        buf_release(&text);
        return rc;
}

static int open_claim(struct files_conv *conv)
{
        const struct fs *fs = conv->store->env->fs;
        int dir = fs_open_dir(fs, conv->dir, "runs", true);
        if (dir < 0)
                return dir;
        int fd = fs->open(fs, dir, CLAIM, O_RDWR, 0);
        if (fd == -ENOENT) {
                fd = fs->open(fs, dir, CLAIM, O_RDWR | O_CREAT, 0600);
                int rc = fd < 0 ? 0 : fs->fsync(fs, dir);
                if (rc) {
                        fs->close(fs, fd);
                        fd = rc;
                }
        }
        fs->close(fs, dir);
        return fd;
}

void run_lease_settle(struct files_conv *conv)
{
        int fd = open_claim(conv);
        if (fd >= 0)
                conv->store->env->fs->close(conv->store->env->fs, fd);
}

int run_lease_take_over(struct files_conv *conv, const char *name, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        char last[PLAIN_NAME_MAX + 1];
        struct lease l;
        int rc = files_conv_lock(conv, err);
        if (rc)
                return rc;
        int fd = fs->open(fs, conv->dir, CLAIM_PATH, O_RDWR, 0);
        int sys = fd < 0 && fd != -ENOENT ? fd : 0;
        if (fd >= 0 && lease_of(fs, fd, &l) && id_file_name(str_of(l.id), last) == 0 &&
            strcmp(last, name) == 0) {
                l.generation++;
                sys = lease_store(fs, fd, &l);
        }
        if (fd >= 0)
                fs->close(fs, fd);
        files_conv_unlock(conv);
        return sys ? error_sys(err, sys, "taking over a run") : 0;
}

/* Processes that only look hold a shared lock for a moment. */
static int lock_claim(const struct fs *fs, int fd)
{
        for (;;) {
                int rc = fs->flock(fs, fd, LOCK_EX | LOCK_NB);
                if (rc != -EWOULDBLOCK)
                        return rc;
                int looks = fs->flock(fs, fd, LOCK_SH | LOCK_NB);
                if (looks)
                        return looks;
                fs->flock(fs, fd, LOCK_UN);
        }
}

/* Errors are ignored on purpose: then the next reader looks at the journal once more. */
void run_settle(struct files_conv *conv, const char *name)
{
        const struct fs *fs = conv->store->env->fs;
        struct lease l;
        char last[PLAIN_NAME_MAX + 1];
        if (files_conv_lock(conv, NULL))
                return;
        int fd = fs->open(fs, conv->dir, CLAIM_PATH, O_RDWR, 0);
        if (fd >= 0 && lease_of(fs, fd, &l) && id_file_name(str_of(l.id), last) == 0 &&
            strcmp(last, name) == 0 && lock_claim(fs, fd) == 0)
                fs->ftruncate(fs, fd, 0);
        if (fd >= 0)
                fs->close(fs, fd);
        recent_note(conv, NULL);
        files_conv_unlock(conv);
}

/* ---- the holder's beat ---- */

static bool is_ours(struct run_claim *claim)
{
        struct lease l;
        if (!claim->lost && lease_of(claim->fs, claim->fd, &l))
                claim->lost =
                    strcmp(l.id, claim->lease.id) != 0 || l.generation != claim->lease.generation;
        return !claim->lost;
}

/* Errors are ignored on purpose: an observer on another machine then sees a lease that does not
 * change. */
static void beat(struct run_claim *claim)
{
        struct buf text;
        buf_init(&text, 4 * KIB);
        claim->lease.beat++;
        lease_write(&claim->lease, &text);
        if (!text.failed && is_ours(claim))
                fs_pwrite_all(claim->fs, claim->fd, text.p, text.n, 0);
        buf_release(&text);
}

/* Hands out the whole lines that came. Under the mutex. */
static void read_mail(struct run_claim *claim)
{
        char text[16 * KIB];
        ssize_t n;
        while (claim->listen && (n = fs_pread_all(claim->fs, claim->mail, text, sizeof text,
                                     (off_t)claim->mail_at)) > 0) {
                char *end, *at = text;
                while ((end = memchr(at, '\n', (size_t)(text + n - at)))) {
                        if (end > at)
                                claim->listen(claim->listen_ctx, str_span(at, (size_t)(end - at)));
                        at = end + 1;
                }
                if (at == text && n < (ssize_t)sizeof text)
                        return; /* the rest of the line is still to come */
                claim->mail_at += at == text ? (uint64_t)n : (uint64_t)(at - text);
        }
}

/* Counts on, and waits for mail in between. */
static void *keep_beating(void *arg)
{
        struct run_claim *claim = arg;
        int64_t next = time_monotonic_ms() + BEAT_MS;
        pthread_mutex_lock(&claim->mutex);
        while (!claim->ending) {
                struct watch watch;
                int64_t left = next - time_monotonic_ms();
                watch_begin(&watch, claim->mail, left > 0 ? (int)left : 0);
                read_mail(claim);
                pthread_mutex_unlock(&claim->mutex);
                watch_wait(&watch);
                watch_end(&watch);
                pthread_mutex_lock(&claim->mutex);
                if (!claim->ending && time_monotonic_ms() >= next) {
                        beat(claim);
                        next = time_monotonic_ms() + BEAT_MS;
                }
        }
        pthread_mutex_unlock(&claim->mutex);
        return NULL;
}

void run_claim_listen(struct run_claim *claim, run_mail_fn fn, void *ctx)
{
        if (!claim)
                return;
        pthread_mutex_lock(&claim->mutex);
        claim->listen = fn;
        claim->listen_ctx = ctx;
        pthread_mutex_unlock(&claim->mutex);
}

int run_mail_send(struct files_conv *conv, struct str line, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct buf text;
        buf_init(&text, 64 * KIB);
        buf_put_str(&text, line);
        buf_putc(&text, '\n');
        int fd = fs->open(fs, conv->dir, MAIL_PATH, O_WRONLY | O_APPEND, 0);
        int rc = fd < 0 ? fd : text.failed ? -ENOMEM : fs_write_all(fs, fd, text.p, text.n);
        if (fd >= 0)
                fs->close(fs, fd);
        buf_release(&text);
        return rc ? error_sys(err, rc, "writing to the mailbox of the conversation's runs") : 0;
}

/* An empty mailbox: what is in it was for another run. */
static int open_mail(struct run_claim *claim)
{
        const struct fs *fs = claim->fs;
        claim->mail = fs->open(fs, claim->conv->dir, MAIL_PATH, O_RDWR | O_CREAT | O_APPEND, 0600);
        return claim->mail < 0 ? claim->mail : fs->ftruncate(fs, claim->mail, 0);
}

int run_claim_check(struct run_claim *claim, struct steno_error *err)
{
        if (!claim)
                return 0;
        pthread_mutex_lock(&claim->mutex);
        bool ours = is_ours(claim);
        pthread_mutex_unlock(&claim->mutex);
        return ours ? 0
                    : error_set(err, STENO_ECONFLICT,
                          "run \"%.100s\" was taken over by another process, because this one "
                          "seemed to be dead",
                          claim->lease.id);
}

/* ---- claiming ---- */

static bool has_ended(struct files_conv *conv, const char *id)
{
        struct run_state s;
        char name[PLAIN_NAME_MAX + 1];
        if (!id[0])
                return true;
        if (id_file_name(str_of(id), name) || run_look(conv, name, &s, NULL))
                return false;
        bool finished = s.finished;
        backend_run_state_release(&s);
        return finished;
}

/* Is there anything in the journal of that run that is not completed? */
static bool is_open(struct files_conv *conv, const char *id)
{
        char name[PLAIN_NAME_MAX + 1];
        return id[0] && !id_file_name(str_of(id), name) && run_exists(conv, name) &&
               !has_ended(conv, id);
}

/*
 * Takes the lock and writes the id. If another run has the lock, `other` is that run. 1: the run
 * that claimed before did not end; `other` is that run.
 */
static int take(
    struct files_conv *conv, struct str id, struct run_claim *claim, struct lease *other)
{
        const struct fs *fs = claim->fs;
        if (claim->fd < 0)
                claim->fd = open_claim(conv);
        int rc = claim->fd < 0 ? claim->fd : lock_claim(fs, claim->fd);
        if (rc && rc != -EWOULDBLOCK)
                return rc;
        lease_of(fs, claim->fd, other);
        if (rc)
                return rc;
        if (is_open(conv, other->id)) {
                fs->flock(fs, claim->fd, LOCK_UN);
                return 1;
        }
        rc = open_mail(claim);
        if (rc)
                return rc;
        claim->lease = (struct lease){.generation = other->generation + 1};
        memcpy(claim->lease.id, id.p, id.n);
        return lease_store(fs, claim->fd, &claim->lease);
}

static int refuse(const char *holder, struct steno_error *err)
{
        if (!holder[0])
                return error_set(
                    err, STENO_ECONFLICT, "another run is active in this conversation");
        return error_set(
            err, STENO_ECONFLICT, "run \"%.100s\" is active in this conversation", holder);
}

/* Waits for a run that has finished and is about to release the claim, but never for one that is at
 * work. */
static int take_in_turn(
    struct files_conv *conv, struct str id, struct run_claim *claim, struct steno_error *err)
{
        struct lease other = {.id = ""};
        for (int waited = 0;; waited += LOOK_AGAIN_MS) {
                int rc = files_conv_lock(conv, err);
                if (rc)
                        return rc;
                int sys = take(conv, id, claim, &other);
                bool ended = sys == -EWOULDBLOCK && has_ended(conv, other.id);
                files_conv_unlock(conv);
                if (sys >= 0)
                        return sys;
                if (sys != -EWOULDBLOCK)
                        return error_sys(err, sys, "claiming the conversation for a run");
                if (!ended || waited >= LETTING_GO_MS)
                        return refuse(other.id, err);
                wait_sleep(LOOK_AGAIN_MS);
        }
}

int run_claim(
    struct files_conv *conv, struct str id, struct run_claim **out, struct steno_error *err)
{
        struct run_claim *claim = calloc(1, sizeof *claim);
        if (!claim)
                return error_nomem(err);
        claim->base.ops = &files_backend;
        claim->conv = conv;
        claim->fs = conv->store->env->fs;
        claim->fd = claim->mail = -1;
        pthread_mutex_init(&claim->mutex, NULL);
        int rc = take_in_turn(conv, id, claim, err);
        if (rc == 0) {
                claim->beats = pthread_create(&claim->thread, NULL, keep_beating, claim) == 0;
                rc = claim->beats ? 0 : error_nomem(err);
        }
        if (rc) {
                run_claim_release(claim, false);
                return rc;
        }
        *out = claim;
        return 0;
}

void run_claim_release(struct run_claim *claim, bool finished)
{
        if (!claim)
                return;
        if (claim->beats) {
                pthread_mutex_lock(&claim->mutex);
                claim->ending = true;
                pthread_mutex_unlock(&claim->mutex);
                claim->fs->write(claim->fs, claim->mail, "\n", 1); /* wakes it up */
                pthread_join(claim->thread, NULL);
        }
        /* Readers and lists then need not look for what the run left behind. */
        if (finished && claim->fd >= 0 && files_conv_lock(claim->conv, NULL) == 0) {
                if (is_ours(claim))
                        claim->fs->ftruncate(claim->fs, claim->fd, 0);
                recent_note(claim->conv, NULL);
                files_conv_unlock(claim->conv);
        }
        if (claim->fd >= 0)
                claim->fs->close(claim->fs, claim->fd); /* lets go of the lock as well */
        if (claim->mail >= 0)
                claim->fs->close(claim->fs, claim->mail);
        pthread_mutex_destroy(&claim->mutex);
        free(claim);
}

/* ---- is it alive? ---- */

/* What an observer of this boot saw, and when. */
struct seen {
        char boot[40];
        int64_t at;
        uint64_t generation;
        uint64_t beat;
        char id[ID_MAX + 1];
};

static bool read_seen(struct files_conv *conv, struct seen *out)
{
        const struct fs *fs = conv->store->env->fs;
        char *text = NULL;
        size_t n = 0;
        int at = 0;
        if (fs_slurp(fs, conv->dir, "runs/" SEEN, 4 * KIB, &text, &n))
                return false;
        bool ok = sscanf(text, "%39s %" SCNd64 " %" SCNu64 " %" SCNu64 " %n", out->boot, &out->at,
                      &out->generation, &out->beat, &at) == 4 &&
                  at > 0 && strlen(text + at) <= ID_MAX;
        if (ok)
                snprintf(out->id, sizeof out->id, "%s", text + at);
        free(text);
        return ok;
}

/* Errors are ignored on purpose: an observer that cannot write here takes the run for a live one.
 */
static void write_seen(struct files_conv *conv, const struct seen *s)
{
        const struct fs *fs = conv->store->env->fs;
        struct buf text;
        buf_init(&text, 4 * KIB);
        buf_printf(&text, "%s %" PRId64 " %" PRIu64 " %" PRIu64 " %s", s->boot, s->at,
            s->generation, s->beat, s->id);
        int dir = fs->open(fs, conv->dir, "runs", O_RDONLY | O_DIRECTORY, 0);
        if (dir >= 0 && !text.failed)
                fs_replace(fs, dir, SEEN, text.p, text.n);
        if (dir >= 0)
                fs->close(fs, dir);
        buf_release(&text);
}

static bool is_of_boot(const struct run_state *s, const char *boot)
{
        struct json j;
        json_init(&j);
        json_parse(&j, s->head, strlen(s->head), NULL, NULL);
        json_ref of = j.count ? json_get(&j, 0, "boot") : JSON_NONE;
        /* Journals of earlier versions do not say it; for them the lock is all there is. */
        bool same = of == JSON_NONE || json_is(&j, of, boot);
        json_release(&j);
        return same;
}

/* May the run be taken for dead, whose journal `s` describes? It is neither finished nor held. */
static bool lease_is_over(
    struct files_conv *conv, const struct lease *lease, const struct run_state *s)
{
        const struct env *env = conv->store->env;
        struct seen before, now = {.at = time_monotonic_ms()};
        env->boot(env, now.boot);
        if (is_of_boot(s, now.boot))
                return true;
        now.generation = lease->generation;
        now.beat = lease->beat;
        snprintf(now.id, sizeof now.id, "%s", lease->id);
        if (read_seen(conv, &before) && strcmp(before.boot, now.boot) == 0 &&
            strcmp(before.id, now.id) == 0 && before.generation == now.generation &&
            before.beat == now.beat)
                return now.at - before.at >= RUN_LEASE_MS;
        write_seen(conv, &now);
        return false;
}

/* ---- what became of a run ---- */

/* Of a journal that has no end. */
static bool is_dead(
    struct files_conv *conv, const struct lease *lease, const char *name, const struct run_state *s)
{
        char last[PLAIN_NAME_MAX + 1] = "";
        if (lease->id[0] && id_file_name(str_of(lease->id), last))
                return false;
        bool claims = strcmp(last, name) == 0;
        /* A process that holds the journal but not the claim is completing the run. */
        if (s->held)
                return claims && !lease->held;
        return !claims || (!lease->held && lease_is_over(conv, lease, s));
}

/* Whoever opens a conversation or reads it asks. */
static bool has_no_runs(struct files_conv *conv, const struct stat *dir)
{
        pthread_mutex_lock(&conv->mutex);
        bool none = fs_stamp_is(conv->no_runs, dir->st_ctim);
        pthread_mutex_unlock(&conv->mutex);
        return none;
}

/* `dir` is from before `runs` was looked for. */
static void keep_no_runs(struct files_conv *conv, const struct stat *dir)
{
        pthread_mutex_lock(&conv->mutex);
        conv->no_runs = fs_stamp_of(dir->st_ctim, conv_touched(conv->store));
        pthread_mutex_unlock(&conv->mutex);
}

int run_last(struct files_conv *conv, char name[PLAIN_NAME_MAX + 1], enum run_life *out,
    struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct lease lease;
        struct run_state s;
        struct stat dir = {0}, st;
        *out = RUN_ENDED;
        name[0] = '\0';
        bool looked = fs->fstat(fs, conv->dir, &dir) == 0;
        if (looked && has_no_runs(conv, &dir))
                return 0;
        /* The cheapest look first: most conversations have no run. */
        int sys = fs->stat(fs, conv->dir, "runs", &st);
        if (sys == -ENOENT) {
                if (looked)
                        keep_no_runs(conv, &dir);
                return 0;
        }
        /* After an error the folder is not known to be there, so nothing may be made in it. */
        if (sys == 0)
                sys = lease_read(conv, &lease);
        if (sys == -ENOENT) {
                *out = RUN_UNKNOWN;
                return 0;
        }
        if (sys)
                return error_sys(err, sys, "looking for the last run");
        if (!lease.id[0])
                return 0;
        if (id_file_name(str_of(lease.id), name))
                return error_nomem(err);
        int rc = run_look(conv, name, &s, err);
        if (rc == STENO_ENOTFOUND) { /* it has not begun */
                *out = lease.held ? RUN_LIVE : RUN_ENDED;
                name[0] = '\0';
                return 0;
        }
        if (rc)
                return rc;
        if (s.finished)
                *out = lease.held ? RUN_ENDED : RUN_FAILED;
        else
                *out = is_dead(conv, &lease, name, &s) ? RUN_DEAD : RUN_LIVE;
        backend_run_state_release(&s);
        return 0;
}

bool run_is_dead(struct files_conv *conv, const char *name)
{
        struct lease lease;
        struct run_state s;
        lease_read(conv, &lease);
        if (run_look(conv, name, &s, NULL))
                return false;
        bool dead = !s.finished && is_dead(conv, &lease, name, &s);
        backend_run_state_release(&s);
        return dead;
}
