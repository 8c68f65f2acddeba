/*
 * acp_relay.c - see acp_relay.h
 */
#include "acp/acp_relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp/acp_sessions.h"
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

/* The client is asked to keep this much of a terminal's output. It needs the memory only for
 * commands that print so much. */
#define RAISED_LIMIT (256 * MIB)
#define FETCH_MS 10000 /* how long a release waits for the client's answer */
#define HUGE_NOTE 4096 /* number of bytes that are kept of a line that is too long */

/* The request that an answer belongs to. */
enum about {
        OF_INITIALIZE,
        OF_SECRET,   /* authenticate */
        OF_SESSION,  /* a session begins, is loaded or is forked */
        OF_PROMPT,   /* a turn */
        OF_TERMINAL, /* terminal/create */
        OF_OUTPUT,   /* terminal/output */
        OF_FETCH,    /* our own terminal/output */
};

struct waiting {
        struct waiting *next;
        enum about about;
        char *id;           /* JSON, as in the request */
        char *conversation; /* OF_SESSION */
        char *session;      /* OF_SESSION, OF_PROMPT, OF_TERMINAL */
        bool limited;       /* OF_TERMINAL */
        uint64_t limit;     /* OF_TERMINAL, OF_OUTPUT */
        char *held;         /* OF_FETCH: the terminal/release that waits for it; NULL: none */
        size_t held_n;
        int64_t deadline;
};

struct terminal {
        struct terminal *next;
        char *session;
        char *id;
        bool limited;
        uint64_t limit; /* the limit that the agent asked for */
};

struct acp_relay {
        struct acp_relay_options o;
        char *agent;
        bool second;               /* version 2 of the protocol */
        bool takes_stdio;          /* version 2: the agent starts MCP servers */
        struct waiting *of_client; /* the client's requests that the agent has not answered
                                      yet */
        struct waiting *of_agent;  /* the agent's and our own requests that the client has not
                                      answered yet */
        struct terminal *terminals;
        unsigned fetches;
        struct json j;
        struct buf line; /* a changed line */
};

/* ---- lists ---- */

static void waiting_free(struct waiting *w)
{
        if (!w)
                return;
        free(w->id);
        free(w->conversation);
        free(w->session);
        free(w->held);
        free(w);
}

static struct waiting *waiting_add(struct waiting **list, enum about about, struct str id)
{
        struct waiting *w = calloc(1, sizeof *w);
        if (!w || !(w->id = strndup(id.p, id.n))) {
                free(w);
                return NULL;
        }
        w->about = about;
        w->next = *list;
        *list = w;
        return w;
}

/* Removes the request with this id from the list. */
static struct waiting *waiting_take(struct waiting **list, struct str id)
{
        for (; *list; list = &(*list)->next) {
                struct waiting *w = *list;
                if (str_is(id, w->id)) {
                        *list = w->next;
                        w->next = NULL;
                        return w;
                }
        }
        return NULL;
}

static struct terminal **find_terminal(struct acp_relay *r, const char *session, const char *id)
{
        struct terminal **at = &r->terminals;
        while (*at && (!session || !id || strcmp((*at)->session, session) != 0 ||
                          strcmp((*at)->id, id) != 0))
                at = &(*at)->next;
        return at;
}

static void drop_terminal(struct terminal **at)
{
        struct terminal *t = *at;
        if (!t)
                return;
        *at = t->next;
        free(t->session);
        free(t->id);
        free(t);
}

int acp_relay_new(
    const struct acp_relay_options *opt, struct acp_relay **out, struct steno_error *err)
{
        struct acp_relay *r = calloc(1, sizeof *r);
        if (!r || !(r->agent = strdup(opt->agent))) {
                free(r);
                return error_nomem(err);
        }
        r->o = *opt;
        json_init(&r->j);
        buf_init(&r->line, 0);
        *out = r;
        return 0;
}

static void waiting_free_all(struct waiting *w)
{
        while (w) {
                struct waiting *next = w->next;
                waiting_free(w);
                w = next;
        }
}

void acp_relay_free(struct acp_relay *r)
{
        if (!r)
                return;
        waiting_free_all(r->of_client);
        waiting_free_all(r->of_agent);
        while (r->terminals)
                drop_terminal(&r->terminals);
        json_release(&r->j);
        buf_release(&r->line);
        free(r->agent);
        free(r);
}

static void send(struct acp_relay *r, enum acp_side to, struct str bytes)
{
        r->o.send(r->o.send_ctx, to, bytes);
}

/* ---- changing a line ---- */

