/* runner.c - see runner.h */
#include "http/runner.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/wait.h"
#include "http/server_core.h"
#include "http/follow.h"
#include "http/http_limits.h"
#include "http/watches.h"
#include "http/workers.h"
#include "model/event.h"
#include "otel/otel.h"

#define LOOK_FOR_WATCHERS_MS 500
/* The event that asks is sent shortly before the call begins to wait. An answer that comes in
 * between must not be lost. */
#define ASKED_SOON_MS 1000

struct live {
        struct live *next;
        struct runner *chat;
        struct steno_conv *conv;
        struct steno_stop *stop;
        char *project;
        char *conversation;
        char *message;
        char *message_json;
        char *message_format;
        char *message_id;
        char *mode;
        char *model;
        char run[64];
        bool public_only;
        bool no_stream;
        /* under the chat's mutex */
        bool begun;
        bool over;
        bool waited; /* somebody waits for the end and frees it */
        int rc;
        struct steno_error err;
        char *result;
        char *final;
        /* the call that waits for permission */
        char asked_call[1100];
        char *asked_json; /* what is told of it */
        char asked_hash[72];
        int answer;             /* enum steno_permission; STENO_ASK while there is none */
        char answered_hash[72]; /* of the question that was answered here last */
};

struct runner {
        struct server *server;
        struct session *session;
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        struct live *list;
        unsigned threads; /* of runs, until they have let go of everything */
};

struct runner *runner_new(struct server *server, struct session *session)
{
        struct runner *chat = calloc(1, sizeof *chat);
        if (!chat)
                return NULL;
        chat->server = server;
        chat->session = session;
        pthread_mutex_init(&chat->mutex, NULL);
        wait_init(&chat->changed);
        return chat;
}

void runner_end(struct runner *chat)
{
        if (!chat)
                return;
        session_stop_starting(chat->session);
        pthread_mutex_lock(&chat->mutex);
        for (struct live *l = chat->list; l; l = l->next)
                steno_stop_request(l->stop);
        while (chat->list || chat->threads)
                pthread_cond_wait(&chat->changed, &chat->mutex);
        pthread_mutex_unlock(&chat->mutex);
}

void runner_free(struct runner *chat)
{
        if (!chat)
                return;
        runner_end(chat);
        pthread_mutex_destroy(&chat->mutex);
        pthread_cond_destroy(&chat->changed);
        free(chat);
}

/* ---- what the loop tells ---- */

static void on_event(void *ctx, uint64_t seq, const char *type, const char *data, size_t n)
{
        struct live *l = ctx;
        (void)seq;
        bool final = event_find(type) == STENO_EVENT_FINAL_MESSAGE;
        if (!l->begun || final) {
                pthread_mutex_lock(&l->chat->mutex);
                l->begun = true;
                if (final) {
                        free(l->final);
                        l->final = strndup(data, n);
                }
                pthread_cond_broadcast(&l->chat->changed);
                pthread_mutex_unlock(&l->chat->mutex);
        }
        follow_poke(l->chat->server->follow, l->run);
        watches_poke(l->chat->server->watches);
}

static void wait_a_moment(struct runner *chat)
{
        wait_for(&chat->changed, &chat->mutex, 100);
}

/* A call that waits, as watchers are told of it. NULL: out of memory. */
static char *describe_asked(const struct live *l, const struct steno_permission_request *q)
{
        char since[TIME_TEXT];
        struct buf out;
        buf_init(&out, 0);
        struct jsonw w = jsonw_to(&out);
        time_format(env_real()->now(env_real()), since);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "run", l->run);
        jsonw_field_cstr(&w, "call", q->call_id);
        jsonw_field_cstr(&w, "approval", q->approval);
        jsonw_field_cstr(&w, "conversation", l->conversation);
        jsonw_field_cstr(&w, "tool", q->server ? q->raw_name : q->tool);
        if (q->server)
                jsonw_field_cstr(&w, "server", q->server);
        jsonw_field_str(&w, "arguments", str_span(q->args, q->args_n));
        char *directory =
            l->chat->session->directory ? realpath(l->chat->session->directory, NULL) : NULL;
        if (directory)
                jsonw_field_cstr(&w, "directory", directory);
        free(directory);
        if (q->limits)
                jsonw_field_raw(&w, "limits", str_of(q->limits));
        if (q->environment)
                jsonw_field_raw(&w, "environment", str_of(q->environment));
        jsonw_field_cstr(&w, "since", since);
        jsonw_object_end(&w);
        char *json = out.failed ? NULL : buf_take(&out, NULL);
        buf_release(&out);
        return json;
}

