/*
 * cline.c - Cline's command line (<id>.messages.json), and the tasks of Cline and Roo in an editor
 * (api_conversation_history.json). All are documents that the tool rewrites at every turn.
 */
#include "foreign/said.h"
#include "foreign/foreign_kinds.h"

#include <string.h>

#include "base/env.h"

static const struct foreign_place CLINE_PLACES[] = {
    {"CLINE_SESSION_DATA_DIR", "", ".cline/data/sessions"},
    {"CLINE_DATA_DIR", "sessions", NULL},
    {"CLINE_DIR", "data/sessions", NULL},
    {NULL, "", ".cline/data/tasks"},
    {NULL, NULL, NULL},
};

static const struct foreign_place ROO_PLACES[] = {
    {NULL, "", ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"},
    {NULL, "", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks"},
    {NULL, NULL, NULL},
};

static bool cline_is(const struct foreign_probe *p)
{
        const struct json *j = p->whole;
        return json_get(j, 0, "sessionId") != JSON_NONE && json_get(j, 0, "agent") != JSON_NONE &&
               json_type(j, json_get(j, 0, "messages")) == JSON_ARRAY;
}

/* The argument text that the tool could not parse; the tool stores it beside the call. */
static struct str raw_arguments(struct foreign *t, json_ref message, struct str call)
{
        const struct json *j = &t->j;
        json_ref list = json_get(j, json_get(j, message, "metadata"), "invalidToolCalls");
        for (json_ref c = json_child(j, list); c != JSON_NONE; c = json_next(j, list, c))
                if (json_is_str(j, json_get(j, c, "toolCallId"), call))
                        return foreign_text(
                            t, j, json_get(j, json_get(j, c, "input"), "rawInputText"));
        return STR("");
}

static int take_messages(struct foreign *t, json_ref list)
{
        const struct json *j = &t->j;
        int rc = 0;
        for (json_ref m = json_child(j, list); rc == 0 && m != JSON_NONE;
             m = json_next(j, list, m)) {
                char at[TIME_TEXT];
                struct said_message b = {.message = m,
                    .id = foreign_text(t, j, json_get(j, m, "id")),
                    .at = foreign_time(j, json_get(j, m, "ts"), at),
                    .arguments = raw_arguments};
                if (json_type(j, json_get(j, m, "role")) == JSON_STRING)
                        rc = said_put(t, &b);
                else
                        rc = foreign_other(t, b.id, b.at, json_raw(j, m));
        }
        return rc;
}

/* Reads <id>.json beside the file. It has the title, and the prompt of a session that was killed
 * before its first answer. */
static int read_session(struct foreign *t, bool empty)
{
        struct json j;
        int rc = 0;
        struct str name = foreign_stem(t->path, ".messages.json");
        struct buf text;
        buf_init(&text, 0);
        json_init(&j);
        if (foreign_side(t, 0, foreign_join(t, name, ".json"), &text) &&
            json_parse(&j, text.p, text.n, NULL, NULL) == 0) {
                json_ref meta = json_get(&j, 0, "metadata");
                foreign_learn(t, &t->session.title, &j, json_get(&j, meta, "title"));
                foreign_learn(t, &t->session.model, &j, json_get(&j, 0, "model"));
                foreign_learn(t, &t->session.cwd, &j, json_get(&j, 0, "cwd"));
                json_ref prompt = json_get(&j, 0, "prompt");
                rc = t->sink.begin(t->sink.ctx, &t->session);
                if (rc == 0 && empty && json_inner(&j, prompt).n) {
                        struct made m;
                        made_init(&m, "user");
                        made_text(&m, &j, prompt);
                        rc = made_put(&m, t, STR(""), json_inner(&j, json_get(&j, 0, "started_at")),
                            json_raw(&j, prompt));
                        made_release(&m);
                }
        } else {
                rc = t->sink.begin(t->sink.ctx, &t->session);
        }
        json_release(&j);
        buf_release(&text);
        return rc;
}

static int cline_read(struct foreign *t)
{
        const struct json *j = &t->j;
        json_ref list = json_get(j, 0, "messages");
        struct foreign_session *s = &t->session;
        struct str session = foreign_text(t, j, json_get(j, 0, "sessionId"));
        struct str file = foreign_stem(t->path, ".messages.json");
        s->id = foreign_keep(t, session);
        if (str_starts(file, "agent_")) {
                s->parent = s->id;
                s->id = foreign_keep(t, file);
                s->origin = "subagent";
        }
        foreign_learn(t, &s->version, j, json_get(j, json_get(j, 0, "origin"), "version"));
        int rc = read_session(t, json_count(j, list) == 0);
        char at[TIME_TEXT];
        struct str first = foreign_time(j, json_get(j, json_child(j, list), "ts"), at);
        if (rc == 0)
                rc = foreign_instructions(t, first, j, json_get(j, 0, "system_prompt"));
        return rc ? rc : take_messages(t, list);
}

const struct foreign_kind foreign_cline = {
    .name = "cline",
    .shape = FOREIGN_DOCUMENT,
    .places = CLINE_PLACES,
    .is = cline_is,
    .read = cline_read,
};

/* ---- tasks ---- */

static bool roo_is(const struct foreign_probe *p)
{
        struct str name = foreign_stem(p->path, NULL);
        return str_is(name, "api_conversation_history.json") ||
               str_is(name, "claude_messages.json");
}

/* The name of the folder is the id of the task. */
static struct str folder_of(const char *path)
{
        const char *end = strrchr(path, '/');
        const char *start = end;
        while (start && start > path && start[-1] != '/')
                start--;
        return end ? str_span(start, (size_t)(end - start)) : str_of(path);
}

static int roo_read(struct foreign *t)
{
        struct json j;
        struct buf text;
        t->session.id = folder_of(t->path);
        buf_init(&text, 0);
        json_init(&j);
        if (foreign_side(t, 0, STR("history_item.json"), &text) &&
            json_parse(&j, text.p, text.n, NULL, NULL) == 0)
                foreign_learn(t, &t->session.title, &j, json_get(&j, 0, "task"));
        json_release(&j);
        buf_release(&text);
        int rc = t->sink.begin(t->sink.ctx, &t->session);
        json_ref list = json_type(&t->j, 0) == JSON_ARRAY ? 0 : json_get(&t->j, 0, "messages");
        return rc ? rc : take_messages(t, list);
}

const struct foreign_kind foreign_roo = {
    .name = "roo",
    .shape = FOREIGN_DOCUMENT,
    .places = ROO_PLACES,
    .is = roo_is,
    .read = roo_read,
};
