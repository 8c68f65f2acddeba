/*
 * run_blank.c - a journal without what was said in it (run.h): written anew beside the old one,
 * which it replaces. Events keep their seq, time and type; the data of those that may quote a
 * message becomes {"purged":true}. What says how the run went stays.
 */
#include "store/files/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/limits.h"
#include "model/event.h"
#include "store/files/conv.h"
#include "store/files/run_line.h"

#define BLANK "{\"purged\":true}"
#define NEW_NAME ".purge"

/* A run_error may quote a provider, which may quote the message. */
static const enum steno_event KEPT[] = {STENO_EVENT_REQUEST, STENO_EVENT_DISPATCH,
    STENO_EVENT_OUTPUT, STENO_EVENT_RUN_STARTED, STENO_EVENT_RUN_FINISHED};

static bool is_kept(const struct run_event *e)
{
        for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++)
                if (event_is(e->type, KEPT[i]))
                        return true;
        return str_is(e->type, "run") || str_is(e->data, BLANK);
}

/*
 * The new text in `out`; *changed when it differs. Lines that cannot be read do not stay. 1: the
 * run did not finish, so its outcomes may still be needed.
 */
static int blank_lines(const struct fs *fs, int fd, uint64_t size, struct buf *out, bool *changed,
    struct steno_error *err)
{
        struct run_cursor c;
        struct run_event e;
        int rc;
        bool finished = false;
        run_cursor_init(&c, fs, fd, 0, size);
        *changed = false;
        while ((rc = run_next(&c, &e, err)) == 1) {
                finished = event_is(e.type, STENO_EVENT_RUN_FINISHED);
                if (!is_kept(&e)) {
                        e.data = STR(BLANK);
                        *changed = true;
                }
                run_line_write(out, &e);
        }
        run_cursor_release(&c);
        if (rc == 0 && !finished)
                return 1;
        return rc ? rc : buf_check(out, err);
}

static int replace(const struct fs *fs, int dir, const char *file, const struct buf *text)
{
        int fd = fs->open(fs, dir, NEW_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
        int rc = fd < 0 ? fd : fs_pwrite_all(fs, fd, text->p, text->n, 0);
        if (rc == 0)
                rc = fs->fdatasync(fs, fd);
        if (rc == 0)
                rc = fs->rename(fs, dir, NEW_NAME, dir, file);
        if (rc == 0)
                rc = fs->fsync(fs, dir);
        if (fd >= 0)
                fs->close(fs, fd);
        return rc;
}

int run_blank(struct files_conv *conv, const char *name, uint64_t *bytes, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        char file[PLAIN_NAME_MAX + 8];
        struct stat st;
        struct buf text;
        bool changed = false;
        snprintf(file, sizeof file, "%s.jsonl", name);
        int dir = fs->open(fs, conv->dir, "runs", O_RDONLY | O_DIRECTORY, 0);
        int fd = dir < 0 ? dir : fs->open(fs, dir, file, O_RDWR, 0);
        if (fd < 0) {
                if (dir >= 0)
                        fs->close(fs, dir);
                return fd == -ENOENT ? STENO_ENOTFOUND
                                     : error_sys(err, fd, "opening a run's journal");
        }
        buf_init(&text, 0);
        int rc = fs->flock(fs, fd, LOCK_EX | LOCK_NB) == 0 ? 0 : 1;
        if (rc == 0) {
                int sys = fs->fstat(fs, fd, &st);
                rc = sys ? error_sys(err, sys, "looking at a run's journal")
                         : blank_lines(fs, fd, (uint64_t)st.st_size, &text, &changed, err);
        }
        if (rc == 0 && changed) {
                int sys = replace(fs, dir, file, &text);
                if (sys)
                        rc = error_sys(err, sys, "rewriting a run's journal");
                else if ((uint64_t)st.st_size > text.n)
                        *bytes += (uint64_t)st.st_size - text.n;
        }
        buf_release(&text);
        fs->close(fs, fd);
        fs->close(fs, dir);
        return rc;
}