/* Is a client connected that may answer, here or at another server? Releases the mutex
 * meanwhile. */
static bool is_watched(struct live *l)
{
        struct runner *chat = l->chat;
        pthread_mutex_unlock(&chat->mutex);
        bool watched = follow_answerers(chat->server->follow, l->run) ||
                       watches_anybody(chat->server->watches, l->project) ||
                       steno_watched(chat->server->store, l->project);
        pthread_mutex_lock(&chat->mutex);
        return watched;
}

/* Waits for an answer while such a client is connected, and a little longer, because a reload of a
 * page takes a moment. */
static int ask(void *ctx, const struct steno_permission_request *q, char reason[240])
{
        struct live *l = ctx;
        struct runner *chat = l->chat;
        int64_t patience = (int64_t)chat->session->config.limits.approval_seconds * 1000;
        int64_t watched = http_now_ms(), looked = 0;
        char *described = describe_asked(l, q);
        pthread_mutex_lock(&chat->mutex);
        snprintf(l->asked_call, sizeof l->asked_call, "%s", q->call_id);
        snprintf(l->asked_hash, sizeof l->asked_hash, "%s", q->approval);
        l->asked_json = described;
        l->answer = STENO_ASK;
        pthread_cond_broadcast(&chat->changed);
        watches_poke(chat->server->watches);
        while (l->answer == STENO_ASK && !steno_stop_requested(q->stop)) {
                int64_t now = http_now_ms();
                if (now - looked >= LOOK_FOR_WATCHERS_MS) {
                        looked = now;
                        if (is_watched(l))
                                watched = now;
                        else if (now - watched >= patience)
                                break;
                }
                if (l->answer == STENO_ASK)
                        wait_a_moment(chat);
        }
        int answer = l->answer;
        l->asked_call[0] = '\0';
        l->asked_json = NULL;
        pthread_mutex_unlock(&chat->mutex);
        free(described);
        watches_poke(chat->server->watches);
        if (answer == STENO_ASK)
                snprintf(reason, 240, "nobody was there to allow it");
        return answer;
}

/* ---- the thread of a run ---- */

static void live_free(struct live *l)
{
        steno_conv_close(l->conv);
        steno_stop_free(l->stop);
        free(l->project);
        free(l->conversation);
        free(l->message);
        free(l->message_json);
        free(l->message_format);
        free(l->message_id);
        free(l->mode);
        free(l->model);
        steno_free(l->result);
        free(l->final);
        free(l);
}

/* Takes it out of the list. Under the mutex. */
static void live_leave(struct live *l)
{
        for (struct live **at = &l->chat->list; *at; at = &(*at)->next) {
                if (*at == l) {
                        *at = l->next;
                        break;
                }
        }
        pthread_cond_broadcast(&l->chat->changed);
}

/* Each of its turns reads and sends much. */
static bool is_heavy(const struct live *l)
{
        const char *said = l->message ? l->message : l->message_json;
        return said && strlen(said) > SERVER_HEAVY_BYTES;
}

static void *run(void *arg)
{
        struct live *l = arg;
        struct runner *chat = l->chat;
        struct steno_loop_options opt = {.size = sizeof opt,
            .store = chat->server->store,
            .conv = l->conv,
            .prompt = l->message,
            .message_json = l->message_json,
            .message_format = l->message_format,
            .message_id = l->message_id,
            .mode = l->mode,
            .model = l->model,
            .run_id = l->run,
            .script_json = chat->server->script,
            .stop = l->stop,
            .ask = ask,
            .ask_ctx = l,
            .on_event = on_event,
            .ctx = l};
        if (is_heavy(l))
                workers_step_back();
        if (!l->message && !l->message_json)
                opt.flags |= STENO_LOOP_CONTINUE;
        if (l->no_stream)
                opt.flags |= STENO_LOOP_NO_STREAM;
        if (l->public_only)
                session_fill_visitor(chat->session, &opt);
        else
                session_fill(chat->session, &opt);
        struct steno_error err = {0};
        char *result = NULL;
        otel_began(chat->server->otel, l->project, l->run);
        int rc = steno_chat_loop(&opt, &result, &err);
        otel_ended(chat->server->otel, l->project, l->run);
        follow_poke(chat->server->follow, l->run);
        watches_poke(chat->server->watches);
        pthread_mutex_lock(&chat->mutex);
        l->rc = rc;
        l->err = err;
        l->result = result;
        l->over = true;
        bool waited = l->waited;
        if (!waited)
                live_leave(l);
        pthread_cond_broadcast(&chat->changed);
        pthread_mutex_unlock(&chat->mutex);
        if (!waited)
                live_free(l);
        pthread_mutex_lock(&chat->mutex);
        chat->threads--;
        pthread_cond_broadcast(&chat->changed);
        pthread_mutex_unlock(&chat->mutex);
        return NULL;
}