/* Returns the line with its edits. The bytes around the JSON stay, including the line feed. */
static struct str edited(struct acp_relay *r, struct json_edits *edits, struct str line)
{
        struct str root = json_raw(&r->j, 0);
        buf_clear(&r->line);
        buf_put(&r->line, line.p, (size_t)(root.p - line.p));
        int rc = json_edits_apply(edits, &r->j, 0, &r->line);
        const char *behind = root.p + root.n;
        buf_put(&r->line, behind, (size_t)(line.p + line.n - behind));
        return rc == 0 && !r->line.failed ? buf_str(&r->line) : line;
}

/* ---- sessions ---- */

/* The store's URL is passed in the environment: it may have a password, and every user of the
 * machine can read the arguments of a process. */
static void put_server(const struct acp_relay *r, const char *conversation, struct buf *out)
{
        const char *const args[] = {
            "--project", r->o.project, "mcp", "--conversation", conversation, "--create"};
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        if (r->second)
                jsonw_field_cstr(&w, "type", "stdio");
        jsonw_field_cstr(&w, "name", "steno");
        jsonw_field_cstr(&w, "command", r->o.program);
        jsonw_key(&w, "args");
        jsonw_array(&w);
        for (size_t i = 0; i < sizeof args / sizeof *args; i++)
                jsonw_cstr(&w, args[i]);
        jsonw_array_end(&w);
        jsonw_key(&w, "env");
        jsonw_array(&w);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "name", "STENO_STORE");
        jsonw_field_cstr(&w, "value", r->o.url);
        jsonw_object_end(&w);
        jsonw_array_end(&w);
        jsonw_object_end(&w);
}

static bool has_server(const struct json *j, json_ref servers)
{
        for (json_ref s = json_child(j, servers); s != JSON_NONE; s = json_next(j, servers, s))
                if (json_is(j, json_get(j, s, "name"), "steno"))
                        return true;
        return false;
}

/* Returns the line with our server added to those of the session. */
static struct str with_server(struct acp_relay *r, const char *conversation, struct str line)
{
        const struct json *j = &r->j;
        json_ref params = json_get(j, 0, "params"), servers = json_get(j, params, "mcpServers");
        enum json_type type = json_type(j, servers);
        struct str out = line;
        struct json_edits edits;
        struct buf text;
        if (!r->o.program || (r->second && !r->takes_stdio) ||
            json_type(j, params) != JSON_OBJECT || has_server(j, servers))
                return line;
        json_edits_init(&edits);
        buf_init(&text, 0);
        if (type == JSON_ARRAY) {
                struct str raw = json_raw(j, servers);
                buf_put(&text, raw.p, raw.n - 1);
                buf_puts(&text, json_count(j, servers) ? "," : "");
        } else {
                buf_puts(&text, type == JSON_NOTHING ? "\"mcpServers\":[" : "[");
        }
        put_server(r, conversation, &text);
        buf_putc(&text, ']');
        if (type == JSON_NOTHING)
                json_edit_add_member(&edits, j, params, buf_str(&text));
        else
                json_edit_replace(&edits, j, servers, buf_str(&text));
        if (!text.failed)
                out = edited(r, &edits, line);
        json_edits_release(&edits);
        buf_release(&text);
        return out;
}

/* Chooses the conversation of a request about a session: the one in which it is recorded already,
 * or a new one. */
static bool choose_conversation(struct acp_relay *r, const char *session, bool fork,
    char out[ID_MAX + 1], char from[ID_MAX + 1])
{
        struct acp_session_key key = {r->o.project, r->agent, session};
        bool known = session && acp_sessions_find(r->o.env, r->o.path, &key, from);
        if (known && !fork)
                snprintf(out, ID_MAX + 1, "%s", from);
        else
                id_make(r->o.env, "acp-", out);
        return known;
}

