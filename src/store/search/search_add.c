/*
 * search_add.c - what changes the shards of search.h: adding the blocks of a conversation,
 * forgetting one, and how far each is indexed.
 */
#include "store/search/search_shard.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* ---- what is indexed ---- */

int search_progress(struct search *s, const char *project_folder, const char *folder, uint64_t log,
    uint64_t *seq, struct steno_error *err)
{
        int rc = 0;
        *seq = 0;
        for (size_t i = 0; rc == 0 && i < s->count; i++) {
                sqlite3_stmt *q = NULL;
                rc = search_prepare(s->shards[i].db,
                    "SELECT last FROM conv WHERE project_folder=?1 AND folder=?2 AND log=?3"
                    " AND live",
                    &q, err);
                if (rc)
                        break;
                search_bind(q, 1, str_of(project_folder));
                search_bind(q, 2, str_of(folder));
                sqlite3_bind_int64(q, 3, (sqlite3_int64)log);
                while (sqlite3_step(q) == SQLITE_ROW) {
                        uint64_t last = (uint64_t)sqlite3_column_int64(q, 0);
                        *seq = last > *seq ? last : *seq;
                }
                sqlite3_finalize(q);
        }
        return rc;
}

static int each_conv(struct search *s, backend_progress_fn each, void *ctx, struct steno_error *err)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < s->count; i++) {
                sqlite3_stmt *q = NULL;
                rc = search_prepare(
                    s->shards[i].db, "SELECT project,id,log,last FROM conv WHERE live", &q, err);
                while (rc == 0 && sqlite3_step(q) == SQLITE_ROW)
                        rc = each(ctx, (const char *)sqlite3_column_text(q, 0),
                            (const char *)sqlite3_column_text(q, 1),
                            (uint64_t)sqlite3_column_int64(q, 2),
                            (uint64_t)sqlite3_column_int64(q, 3));
                sqlite3_finalize(q);
        }
        return rc;
}

int search_each_conv(struct search *s, backend_progress_fn each, void *ctx, struct steno_error *err)
{
        if (__atomic_load_n(&s->owner, __ATOMIC_ACQUIRE) == (unsigned long)pthread_self())
                return each_conv(s, each, ctx, err);
        pthread_mutex_lock(&s->mutex);
        int rc = search_shards_refresh(s, err);
        if (rc == 0)
                rc = each_conv(s, each, ctx, err);
        pthread_mutex_unlock(&s->mutex);
        return rc;
}

/* ---- adding ---- */

/* The shard to write to: the last one, unless it is full. */
static int choose_shard(struct search *s, struct steno_error *err)
{
        unsigned next = s->count ? s->shards[s->count - 1].number + 1 : 1;
        bool full = s->count && search_number(s->shards[s->count - 1].db,
                                    "SELECT bytes FROM size") >= (int64_t)SEARCH_SHARD_BYTES;
        int rc = s->count && !full ? 0 : search_shard_add(s, next, true, err);
        s->to = rc ? NULL : &s->shards[s->count - 1];
        return rc;
}

/* Rows of an earlier log of that name are worth nothing; what they said stays in the words until
 * the shard is dropped. */
static int retire_others(struct search *s, const struct search_conv *c, struct steno_error *err)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < s->count; i++) {
                sqlite3_stmt *q = NULL;
                bool any = false;
                rc = search_prepare(s->shards[i].db,
                    "SELECT 1 FROM conv WHERE project_folder=?1 AND folder=?2 AND log<>?3 AND live",
                    &q, err);
                if (rc)
                        return rc;
                search_bind(q, 1, str_of(c->project_folder));
                search_bind(q, 2, str_of(c->folder));
                sqlite3_bind_int64(q, 3, (sqlite3_int64)c->log);
                any = sqlite3_step(q) == SQLITE_ROW;
                sqlite3_finalize(q);
                if (!any)
                        continue;
                /* In this order: what is not live is not shown, and is indexed again. */
                static const char *const SQL[] = {
                    "UPDATE conv SET live=0 WHERE project_folder=?1 AND folder=?2 AND log<>?3",
                    "DELETE FROM block WHERE conv IN (SELECT key FROM conv WHERE project_folder=?1"
                    " AND folder=?2 AND log<>?3)"};
                for (size_t k = 0; rc == 0 && k < 2; k++) {
                        rc = search_prepare(s->shards[i].db, SQL[k], &q, err);
                        if (rc)
                                break;
                        search_bind(q, 1, str_of(c->project_folder));
                        search_bind(q, 2, str_of(c->folder));
                        sqlite3_bind_int64(q, 3, (sqlite3_int64)c->log);
                        if (sqlite3_step(q) != SQLITE_DONE)
                                rc = search_failed(s->shards[i].db, err);
                        sqlite3_finalize(q);
                }
        }
        return rc;
}

