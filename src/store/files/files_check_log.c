/*
 * files_check_log.c - the log of a conversation, record by record (check.h).
 *
 * The end is looked for under the lock, because half of what a writer is just writing is not
 * damage; the walk needs none.
 */
#include "store/files/files_check_work.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "store/files/rewrite.h"

struct log_check {
        struct check *k;
        int fd;
        struct log_end at;
        struct ids ids;
        bool ids_differ;
        bool mended;        /* damage was, in the log that has taken the place of this one */
        bool lost;          /* there is, or will be, a tombstone of what was damaged */
        uint64_t lost_from; /* the tombstones of lost records at work, 0: none, */
        uint64_t lost_upto; /* one behind the other, */
        bool lost_before;   /* and all of them from before the fork was made, or none */
        struct pairing *pairing;
        struct arena arena;
        struct buf line; /* of a record that is compared */
        struct buf id;   /* of the record at work */
        struct buf other;
        uint32_t next;  /* index that the batch at work wants next, 0: a new one */
        uint32_t count; /* of the batch at work */
        uint64_t batch_seq;
};

/* ---- the end ---- */

/* `strange`: there is something else in its place. */
static int look_at_end(struct log_check *l, bool strange)
{
        struct check *k = l->k;
        struct files_conv *c = k->conv;
        int rc = files_conv_lock(c, k->err);
        if (rc)
                return rc;
        l->fd = strange ? -ENOENT : k->fs->open(k->fs, c->dir, "messages.jsonl", O_RDONLY, 0);
        bool missing = l->fd == -ENOENT;
        if (l->fd >= 0 || missing)
                rc = conv_find_end(c, l->fd, &c->ids, &l->ids, &l->at, k->err);
        else
                rc = error_sys(k->err, l->fd, "opening messages.jsonl");
        if (rc == 0 && k->repair)
                rc = conv_repair(c, k->err); /* a torn tail goes to the quarantine, */
        /* If a log is lost together with its index, its length is unknown: one tombstone stands for
         * all of it.
         */
        if (rc == 0 && k->repair && missing && c->at.last_seq == 0)
                c->at.last_seq = l->at.last_seq = 1;
        if (rc == 0 && k->repair)
                rc = rewrite_mended(c, &l->mended, k->err); /* and damage */
        files_conv_unlock(c);
        if (k->repair)
                rc = files_check_wrote(k, rc);
        if (rc == 0 && missing && !strange)
                rc = files_check_tell(
                    k, 0, files_check_repaired(k, true), "messages.jsonl is missing");
        k->torn = !k->repair && (missing || l->at.inside_line || l->at.end < l->at.size ||
                                    l->ids.mark.size > l->at.size);
        if (rc == 0 && l->at.end < l->at.size)
                rc = files_check_tell(k, 0, files_check_repaired(k, true),
                    "%llu bytes after the last whole record are torn (from byte %llu)",
                    (unsigned long long)(l->at.size - l->at.end), (unsigned long long)l->at.end);
        return rc;
}

/* ---- records that are lost ---- */

/*
 * Records that a repair has replaced by tombstones stay lost. Every check reports them, with one
 * finding for consecutive records. The check that repairs and all later ones use the same words,
 * because a loss is accepted by these words. In a copy, records are missing at the end if the log
 * was copied before ids.idx.
 */
static int tell_lost(struct log_check *l)
{
        uint64_t from = l->lost_from, upto = l->lost_upto;
        bool last = l->fd >= 0 && upto == l->at.last_seq;
        enum check_state state = last ? CHECK_LOST_LAST : CHECK_LOST;
        l->lost_from = l->lost_upto = 0;
        if (from == 0)
                return 0;
        if (l->lost_before)
                state = CHECK_LOST_BEFORE;
        if (from == upto)
                return files_check_tell(l->k, from, state,
                    "the record is lost: it was damaged or missing when it was repaired");
        return files_check_tell(l->k, from, state,
            "the records up to seq %llu are lost: they were damaged or missing when they were "
            "repaired",
            (unsigned long long)upto);
}

