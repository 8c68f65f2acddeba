/* backup.c - see backup.h */
#include "store/files/backup_work.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/files/backup_stamp.h"
#include "store/files/conv.h"

#define TRIES 3
#define AGAIN 1 /* bytes were taken away while they were copied */

int backup_failed(struct backup_copying *c, int sys, const char *name)
{
        return c->unfilled ? c->unfilled : error_sys(c->err, sys, "copying %s", name);
}

/* Something in the conversation is not what it should be, in the words that a check has for it. */
void backup_tell_of(struct backup_copying *c, uint64_t seq, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void backup_tell_of(struct backup_copying *c, uint64_t seq, const char *fmt, ...)
{
        char what[400];
        va_list args;
        va_start(args, fmt);
        vsnprintf(what, sizeof what, fmt, args);
        va_end(args);
        buf_printf(&c->damaged, "%llu %s", (unsigned long long)seq, what);
        buf_putc(&c->damaged, '\0');
}
#define backup_tell(c, ...) backup_tell_of(c, 0, __VA_ARGS__)

static int copy_small(struct backup_copying *c, const char *name, size_t max)
{
        uint64_t copied;
        int sys = backup_small(c->fs, c->conv->dir, c->to, name, max, &copied);
        c->copied += copied;
        return sys < 0 ? backup_failed(c, sys, name) : 0;
}

/* ---- all of it ---- */

/* Has somebody taken bytes away since the end was noted (K2)? Whoever does holds the lock. */
static int look_again(struct backup_copying *c)
{
        struct stat st;
        int rc = files_conv_lock(c->conv, c->err);
        if (rc)
                return rc;
        int sys = c->fs->stat(c->fs, c->conv->dir, "messages.jsonl", &st);
        files_conv_unlock(c->conv);
        if (sys)
                return backup_failed(c, sys, "messages.jsonl");
        return c->laid || (uint64_t)st.st_ino == c->ino ? 0 : AGAIN;
}

static int copy_all(struct backup_copying *c)
{
        int sys = backup_files_read(&c->files, c->fs, c->to);
        if (sys)
                return backup_failed(c, sys, BACKUP_FILES);
        c->fs->unlink(c->fs, c->to, "ids.idx", 0); /* of whoever looked into an earlier copy */
        int rc = backup_copy_log(c);
        if (rc == 0)
                rc = copy_small(c, "meta.json", META_MAX);
        if (rc == 0)
                rc = backup_copy_artifacts(c);
        if (rc == 0)
                rc = backup_copy_folder(c, "artifacts/parts", false);
        if (rc == 0)
                rc = backup_look_for_parts(c);
        if (rc == 0)
                rc = backup_copy_folder(c, "runs", true);
        if (rc == 0)
                rc = backup_copy_folder(c, "seal", false);
        sys = rc ? 0 : backup_files_write(&c->files, c->fs, c->to);
        return sys ? backup_failed(c, sys, BACKUP_FILES) : rc;
}

/* Under the lock: the log must not grow behind the end that was noted before it is looked at. */
static void take_stamp(struct backup_copying *c, int64_t now_ms)
{
        c->now = (struct timespec){
            .tv_sec = (time_t)(now_ms / 1000), .tv_nsec = (long)(now_ms % 1000) * 1000000};
        if (c->laid)
                memcpy(c->stamp, c->laid->stamp, sizeof c->stamp);
        else if (backup_stamp(c->fs, c->conv->dir, &c->now, c->stamp))
                *c->stamp = '\0';
}

/* `hold`: the lock is kept, so that nothing can change. AGAIN: something did. */
static int try_once(struct backup_copying *c, bool hold)
{
        const struct env *env = c->conv->store->env;
        c->log = -1;
        buf_clear(&c->damaged);
        int rc = files_conv_lock(c->conv, c->err);
        if (rc)
                return rc;
        int64_t now = env->now(env);
        rc = backup_find_end(c);
        if (rc == 0)
                take_stamp(c, now);
        if (!hold || rc)
                files_conv_unlock(c->conv);
        if (rc == 0) {
                rc = copy_all(c);
                backup_files_release(&c->files);
                if (hold)
                        files_conv_unlock(c->conv);
                else if (rc == 0)
                        rc = look_again(c);
        }
        if (rc == 0)
                rc = backup_write_note(c);
        if (c->log >= 0)
                c->fs->close(c->fs, c->log);
        return rc;
}

int backup_conv(struct files_conv *conv, const struct backup_request *asked,
    struct backup_result *out, struct steno_error *err)
{
        struct steno_error why = {0};
        struct backup_copying c = {.conv = conv,
            .from = asked->from,
            .laid = asked->laid,
            .fs = asked->fs,
            .to = asked->to,
            .mark = asked->mark,
            .verify = asked->verify,
            .err = err ? err : &why};
        int rc = AGAIN;
        buf_init(&c.damaged, 0);
        buf_init(&c.parts, 0);
        for (int i = 0; rc == AGAIN && i <= TRIES; i++)
                rc = try_once(&c, i == TRIES);
        if (rc == 0) {
                *out = (struct backup_result){
                    .records = c.last_seq, .copied = c.copied, .mended = c.mended};
                out->damaged_size = c.damaged.n;
                out->damaged = c.damaged.n ? buf_take(&c.damaged, NULL) : NULL;
        }
        buf_release(&c.damaged);
        buf_release(&c.parts);
        return rc;
}