/* The key of the conversation in the shard that is written to. */
static int conv_key(struct search *s, const struct search_conv *c, struct steno_error *err)
{
        sqlite3 *db = s->to->db;
        sqlite3_stmt *q = NULL;
        int rc = search_prepare(db,
            "SELECT key FROM conv WHERE project_folder=?1 AND folder=?2 AND log=?3 AND live", &q,
            err);
        if (rc)
                return rc;
        search_bind(q, 1, str_of(c->project_folder));
        search_bind(q, 2, str_of(c->folder));
        sqlite3_bind_int64(q, 3, (sqlite3_int64)c->log);
        s->conv = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
        sqlite3_finalize(q);
        if (s->conv)
                return 0;
        rc = search_prepare(db,
            "INSERT INTO conv (project_folder,folder,project,id,log,last,live)"
            " VALUES (?1,?2,?3,?4,?5,0,1)",
            &q, err);
        if (rc)
                return rc;
        search_bind(q, 1, str_of(c->project_folder));
        search_bind(q, 2, str_of(c->folder));
        search_bind(q, 3, str_of(c->project));
        search_bind(q, 4, str_of(c->id));
        sqlite3_bind_int64(q, 5, (sqlite3_int64)c->log);
        if (sqlite3_step(q) != SQLITE_DONE)
                rc = search_failed(db, err);
        sqlite3_finalize(q);
        s->conv = sqlite3_last_insert_rowid(db);
        return rc;
}

int search_begin(struct search *s, const struct search_conv *c, struct steno_error *err)
{
        int rc = retire_others(s, c, err);
        if (rc == 0)
                rc = choose_shard(s, err);
        sqlite3 *db = rc ? NULL : s->to->db;
        if (rc == 0)
                rc = search_exec(db, "BEGIN IMMEDIATE", err);
        if (rc == 0)
                rc = conv_key(s, c, err);
        if (rc == 0)
                rc = search_prepare(db,
                    "INSERT INTO block VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)", &s->add_block,
                    err);
        if (rc == 0)
                rc = search_prepare(
                    db, "INSERT INTO ft (rowid,text) VALUES (?1,?2)", &s->add_words, err);
        if (rc == 0)
                rc = search_prepare(db, "SELECT id FROM name WHERE text=?1", &s->get_name, err);
        if (rc == 0)
                rc = search_prepare(db, "INSERT INTO name (text) VALUES (?1)", &s->add_name, err);
        if (rc) {
                search_rollback(s);
                return rc;
        }
        char sql[100];
        snprintf(
            sql, sizeof sql, "SELECT max(id) FROM block WHERE id<%lld", (long long)SEARCH_OUTPUTS);
        s->next_message = search_number(db, sql) + 1;
        s->next_output = search_number(db, "SELECT max(id) FROM block") + 1;
        s->next_message = s->next_message > 0 ? s->next_message : 1;
        s->next_output = s->next_output > SEARCH_OUTPUTS ? s->next_output : SEARCH_OUTPUTS;
        /* Rows may have been deleted whose words are still there. */
        int64_t docs = search_number(db, "SELECT max(id) FROM ft_docsize");
        if (docs >= SEARCH_OUTPUTS && docs >= s->next_output)
                s->next_output = docs + 1;
        snprintf(sql, sizeof sql, "SELECT max(id) FROM ft_docsize WHERE id<%lld",
            (long long)SEARCH_OUTPUTS);
        docs = search_number(db, sql);
        if (docs >= s->next_message)
                s->next_message = docs + 1;
        s->bytes = 0;
        return 0;
}

static int64_t name_id(struct search *s, struct str text)
{
        if (!text.n)
                return 0;
        search_bind(s->get_name, 1, text);
        int64_t id =
            sqlite3_step(s->get_name) == SQLITE_ROW ? sqlite3_column_int64(s->get_name, 0) : 0;
        sqlite3_reset(s->get_name);
        if (id)
                return id;
        search_bind(s->add_name, 1, text);
        if (sqlite3_step(s->add_name) == SQLITE_DONE)
                id = sqlite3_last_insert_rowid(s->to->db);
        sqlite3_reset(s->add_name);
        return id;
}

