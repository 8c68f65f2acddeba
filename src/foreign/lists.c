/*
 * lists.c - documents that are, or hold, a list of messages: Acontext, LangChain and LangGraph,
 * ShareGPT, and arrays in any format that Steno reads.
 *
 * These documents do not name a session. So each file is one, and the id is made from the file's
 * name and a hash of its path.
 */
#include "foreign/said.h"
#include "foreign/foreign_kinds.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

/* Begins a session. Without an id of its own it gets "<name>-<8 digits>", and "-<n>" behind it if
 * it is the n-th of several. */
static int begin(struct foreign *t, struct str own, unsigned number)
{
        char hex[SHA256_HEX];
        struct str name = foreign_stem(t->path, ".json");
        if (own.n) {
                t->session.id = foreign_keep(t, own);
                return t->sink.begin(t->sink.ctx, &t->session);
        }
        if (hash_sha256_hex(t->path, strlen(t->path), hex))
                return error_nomem(t->err);
        buf_clear(&t->a);
        buf_put(&t->a, name.p, name.n < 40 ? name.n : 40);
        buf_printf(&t->a, "-%.8s", hex);
        if (number)
                buf_printf(&t->a, "-%u", number);
        t->session.id = foreign_keep(t, buf_str(&t->a));
        return t->a.failed ? error_nomem(t->err) : t->sink.begin(t->sink.ctx, &t->session);
}

/* Returns the document itself if it is a list, or the list in the member of this name. */
static json_ref list_in(const struct json *j, const char *member)
{
        json_ref v = json_type(j, 0) == JSON_ARRAY ? 0 : json_get(j, 0, member);
        return json_type(j, v) == JSON_ARRAY ? v : JSON_NONE;
}

/* ---- Acontext ---- */

static bool acontext_is(const struct foreign_probe *p)
{
        json_ref list = list_in(p->whole, "items");
        json_ref first = json_child(p->whole, list);
        return list != JSON_NONE && json_get(p->whole, first, "parts") != JSON_NONE &&
               json_get(p->whole, first, "session_id") != JSON_NONE;
}

static int acontext_read(struct foreign *t)
{
        const struct json *j = &t->j;
        json_ref list = list_in(j, "items"), first = json_child(j, list);
        int rc = begin(t, foreign_text(t, j, json_get(j, first, "session_id")), 0);
        for (json_ref m = json_child(j, list); rc == 0 && m != JSON_NONE;
             m = json_next(j, list, m)) {
                json_ref parts = json_get(j, m, "parts");
                struct foreign_item item = {.id = foreign_text(t, j, json_get(j, m, "id")),
                    .at = json_inner(j, json_get(j, m, "created_at")),
                    .format = "acontext",
                    .json = json_raw(j, m)};
                for (json_ref p = json_child(j, parts); p != JSON_NONE;
                     p = json_next(j, parts, p)) {
                        item.calls += json_is(j, json_get(j, p, "type"), "tool-call");
                        item.results += json_is(j, json_get(j, p, "type"), "tool-result");
                }
                rc = foreign_item(t, &item);
        }
        return rc;
}

const struct foreign_kind foreign_acontext = {
    .name = "acontext",
    .shape = FOREIGN_DOCUMENT,
    .is = acontext_is,
    .read = acontext_read,
};

/* ---- LangChain ---- */

static json_ref langchain_list(const struct json *j)
{
        json_ref values = json_get(j, 0, "values");
        json_ref list = json_get(j, values, "messages");
        return json_type(j, list) == JSON_ARRAY ? list : list_in(j, "messages");
}

/* Returns the object with the members of a message: `data`, `kwargs`, or the message itself. */
static json_ref langchain_inside(const struct json *j, json_ref m)
{
        json_ref data = json_get(j, m, "data"), kwargs = json_get(j, m, "kwargs");
        return json_type(j, data) == JSON_OBJECT     ? data
               : json_type(j, kwargs) == JSON_OBJECT ? kwargs
                                                     : m;
}

