/*
 * acp_scribe.c - see acp_scribe.h
 */
#include "acp/acp_scribe.h"

#include <stdlib.h>
#include <string.h>

#include "acp/acp_record.h"
#include "base/json.h"
#include "base/limits.h"

/* A decision of the relay about a request of the client. */
struct decision {
        struct decision *next;
        char *id;
        char *conversation, *known, *agent;
        char *cwd;
        bool replays; /* the agent replays the session */
};

/* A request that has no answer yet. */
struct asked {
        struct asked *next;
        char *id; /* JSON, as in the request */
        char *method;
        char *params; /* JSON; NULL if it is not needed */
        char *session;
        struct decision *decision; /* for a request that begins or loads a session */
        struct acp_record *record; /* its record, as soon as the agent has accepted the
                                      session */
};

struct session {
        struct session *next;
        char *id;
        struct acp_record *record;
};

struct scribe {
        struct steno_store *store;
        struct acp_journal *journal;
        bool again;
        struct acp_record *records;
        struct session *sessions;
        struct asked *of_client, *of_agent;
        struct decision *decisions;
        struct json j;
        int64_t now;
        struct acp_scribe_result *out;
};

/* ---- lists ---- */

static void decision_free(struct decision *d)
{
        if (!d)
                return;
        free(d->id);
        free(d->conversation);
        free(d->known);
        free(d->agent);
        free(d->cwd);
        free(d);
}

static void asked_free(struct asked *a)
{
        if (!a)
                return;
        free(a->id);
        free(a->method);
        free(a->params);
        free(a->session);
        decision_free(a->decision);
        free(a);
}

static struct asked *ask(struct scribe *s, struct asked **list, struct str id, json_ref method)
{
        struct asked *a = calloc(1, sizeof *a);
        json_ref params = json_get(&s->j, 0, "params");
        struct str raw = json_raw(&s->j, params);
        if (!a)
                return NULL;
        a->id = strndup(id.p, id.n);
        a->method = json_dup_string(&s->j, method);
        a->params = strndup(raw.n ? raw.p : "null", raw.n ? raw.n : 4);
        a->session = json_dup_string(&s->j, json_get(&s->j, params, "sessionId"));
        if (!a->id || !a->method || !a->params) {
                asked_free(a);
                return NULL;
        }
        a->next = *list;
        *list = a;
        return a;
}

static struct asked *take_asked(struct asked **list, struct str id)
{
        for (; *list; list = &(*list)->next) {
                struct asked *a = *list;
                if (str_is(id, a->id)) {
                        *list = a->next;
                        return a;
                }
        }
        return NULL;
}

static void take_note(struct scribe *s)
{
        const struct json *j = &s->j;
        struct decision *d = calloc(1, sizeof *d);
        struct str id = json_raw(j, json_get(j, 0, "request"));
        if (!d)
                return;
        d->id = strndup(id.p, id.n);
        d->conversation = json_dup_string(j, json_get(j, 0, "conversation"));
        d->known = json_dup_string(j, json_get(j, 0, "known"));
        d->agent = json_dup_string(j, json_get(j, 0, "agent"));
        d->next = s->decisions;
        s->decisions = d;
}

static struct decision *take_decision(struct scribe *s, struct str id)
{
        for (struct decision **at = &s->decisions; *at; at = &(*at)->next) {
                struct decision *d = *at;
                if (d->id && str_is(id, d->id)) {
                        *at = d->next;
                        return d;
                }
        }
        return NULL;
}

/* ---- sessions ---- */

static void map_session(struct scribe *s, const char *id, struct acp_record *r)
{
        struct session *m = s->sessions;
        while (m && strcmp(m->id, id) != 0)
                m = m->next;
        if (m) {
                m->record = r;
                return;
        }
        m = calloc(1, sizeof *m);
        if (!m || !(m->id = strdup(id))) {
                free(m);
                return;
        }
        m->record = r;
        m->next = s->sessions;
        s->sessions = m;
}

static void note_failure(struct scribe *s, const struct steno_error *err)
{
        if (!s->out->failed && !s->out->refused)
                s->out->why = *err;
        s->out->failed = true;
}

