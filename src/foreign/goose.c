/*
 * goose.c - goose: a database of sessions and messages; before that, a file of lines for each
 * session.
 */
#include "foreign/said.h"
#include "foreign/foreign_kinds.h"
#include "foreign/rows.h"

#include "base/env.h"
#include "base/error.h"

static const struct foreign_place PLACES[] = {
    {"GOOSE_PATH_ROOT", "data/sessions", ".local/share/goose/sessions"},
    {NULL, NULL, NULL},
};

/* ---- content, the same in both ---- */

static int put_response(struct foreign *t, json_ref part, struct str id, struct str at)
{
        const struct json *j = &t->j;
        json_ref result = json_get(j, part, "toolResult"), value = json_get(j, result, "value");
        struct made_result r = made_result_of(foreign_text(t, j, json_get(j, part, "id")), STR(""));
        json_ref content = json_get(j, value, "content");
        if (content == JSON_NONE)
                content = value;
        r.error = json_is(j, json_get(j, result, "status"), "error") ||
                  json_bool(j, json_get(j, value, "isError"), false);
        if (json_get(j, result, "error") != JSON_NONE)
                content = json_get(j, result, "error");
        buf_clear(&t->a);
        said_output(j, content, &t->a, &r.error);
        r.text = buf_str(&t->a);
        r.has_exit =
            made_find_exit(r.text.n > 300 ? str_span(r.text.p, 300) : r.text, &r.exit_code);
        r.error = r.error || (r.has_exit && r.exit_code != 0);
        buf_clear(&t->b);
        if (id.n) {
                buf_put_str(&t->b, id);
                buf_putc(&t->b, ':');
                buf_put_str(&t->b, r.call);
        }
        return made_put_result(t, &r, buf_str(&t->b), at, json_raw(j, part));
}

static void add_part(struct foreign *t, struct made *m, json_ref p)
{
        const struct json *j = &t->j;
        json_ref type = json_get(j, p, "type");
        if (json_is(j, type, "toolRequest")) {
                json_ref call = json_get(j, json_get(j, p, "toolCall"), "value");
                made_call(m, foreign_text(t, j, json_get(j, p, "id")),
                    foreign_text(t, j, json_get(j, call, "name")), j,
                    json_get(j, call, "arguments"));
        } else if (json_is(j, type, "thinking")) {
                made_thinking(m, j, json_get(j, p, "thinking"));
        } else {
                made_text(m, j, json_get(j, p, "text"));
        }
}

/* t->j is the document that `content` belongs to. */
static int put_content(
    struct foreign *t, json_ref content, bool assistant, bool hidden, struct str id, struct str at)
{
        const struct json *j = &t->j;
        struct made m;
        size_t responses = 0;
        int rc = 0;
        made_init(&m, assistant ? "assistant" : "user");
        m.hidden = hidden;
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p)) {
                if (json_is(j, json_get(j, p, "type"), "toolResponse"))
                        responses++;
                else
                        add_part(t, &m, p);
        }
        if (made_any(&m) || !responses)
                rc = made_put(&m, t, id, at, json_raw(j, content));
        made_release(&m);
        for (json_ref p = json_child(j, content); rc == 0 && responses && p != JSON_NONE;
             p = json_next(j, content, p))
                if (json_is(j, json_get(j, p, "type"), "toolResponse"))
                        rc = put_response(t, p, id, at);
        return rc;
}

/* ---- the database ---- */

static bool goose_is(const struct foreign_probe *p)
{
        return rows_have(p->db, "messages", "session_id,role,content_json,created_timestamp") &&
               rows_have(p->db, "sessions", "id");
}

