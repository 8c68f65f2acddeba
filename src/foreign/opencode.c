/*
 * opencode.c - opencode: a database of sessions, messages and parts, and what `opencode export`
 * writes.
 *
 * A message of the model holds its calls and their results as parts, and may have several steps.
 * Each step is handed out as one message. The tool changes rows in place while a session runs, so
 * the same ids come again with other bytes.
 */
#include "foreign/foreign_kinds.h"
#include "foreign/made.h"
#include "foreign/rows.h"

#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"

static const struct foreign_place PLACES[] = {
    {"XDG_DATA_HOME", "opencode", ".local/share/opencode"},
    {NULL, NULL, NULL},
};

/* The message that is being read: the step that is being collected, and its results. */
struct step {
        struct foreign *t;
        struct str id; /* the message's id */
        char at[TIME_TEXT];
        struct made said;
        struct buf entry;   /* {"message":...,"parts":[...]} of the step */
        struct buf results; /* parts of finished tools, as JSON lines */
        size_t parts;
        unsigned number;
        bool user;
};

static void step_clear(struct step *s, struct str data)
{
        made_release(&s->said);
        made_init(&s->said, s->user ? "user" : "assistant");
        buf_clear(&s->entry);
        buf_clear(&s->results);
        buf_puts(&s->entry, "{\"message\":");
        buf_put_str(&s->entry, data);
        buf_puts(&s->entry, ",\"parts\":[");
        s->parts = 0;
}

static void keep_part(struct step *s, struct str raw)
{
        if (s->parts++)
                buf_putc(&s->entry, ',');
        buf_put_str(&s->entry, raw);
}

/* ---- results ---- */

static int put_tool(struct step *s, const struct json *j, struct str raw)
{
        struct foreign *t = s->t;
        json_ref state = json_get(j, 0, "state"), meta = json_get(j, state, "metadata");
        json_ref status = json_get(j, state, "status"), time = json_get(j, state, "time");
        bool error = json_is(j, status, "error");
        struct made_result r = made_result_of(foreign_text(t, j, json_get(j, 0, "callID")),
            foreign_text(t, j, json_get(j, 0, "tool")));
        char at[TIME_TEXT];
        int64_t from, to;
        buf_clear(&t->a);
        json_string(j, json_get(j, state, error ? "error" : "output"), &t->a, NULL);
        r.text = t->a.n ? buf_str(&t->a) : STR("");
        r.has_exit = json_i64(j, json_get(j, meta, "exit"), &r.exit_code);
        r.error = error || (r.has_exit && r.exit_code != 0);
        if (json_i64(j, json_get(j, time, "start"), &from) &&
            json_i64(j, json_get(j, time, "end"), &to) && to >= from)
                r.duration = to - from;
        struct str path = foreign_text(t, j, json_get(j, meta, "outputPath"));
        /* The file is beside the database, or beside the older storage/. */
        if (path.n && (foreign_side_named(t, 0, "/tool-output/", path, &t->b) ||
                          foreign_side_named(t, 3, "/tool-output/", path, &t->b))) {
                r.seen = r.text;
                r.text = buf_str(&t->b);
        }
        struct str id = foreign_text(t, j, json_get(j, 0, "id"));
        struct str when = foreign_time(j, json_get(j, time, "end"), at);
        if (!id.n) {
                id = foreign_join(t, s->id, ":");
                buf_clear(&t->c);
                buf_put_str(&t->c, id);
                buf_put_str(&t->c, r.call);
                id = buf_str(&t->c);
        }
        return made_put_result(t, &r, id, when.n ? when : str_of(s->at), raw);
}

static int put_tools(struct step *s)
{
        struct json j;
        struct str left = buf_str(&s->results);
        int rc = 0;
        json_init(&j);
        while (rc == 0 && left.n) {
                const char *end = memchr(left.p, '\n', left.n);
                struct str one = str_span(left.p, end ? (size_t)(end - left.p) : left.n);
                rc = json_parse(&j, one.p, one.n, NULL, s->t->err);
                if (rc == 0)
                        rc = put_tool(s, &j, one);
                left = str_span(left.p + one.n + 1, left.n - one.n - (end ? 1 : 0));
                if (!end)
                        break;
        }
        json_release(&j);
        return rc;
}

/* ---- steps ---- */

static int put_step(struct step *s)
{
        struct foreign *t = s->t;
        char id[300];
        if (!made_any(&s->said) && s->number)
                return 0;
        buf_puts(&s->entry, "]}");
        if (s->number)
                snprintf(id, sizeof id, "%.*s:%u", (int)s->id.n, s->id.p, s->number + 1);
        else
                snprintf(id, sizeof id, "%.*s", (int)s->id.n, s->id.p);
        if (s->entry.failed || s->results.failed)
                return error_nomem(t->err);
        int rc = made_put(&s->said, t, str_of(id), str_of(s->at), buf_str(&s->entry));
        s->number++;
        return rc ? rc : put_tools(s);
}

