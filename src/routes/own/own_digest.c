/* own_digest.c - see own_digest.h */
#include "routes/own/own_digest.h"

#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "http/runner.h"
#include "http/server_core.h"
#include "http/waiting.h"

void own_digest_put_tokens(struct jsonw *w, const char *name, const struct digest_tokens *t)
{
        jsonw_key(w, name);
        jsonw_array(w);
        jsonw_u64(w, t->in);
        jsonw_u64(w, t->out);
        jsonw_u64(w, t->cached);
        jsonw_array_end(w);
}

static void put_counts(struct jsonw *w, const char *name, const struct digest_count *list, size_t n)
{
        jsonw_key(w, name);
        jsonw_array(w);
        for (size_t i = 0; i < n; i++) {
                jsonw_object(w);
                jsonw_field_cstr(w, "name", list[i].name);
                jsonw_field_u64(w, "calls", list[i].calls);
                jsonw_field_u64(w, "failed", list[i].failed);
                jsonw_field_u64(w, "ms", list[i].ms);
                jsonw_field_u64(w, "kept", list[i].kept);
                own_digest_put_tokens(w, "tokens", &list[i].tokens);
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
}

void own_digest_put_totals(struct jsonw *w, const struct digest *d)
{
        struct digest_now now;
        jsonw_key(w, "totals");
        jsonw_object(w);
        jsonw_field_u64(w, "messages", d->messages);
        jsonw_field_u64(w, "turns", d->turns);
        jsonw_field_u64(w, "replies", d->replies);
        jsonw_field_u64(w, "calls", d->calls);
        jsonw_field_u64(w, "failed", d->failed);
        jsonw_field_i64(w, "firstAt", d->first_at);
        jsonw_field_i64(w, "lastAt", d->last_at);
        digest_now(d, env_real()->now(env_real()), &now);
        jsonw_field_i64(w, "workMs", now.work_ms);
        jsonw_field_u64(w, "kept", d->kept);
        own_digest_put_tokens(w, "tokens", &d->tokens);
        jsonw_field_u64(w, "seq", d->seq);
        jsonw_field_bool(w, "whole", d->whole);
        put_counts(w, "tools", d->tools, d->tool_count);
        put_counts(w, "models", d->models, d->model_count);
        jsonw_object_end(w);
}

void own_digest_put_failure(struct jsonw *w, const struct digest_failure *f, size_t n)
{
        jsonw_object(w);
        jsonw_field_u64(w, "n", n);
        jsonw_field_u64(w, "seq", f->seq);
        jsonw_field_cstr(w, "call", f->call);
        jsonw_field_cstr(w, "name", f->name);
        jsonw_field_cstr(w, "text", f->text);
        jsonw_field_i64(w, "at", f->at);
        if (f->has_exit)
                jsonw_field_i64(w, "exit", f->exit);
        if (f->ref[0])
                jsonw_field_cstr(w, "ref", f->ref);
        jsonw_key(w, "lines");
        jsonw_array(w);
        for (size_t i = 0; i < f->line_count; i++)
                jsonw_u64(w, f->lines[i]);
        jsonw_array_end(w);
        jsonw_object_end(w);
}

void own_digest_put_prices(struct jsonw *w, struct request *r)
{
        const char *prices = runner_prices(r->server->chat);
        if (prices)
                jsonw_field_raw(w, "prices", str_of(prices));
}

/* ---- lists ---- */

static bool read_date(struct request *r, const char *name, int64_t *ms)
{
        const char *v = request_query(r, name);
        if (!v || !*v)
                return true;
        if (time_parse(v, strlen(v), ms))
                return true;
        request_error(r, 400, "bad_request", "%s is not a date", name);
        return false;
}

bool own_filter_read(struct request *r, struct own_filter *f)
{
        static const char *const STATES[] = {"error", "running", "waiting"};
        *f = (struct own_filter){.is = request_query(r, "is"),
            .tool = request_query(r, "tool"),
            .model = request_query(r, "model")};
        bool known = !f->is || !*f->is;
        for (size_t i = 0; i < 3 && !known; i++)
                known = strcmp(f->is, STATES[i]) == 0;
        if (!known) {
                request_error(r, 400, "bad_request", "is must be error, running or waiting");
                return false;
        }
        if (f->is && !*f->is)
                f->is = NULL;
        if (f->tool && !*f->tool)
                f->tool = NULL;
        if (f->model && !*f->model)
                f->model = NULL;
        return read_date(r, "after", &f->after) && read_date(r, "before", &f->before);
}

bool own_filter_is_set(const struct own_filter *f)
{
        return f->is || f->tool || f->model || f->after || f->before;
}

static bool has_name(const struct digest_count *list, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i].name, name) == 0)
                        return true;
        return false;
}

static bool in_time(const struct json *j, json_ref item, const struct own_filter *f)
{
        struct str at = json_inner(j, json_get(j, item, "updatedAt"));
        int64_t ms = 0;
        if (!f->after && !f->before)
                return true;
        return time_parse(at.p, at.n, &ms) && (!f->after || ms >= f->after) &&
               (!f->before || ms < f->before);
}