/* Writes what the scribe must know about a session to the journal, before the request. */
static int note_session(struct acp_relay *r, struct str id, const char *session, const char *out,
    const char *from, bool known, struct steno_error *err)
{
        struct buf b;
        buf_init(&b, 1 * MIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_raw(&w, "request", id);
        jsonw_field_cstr(&w, "conversation", out);
        if (session)
                jsonw_field_cstr(&w, "session", session);
        if (known)
                jsonw_field_cstr(&w, "known", from);
        jsonw_field_cstr(&w, "agent", r->agent);
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = acp_journal_put(r->o.journal, ACP_NOTE, buf_str(&b), err);
        buf_release(&b);
        return rc;
}

static int take_session_request(struct acp_relay *r, struct str id, bool fork, struct str line,
    struct str *out, struct steno_error *err)
{
        char conversation[ID_MAX + 1], from[ID_MAX + 1] = "";
        json_ref params = json_get(&r->j, 0, "params");
        char *session = json_dup_string(&r->j, json_get(&r->j, params, "sessionId"));
        bool known = choose_conversation(r, session, fork, conversation, from);
        int rc = note_session(r, id, session, conversation, from, known, err);
        if (rc == 0) {
                struct waiting *w = waiting_add(&r->of_client, OF_SESSION, id);
                if (w) {
                        w->conversation = strdup(conversation);
                        w->session = fork ? NULL : session;
                        session = fork ? session : NULL;
                }
                *out = with_server(r, conversation, line);
        }
        free(session);
        return rc;
}

static void take_initialize(struct acp_relay *r, json_ref result)
{
        const struct json *j = &r->j;
        uint64_t version = 1;
        json_ref info = json_get(j, result, "agentInfo");
        if (info == JSON_NONE)
                info = json_get(j, result, "info");
        char *name = json_dup_string(j, json_get(j, info, "name"));
        if (name && *name) {
                free(r->agent);
                r->agent = name;
                name = NULL;
        }
        free(name);
        json_u64(j, json_get(j, result, "protocolVersion"), &version);
        r->second = version >= 2;
        json_ref session = json_get(j, json_get(j, result, "capabilities"), "session");
        r->takes_stdio =
            json_type(j, json_get(j, json_get(j, session, "mcp"), "stdio")) == JSON_OBJECT;
}

static void take_session_answer(struct acp_relay *r, const struct waiting *w, json_ref result)
{
        char *session = json_dup_string(&r->j, json_get(&r->j, result, "sessionId"));
        const char *name = session ? session : w->session;
        struct acp_session_key key = {r->o.project, r->agent, name};
        if (name && w->conversation && json_type(&r->j, result) == JSON_OBJECT)
                acp_sessions_add(r->o.env, r->o.path, &key, w->conversation);
        free(session);
}

/* ---- terminals ---- */

static struct str take_create(struct acp_relay *r, struct str id, json_ref params, struct str line)
{
        const struct json *j = &r->j;
        json_ref limit = json_get(j, params, "outputByteLimit");
        struct waiting *w = waiting_add(&r->of_agent, OF_TERMINAL, id);
        struct json_edits edits;
        struct str out = line;
        char text[24];
        if (!w)
                return line;
        w->session = json_dup_string(j, json_get(j, params, "sessionId"));
        w->limited = json_u64(j, limit, &w->limit) && w->limit < RAISED_LIMIT;
        if (!w->limited)
                return line;
        snprintf(text, sizeof text, "%zu", RAISED_LIMIT);
        json_edits_init(&edits);
        json_edit_replace(&edits, j, limit, str_of(text));
        out = edited(r, &edits, line);
        json_edits_release(&edits);
        return out;
}

static void take_created(struct acp_relay *r, struct waiting *w, json_ref result)
{
        char *id = json_dup_string(&r->j, json_get(&r->j, result, "terminalId"));
        struct terminal *t = id && w->session ? calloc(1, sizeof *t) : NULL;
        if (!t) {
                free(id);
                return;
        }
        t->id = id;
        t->session = w->session;
        w->session = NULL;
        t->limited = w->limited;
        t->limit = w->limit;
        t->next = r->terminals;
        r->terminals = t;
}

/* Returns the end of the output with the length that the agent asked for, beginning with a whole
 * character. */
static struct str cut_output(struct acp_relay *r, uint64_t limit, json_ref result, struct str line)
{
        const struct json *j = &r->j;
        json_ref output = json_get(j, result, "output"), cut = json_get(j, result, "truncated");
        struct json_edits edits;
        struct buf text, quoted;
        struct str out = line;
        buf_init(&text, 0);
        buf_init(&quoted, 0);
        json_edits_init(&edits);
        if (json_string(j, output, &text, NULL) && !text.failed && text.n > limit) {
                size_t from = text_ceil(text.p, text.n, text.n - (size_t)limit);
                json_put_string(&quoted, str_span(text.p + from, text.n - from));
                json_edit_replace(&edits, j, output, buf_str(&quoted));
                if (cut == JSON_NONE)
                        json_edit_add_member(&edits, j, result, STR("\"truncated\":true"));
                else
                        json_edit_replace(&edits, j, cut, STR("true"));
                if (!quoted.failed)
                        out = edited(r, &edits, line);
        }
        json_edits_release(&edits);
        buf_release(&text);
        buf_release(&quoted);
        return out;
}

/* The limit is kept with the request, because the answer may come after the terminal was
 * released. */
static void take_output_request(struct acp_relay *r, struct str id, json_ref params)
{
        char *session = json_dup_string(&r->j, json_get(&r->j, params, "sessionId"));
        char *name = json_dup_string(&r->j, json_get(&r->j, params, "terminalId"));
        struct terminal *t = *find_terminal(r, session, name);
        struct waiting *w = t && t->limited ? waiting_add(&r->of_agent, OF_OUTPUT, id) : NULL;
        if (w)
                w->limit = t->limit;
        free(session);
        free(name);
}

/* Asks the client for the whole output of a terminal. `held` is passed on when the client
 * answers. */
static int fetch(
    struct acp_relay *r, const struct terminal *t, struct str held, struct steno_error *err)
{
        struct buf b;
        char id[80];
        snprintf(id, sizeof id, "\"steno-%s-%u\"", acp_journal_name(r->o.journal), ++r->fetches);
        buf_init(&b, 1 * MIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "jsonrpc", "2.0");
        jsonw_field_raw(&w, "id", str_of(id));
        jsonw_field_cstr(&w, "method", "terminal/output");
        jsonw_key(&w, "params");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "sessionId", t->session);
        jsonw_field_cstr(&w, "terminalId", t->id);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = acp_journal_put(r->o.journal, ACP_ASKED, buf_str(&b), err);
        struct waiting *wait = rc == 0 ? waiting_add(&r->of_agent, OF_FETCH, str_of(id)) : NULL;
        if (wait) {
                wait->deadline = time_monotonic_ms() + FETCH_MS;
                wait->held = held.n ? malloc(held.n) : NULL;
                wait->held_n = held.n;
                if (wait->held)
                        memcpy(wait->held, held.p, held.n);
                else if (held.n)
                        send(r, ACP_TO_CLIENT, held);
                buf_putc(&b, '\n');
                send(r, ACP_TO_CLIENT, buf_str(&b));
        } else if (rc == 0) {
                rc = error_nomem(err);
        }
        buf_release(&b);
        return rc;
}

