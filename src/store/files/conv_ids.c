/*
 * conv_ids.c - keeping ids.idx of an open conversation level with its log.
 */
#include "store/files/conv.h"

#include "base/error.h"
#include "base/json.h"

/* Puts the id of a record, and its key, into the index. 1: it could not be kept. */
static int add_record(
    struct files_conv *c, const struct log_line *line, struct buf *text, struct steno_error *err)
{
        struct str key;
        buf_clear(text);
        json_unescape(line->rec.id, text, NULL);
        if (text->failed)
                return buf_check(text, err);
        if (!ids_add(&c->ids, ids_hash_id(buf_str(text)), line->at))
                return 1;
        if (str_starts(line->rec.x, "{\"kind\":"))
                ids_set_amend(&c->ids, line->rec.seq);
        if (!about_key(line->rec.x, &key))
                return 0;
        buf_clear(text);
        json_unescape(key, text, NULL);
        if (text->failed)
                return buf_check(text, err);
        return !ids_add(&c->ids, ids_hash_key(buf_str(text)), line->at);
}

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
        struct log_line line;
        struct buf text;
        int rc;
        buf_init(&text, 0);
        log_cursor_init(&cursor, c->store->env->fs, c->log, from, c->at.end);
        while ((rc = log_next(&cursor, &line, err)) == 1) {
                if (line.damaged)
                        continue;
                uint64_t next = line.at + line.rec.line.n + 1;
                rc = add_record(c, &line, &text, err);
                if (rc || !ids_cover(&c->ids, from, next))
                        break;
                from = next;
        }
        if (rc == 0) {
                ids_cover(&c->ids, from, c->at.end);
                ids_flush(&c->ids);
        }
        /* An index that could not be kept must not answer "new" for what is there. */
        if (rc >= 0)
                rc = ids_covered(&c->ids) == c->at.end
                         ? 0
                         : error_set(err, STENO_EIO,
                               "ids.idx of conversation \"%.100s\" cannot be written", c->id);
        log_cursor_release(&cursor);
        buf_release(&text);
        return rc;
}

int conv_lookup(struct files_conv *c, uint64_t hash, int (*each)(void *ctx, uint64_t at), void *ctx,
    struct steno_error *err)
{
        int found = 0;
        for (int tries = 0; tries < 2; tries++) {
                int rc = conv_cover_ids(c, err);
                if (rc)
                        return rc;
                found = ids_lookup(&c->ids, hash, each, ctx);
                if (found >= 0)
                        return found;
        }
        return error_sys(err, found, "reading ids.idx");
}