static char *copy(const char *z, bool *failed)
{
        char *c = z ? strdup(z) : NULL;
        *failed = *failed || (z && !c);
        return c;
}

static int live_new(
    struct runner *chat, const struct runner_turn *t, struct live **out, struct steno_error *err)
{
        struct live *l = calloc(1, sizeof *l);
        bool failed = !l;
        if (!l)
                return error_nomem(err);
        l->chat = chat;
        l->public_only = t->public_only;
        l->no_stream = t->no_stream;
        l->project = copy(t->project, &failed);
        l->conversation = copy(t->conversation, &failed);
        l->message = copy(t->message, &failed);
        l->message_json = copy(t->message_json, &failed);
        l->message_format = copy(t->message_format, &failed);
        l->message_id = copy(t->message_id, &failed);
        l->mode = copy(t->mode, &failed);
        l->model = copy(t->model, &failed);
        if (t->run)
                snprintf(l->run, sizeof l->run, "%s", t->run);
        else
                steno_run_make_id(chat->server->store, "run_", l->run);
        int rc = failed ? error_nomem(err) : steno_stop_new(&l->stop, err);
        if (rc == 0)
                rc = steno_conv_open(
                    chat->server->store, t->project, t->conversation, &l->conv, err);
        if (rc) {
                live_free(l);
                return rc;
        }
        *out = l;
        return 0;
}

/* Each run has a thread. Visitors get a part of them, so that the owner always finds room. Counts
 * this one as well; under the mutex. */
static bool has_room(const struct live *l)
{
        unsigned all = 0, visitors = 0;
        for (const struct live *o = l->chat->list; o; o = o->next) {
                all++;
                visitors += o->public_only;
        }
        return all <= SERVER_TURNS_MAX && (!l->public_only || visitors <= SERVER_VISITOR_TURNS_MAX);
}

static int too_many(struct steno_error *err)
{
        int rc = error_set(err, STENO_EIO, "too many turns at once; try again later");
        if (err)
                err->sys = EAGAIN;
        return rc;
}

/* Starts the thread and waits until the run has begun or failed to. Under no lock. */
static int begin(struct live *l, struct steno_error *err)
{
        struct runner *chat = l->chat;
        pthread_t thread;
        pthread_attr_t attr;
        pthread_mutex_lock(&chat->mutex);
        l->waited = true; /* until we know what became of it */
        l->next = chat->list;
        chat->list = l;
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        int rc = 0;
        if (!has_room(l))
                rc = too_many(err);
        else if (atomic_load(&chat->server->stopping))
                rc = error_set(err, STENO_EUNSUPPORTED, "the server is stopping");
        else if (pthread_create(&thread, &attr, run, l))
                rc = error_nomem(err);
        else
                chat->threads++;
        pthread_attr_destroy(&attr);
        while (rc == 0 && !l->begun && !l->over)
                pthread_cond_wait(&chat->changed, &chat->mutex);
        if (rc == 0 && !l->begun && l->rc) {
                rc = l->rc;
                if (err)
                        *err = l->err;
        }
        if (rc)
                live_leave(l);
        pthread_mutex_unlock(&chat->mutex);
        return rc;
}

int runner_start(
    struct runner *chat, const struct runner_turn *turn, char run_id[64], struct steno_error *err)
{
        struct live *l;
        int rc = live_new(chat, turn, &l, err);
        if (rc)
                return rc;
        rc = begin(l, err);
        if (rc) {
                live_free(l);
                return rc;
        }
        snprintf(run_id, 64, "%s", l->run);
        atomic_fetch_add(&chat->server->metrics.runs, 1);
        pthread_mutex_lock(&chat->mutex);
        bool over = l->over;
        l->waited = false;
        if (over)
                live_leave(l);
        pthread_mutex_unlock(&chat->mutex);
        if (over)
                live_free(l);
        return 0;
}

int runner_run(struct runner *chat, const struct runner_turn *turn, char run_id[64], char **result,
    char **final, struct steno_error *err)
{
        struct live *l;
        int rc = live_new(chat, turn, &l, err);
        if (rc)
                return rc;
        rc = begin(l, err);
        if (rc == 0) {
                snprintf(run_id, 64, "%s", l->run);
                atomic_fetch_add(&chat->server->metrics.runs, 1);
                pthread_mutex_lock(&chat->mutex);
                while (!l->over)
                        pthread_cond_wait(&chat->changed, &chat->mutex);
                live_leave(l);
                pthread_mutex_unlock(&chat->mutex);
                rc = l->rc;
                if (rc && err)
                        *err = l->err;
                *result = l->result;
                *final = l->final;
                l->result = l->final = NULL;
        }
        live_free(l);
        return rc;
}