static struct acp_record *open_record(struct scribe *s, const struct decision *d)
{
        struct steno_error err = {0};
        struct acp_record *r = s->records;
        while (r && strcmp(r->conversation, d->conversation) != 0)
                r = r->next;
        if (r)
                return r;
        struct acp_record_options opt = {.store = s->store,
            .project = acp_journal_project(s->journal),
            .conversation = d->conversation,
            .known = d->known,
            .journal = acp_journal_name(s->journal),
            .agent = d->agent,
            .cwd = d->cwd,
            .again = s->again};
        int rc = acp_record_open(&opt, &r, &err);
        if (rc) {
                note_failure(s, &err);
                return NULL;
        }
        r->next = s->records;
        s->records = r;
        s->out->sessions++;
        return r;
}

/* The agent has accepted a session: from here on it is recorded. A refused session leaves no
 * conversation. */
static struct acp_record *begin_session(struct scribe *s, struct asked *a)
{
        if (a->record || !a->decision || !a->decision->conversation)
                return a->record;
        a->record = open_record(s, a->decision);
        if (!a->record)
                return NULL;
        a->record->now = s->now;
        if (a->session && strcmp(a->method, "session/fork") != 0)
                map_session(s, a->session, a->record);
        if (a->decision->replays)
                acp_replay_begin(a->record);
        return a->record;
}

/* Returns the record of a session. If a session is mentioned before the answer that begins it, it
 * is the session that was requested. */
static struct acp_record *find_session(struct scribe *s, const char *id)
{
        struct session *m = s->sessions;
        struct asked *of_id = NULL, *made = NULL;
        while (id && m && strcmp(m->id, id) != 0)
                m = m->next;
        for (struct asked *a = s->of_client; a && id; a = a->next) {
                if (a->decision && a->session && strcmp(a->session, id) == 0 &&
                    strcmp(a->method, "session/fork") != 0)
                        of_id = a;
                if (a->decision && strcmp(a->method, "session/new") == 0)
                        made = a;
        }
        if (of_id)
                begin_session(s, of_id);
        if (!id || m || of_id)
                return of_id && of_id->record ? of_id->record : m ? m->record : NULL;
        if (made && begin_session(s, made))
                map_session(s, id, made->record);
        return made ? made->record : NULL;
}

/* ---- entries ---- */

static void put_error_or_result(struct scribe *s, struct buf *b)
{
        static const char *const keys[] = {"result", "error"};
        for (size_t i = 0; i < 2; i++) {
                json_ref v = json_get(&s->j, 0, keys[i]);
                if (v == JSON_NONE)
                        continue;
                buf_printf(b, ",\"%s\":", keys[i]);
                buf_put_str(b, json_raw(&s->j, v));
        }
}

/* Writes a text for people: the method, and how it was answered. */
static void put_words(struct scribe *s, const struct asked *a, bool answered, struct buf *out)
{
        json_ref result = json_get(&s->j, 0, "result");
        json_ref said = json_get(&s->j, result, "stopReason");
        json_ref outcome = json_get(&s->j, result, "outcome");
        struct json params;
        json_init(&params);
        buf_puts(out, a->method);
        if (strcmp(a->method, "session/request_permission") == 0 &&
            json_parse(&params, a->params, strlen(a->params), NULL, NULL) == 0) {
                json_ref call = json_get(&params, 0, "toolCall");
                json_ref title = json_get(&params, call == JSON_NONE ? 0 : call, "title");
                buf_puts(out, json_type(&params, title) == JSON_STRING ? ": " : "");
                json_string(&params, title, out, NULL);
                said = json_get(&s->j, outcome, "optionId");
                if (said == JSON_NONE)
                        said = json_get(&s->j, outcome, "outcome");
        }
        json_release(&params);
        if (!answered || json_get(&s->j, 0, "error") != JSON_NONE) {
                buf_puts(out, answered ? " failed" : " was not answered");
        } else if (json_type(&s->j, said) == JSON_STRING) {
                buf_puts(out, ": ");
                json_string(&s->j, said, out, NULL);
        }
}

static void put_entry(struct scribe *s, struct acp_record *r, const struct asked *a, bool answered)
{
        struct buf b, words;
        buf_init(&b, 2 * MESSAGE_MAX);
        buf_init(&words, MESSAGE_MAX);
        put_words(s, a, answered, &words);
        buf_puts(&b, "\"method\":");
        json_put_string(&b, str_of(a->method));
        if (strcmp(a->method, "session/prompt") != 0) {
                buf_puts(&b, ",\"params\":");
                buf_puts(&b, a->params);
        }
        if (answered)
                put_error_or_result(s, &b);
        acp_record_flush(r);
        acp_record_entry(r, buf_str(&words), buf_str(&b));
        buf_release(&b);
        buf_release(&words);
}