/* `before`: it came along when the fork was made. */
static int note_lost(struct log_check *l, uint64_t from, uint64_t upto, bool before)
{
        bool behind = l->lost_upto + 1 == from && l->lost_before == before;
        int rc = l->lost_from && !behind ? tell_lost(l) : 0;
        l->lost = true;
        l->lost_before = before;
        l->lost_from = l->lost_from ? l->lost_from : from;
        l->lost_upto = upto;
        return rc;
}

/* ---- one record ---- */

static int check_damage(struct log_check *l, const struct log_line *line)
{
        enum check_state state = files_check_repaired(l->k, l->mended);
        l->next = 0;
        l->batch_seq = 0;
        int rc =
            l->mended && line->first_seq ? note_lost(l, line->first_seq, line->last_seq, false) : 0;
        if (rc)
                return rc;
        if (line->first_seq == 0)
                return files_check_tell(l->k, 0, state,
                    "the line at byte %llu is not a record, or not in its place",
                    (unsigned long long)line->at);
        if (line->first_seq == line->last_seq)
                return files_check_tell(l->k, line->first_seq, state,
                    "the record cannot be read, or is missing (at byte %llu)",
                    (unsigned long long)line->at);
        return files_check_tell(l->k, line->first_seq, state,
            "the records up to seq %llu cannot be read, or are missing (at byte %llu)",
            (unsigned long long)line->last_seq, (unsigned long long)line->at);
}

static int check_batch(struct log_check *l, const struct record *rec)
{
        int rc = 0;
        bool goes_on = l->next > 0 && rec->batch_index == l->next && rec->batch_count == l->count;
        bool begins = l->next == 0 && rec->batch_index == 0;
        /* A batch that begins in its middle behind damage was reported with the damage. */
        if (!goes_on && !begins && l->batch_seq)
                rc = files_check_tell(l->k, rec->seq, CHECK_STAYS,
                    "the batch that begins at seq %llu has not all of its records",
                    (unsigned long long)l->batch_seq);
        if (rec->batch_index == 0)
                l->batch_seq = rec->seq;
        l->count = rec->batch_count;
        l->next = rec->batch_index + 1 == rec->batch_count ? 0 : rec->batch_index + 1;
        return rc;
}

static int check_pairs(struct log_check *l, const struct record *rec, const struct about *about)
{
        struct pairing_match *m = arena_alloc(&l->arena, (about->answer_count + 1) * sizeof *m);
        if (!m || pairing_follow(l->pairing, rec->seq, buf_str(&l->id), about, m, NULL))
                return error_nomem(l->k->err);
        bool marked = about->orphan || about->duplicate || str_is(about->kind, "tombstone");
        for (size_t i = 0; i < about->answer_count && !marked; i++) {
                if (m[i].verdict == PAIRING_OK || m[i].gone)
                        continue;
                struct str id = about->answers[i];
                int rc = files_check_tell(l->k, rec->seq, CHECK_STAYS,
                    m[i].verdict == PAIRING_ORPHAN
                        ? "the result for \"%.*s\" answers no call, and is not marked so"
                        : "the result for \"%.*s\" is a second one, and is not marked so",
                    (int)(id.n > 100 ? 100 : id.n), id.p);
                if (rc)
                        return rc;
        }
        return 0;
}

struct ids_look {
        struct log_check *l;
        uint64_t at;
        bool found;
        bool twice;
};

static int look_candidate(void *ctx, uint64_t at)
{
        struct ids_look *look = ctx;
        struct log_check *l = look->l;
        struct record rec;
        if (at == look->at) {
                look->found = true;
                return 0;
        }
        if (at > look->at || log_read_at(l->k->fs, l->fd, l->at.end, at, &l->line, &rec, NULL) != 0)
                return 0;
        buf_clear(&l->other);
        json_unescape(rec.id, &l->other, NULL);
        look->twice = look->twice || str_eq(buf_str(&l->other), buf_str(&l->id));
        return 0;
}

static int check_id(struct log_check *l, const struct record *rec, uint64_t at)
{
        struct ids_look look = {.l = l, .at = at};
        buf_clear(&l->id);
        json_unescape(rec->id, &l->id, NULL);
        if (l->id.failed)
                return buf_check(&l->id, l->k->err);
        if (at >= ids_covered(&l->ids))
                return 0;
        ids_lookup(&l->ids, ids_hash_id(buf_str(&l->id)), look_candidate, &look);
        l->ids_differ = l->ids_differ || !look.found;
        return look.twice ? files_check_tell(l->k, rec->seq, CHECK_STAYS,
                                "the id \"%.*s\" stands on an earlier record as well",
                                (int)(l->id.n > 100 ? 100 : l->id.n), l->id.p)
                          : 0;
}