static void add_tool(struct step *s, const struct json *j, struct str raw)
{
        struct foreign *t = s->t;
        json_ref state = json_get(j, 0, "state"), input = json_get(j, state, "input");
        json_ref status = json_get(j, state, "status");
        struct str name = foreign_text(t, j, json_get(j, 0, "tool"));
        if (str_is(name, "invalid") && json_inner(j, json_get(j, input, "tool")).n)
                name = foreign_text(t, j, json_get(j, input, "tool"));
        made_call(&s->said, foreign_text(t, j, json_get(j, 0, "callID")), name, j, input);
        if (json_is(j, status, "completed") || json_is(j, status, "error")) {
                buf_put_str(&s->results, raw);
                buf_putc(&s->results, '\n');
        } else {
                keep_part(s, raw); /* the call is still running, or was cut off */
        }
}

/* Takes one part. `raw` is its JSON on one line. */
static int take_part(struct step *s, const struct json *j, struct str data, struct str raw)
{
        json_ref type = json_get(j, 0, "type");
        int rc = 0;
        if (json_is(j, type, "step-start") && made_any(&s->said)) {
                rc = put_step(s);
                step_clear(s, data);
        }
        if (json_is(j, type, "tool")) {
                add_tool(s, j, raw);
                return rc;
        }
        if (json_is(j, type, "text"))
                made_text(&s->said, j, json_get(j, 0, "text"));
        else if (json_is(j, type, "reasoning"))
                made_thinking(&s->said, j, json_get(j, 0, "text"));
        keep_part(s, raw);
        return rc;
}

/* Begins a message with its own data, before its parts. */
static void begin_message(struct step *s, const struct json *j, json_ref data, struct str id)
{
        struct foreign *t = s->t;
        json_ref error = json_get(j, data, "error");
        s->id = id;
        s->number = 0;
        s->user = json_is(j, json_get(j, data, "role"), "user");
        struct str at = foreign_time(j, json_get(j, json_get(j, data, "time"), "created"), s->at);
        if (!at.n)
                s->at[0] = '\0';
        foreign_learn(t, &t->session.model, j, json_get(j, data, "modelID"));
        step_clear(s, json_raw(j, data));
        if (json_type(j, error) == JSON_OBJECT) {
                json_ref text = json_get(j, json_get(j, error, "data"), "message");
                s->said.error = json_inner(j, text).n
                                    ? foreign_text(t, j, text)
                                    : foreign_text(t, j, json_get(j, error, "name"));
        }
}

static void step_init(struct step *s, struct foreign *t)
{
        *s = (struct step){.t = t};
        made_init(&s->said, "assistant");
        buf_init(&s->entry, 0);
        buf_init(&s->results, 0);
}

static void step_release(struct step *s)
{
        made_release(&s->said);
        buf_release(&s->entry);
        buf_release(&s->results);
}

/* ---- the database ---- */

static bool opencode_is(const struct foreign_probe *p)
{
        return rows_have(p->db, "session", "id,title,directory") &&
               rows_have(p->db, "part", "id,message_id,data");
}

static int read_parts(struct step *s, sqlite3_stmt *parts, struct str data)
{
        struct json j;
        struct str raw;
        int rc;
        json_init(&j);
        while ((rc = rows_next(parts, s->t)) == 1) {
                char *line;
                if (!rows_json(parts, 1, &j, &raw) || json_type(&j, 0) != JSON_OBJECT) {
                        s->t->sink.damaged(s->t->sink.ctx);
                        continue;
                }
                /* The part's id is in its row, not in its data. */
                struct str id = rows_text(parts, 0);
                buf_clear(&s->t->c);
                struct jsonw w = jsonw_to(&s->t->c);
                jsonw_object(&w);
                jsonw_field_str(&w, "id", id);
                for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k))
                        if (!json_is(&j, k, "id"))
                                jsonw_copy_member(&w, &j, k);
                jsonw_object_end(&w);
                line = arena_alloc(&s->t->line, s->t->c.n + 1);
                if (!line || s->t->c.failed) {
                        rc = error_nomem(s->t->err);
                        break;
                }
                memcpy(line, s->t->c.p, s->t->c.n);
                json_single_line(line, s->t->c.n);
                raw = str_span(line, s->t->c.n);
                rc = json_parse(&j, raw.p, raw.n, NULL, s->t->err);
                if (rc == 0)
                        rc = take_part(s, &j, data, raw);
                if (rc)
                        break;
        }
        json_release(&j);
        return rc;
}