static void take_notification(struct scribe *s, json_ref method)
{
        json_ref params = json_get(&s->j, 0, "params");
        char *id = json_dup_string(&s->j, json_get(&s->j, params, "sessionId"));
        struct acp_record *r = find_session(s, id);
        free(id);
        if (!r)
                return;
        r->now = s->now;
        json_ref update = json_get(&s->j, params, "update");
        if (json_is(&s->j, method, "session/update") && json_type(&s->j, update) == JSON_OBJECT) {
                acp_record_update(r, &s->j, update);
                return;
        }
        struct buf b;
        buf_init(&b, 2 * MESSAGE_MAX);
        buf_puts(&b, "\"method\":");
        buf_put_str(&b, json_raw(&s->j, method));
        if (params != JSON_NONE) {
                buf_puts(&b, ",\"params\":");
                buf_put_str(&b, json_raw(&s->j, params));
        }
        acp_record_entry(r, json_inner(&s->j, method), buf_str(&b));
        buf_release(&b);
}

/* ---- the client's requests ---- */

static bool begins_session(const char *method)
{
        return strcmp(method, "session/new") == 0 || strcmp(method, "session/load") == 0 ||
               strcmp(method, "session/resume") == 0 || strcmp(method, "session/fork") == 0;
}

static void take_client_request(struct scribe *s, struct str id, json_ref method)
{
        struct asked *a = ask(s, &s->of_client, id, method);
        json_ref params = json_get(&s->j, 0, "params");
        if (!a)
                return;
        if (begins_session(a->method)) {
                a->decision = take_decision(s, id);
                if (a->decision) {
                        a->decision->cwd = json_dup_string(&s->j, json_get(&s->j, params, "cwd"));
                        a->decision->replays =
                            strcmp(a->method, "session/load") == 0 ||
                            json_type(&s->j, json_get(&s->j, params, "replayFrom")) == JSON_OBJECT;
                }
        } else if (strcmp(a->method, "session/prompt") == 0) {
                struct acp_record *r = find_session(s, a->session);
                if (r) {
                        r->now = s->now;
                        acp_record_prompt(r, &s->j, json_get(&s->j, params, "prompt"));
                }
        }
}

static void take_agent_answer(struct scribe *s, struct str id)
{
        struct asked *a = take_asked(&s->of_client, id);
        json_ref result = json_get(&s->j, 0, "result");
        if (!a)
                return;
        bool taken = json_type(&s->j, result) == JSON_OBJECT;
        struct acp_record *r = a->decision && taken ? begin_session(s, a) : a->record;
        if (r) {
                char *session = json_dup_string(&s->j, json_get(&s->j, result, "sessionId"));
                r->now = s->now;
                if (session)
                        map_session(s, session, r);
                if (r->replaying)
                        acp_replay_over(r);
                free(session);
        } else if (!a->decision && (r = find_session(s, a->session))) {
                /* In version 2 a prompt is answered at once, and the turn ends later. */
                bool over =
                    json_type(&s->j, json_get(&s->j, result, "stopReason")) == JSON_STRING ||
                    json_get(&s->j, 0, "error") != JSON_NONE;
                r->now = s->now;
                if (strcmp(a->method, "session/prompt") == 0 && over)
                        acp_record_turn_over(
                            r, json_is(&s->j, json_get(&s->j, result, "stopReason"), "cancelled"));
                put_entry(s, r, a, true);
        }
        asked_free(a);
}

/* ---- the agent's requests ---- */

static void take_agent_request(struct scribe *s, struct str id, json_ref method)
{
        struct asked *a = ask(s, &s->of_agent, id, method);
        struct acp_record *r = a ? find_session(s, a->session) : NULL;
        json_ref params = json_get(&s->j, 0, "params");
        if (!r || strcmp(a->method, "session/request_permission") != 0)
                return;
        json_ref call = json_get(&s->j, params, "toolCall");
        if (call == JSON_NONE)
                call = json_get(&s->j, json_get(&s->j, params, "subject"), "toolCall");
        r->now = s->now;
        if (call != JSON_NONE)
                acp_call_take(r, &s->j, call);
        acp_record_flush(r); /* the call can be read while the user decides */
}