/* Returns 1 if the release must wait. */
static int take_release(
    struct acp_relay *r, json_ref params, struct str line, struct steno_error *err)
{
        char *session = json_dup_string(&r->j, json_get(&r->j, params, "sessionId"));
        char *id = json_dup_string(&r->j, json_get(&r->j, params, "terminalId"));
        struct terminal **t = find_terminal(r, session, id);
        int rc = *t ? fetch(r, *t, line, err) : 0;
        bool held = *t && rc == 0;
        if (held)
                drop_terminal(t);
        free(session);
        free(id);
        return held ? 1 : rc;
}

/* ---- lines ---- */

static bool is_method(const struct acp_relay *r, json_ref method, const char *const *names)
{
        for (; *names; names++)
                if (json_is(&r->j, method, *names))
                        return true;
        return false;
}

static int take_client_request(struct acp_relay *r, struct str id, json_ref method, struct str line,
    struct str *out, struct steno_error *err)
{
        static const char *const sessions[] = {
            "session/new", "session/load", "session/resume", "session/fork", NULL};
        if (json_is(&r->j, method, "initialize")) {
                waiting_add(&r->of_client, OF_INITIALIZE, id);
        } else if (json_is(&r->j, method, "authenticate")) {
                waiting_add(&r->of_client, OF_SECRET, id);
        } else if (json_is(&r->j, method, "session/prompt")) {
                json_ref params = json_get(&r->j, 0, "params");
                struct waiting *w = waiting_add(&r->of_client, OF_PROMPT, id);
                if (w)
                        w->session = json_dup_string(&r->j, json_get(&r->j, params, "sessionId"));
        }
        if (is_method(r, method, sessions))
                return take_session_request(
                    r, id, json_is(&r->j, method, "session/fork"), line, out, err);
        return 0;
}

static int take_agent_request(struct acp_relay *r, struct str id, json_ref method, struct str line,
    struct str *out, struct steno_error *err)
{
        json_ref params = json_get(&r->j, 0, "params");
        if (json_is(&r->j, method, "terminal/create")) {
                *out = take_create(r, id, params, line);
        } else if (json_is(&r->j, method, "terminal/output")) {
                take_output_request(r, id, params);
        } else if (json_is(&r->j, method, "terminal/release")) {
                int rc = take_release(r, params, line, err);
                if (rc < 0)
                        return rc;
                if (rc == 1)
                        *out = (struct str){0};
        }
        return 0;
}