static int read_messages(
    struct foreign *t, struct str session, sqlite3_stmt *messages, sqlite3_stmt *parts)
{
        struct json j;
        struct step s;
        struct str raw;
        int rc;
        json_init(&j);
        step_init(&s, t);
        sqlite3_reset(messages);
        sqlite3_bind_text(messages, 1, session.p, (int)session.n, SQLITE_TRANSIENT);
        while ((rc = rows_next(messages, t)) == 1) {
                arena_reset(&t->line);
                struct str id = foreign_join(t, rows_text(messages, 0), "");
                if (!rows_json(messages, 1, &j, &raw) || json_type(&j, 0) != JSON_OBJECT) {
                        t->sink.damaged(t->sink.ctx);
                        continue;
                }
                begin_message(&s, &j, 0, id);
                sqlite3_reset(parts);
                sqlite3_bind_text(parts, 1, id.p, (int)id.n, SQLITE_TRANSIENT);
                rc = read_parts(&s, parts, raw);
                if (rc == 0)
                        rc = put_step(&s);
                if (rc)
                        break;
        }
        step_release(&s);
        json_release(&j);
        return rc;
}

static int opencode_read(struct foreign *t)
{
        sqlite3_stmt *sessions = rows_open(t->db,
            "SELECT id,title,directory,version,parent_id FROM session ORDER BY time_created,id");
        sqlite3_stmt *messages = rows_open(
            t->db, "SELECT id,data FROM message WHERE session_id=?1 ORDER BY time_created,id");
        sqlite3_stmt *parts =
            rows_open(t->db, "SELECT id,data FROM part WHERE message_id=?1 ORDER BY id");
        int rc = sessions && messages && parts ? 0
                                               : error_set(t->err, STENO_ECORRUPT, "%.120s: %s",
                                                     t->path, sqlite3_errmsg(t->db));
        while (rc == 0 && (rc = rows_next(sessions, t)) == 1) {
                t->session = (struct foreign_session){.id = rows_text(sessions, 0),
                    .title = rows_text(sessions, 1),
                    .cwd = rows_text(sessions, 2),
                    .version = rows_text(sessions, 3),
                    .parent = rows_text(sessions, 4)};
                if (t->session.parent.n)
                        t->session.origin = "subagent";
                rc = t->sink.begin(t->sink.ctx, &t->session);
                if (rc == 0)
                        rc = read_messages(t, t->session.id, messages, parts);
        }
        sqlite3_finalize(sessions);
        sqlite3_finalize(messages);
        sqlite3_finalize(parts);
        return rc;
}

const struct foreign_kind foreign_opencode = {
    .name = "opencode",
    .shape = FOREIGN_DATABASE,
    .places = PLACES,
    .is = opencode_is,
    .read = opencode_read,
};

/* ---- what opencode export writes ---- */

static bool export_is(const struct foreign_probe *p)
{
        const struct json *j = p->whole;
        json_ref first = json_child(j, json_get(j, 0, "messages"));
        return json_get(j, json_get(j, 0, "info"), "id") != JSON_NONE &&
               json_get(j, first, "info") != JSON_NONE && json_get(j, first, "parts") != JSON_NONE;
}

static int export_message(struct step *s, json_ref m)
{
        struct foreign *t = s->t;
        json_ref info = json_get(&t->j, m, "info"), parts = json_get(&t->j, m, "parts");
        struct json j;
        int rc = 0;
        json_init(&j);
        begin_message(s, &t->j, info, foreign_text(t, &t->j, json_get(&t->j, info, "id")));
        for (json_ref p = json_child(&t->j, parts); rc == 0 && p != JSON_NONE;
             p = json_next(&t->j, parts, p)) {
                struct str raw = foreign_join(t, json_raw(&t->j, p), "");
                json_single_line((char *)(uintptr_t)raw.p, raw.n);
                rc = json_parse(&j, raw.p, raw.n, NULL, t->err);
                if (rc == 0)
                        rc = take_part(s, &j, json_raw(&t->j, info), raw);
        }
        json_release(&j);
        return rc ? rc : put_step(s);
}

static int export_read(struct foreign *t)
{
        const struct json *j = &t->j;
        json_ref info = json_get(j, 0, "info"), messages = json_get(j, 0, "messages");
        struct step s;
        t->session.id = STR("");
        foreign_learn(t, &t->session.id, j, json_get(j, info, "id"));
        foreign_learn(t, &t->session.title, j, json_get(j, info, "title"));
        foreign_learn(t, &t->session.version, j, json_get(j, info, "version"));
        foreign_learn(t, &t->session.cwd, j, json_get(j, info, "directory"));
        foreign_learn(t, &t->session.parent, j, json_get(j, info, "parentID"));
        if (t->session.parent.n)
                t->session.origin = "subagent";
        int rc = t->sink.begin(t->sink.ctx, &t->session);
        step_init(&s, t);
        for (json_ref m = json_child(j, messages); rc == 0 && m != JSON_NONE;
             m = json_next(j, messages, m))
                rc = export_message(&s, m);
        step_release(&s);
        return rc;
}

const struct foreign_kind foreign_opencode_export = {
    .name = "opencode",
    .shape = FOREIGN_DOCUMENT,
    .is = export_is,
    .read = export_read,
};