/* The terminal of a request, from its params. */
static void take_terminal_answer(struct scribe *s, struct acp_record *r, const struct asked *a)
{
        json_ref result = json_get(&s->j, 0, "result");
        struct json params;
        struct buf id;
        json_init(&params);
        buf_init(&id, 64 * KIB);
        if (json_parse(&params, a->params, strlen(a->params), NULL, NULL) == 0) {
                if (strcmp(a->method, "terminal/create") == 0) {
                        if (json_string(&s->j, json_get(&s->j, result, "terminalId"), &id, NULL))
                                acp_terminal_created(r, &params, 0, buf_str(&id));
                } else if (json_string(&params, json_get(&params, 0, "terminalId"), &id, NULL)) {
                        if (strcmp(a->method, "terminal/release") == 0)
                                acp_terminal_released(r, buf_str(&id));
                        else if (json_type(&s->j, result) == JSON_OBJECT)
                                acp_terminal_snapshot(r, buf_str(&id), &s->j, result);
                }
        }
        json_release(&params);
        buf_release(&id);
}

static void take_client_answer(struct scribe *s, struct str id)
{
        struct asked *a = take_asked(&s->of_agent, id);
        struct acp_record *r = a ? find_session(s, a->session) : NULL;
        if (r) {
                r->now = s->now;
                if (strncmp(a->method, "terminal/", 9) == 0)
                        take_terminal_answer(s, r, a);
                else
                        put_entry(s, r, a, true);
        }
        asked_free(a);
}

/* ---- frames ---- */

static void take_frame(struct scribe *s, const struct acp_frame *f)
{
        bool object = json_parse(&s->j, f->bytes.p, f->bytes.n, NULL, NULL) == 0 &&
                      json_type(&s->j, 0) == JSON_OBJECT;
        struct str id = object ? json_raw(&s->j, json_get(&s->j, 0, "id")) : (struct str){0};
        json_ref method = object ? json_get(&s->j, 0, "method") : JSON_NONE;
        bool client = f->kind == ACP_CLIENT;
        s->now = f->at;
        if (!object || f->kind == ACP_HUGE)
                return;
        if (f->kind == ACP_NOTE)
                take_note(s);
        else if (f->kind == ACP_ASKED)
                ask(s, &s->of_agent, id, method);
        else if (method != JSON_NONE && !id.n)
                take_notification(s, method);
        else if (method != JSON_NONE && client)
                take_client_request(s, id, method);
        else if (method != JSON_NONE)
                take_agent_request(s, id, method);
        else if (client)
                take_client_answer(s, id);
        else
                take_agent_answer(s, id);
}

static bool has_failed(const struct scribe *s)
{
        bool failed = s->out->failed;
        for (const struct acp_record *r = s->records; r; r = r->next)
                failed = failed || r->failed;
        return failed;
}

/* Records the requests that were never answered. */
static void put_unanswered(struct scribe *s, const struct asked *list)
{
        for (const struct asked *a = list; a; a = a->next) {
                struct acp_record *r = a->decision ? NULL : find_session(s, a->session);
                if (r && strncmp(a->method, "terminal/", 9) != 0 &&
                    strcmp(a->method, "session/prompt") != 0)
                        put_entry(s, r, a, false);
        }
}

static void close_all(struct scribe *s)
{
        put_unanswered(s, s->of_client);
        put_unanswered(s, s->of_agent);
        while (s->records) {
                struct acp_record *r = s->records;
                s->records = r->next;
                acp_record_finish(r);
                if (r->failed)
                        note_failure(s, &r->why);
                else if (r->refused && !s->out->failed && !s->out->refused)
                        s->out->why = r->why;
                s->out->refused = s->out->refused || r->refused;
                acp_record_close(r);
        }
        while (s->sessions) {
                struct session *next = s->sessions->next;
                free(s->sessions->id);
                free(s->sessions);
                s->sessions = next;
        }
        while (s->decisions) {
                struct decision *next = s->decisions->next;
                decision_free(s->decisions);
                s->decisions = next;
        }
        for (struct asked **list = &s->of_client; list;
             list = list == &s->of_client ? &s->of_agent : NULL)
                while (*list) {
                        struct asked *next = (*list)->next;
                        asked_free(*list);
                        *list = next;
                }
}

void acp_scribe_read(struct steno_store *store, struct acp_journal *journal, bool again,
    struct acp_scribe_result *out)
{
        struct scribe s = {.store = store, .journal = journal, .again = again, .out = out};
        struct steno_error err = {0};
        struct acp_frame f;
        int rc;
        json_init(&s.j);
        /* After a failure, the rest of the journal is read at the next start. */
        while ((rc = acp_journal_next(journal, &f, &err)) == 1)
                if (!has_failed(&s))
                        take_frame(&s, &f);
        if (rc < 0)
                note_failure(&s, &err);
        close_all(&s);
        json_release(&s.j);
}
