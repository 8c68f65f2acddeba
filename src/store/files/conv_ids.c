/*
 * conv_ids.c - keeps ids.idx of an open conversation up to date with its log.
 *
 * An append adds its own entries. The index falls behind when the machine loses power (I2 of
 * ids.h), when it was removed or is damaged, or when the log was copied. A few records are then
 * read under the lock. Many are read without it, so that other writers go on meanwhile: the rest of
 * a log goes into the index in small steps, and a whole new index is made beside the old one.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <fcntl.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

/* So much of a log may be read under its lock: about a millisecond. */
#define COVER_IN_LOCK (512 * KIB)
/* So many entries are added each time that the lock is taken: they go into the file at once. */
#define COVER_STEP IDS_PENDING
/* While others write faster than one reads, there is always something left. */
#define COVER_PASSES 3

bool conv_ids_are_behind(const struct files_conv *c)
{
        return c->at.end - ids_covered(&c->ids) > COVER_IN_LOCK;
}

/* Collects the id of a record, and its key. */
static int collect_record(
    struct ids_list *list, const struct log_line *line, struct buf *text, struct steno_error *err)
{
        struct str key;
        buf_clear(text);
        json_unescape(line->rec.id, text, NULL);
        if (text->failed)
                return buf_check(text, err);
        if (ids_list_add(list, ids_hash_id(buf_str(text)), line->at))
                return error_nomem(err);
        if (str_starts(line->rec.x, "{\"kind\":"))
                list->last_amend = line->rec.seq;
        if (!about_key(line->rec.x, &key))
                return 0;
        buf_clear(text);
        json_unescape(key, text, NULL);
        if (text->failed)
                return buf_check(text, err);
        return ids_list_add(list, ids_hash_key(buf_str(text)), line->at) ? error_nomem(err) : 0;
}

/* Reads on until `max` entries are collected or the walk ends. *next: the offset behind them. */
static int collect(struct log_cursor *cursor, uint64_t end, size_t max, struct ids_list *list,
    uint64_t *next, struct steno_error *err)
{
        struct log_line line;
        struct buf text;
        int rc = 1;
        buf_init(&text, 0);
        while (list->n < max && (rc = log_next(cursor, &line, err)) == 1) {
                if (line.damaged)
                        continue;
                rc = collect_record(list, &line, &text, err);
                if (rc)
                        break;
                *next = line.at + line.rec.line.n + 1;
        }
        if (rc == 0 && list->n < max)
                *next = end;
        buf_release(&text);
        return rc < 0 ? rc : 0;
}

/* Adds what was collected in [from, to), if the index still ends at `from`. Under the lock. */
static bool add_list(struct files_conv *c, uint64_t from, uint64_t to, const struct ids_list *list)
{
        if (ids_covered(&c->ids) != from || to > c->at.end)
                return false;
        c->ids.large_groups = false;
        for (size_t i = 0; i < list->n; i++)
                if (!ids_add(&c->ids, list->p[i].hash, list->p[i].at - 1))
                        return false;
        if (!ids_cover(&c->ids, from, to))
                return false;
        if (list->last_amend)
                ids_set_amend(&c->ids, list->last_amend);
        return true;
}

/* ---- under the lock ---- */

int conv_cover_ids(struct files_conv *c, struct steno_error *err)
{
        uint64_t from = ids_covered(&c->ids);
        if (from == c->at.end)
                return 0;
        if (c->ids.fd < 0 && conv_has_strange(c, "ids.idx")) {
                int moved = quarantine_entry(c, "ids.idx", "not a file", err);
                if (moved)
                        return moved;
        }
        struct log_cursor cursor;
        struct ids_list list = {0};
        int rc = 0;
        bool kept = true;
        log_cursor_init(&cursor, c->store->env->fs, c->log, from, c->at.end);
        while (rc == 0 && kept && from < c->at.end) {
                uint64_t next = from;
                list.n = 0;
                list.last_amend = 0;
                rc = collect(&cursor, c->at.end, COVER_STEP, &list, &next, err);
                kept = rc == 0 && add_list(c, from, next, &list);
                from = next;
        }
        if (rc == 0 && kept)
                ids_flush(&c->ids);
        /* An index that could not be updated must not answer "new" for an id that is in the log. */
        if (rc == 0 && ids_covered(&c->ids) != c->at.end)
                rc = error_set(
                    err, STENO_EIO, "ids.idx of conversation \"%.100s\" cannot be written", c->id);
        log_cursor_release(&cursor);
        ids_list_release(&list);
        return rc;
}

int conv_lookup(struct files_conv *c, uint64_t hash, int (*each)(void *ctx, uint64_t at), void *ctx,
    struct steno_error *err)
{
        int found = 0;
        for (int tries = 0; tries < 2; tries++) {
                if (tries && conv_ids_are_behind(c))
                        return CONV_EBEHIND;
                int rc = conv_cover_ids(c, err);
                if (rc)
                        return rc;
                found = ids_lookup(&c->ids, hash, each, ctx);
                if (found >= 0)
                        return found;
        }
        return error_sys(err, found, "reading ids.idx");
}

/* ---- without the lock ---- */

/* One who catches up. What is synced stays as it is (I6), so it can be read without the lock. */
struct catching {
        struct files_conv *conv;
        int log;
        uint64_t log_ino;
        uint64_t covered; /* by the index, when it was looked at */
        uint64_t synced;  /* bytes of the log */
};