static bool has_state(const struct own_filter *f, enum runner_state state)
{
        if (f->is && strcmp(f->is, "running") == 0)
                return state == RUNNER_RUNNING;
        return !f->is || strcmp(f->is, "waiting") != 0 || state == RUNNER_WAITING;
}

static bool has_contents(const struct own_filter *f, const struct digest *d)
{
        if (f->is && strcmp(f->is, "error") == 0 && !d->failed)
                return false;
        return (!f->tool || has_name(d->tools, d->tool_count, f->tool)) &&
               (!f->model || has_name(d->models, d->model_count, f->model));
}

/* The tape: kinds and widths, of which a tape that is full has about TAPE_WIDTH. */
#define TAPE_WIDTH 240

static void put_tape(struct jsonw *w, const struct digest_now *d)
{
        char text[DIGEST_TAPE * 8 + 1] = "";
        size_t n = 0;
        uint64_t all = 0;
        for (size_t i = 0; i < d->tape_count; i++)
                all += d->tape[i].ms;
        for (size_t i = 0; i < d->tape_count; i++) {
                uint64_t wide = (d->tape[i].ms * TAPE_WIDTH + all / 2) / (all ? all : 1);
                uint64_t least = d->tape[i].kind == 'e' ? 3 : 1;
                n += (size_t)snprintf(text + n, sizeof text - n, "%c%u", d->tape[i].kind,
                    (unsigned)(wide > least ? wide : least));
        }
        jsonw_field_str(w, "tape", str_span(text, n));
}

/* What is at work: the model, or the tool that has been running for longest. */
static void put_doing(struct jsonw *w, const struct doing *d)
{
        const struct doing_call *call = doing_first(d);
        if (!call && !d->asked_at)
                return;
        jsonw_key(w, "doing");
        jsonw_object(w);
        jsonw_field_cstr(w, "k", call ? "call" : "reply");
        if (call)
                jsonw_field_cstr(w, "name", call->name);
        jsonw_field_i64(w, "since", call ? call->at : d->asked_at);
        jsonw_object_end(w);
}

static void put_figures(struct jsonw *w, const struct digest *d, enum runner_state state)
{
        struct digest_now now;
        static const char *const STATES[] = {"idle", "running", "waiting"};
        jsonw_field_cstr(w, "state", STATES[state]);
        jsonw_field_u64(w, "calls", d->calls);
        jsonw_field_u64(w, "failed", d->failed);
        own_digest_put_tokens(w, "tokens", &d->tokens);
        jsonw_field_bool(w, "whole", d->whole);
        digest_now(d, env_real()->now(env_real()), &now);
        jsonw_field_i64(w, "workMs", now.work_ms);
        put_tape(w, &now);
        put_doing(w, &d->doing);
        if (d->title[0])
                jsonw_field_cstr(w, "first", d->title);
        if (d->failure_count) {
                jsonw_key(w, "lastFailure");
                own_digest_put_failure(w, &d->failures[d->failure_count - 1], d->failure_count);
        }
}

int own_row_digest(struct request *r, const struct json *j, json_ref item, const char *id, int ms,
    const struct digest **d, struct steno_error *err)
{
        struct steno_conv *conv = NULL;
        uint64_t seq = 0;
        *d = NULL;
        if (json_u64(j, json_get(j, item, "lastSeq"), &seq))
                *d = digests_known(r->server->digests, r->who.project, id, seq);
        if (*d || steno_conv_open(r->store, r->who.project, id, &conv, NULL))
                return 0;
        int rc = digests_open(r->server->digests, r->store, conv, ms, d, err);
        steno_conv_close(conv);
        return rc;
}

int own_row_put(struct request *r, const struct json *j, json_ref item, const struct own_filter *f,
    int ms, struct jsonw *w, enum own_row *row, struct steno_error *err)
{
        const char *id = request_member(r, j, item, "id");
        const struct digest *d = NULL;
        *row = OWN_ROW_LEFT_OUT;
        if (!id || !in_time(j, item, f))
                return 0;
        enum runner_state state = waiting_state(r->server->waiting, r->who.project, id);
        if (!has_state(f, state))
                return 0;
        if (state != RUNNER_IDLE)
                digests_at_work(r->server->digests, r->who.project, id);
        int rc = own_row_digest(r, j, item, id, ms, &d, err);
        if (rc == 0 && d && !has_contents(f, d)) {
                *row = d->whole ? OWN_ROW_LEFT_OUT : OWN_ROW_UNREAD;
        } else if (rc == 0 && d) {
                *row = OWN_ROW_SHOWN;
                jsonw_object(w);
                for (json_ref k = json_child(j, item); k != JSON_NONE;
                     k = json_next_key(j, item, k))
                        jsonw_copy_member(w, j, k);
                put_figures(w, d, state);
                jsonw_object_end(w);
        }
        digests_close(r->server->digests, d);
        return rc == STENO_ENOMEM ? rc : 0;
}