/* ---- from outside ---- */

/* Under the mutex. */
static struct live *find(struct runner *chat, const char *project, const char *run_id)
{
        for (struct live *l = chat->list; l; l = l->next)
                if (strcmp(l->run, run_id) == 0 && strcmp(l->project, project) == 0 && !l->over)
                        return l;
        return NULL;
}

int runner_stop(
    struct runner *chat, const char *project, const char *run_id, struct steno_error *err)
{
        pthread_mutex_lock(&chat->mutex);
        struct live *l = find(chat, project, run_id);
        if (l)
                steno_stop_request(l->stop);
        pthread_cond_broadcast(&chat->changed);
        pthread_mutex_unlock(&chat->mutex);
        return l ? 0 : error_set(err, STENO_ENOTFOUND, "no such run is active");
}

/* Was this question answered here, however long the run takes to go on? Under the mutex. */
static bool is_answered(const struct live *l, const char *approval)
{
        return approval && strcmp(l->answered_hash, approval) == 0;
}

/* Does this call wait for an answer? Under the mutex. */
static bool is_asked(const struct live *l, const char *call)
{
        return strcmp(l->asked_call, call) == 0 && l->answer == STENO_ASK;
}

int runner_approve(struct runner *chat, const char *project, const char *run_id, const char *call,
    const char *approval, bool allow, bool *over, struct steno_error *err)
{
        int rc = 0;
        int64_t until = http_now_ms() + ASKED_SOON_MS;
        struct live *l;
        pthread_mutex_lock(&chat->mutex);
        while ((l = find(chat, project, run_id)) && !is_asked(l, call) && http_now_ms() < until)
                wait_a_moment(chat);
        *over = l && is_answered(l, approval);
        if (!l || !is_asked(l, call)) {
                rc = error_set(err, STENO_ENOTFOUND, "no such call waits for permission");
        } else if (allow && !approval) {
                rc = error_set(err, STENO_EINVAL,
                    "approval is missing: send the hash of the event tool_call_approval");
        } else if (approval && strcmp(approval, l->asked_hash) != 0) {
                rc = error_set(err, STENO_ECONFLICT, "the approval is for another call");
        } else {
                l->answer = allow ? STENO_ALLOW : STENO_DENY;
                memcpy(l->answered_hash, l->asked_hash, sizeof l->answered_hash);
                pthread_cond_broadcast(&chat->changed);
        }
        pthread_mutex_unlock(&chat->mutex);
        return rc;
}

void runner_put_waiting(struct runner *chat, const char *project, struct buf *out)
{
        bool first = true;
        if (chat)
                pthread_mutex_lock(&chat->mutex);
        for (struct live *l = chat ? chat->list : NULL; l; l = l->next) {
                if (!l->asked_json || l->answer != STENO_ASK || strcmp(l->project, project) != 0)
                        continue;
                if (!first)
                        buf_putc(out, ',');
                first = false;
                buf_puts(out, l->asked_json);
        }
        if (chat)
                pthread_mutex_unlock(&chat->mutex);
}

static enum runner_state state_of(const struct live *l)
{
        return l->asked_json && l->answer == STENO_ASK ? RUNNER_WAITING : RUNNER_RUNNING;
}

void runner_put_states(struct runner *chat, const char *project, struct buf *out)
{
        if (!chat)
                return;
        pthread_mutex_lock(&chat->mutex);
        for (struct live *l = chat->list; l; l = l->next)
                if (!l->over && strcmp(l->project, project) == 0)
                        buf_printf(out, "%s %d\n", l->conversation, (int)state_of(l));
        pthread_mutex_unlock(&chat->mutex);
}

enum runner_state runner_state(struct runner *chat, const char *project, const char *conversation)
{
        enum runner_state state = RUNNER_IDLE;
        if (!chat)
                return state;
        pthread_mutex_lock(&chat->mutex);
        for (struct live *l = chat->list; l; l = l->next) {
                if (l->over || strcmp(l->conversation, conversation) != 0 ||
                    strcmp(l->project, project) != 0)
                        continue;
                state = state_of(l);
        }
        pthread_mutex_unlock(&chat->mutex);
        return state;
}

const char *runner_prices(const struct runner *chat)
{
        return chat ? chat->session->config.prices : NULL;
}