/* Returns 'h' (human), 'a' (AI), 't' (tool), 's' (system), or 0. */
static char langchain_role(const struct json *j, json_ref m)
{
        static const struct {
                const char *name;
                char role;
        } NAMES[] = {{"human", 'h'}, {"ai", 'a'}, {"tool", 't'}, {"system", 's'},
            {"HumanMessage", 'h'}, {"AIMessage", 'a'}, {"ToolMessage", 't'}, {"SystemMessage", 's'},
            {"HumanMessageChunk", 'h'}, {"AIMessageChunk", 'a'}};
        json_ref type = json_get(j, m, "type"), path = json_get(j, m, "id");
        if (json_get(j, m, "lc") != JSON_NONE && json_type(j, path) == JSON_ARRAY)
                for (json_ref p = json_child(j, path); p != JSON_NONE; p = json_next(j, path, p))
                        type = p;
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                if (json_is(j, type, NAMES[i].name))
                        return NAMES[i].role;
        return 0;
}

static bool langchain_is(const struct foreign_probe *p)
{
        json_ref list = langchain_list(p->whole);
        return list != JSON_NONE && langchain_role(p->whole, json_child(p->whole, list));
}

static int langchain_tool(struct foreign *t, json_ref m, json_ref in, struct str id)
{
        const struct json *j = &t->j;
        struct made_result r = made_result_of(foreign_text(t, j, json_get(j, in, "tool_call_id")),
            foreign_text(t, j, json_get(j, in, "name")));
        r.error = json_is(j, json_get(j, in, "status"), "error");
        buf_clear(&t->a);
        said_output(j, json_get(j, in, "content"), &t->a, &r.error);
        r.text = buf_str(&t->a);
        return made_put_result(t, &r, id, STR(""), json_raw(j, m));
}

static int langchain_message(struct foreign *t, json_ref m)
{
        const struct json *j = &t->j;
        json_ref in = langchain_inside(j, m), calls = json_get(j, in, "tool_calls");
        json_ref content = json_get(j, in, "content");
        struct str id = foreign_text(t, j, json_get(j, in, "id"));
        char role = langchain_role(j, m);
        struct made said;
        if (!role)
                return foreign_other(t, id, STR(""), json_raw(j, m));
        if (role == 't')
                return langchain_tool(t, m, in, id);
        made_init(&said, role == 'a' ? "assistant" : role == 's' ? "system" : "user");
        made_text(&said, j, content);
        bool list = json_type(j, content) == JSON_ARRAY;
        for (json_ref p = list ? json_child(j, content) : JSON_NONE; p != JSON_NONE;
             p = json_next(j, content, p)) {
                json_ref thinking = json_get(j, p, "thinking");
                made_text(&said, j, json_type(j, p) == JSON_STRING ? p : json_get(j, p, "text"));
                made_thinking(&said, j, thinking);
        }
        for (json_ref c = json_child(j, calls); c != JSON_NONE; c = json_next(j, calls, c))
                made_call(&said, foreign_text(t, j, json_get(j, c, "id")),
                    foreign_text(t, j, json_get(j, c, "name")), j, json_get(j, c, "args"));
        int rc = made_put(&said, t, id, STR(""), json_raw(j, m));
        made_release(&said);
        return rc;
}

static int langchain_read(struct foreign *t)
{
        json_ref list = langchain_list(&t->j);
        int rc = begin(t, STR(""), 0);
        for (json_ref m = json_child(&t->j, list); rc == 0 && m != JSON_NONE;
             m = json_next(&t->j, list, m))
                rc = langchain_message(t, m);
        return rc;
}

const struct foreign_kind foreign_langchain = {
    .name = "langchain",
    .shape = FOREIGN_DOCUMENT,
    .is = langchain_is,
    .read = langchain_read,
};

/* ---- ShareGPT ---- */

static bool sharegpt_is(const struct foreign_probe *p)
{
        const struct json *j = p->whole;
        json_ref one = json_type(j, 0) == JSON_ARRAY ? json_child(j, 0) : 0;
        json_ref list = json_get(j, one, "conversations");
        return json_get(j, json_child(j, list), "from") != JSON_NONE;
}

/* There are no ids, and results answer the calls in order. So the n-th call and the n-th result get
 * the same id. */
