/*
 * deepchat.c - DeepChat: a database of messages, and its JSON export, in which calls have no ids.
 */
#include "foreign/foreign_kinds.h"
#include "foreign/made.h"
#include "foreign/rows.h"

#include <stdio.h>

#include "base/env.h"
#include "base/error.h"

static const struct foreign_place PLACES[] = {
    {NULL, "", ".config/DeepChat/app_db"},
    {NULL, NULL, NULL},
};

/* ---- the database ---- */

static bool deepchat_is(const struct foreign_probe *p)
{
        return rows_have(p->db, "deepchat_messages", "id,session_id,order_seq,role,content");
}

static int put_call(struct foreign *t, json_ref call, json_ref block, struct str id, struct str at)
{
        const struct json *j = &t->j;
        json_ref response = json_get(j, call, "response");
        struct made_result r = made_result_of(foreign_text(t, j, json_get(j, call, "id")),
            foreign_text(t, j, json_get(j, call, "name")));
        if (json_type(j, response) <= JSON_NULL)
                return 0;
        buf_clear(&t->a);
        if (!json_string(j, response, &t->a, NULL))
                buf_put_str(&t->a, json_raw(j, response));
        r.text = buf_str(&t->a);
        r.error = json_is(j, json_get(j, block, "status"), "error");
        r.has_exit =
            made_find_exit(r.text.n > 300 ? str_span(r.text.p, 300) : r.text, &r.exit_code);
        r.error = r.error || (r.has_exit && r.exit_code != 0);
        buf_clear(&t->b);
        buf_put_str(&t->b, id);
        buf_putc(&t->b, ':');
        buf_put_str(&t->b, r.call);
        return made_put_result(t, &r, buf_str(&t->b), at, json_raw(j, block));
}

static int put_assistant(struct foreign *t, struct str id, struct str at)
{
        const struct json *j = &t->j;
        struct made m;
        made_init(&m, "assistant");
        for (json_ref b = json_child(j, 0); b != JSON_NONE; b = json_next(j, 0, b)) {
                json_ref type = json_get(j, b, "type"), call = json_get(j, b, "tool_call");
                if (json_is(j, type, "content"))
                        made_text(&m, j, json_get(j, b, "content"));
                else if (json_is(j, type, "reasoning_content"))
                        made_thinking(&m, j, json_get(j, b, "content"));
                else if (json_is(j, type, "tool_call"))
                        made_call(&m, foreign_text(t, j, json_get(j, call, "id")),
                            foreign_text(t, j, json_get(j, call, "name")), j,
                            json_get(j, call, "params"));
                else if (json_is(j, type, "error"))
                        m.error = foreign_text(t, j, json_get(j, b, "content"));
        }
        int rc = made_put(&m, t, id, at, json_raw(j, 0));
        made_release(&m);
        for (json_ref b = json_child(j, 0); rc == 0 && b != JSON_NONE; b = json_next(j, 0, b))
                if (json_is(j, json_get(j, b, "type"), "tool_call"))
                        rc = put_call(t, json_get(j, b, "tool_call"), b, id, at);
        return rc;
}

static int put_user(struct foreign *t, struct str id, struct str at)
{
        struct made m;
        made_init(&m, "user");
        made_text(&m, &t->j, json_get(&t->j, 0, "text"));
        int rc = made_put(&m, t, id, at, json_raw(&t->j, 0));
        made_release(&m);
        return rc;
}

static int deepchat_read(struct foreign *t)
{
        sqlite3_stmt *s =
            rows_open(t->db, "SELECT id,session_id,role,content,created_at FROM deepchat_messages"
                             " ORDER BY session_id,order_seq,id");
        int rc = s ? 0 : error_set(t->err, STENO_ECORRUPT, "%.120s: no messages", t->path);
        struct buf now;
        buf_init(&now, 0);
        while (rc == 0 && (rc = rows_next(s, t)) == 1) {
                char at[TIME_TEXT];
                struct str session = rows_text(s, 1), raw;
                arena_reset(&t->line);
                rc = 0;
                if (!str_eq(session, buf_str(&now))) {
                        buf_clear(&now);
                        buf_put_str(&now, session);
                        t->session = (struct foreign_session){.id = buf_str(&now)};
                        rc = t->sink.begin(t->sink.ctx, &t->session);
                }
                time_format(sqlite3_column_int64(s, 4), at);
                if (rc == 0 && !rows_json(s, 3, &t->j, &raw)) {
                        t->sink.damaged(t->sink.ctx);
                        continue;
                }
                struct str id = foreign_join(t, rows_text(s, 0), "");
                if (rc == 0)
                        rc = json_type(&t->j, 0) == JSON_ARRAY ? put_assistant(t, id, str_of(at))
                                                               : put_user(t, id, str_of(at));
        }
        buf_release(&now);
        sqlite3_finalize(s);
        return rc;
}