static int catching_look(struct catching *k, struct steno_error *err)
{
        struct log_end end;
        struct ids ids;
        int rc = conv_find_end(k->conv, k->log, NULL, &ids, &end, err);
        if (rc)
                return rc;
        k->log_ino = ids.log;
        k->covered = ids_covered(&ids);
        k->synced = end.synced.size < end.end ? end.synced.size : end.end;
        ids_close(&ids);
        return 0;
}

static bool catching_is_near(const struct catching *k)
{
        return k->synced <= k->covered || k->synced - k->covered <= COVER_IN_LOCK;
}

static int lock_same_log(const struct catching *k, bool *same, struct steno_error *err)
{
        int rc = files_conv_lock(k->conv, err);
        if (rc)
                return rc;
        rc = conv_refresh(k->conv, err);
        if (rc)
                files_conv_unlock(k->conv);
        *same = rc == 0 && k->conv->log_ino == k->log_ino;
        return rc;
}

/* The index ends somewhere: what follows is added step by step, and others write in between. */
static int cover_in_steps(const struct catching *k, struct steno_error *err)
{
        struct log_cursor cursor;
        struct ids_list list = {0};
        uint64_t from = k->covered;
        bool goes_on = true;
        int rc = 0;
        log_cursor_init(&cursor, k->conv->store->env->fs, k->log, from, k->synced);
        while (rc == 0 && goes_on && from < k->synced) {
                uint64_t next = from;
                list.n = 0;
                list.last_amend = 0;
                rc = collect(&cursor, k->synced, COVER_STEP, &list, &next, err);
                if (rc == 0)
                        rc = lock_same_log(k, &goes_on, err);
                if (rc)
                        break;
                goes_on = goes_on && add_list(k->conv, from, next, &list);
                files_conv_unlock(k->conv);
                from = next;
        }
        log_cursor_release(&cursor);
        ids_list_release(&list);
        return rc;
}

/* Reads the log until so little is left that it can be read under the lock. */
static int collect_all(
    struct catching *k, struct ids_list *list, uint64_t *covered, struct steno_error *err)
{
        *covered = 0;
        for (int pass = 0; pass < COVER_PASSES && k->synced - *covered > COVER_IN_LOCK; pass++) {
                struct log_cursor cursor;
                log_cursor_init(&cursor, k->conv->store->env->fs, k->log, *covered, k->synced);
                int rc = collect(&cursor, k->synced, SIZE_MAX, list, covered, err);
                log_cursor_release(&cursor);
                uint64_t ino = k->log_ino;
                if (rc == 0)
                        rc = catching_look(k, err);
                if (rc || k->log_ino != ino || k->synced < *covered)
                        return rc;
        }
        return 0;
}

static int adopt(const struct catching *k, struct ids *build, struct steno_error *err)
{
        struct files_conv *c = k->conv;
        bool same;
        int rc = lock_same_log(k, &same, err);
        if (rc)
                return rc;
        if (same && ids_covered(&c->ids) < ids_covered(build) && ids_covered(build) <= c->at.end)
                rc = ids_build_adopt(&c->ids, build);
        files_conv_unlock(c);
        return rc ? error_sys(err, rc, "writing ids.idx") : 0;
}

/* There is no index that could be continued. */
static int build_new(struct catching *k, struct steno_error *err)
{
        struct files_store *s = k->conv->store;
        struct ids_list list = {0};
        struct ids build;
        uint64_t covered;
        int sys = ids_build_begin(&build, s->env, s->boot, k->conv->dir, k->log_ino);
        if (sys < 0)
                return error_sys(err, sys, "making ids.idx");
        if (sys > 0)
                return 0;
        int rc = catching_look(k, err); /* it may have been made while we waited */
        if (rc == 0 && k->covered == 0) {
                rc = collect_all(k, &list, &covered, err);
                if (rc == 0 && (sys = ids_build_write(&build, &list, covered)) != 0)
                        rc = error_sys(err, sys, "making ids.idx");
                if (rc == 0)
                        rc = adopt(k, &build, err);
        }
        ids_list_release(&list);
        ids_build_end(&build);
        return rc;
}

int conv_catch_up_ids(struct files_conv *c, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct catching k = {.conv = c};
        k.log = fs->open(fs, c->dir, "messages.jsonl", O_RDONLY, 0);
        if (k.log < 0)
                return error_sys(err, k.log, "reading messages.jsonl");
        int rc = 0;
        for (int pass = 0; rc == 0 && pass < COVER_PASSES; pass++) {
                rc = catching_look(&k, err);
                if (rc || catching_is_near(&k))
                        break;
                rc = k.covered ? cover_in_steps(&k, err) : build_new(&k, err);
        }
        fs->close(fs, k.log);
        return rc;
}

int conv_settle_ids(struct files_conv *c, struct steno_error *err)
{
        struct ids_settling s;
        int rc = files_conv_lock(c, err);
        if (rc)
                return rc;
        rc = conv_refresh(c, err);
        if (rc == 0 && !conv_ids_are_behind(c))
                rc = conv_cover_ids(c, err);
        bool begun = rc == 0 && ids_settle_begin(&c->ids, &s);
        files_conv_unlock(c);
        if (!begun)
                return rc;
        int sys = ids_settle_sync(c->store->env, &s);
        rc = files_conv_lock(c, err);
        if (rc) {
                c->store->env->fs->close(c->store->env->fs, s.fd);
                return rc;
        }
        rc = conv_refresh(c, err);
        ids_settle_end(&c->ids, &s, rc == 0 && sys == 0);
        files_conv_unlock(c);
        return rc;
}