/* Fetches what open terminals have printed so far, because the client may be gone when they end. */
static void fetch_left(struct acp_relay *r, const char *session)
{
        for (struct terminal *t = r->terminals; t; t = t->next)
                if (!session || strcmp(t->session, session) == 0)
                        fetch(r, t, (struct str){0}, NULL);
}

static struct str take_answer(struct acp_relay *r, enum acp_side to, struct str id, struct str line)
{
        struct waiting *w = waiting_take(to == ACP_TO_CLIENT ? &r->of_client : &r->of_agent, id);
        json_ref result = json_get(&r->j, 0, "result");
        struct str out = line;
        if (!w)
                return line;
        if (w->about == OF_INITIALIZE)
                take_initialize(r, result);
        else if (w->about == OF_SESSION)
                take_session_answer(r, w, result);
        else if (w->about == OF_TERMINAL)
                take_created(r, w, result);
        else if (w->about == OF_OUTPUT)
                out = cut_output(r, w->limit, result, line);
        else if (w->held)
                send(r, ACP_TO_CLIENT, str_span(w->held, w->held_n));
        if (w->about == OF_PROMPT) {
                send(r, to, line);
                fetch_left(r, w->session);
        }
        if (w->about == OF_FETCH || w->about == OF_PROMPT)
                out = (struct str){0}; /* the agent did not ask for it, or it was sent already */
        waiting_free(w);
        return out;
}

/* Messages about identity and authentication may hold keys, so they are never written to a file. */
static bool is_secret(const struct acp_relay *r, bool client, struct str id, json_ref method)
{
        static const char *const secret[] = {"initialize", "authenticate", NULL};
        if (method != JSON_NONE)
                return client && is_method(r, method, secret);
        if (client || !id.n)
                return false;
        for (const struct waiting *w = r->of_client; w; w = w->next)
                if (str_is(id, w->id))
                        return w->about == OF_INITIALIZE || w->about == OF_SECRET;
        return false;
}

int acp_relay_take(struct acp_relay *r, enum acp_side to, struct str line, struct steno_error *err)
{
        struct str out = line, text = line;
        bool client = to == ACP_TO_AGENT;
        int rc = 0;
        if (text.n && text.p[text.n - 1] == '\n')
                text.n--;
        bool known = json_parse(&r->j, text.p, text.n, NULL, NULL) == 0 &&
                     json_type(&r->j, 0) == JSON_OBJECT;
        struct str id = known ? json_raw(&r->j, json_get(&r->j, 0, "id")) : (struct str){0};
        json_ref method = known ? json_get(&r->j, 0, "method") : JSON_NONE;
        /* Our own note must be in the journal before the request that it is about. */
        if (id.n && method != JSON_NONE && client)
                rc = take_client_request(r, id, method, line, &out, err);
        if (rc == 0 && text.n && !is_secret(r, client, id, method))
                rc = acp_journal_put(r->o.journal, client ? ACP_CLIENT : ACP_AGENT, text, err);
        if (rc == 0 && id.n && method != JSON_NONE && !client)
                rc = take_agent_request(r, id, method, line, &out, err);
        if (rc == 0 && id.n && method == JSON_NONE)
                out = take_answer(r, to, id, line);
        if (rc == 0 && out.n)
                send(r, to, out);
        return rc;
}

int acp_relay_pass(
    struct acp_relay *r, enum acp_side to, struct str piece, bool first, struct steno_error *err)
{
        struct str some = {piece.p, piece.n < HUGE_NOTE ? piece.n : HUGE_NOTE};
        int rc = first ? acp_journal_put(r->o.journal, ACP_HUGE, some, err) : 0;
        if (rc == 0)
                send(r, to, piece);
        return rc;
}

int acp_relay_tick(struct acp_relay *r)
{
        int64_t now = time_monotonic_ms(), next = -1;
        struct waiting **at = &r->of_agent;
        while (*at) {
                struct waiting *w = *at;
                if (w->about == OF_FETCH && w->deadline <= now) {
                        if (w->held)
                                send(r, ACP_TO_CLIENT, str_span(w->held, w->held_n));
                        free(w->held);
                        w->held = NULL;
                        w->deadline = INT64_MAX; /* a late answer still belongs to us */
                }
                if (w->about == OF_FETCH && w->deadline != INT64_MAX &&
                    (next < 0 || w->deadline - now < next))
                        next = w->deadline - now;
                at = &w->next;
        }
        return (int)next;
}

int acp_relay_agent_over(struct acp_relay *r, struct steno_error *err)
{
        int rc = 0;
        while (r->terminals && rc == 0) {
                rc = fetch(r, r->terminals, (struct str){0}, err);
                drop_terminal(&r->terminals);
        }
        return rc;
}