int search_add(struct search *s, const struct search_block *b, struct steno_error *err)
{
        int64_t id = b->ref.n ? s->next_output++ : s->next_message++;
        sqlite3_stmt *q = s->add_block;
        sqlite3_bind_int64(q, 1, id);
        sqlite3_bind_int64(q, 2, s->conv);
        sqlite3_bind_int64(q, 3, (sqlite3_int64)b->seq);
        if (b->ref.n)
                search_bind(q, 4, b->ref);
        else
                sqlite3_bind_null(q, 4);
        sqlite3_bind_int64(q, 5, (sqlite3_int64)b->at);
        sqlite3_bind_int64(q, 6, (sqlite3_int64)b->len);
        sqlite3_bind_int(q, 7, b->role);
        sqlite3_bind_int(q, 8, b->error);
        sqlite3_bind_int64(q, 9, name_id(s, b->tools));
        sqlite3_bind_int64(q, 10, name_id(s, b->model));
        sqlite3_bind_int64(q, 11, b->time);
        int rc = sqlite3_step(q) == SQLITE_DONE ? 0 : search_failed(s->to->db, err);
        sqlite3_reset(q);
        if (rc)
                return rc;
        q = s->add_words;
        sqlite3_bind_int64(q, 1, id);
        search_bind(q, 2, b->words);
        rc = sqlite3_step(q) == SQLITE_DONE ? 0 : search_failed(s->to->db, err);
        sqlite3_reset(q);
        s->bytes += b->len;
        return rc;
}

static void end_adding(struct search *s)
{
        sqlite3_finalize(s->add_block);
        sqlite3_finalize(s->add_words);
        sqlite3_finalize(s->get_name);
        sqlite3_finalize(s->add_name);
        s->add_block = s->add_words = s->get_name = s->add_name = NULL;
        s->to = NULL;
}

int search_commit(struct search *s, uint64_t seq, struct steno_error *err)
{
        char sql[200];
        snprintf(sql, sizeof sql,
            "UPDATE conv SET last=%llu WHERE key=%lld; UPDATE size SET bytes=bytes+%llu; COMMIT",
            (unsigned long long)seq, (long long)s->conv, (unsigned long long)s->bytes);
        sqlite3 *db = s->to->db;
        int rc = search_exec(db, sql, err);
        if (rc)
                search_rollback(s);
        else
                end_adding(s);
        return rc;
}

void search_rollback(struct search *s)
{
        if (s->to) {
                sqlite3 *db = s->to->db;
                end_adding(s);
                sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        }
}

/* ---- forgetting ---- */

static bool has_held(struct search_shard *x, const char *project_folder, const char *folder)
{
        sqlite3_stmt *q = NULL;
        if (search_prepare(
                x->db, "SELECT 1 FROM conv WHERE project_folder=?1 AND folder=?2", &q, NULL))
                return true; /* nobody can say */
        search_bind(q, 1, str_of(project_folder));
        search_bind(q, 2, str_of(folder));
        int step = sqlite3_step(q);
        sqlite3_finalize(q);
        return step != SQLITE_DONE;
}

/* What else was in a shard that goes must be indexed anew: its rows elsewhere go as well, so that
 * nothing is found twice. */
static int reset_others(struct search *s, size_t gone, struct steno_error *err)
{
        sqlite3_stmt *q = NULL;
        int rc = search_prepare(s->shards[gone].db,
            "SELECT DISTINCT project_folder,folder FROM conv WHERE live", &q, err);
        while (rc == 0 && sqlite3_step(q) == SQLITE_ROW) {
                struct search_conv c = {.project_folder = (const char *)sqlite3_column_text(q, 0),
                    .folder = (const char *)sqlite3_column_text(q, 1)};
                rc = retire_others(s, &c, err);
        }
        sqlite3_finalize(q);
        return rc == STENO_ECORRUPT ? 0 : rc;
}

int search_forget(
    struct search *s, const char *project_folder, const char *folder, struct steno_error *err)
{
        const struct fs *fs = files_env(s->store)->fs;
        struct stat st;
        if (fs->stat(fs, files_root(s->store), "search", &st) != 0)
                return 0;
        int rc = search_lock(s, true, err);
        if (rc)
                return rc;
        for (size_t i = 0; rc == 0 && i < s->count; i++) {
                if (!has_held(&s->shards[i], project_folder, folder))
                        continue;
                rc = reset_others(s, i, err);
        }
        for (size_t i = 0; rc == 0 && i < s->count;) {
                if (!has_held(&s->shards[i], project_folder, folder)) {
                        i++;
                        continue;
                }
                search_shard_close(&s->shards[i]);
                search_shard_remove(s, s->shards[i].number);
                memmove(&s->shards[i], &s->shards[i + 1], (s->count - i - 1) * sizeof *s->shards);
                s->count--;
        }
        search_unlock(s);
        return rc;
}

int search_discard(struct search *s, struct steno_error *err)
{
        int rc = search_lock(s, true, err);
        if (rc)
                return rc;
        for (size_t i = 0; i < s->count; i++) {
                search_shard_close(&s->shards[i]);
                search_shard_remove(s, s->shards[i].number);
        }
        s->count = 0;
        search_unlock(s);
        return 0;
}