static int check_record(struct log_check *l, const struct log_line *line)
{
        struct check *k = l->k;
        struct about about;
        const struct record *rec = &line->rec;
        arena_reset(&l->arena);
        int rc = check_batch(l, rec);
        if (rc == 0)
                rc = check_id(l, rec, line->at);
        if (rc)
                return rc;
        if (!json_valid(rec->m.p, rec->m.n, NULL))
                return files_check_tell(k, rec->seq, CHECK_STAYS, "the message is not JSON");
        struct steno_error why = {0};
        rc = about_read(rec->x, &l->arena, &about, &why);
        if (rc == STENO_ECORRUPT)
                return files_check_tell(k, rec->seq, CHECK_STAYS, "its description: %s", why.msg);
        if (rc)
                return error_nomem(k->err);
        rc = about.lost ? note_lost(l, rec->seq, rec->seq, files_check_lost_before(k, rec))
                        : tell_lost(l);
        if (rc)
                return rc;
        about.orphan = about.orphan || l->lost; /* its call may be in the records that were lost */
        rc = check_pairs(l, rec, &about);
        if (rc == 0)
                rc = files_check_journal_of(k, rec->seq, &about);
        return rc ? rc : files_check_refs(k, rec->seq, &about, rec->m);
}

/* ---- all of it ---- */

static int repair_ids(struct check *k)
{
        int rc = files_conv_lock(k->conv, k->err);
        if (rc)
                return rc;
        rc = conv_refresh(k->conv, k->err);
        if (rc == 0) {
                ids_reset(&k->conv->ids, true);
                rc = conv_cover_ids(k->conv, k->err);
        }
        files_conv_unlock(k->conv);
        return rc;
}

static int walk(struct log_check *l)
{
        struct log_cursor cursor;
        struct log_line line;
        int rc;
        log_cursor_init(&cursor, l->k->fs, l->fd, 0, l->at.end);
        while ((rc = log_next_upto(&cursor, l->at.last_seq, &line, l->k->err)) == 1) {
                rc = line.damaged ? check_damage(l, &line) : check_record(l, &line);
                if (rc)
                        break;
        }
        log_cursor_release(&cursor);
        return rc ? rc : tell_lost(l);
}

/* A fork has all that it took. */
static int check_cut(struct log_check *l)
{
        uint64_t seq = files_check_forked_seq(l->k);
        return seq <= l->at.last_seq
                   ? 0
                   : files_check_tell(l->k, 0, CHECK_STAYS,
                         "meta.json says that it was forked at record %llu; the last one is %llu",
                         (unsigned long long)seq, (unsigned long long)l->at.last_seq);
}

int files_check_log(struct check *k)
{
        enum files_check_entry entry;
        int rc = files_check_entry(k, "messages.jsonl", &entry);
        if (rc || entry == ENTRY_LINK)
                return rc;
        struct log_check l = {.k = k, .fd = -1, .pairing = pairing_new()};
        if (!l.pairing)
                return error_nomem(k->err);
        arena_init(&l.arena);
        buf_init(&l.line, 0);
        buf_init(&l.id, 0);
        buf_init(&l.other, 0);
        rc = look_at_end(&l, entry == ENTRY_STAYS);
        if (rc == 0)
                rc = walk(&l);
        if (rc == 0)
                rc = check_cut(&l);
        if (rc == 0 && l.ids_differ) {
                if (k->repair)
                        rc = files_check_wrote(k, repair_ids(k));
                if (rc == 0)
                        rc = files_check_tell(k, 0, files_check_repaired(k, true),
                            "ids.idx does not know every record; it is derived, and can be "
                            "rebuilt");
        }
        ids_close(&l.ids);
        if (l.fd >= 0)
                k->fs->close(k->fs, l.fd);
        buf_release(&l.line);
        buf_release(&l.id);
        buf_release(&l.other);
        arena_release(&l.arena);
        pairing_free(l.pairing);
        return rc;
}
