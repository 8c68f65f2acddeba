/* run_lease.c - see run_lease.h */
#include "store/files/run_lease.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "store/files/conv.h"

#define SEEN ".seen"

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

/* Errors are ignored on purpose: who cannot write here goes on believing that the run lives. */
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

bool run_lease_is_over(
    struct files_conv *conv, const struct run_lease *lease, const struct run_state *s)
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
static bool is_dead(struct files_conv *conv, const struct run_lease *lease, const char *name,
    const struct run_state *s)
{
        char last[PLAIN_NAME_MAX + 1] = "";
        if (lease->id[0] && id_file_name(str_of(lease->id), last))
                return false;
        bool claims = strcmp(last, name) == 0;
        /* Who has the journal and not the claim is completing it. */
        if (s->held)
                return claims && !lease->held;
        return !claims || (!lease->held && run_lease_is_over(conv, lease, s));
}

int run_last(struct files_conv *conv, char name[PLAIN_NAME_MAX + 1], enum run_life *out,
    struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct run_lease lease;
        struct run_state s;
        struct stat st;
        *out = RUN_ENDED;
        name[0] = '\0';
        int sys = run_lease_read(conv, &lease);
        if (sys == -ENOENT) {
                if (fs->stat(fs, conv->dir, "runs", &st) == 0)
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
        run_state_release(&s);
        return 0;
}

bool run_is_dead(struct files_conv *conv, const char *name)
{
        struct run_lease lease;
        struct run_state s;
        run_lease_read(conv, &lease);
        if (run_look(conv, name, &s, NULL))
                return false;
        bool dead = !s.finished && is_dead(conv, &lease, name, &s);
        run_state_release(&s);
        return dead;
}
