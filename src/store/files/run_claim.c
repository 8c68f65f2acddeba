/*
 * run_claim.c - one run at a time (run.h, J6 and J7): runs/.claim, locked by the run that is live.
 *
 * The text of the file is three lines: the id of the run that claimed last and has not finished as
 * far as is known, the generation of the claim, and a number that its holder counts up every few
 * seconds. It is empty when the last run came to its end. The first two are written while the
 * conversation's lock is held.
 */
#include "store/files/run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"
#include "base/watch.h"
#include "store/files/conv.h"
#include "store/files/run_lease.h"

#define CLAIM ".claim"
#define CLAIM_PATH "runs/" CLAIM
#define MAIL_PATH "runs/.mail"

struct run_claim {
        struct files_conv *conv; /* borrowed */
        const struct fs *fs;
        int fd;
        int mail;           /* runs/.mail */
        uint64_t mail_at;   /* what lies before was handed out */
        run_mail_fn listen; /* NULL: nobody does */
        void *listen_ctx;
        struct run_lease lease; /* as we wrote it */
        bool lost;              /* somebody else took the run over; under the mutex */
        bool beats;             /* the thread runs */
        bool ending;
        pthread_t thread;
        pthread_mutex_t mutex;
};

/* A run whose last event is written has only to let go, which takes it a moment. */
#define LETTING_GO_MS 5000
#define LOOK_AGAIN_MS 5

/* ---- the text ---- */

/* The number that is counted up has a fixed width, so that it is changed in place. */
static void lease_write(const struct run_lease *l, struct buf *out)
{
        buf_printf(out, "%s\n%llu\n%020llu\n", l->id, (unsigned long long)l->generation,
            (unsigned long long)l->beat);
}

static bool lease_parse(char *text, struct run_lease *out)
{
        *out = (struct run_lease){.id = ""};
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

static bool lease_of(const struct fs *fs, int fd, struct run_lease *out)
{
        char text[ID_MAX + 64];
        ssize_t n = fs_pread_all(fs, fd, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        return lease_parse(text, out);
}

int run_lease_read(struct files_conv *conv, struct run_lease *out)
{
        const struct fs *fs = conv->store->env->fs;
        *out = (struct run_lease){.id = ""};
        int fd = fs->open(fs, conv->dir, CLAIM_PATH, O_RDONLY, 0);
        if (fd < 0)
                return fd;
        lease_of(fs, fd, out);
        out->held = out->id[0] && fs->flock(fs, fd, LOCK_SH | LOCK_NB) == -EWOULDBLOCK;
        fs->close(fs, fd);
        return 0;
}

/* Writes all of it, synced: after a power cut it must still name a run that was begun. Readers take
 * no lock, so it is never empty in between; what is left of a longer text is no line of it. */
static int lease_store(const struct fs *fs, int fd, const struct run_lease *l)
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
        struct run_lease l;
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

/* Somebody who only looks holds a shared lock for a moment. */
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
        struct run_lease l;
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
        struct run_lease l;
        if (!claim->lost && lease_of(claim->fs, claim->fd, &l))
                claim->lost =
                    strcmp(l.id, claim->lease.id) != 0 || l.generation != claim->lease.generation;
        return !claim->lost;
}

/* Failures are left alone: who looks on from another machine sees a lease that does not change. */
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
        int64_t next = time_monotonic_ms() + RUN_BEAT_MS;
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
                        next = time_monotonic_ms() + RUN_BEAT_MS;
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
        run_state_release(&s);
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
 * Takes the lock and writes the id down; `other` is the run that has it when that is somebody else.
 * 1: the run that claimed before did not come to its end; `other` is that run.
 */
static int take(
    struct files_conv *conv, struct str id, struct run_claim *claim, struct run_lease *other)
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
        claim->lease = (struct run_lease){.generation = other->generation + 1};
        memcpy(claim->lease.id, id.p, id.n);
        return lease_store(fs, claim->fd, &claim->lease);
}

static int refuse(const char *holder, struct steno_error *err)
{
        if (!holder[0])
                return error_set(
                    err, STENO_ECONFLICT, "another run is at work in this conversation");
        return error_set(
            err, STENO_ECONFLICT, "run \"%.100s\" is at work in this conversation", holder);
}

/* As soon as nobody has it; whoever is at work and has not finished is not waited for. */
static int take_in_turn(
    struct files_conv *conv, struct str id, struct run_claim *claim, struct steno_error *err)
{
        struct run_lease other = {.id = ""};
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