static int read_messages(struct foreign *t, struct str session)
{
        bool meta = rows_have(t->db, "messages", "metadata_json");
        sqlite3_stmt *s = rows_open(t->db,
            meta ? "SELECT id,role,content_json,created_timestamp,metadata_json FROM messages"
                   " WHERE session_id=?1 ORDER BY created_timestamp,id"
                 : "SELECT id,role,content_json,created_timestamp,NULL FROM messages"
                   " WHERE session_id=?1 ORDER BY created_timestamp,id");
        struct json m;
        int rc = s ? 0 : error_set(t->err, STENO_ECORRUPT, "%.120s: no messages", t->path);
        json_init(&m);
        if (s)
                sqlite3_bind_text(s, 1, session.p, (int)session.n, SQLITE_TRANSIENT);
        while (rc == 0 && (rc = rows_next(s, t)) == 1) {
                char at[TIME_TEXT];
                struct str raw;
                arena_reset(&t->line);
                int64_t when = sqlite3_column_int64(s, 3);
                time_format(when > 100000000000 ? when : when * 1000, at);
                bool hidden = rows_json(s, 4, &m, &raw) &&
                              json_type(&m, json_get(&m, 0, "userVisible")) == JSON_FALSE;
                if (!rows_json(s, 2, &t->j, &raw) || json_type(&t->j, 0) != JSON_ARRAY) {
                        t->sink.damaged(t->sink.ctx);
                        rc = 0;
                        continue;
                }
                rc = put_content(t, 0, str_is(rows_text(s, 1), "assistant"), hidden,
                    foreign_join(t, rows_text(s, 0), ""), str_of(at));
        }
        json_release(&m);
        sqlite3_finalize(s);
        return rc;
}

static int goose_read(struct foreign *t)
{
        const char *title = rows_have(t->db, "sessions", "name") ? "name" : "description";
        bool titled = rows_have(t->db, "sessions", title);
        bool cwd = rows_have(t->db, "sessions", "working_dir");
        buf_clear(&t->b);
        buf_printf(&t->b, "SELECT id,%s,%s FROM sessions ORDER BY id", titled ? title : "NULL",
            cwd ? "working_dir" : "NULL");
        const char *sql = buf_cstr(&t->b);
        sqlite3_stmt *s = sql ? rows_open(t->db, sql) : NULL;
        int rc = s ? 0 : error_set(t->err, STENO_ECORRUPT, "%.120s: no sessions", t->path);
        while (rc == 0 && (rc = rows_next(s, t)) == 1) {
                t->session = (struct foreign_session){
                    .id = rows_text(s, 0), .title = rows_text(s, 1), .cwd = rows_text(s, 2)};
                rc = t->sink.begin(t->sink.ctx, &t->session);
                if (rc == 0)
                        rc = read_messages(t, t->session.id);
        }
        sqlite3_finalize(s);
        return rc;
}

const struct foreign_kind foreign_goose = {
    .name = "goose",
    .shape = FOREIGN_DATABASE,
    .places = PLACES,
    .is = goose_is,
    .read = goose_read,
};

/* ---- lines ---- */

static bool lines_is(const struct foreign_probe *p)
{
        const struct json *j = p->first;
        return json_get(j, 0, "working_dir") != JSON_NONE &&
               json_get(j, 0, "message_count") != JSON_NONE;
}

static int lines_identify(struct foreign *t, const struct foreign_probe *p)
{
        foreign_learn(t, &t->session.title, p->first, json_get(p->first, 0, "description"));
        foreign_learn(t, &t->session.cwd, p->first, json_get(p->first, 0, "working_dir"));
        return 0;
}

static int lines_line(struct foreign *t)
{
        const struct json *j = &t->j;
        json_ref content = json_get(j, 0, "content");
        char at[TIME_TEXT] = "";
        int64_t when;
        if (json_get(j, 0, "working_dir") != JSON_NONE) {
                foreign_skip(t);
                return 0;
        }
        if (json_i64(j, json_get(j, 0, "created"), &when))
                time_format(when > 100000000000 ? when : when * 1000, at);
        if (json_type(j, content) != JSON_ARRAY)
                return foreign_other(t, STR(""), str_of(at), t->raw);
        return put_content(t, content, json_is(j, json_get(j, 0, "role"), "assistant"), false,
            foreign_text(t, j, json_get(j, 0, "id")), str_of(at));
}

const struct foreign_kind foreign_goose_lines = {
    .name = "goose",
    .shape = FOREIGN_LINES,
    .is = lines_is,
    .identify = lines_identify,
    .line = lines_line,
};