const struct foreign_kind foreign_deepchat = {
    .name = "deepchat",
    .shape = FOREIGN_DATABASE,
    .places = PLACES,
    .is = deepchat_is,
    .read = deepchat_read,
};

/* ---- the export ---- */

static bool export_is(const struct foreign_probe *p)
{
        return json_is(p->whole, json_get(p->whole, 0, "source"), "deepchat") &&
               json_get(p->whole, 0, "thread_id") != JSON_NONE;
}

/* The calls of message number `index`. */
static json_ref calls_of(const struct json *j, uint64_t index)
{
        json_ref list = json_get(j, json_get(j, 0, "metadata"), "message_metadata");
        for (json_ref m = json_child(j, list); m != JSON_NONE; m = json_next(j, list, m)) {
                uint64_t n;
                if (json_u64(j, json_get(j, m, "index"), &n) && n == index)
                        return json_get(j, m, "tool_calls");
        }
        return JSON_NONE;
}

/* The export has no ids of calls, so an id is made from the call's place. */
static struct str call_id(struct foreign *t, uint64_t index, unsigned k)
{
        char text[60];
        snprintf(text, sizeof text, "call_%llu_%u", (unsigned long long)index, k);
        return foreign_join(t, STR(""), text);
}

static int export_message(struct foreign *t, json_ref message, uint64_t index)
{
        const struct json *j = &t->j;
        json_ref calls = calls_of(j, index), role = json_get(j, message, "role");
        struct made m;
        unsigned k = 0;
        made_init(&m, json_is(j, role, "assistant") ? "assistant"
                      : json_is(j, role, "system")  ? "system"
                                                    : "user");
        made_text(&m, j, json_get(j, message, "content"));
        for (json_ref c = json_child(j, calls); c != JSON_NONE; c = json_next(j, calls, c))
                made_call(&m, call_id(t, index, k++), foreign_text(t, j, json_get(j, c, "name")), j,
                    json_get(j, c, "params"));
        int rc = made_put(&m, t, STR(""), STR(""), json_raw(j, message));
        made_release(&m);
        k = 0;
        for (json_ref c = json_child(j, calls); rc == 0 && c != JSON_NONE;
             c = json_next(j, calls, c), k++) {
                json_ref response = json_get(j, c, "response");
                struct made_result r = made_result_of(
                    call_id(t, index, k), foreign_text(t, j, json_get(j, c, "name")));
                if (json_type(j, response) <= JSON_NULL)
                        continue;
                buf_clear(&t->a);
                if (!json_string(j, response, &t->a, NULL))
                        buf_put_str(&t->a, json_raw(j, response));
                r.text = buf_str(&t->a);
                rc = made_put_result(t, &r, STR(""), STR(""), json_raw(j, c));
        }
        return rc;
}

static int export_read(struct foreign *t)
{
        const struct json *j = &t->j;
        json_ref list = json_get(j, 0, "messages");
        uint64_t index = 0;
        t->session.id = STR("");
        foreign_learn(t, &t->session.id, j, json_get(j, 0, "thread_id"));
        foreign_learn(t, &t->session.title, j, json_get(j, 0, "title"));
        int rc = t->sink.begin(t->sink.ctx, &t->session);
        for (json_ref m = json_child(j, list); rc == 0 && m != JSON_NONE; m = json_next(j, list, m))
                rc = export_message(t, m, index++);
        return rc;
}

const struct foreign_kind foreign_deepchat_export = {
    .name = "deepchat",
    .shape = FOREIGN_DOCUMENT,
    .is = export_is,
    .read = export_read,
};
