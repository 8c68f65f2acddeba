/*
 * run_claim.c - one run at a time (run.h, J6): runs/.claim, locked by the run that is live.
 *
 * The file's text is the id of the run that claimed last. It is written while the conversation's
 * lock is held, and so is every look at it, so whoever finds the claim taken reads the right id.
 * The text of a claim that nobody holds means nothing.
 */
#include "store/files/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"
#include "store/files/conv.h"

#define CLAIM ".claim"

struct run_claim {
        const struct fs *fs;
        int fd;
};

/* A run whose last event is written has only to let go, which takes it a moment. */
#define LETTING_GO_MS 5000
#define LOOK_AGAIN_MS 5

/* The id of the run that holds the claim; "" when it cannot be read. */
static void read_holder(const struct fs *fs, int fd, char id[ID_MAX + 1])
{
        ssize_t n = fs_pread_all(fs, fd, id, ID_MAX, 0);
        id[n > 0 ? n : 0] = '\0';
}

static bool has_finished(struct files_conv *conv, const char *id)
{
        struct run_state s;
        char name[PLAIN_NAME_MAX + 1];
        if (!id[0] || id_file_name(str_of(id), name) || run_look(conv, name, &s, NULL))
                return false;
        bool finished = s.finished;
        run_state_release(&s);
        return finished;
}

static int open_claim(struct files_conv *conv, struct run_claim *claim)
{
        const struct fs *fs = claim->fs;
        int dir = fs_open_dir(fs, conv->dir, "runs", true);
        claim->fd = dir < 0 ? dir : fs->open(fs, dir, CLAIM, O_RDWR | O_CREAT, 0600);
        if (dir >= 0)
                fs->close(fs, dir);
        return claim->fd < 0 ? claim->fd : 0;
}

/* Takes the lock and writes the id down; `holder` is who has it when that is somebody else. */
static int take(
    struct files_conv *conv, struct str id, struct run_claim *claim, char holder[ID_MAX + 1])
{
        const struct fs *fs = claim->fs;
        int rc = claim->fd < 0 ? open_claim(conv, claim) : 0;
        if (rc == 0)
                rc = fs->flock(fs, claim->fd, LOCK_EX | LOCK_NB);
        if (rc == -EWOULDBLOCK)
                read_holder(fs, claim->fd, holder);
        if (rc == 0)
                rc = fs->ftruncate(fs, claim->fd, 0);
        return rc ? rc : fs_pwrite_all(fs, claim->fd, id.p, id.n, 0);
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
        char holder[ID_MAX + 1] = "";
        for (int waited = 0;; waited += LOOK_AGAIN_MS) {
                int rc = files_conv_lock(conv, err);
                if (rc)
                        return rc;
                int sys = take(conv, id, claim, holder);
                bool finished = sys == -EWOULDBLOCK && has_finished(conv, holder);
                files_conv_unlock(conv);
                if (sys == 0)
                        return 0;
                if (sys != -EWOULDBLOCK)
                        return error_sys(err, sys, "claiming the conversation for a run");
                if (!finished || waited >= LETTING_GO_MS)
                        return refuse(holder, err);
                wait_sleep(LOOK_AGAIN_MS);
        }
}

int run_claim(
    struct files_conv *conv, struct str id, struct run_claim **out, struct steno_error *err)
{
        struct run_claim *claim = calloc(1, sizeof *claim);
        if (!claim)
                return error_nomem(err);
        claim->fs = conv->store->env->fs;
        claim->fd = -1;
        int rc = take_in_turn(conv, id, claim, err);
        if (rc) {
                run_claim_release(claim);
                return rc;
        }
        *out = claim;
        return 0;
}

void run_claim_release(struct run_claim *claim)
{
        if (!claim)
                return;
        if (claim->fd >= 0)
                claim->fs->close(claim->fs, claim->fd); /* lets go of the lock as well */
        free(claim);
}