static int sharegpt_turn(struct foreign *t, json_ref turn, unsigned *calls, unsigned *results)
{
        const struct json *j = &t->j;
        json_ref from = json_get(j, turn, "from"), value = json_get(j, turn, "value");
        char id[32];
        struct made m;
        if (json_is(j, from, "observation")) {
                snprintf(id, sizeof id, "call_%u", ++*results);
                struct made_result r = made_result_of(str_of(id), STR(""));
                r.text = foreign_text(t, j, value);
                return made_put_result(t, &r, STR(""), STR(""), json_raw(j, turn));
        }
        bool call = json_is(j, from, "function_call");
        bool gpt = call || json_is(j, from, "gpt") || json_is(j, from, "assistant");
        made_init(&m, gpt ? "assistant" : json_is(j, from, "system") ? "system" : "user");
        if (call) {
                struct json f;
                struct str text = foreign_text(t, j, value);
                json_init(&f);
                bool parsed = json_parse(&f, text.p, text.n, NULL, NULL) == 0;
                snprintf(id, sizeof id, "call_%u", ++*calls);
                if (parsed && json_inner(&f, json_get(&f, 0, "name")).n)
                        made_call(&m, str_of(id), foreign_text(t, &f, json_get(&f, 0, "name")), &f,
                            json_get(&f, 0, "arguments"));
                else
                        made_call_text(&m, str_of(id), STR("function"), text);
                json_release(&f);
        } else {
                made_text(&m, j, value);
        }
        int rc = made_put(&m, t, STR(""), STR(""), json_raw(j, turn));
        made_release(&m);
        return rc;
}

static int sharegpt_one(struct foreign *t, json_ref one, unsigned number)
{
        const struct json *j = &t->j;
        json_ref list = json_get(j, one, "conversations"), system = json_get(j, one, "system");
        unsigned calls = 0, results = 0;
        arena_reset(&t->line);
        int rc = begin(t, foreign_text(t, j, json_get(j, one, "id")), number);
        if (rc == 0 && json_inner(j, system).n) {
                struct made m;
                made_init(&m, "system");
                made_text(&m, j, system);
                rc = made_put(&m, t, STR(""), STR(""), json_raw(j, system));
                made_release(&m);
        }
        for (json_ref c = json_child(j, list); rc == 0 && c != JSON_NONE; c = json_next(j, list, c))
                rc = sharegpt_turn(t, c, &calls, &results);
        return rc;
}

static int sharegpt_read(struct foreign *t)
{
        const struct json *j = &t->j;
        unsigned number = 1;
        int rc = 0;
        if (json_type(j, 0) != JSON_ARRAY)
                return sharegpt_one(t, 0, 0);
        for (json_ref c = json_child(j, 0); rc == 0 && c != JSON_NONE; c = json_next(j, 0, c))
                rc = sharegpt_one(t, c, number++);
        return rc;
}

const struct foreign_kind foreign_sharegpt = {
    .name = "sharegpt",
    .shape = FOREIGN_DOCUMENT,
    .is = sharegpt_is,
    .read = sharegpt_read,
};

/* ---- any list that Steno reads ---- */

static json_ref any_list(const struct json *j)
{
        json_ref list = list_in(j, "messages");
        return list != JSON_NONE ? list : list_in(j, "contents");
}

static bool list_is(const struct foreign_probe *p)
{
        const struct json *j = p->whole;
        json_ref first = json_child(j, any_list(j));
        json_ref type = json_get(j, first, "type");
        return json_type(j, json_get(j, first, "role")) == JSON_STRING ||
               json_is(j, type, "message") || json_is(j, type, "function_call") ||
               json_is(j, type, "reasoning");
}

static int list_read(struct foreign *t)
{
        const struct json *j = &t->j;
        json_ref list = any_list(j);
        const char *format = t->sink.choose(t->sink.ctx, j, list);
        if (!format)
                return error_set(
                    t->err, STENO_EPROTO, "a list of messages whose format is not clear");
        int rc = begin(t, STR(""), 0);
        for (json_ref m = json_child(j, list); rc == 0 && m != JSON_NONE;
             m = json_next(j, list, m)) {
                json_ref at = json_get(j, m, "createdAt");
                struct foreign_item item = {.id = foreign_text(t, j, json_get(j, m, "id")),
                    .at = json_inner(j, at),
                    .format = format,
                    .json = json_raw(j, m)};
                rc = foreign_item(t, &item);
        }
        return rc;
}

const struct foreign_kind foreign_list = {
    .name = "messages",
    .shape = FOREIGN_DOCUMENT,
    .is = list_is,
    .read = list_read,
};
