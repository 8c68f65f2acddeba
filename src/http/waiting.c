/* waiting.c - see waiting.h */
#include "http/waiting.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "http/server_core.h"
#include "model/event.h"

#define LOOK_MS 1000
#define LOOK_TOP 100 /* conversations, the newest */
#define PROJECTS 64  /* that are remembered */

/* A live run of another process. */
struct far {
        struct far *next;
        char *conversation;
        char *run;
        uint64_t seq;    /* its journal was read up to here */
        char *asked;     /* the call that waits, as it is told; NULL: none does */
        char call[1100]; /* its id */
        bool seen;       /* in the look under way */
};

/* A conversation without such a run, until it changes. */
struct still {
        uint64_t id;
        uint64_t changed;
};

struct place {
        struct place *next;
        char *project;
        int64_t looked;
        struct far *runs;
        struct still still[LOOK_TOP];
        size_t still_count;
};

struct waiting {
        struct server *server;
        pthread_mutex_t mutex;
        struct place *places; /* the one that was asked for last first */
};

struct waiting *waiting_new(struct server *server)
{
        struct waiting *all = calloc(1, sizeof *all);
        if (!all)
                return NULL;
        all->server = server;
        pthread_mutex_init(&all->mutex, NULL);
        return all;
}

static void far_free(struct far *f)
{
        free(f->conversation);
        free(f->run);
        free(f->asked);
        free(f);
}

static void place_free(struct place *p)
{
        for (struct far *f = p->runs, *next; f; f = next) {
                next = f->next;
                far_free(f);
        }
        free(p->project);
        free(p);
}

void waiting_free(struct waiting *all)
{
        if (!all)
                return;
        for (struct place *p = all->places, *next; p; p = next) {
                next = p->next;
                place_free(p);
        }
        pthread_mutex_destroy(&all->mutex);
        free(all);
}

/* The project's place, made if there is none; NULL: out of memory. Under the mutex. */
static struct place *place_of(struct waiting *all, const char *project)
{
        struct place **at = &all->places;
        size_t n = 0;
        for (; *at && strcmp((*at)->project, project) != 0; n++)
                at = &(*at)->next;
        struct place *p = *at;
        if (p) {
                *at = p->next;
        } else {
                p = calloc(1, sizeof *p);
                if (p && !(p->project = strdup(project))) {
                        free(p);
                        p = NULL;
                }
                if (!p)
                        return NULL;
        }
        p->next = all->places;
        all->places = p;
        if (n < PROJECTS)
                return p;
        for (at = &all->places; (*at)->next;)
                at = &(*at)->next;
        place_free(*at);
        *at = NULL;
        return p;
}

/* ---- the journal of a run ---- */

/* Journals of older versions do not have it. */
static void copy_member(struct jsonw *w, const struct json *j, const char *name)
{
        json_ref v = json_get(j, 0, name);
        if (v != JSON_NONE)
                jsonw_field_copy(w, name, j, v);
}

static char *describe(const struct far *f, const struct json *j, const char *at)
{
        struct buf out;
        buf_init(&out, 0);
        struct jsonw w = jsonw_to(&out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "run", f->run);
        jsonw_field_copy(&w, "call", j, json_get(j, 0, "toolCallId"));
        jsonw_field_copy(&w, "approval", j, json_get(j, 0, "approval"));
        jsonw_field_cstr(&w, "conversation", f->conversation);
        jsonw_field_copy(&w, "tool", j, json_get(j, 0, "toolName"));
        jsonw_field_copy(&w, "arguments", j, json_get(j, 0, "arguments"));
        copy_member(&w, j, "limits");
        copy_member(&w, j, "environment");
        jsonw_field_cstr(&w, "since", at);
        jsonw_field_bool(&w, "elsewhere", true);
        jsonw_object_end(&w);
        char *json = out.failed ? NULL : buf_take(&out, NULL);
        buf_release(&out);
        return json;
}

static void take_approval(struct far *f, const struct json *j, const char *at)
{
        char *call = json_dup_string(j, json_get(j, 0, "toolCallId"));
        bool pending = json_is(j, json_get(j, 0, "state"), "pending");
        if (call && strlen(call) < sizeof f->call && (pending || strcmp(call, f->call) == 0)) {
                free(f->asked);
                f->asked = pending ? describe(f, j, at) : NULL;
                snprintf(f->call, sizeof f->call, "%s", pending ? call : "");
        }
        free(call);
}

static int take_event(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct far *f = ctx;
        struct json j;
        f->seq = seq;
        if (event_find(type) != STENO_EVENT_TOOL_CALL_APPROVAL)
                return 0;
        json_init(&j);
        if (json_parse(&j, data, n, NULL, NULL) == 0)
                take_approval(f, &j, at);
        json_release(&j);
        return 0;
}

/* ---- looking ---- */

/* The id of the conversation's live run, to be freed; NULL: it has none. */
static char *live_run(struct steno_conv *conv)
{
        struct json j;
        char *text = NULL, *run = NULL;
        json_init(&j);
        if (steno_run_list(conv, &text, NULL) == 0 &&
            json_parse(&j, text, strlen(text), NULL, NULL) == 0) {
                json_ref newest = json_child(&j, json_get(&j, 0, "items"));
                if (newest != JSON_NONE && json_is(&j, json_get(&j, newest, "state"), "running"))
                        run = json_dup_string(&j, json_get(&j, newest, "id"));
        }
        json_release(&j);
        steno_free(text);
        return run;
}

static struct far *far_of(struct place *p, const char *conversation, const char *run)
{
        for (struct far *f = p->runs; f; f = f->next)
                if (strcmp(f->run, run) == 0 && strcmp(f->conversation, conversation) == 0)
                        return f;
        struct far *f = calloc(1, sizeof *f);
        if (!f)
                return NULL;
        f->conversation = strdup(conversation);
        f->run = strdup(run);
        if (!f->conversation || !f->run) {
                far_free(f);
                return NULL;
        }
        f->next = p->runs;
        p->runs = f;
        return f;
}

static bool is_still(const struct place *p, const struct still *s)
{
        for (size_t i = 0; i < p->still_count; i++)
                if (p->still[i].id == s->id && p->still[i].changed == s->changed)
                        return true;
        return false;
}

/* True: nothing is at work there that is not ours. */
static bool look_at(struct waiting *all, struct place *p, const char *id)
{
        struct steno_conv *conv = NULL;
        if (runner_state(all->server->chat, p->project, id) != RUNNER_IDLE)
                return false;
        if (steno_conv_open(all->server->store, p->project, id, &conv, NULL))
                return true;
        char *run = live_run(conv);
        struct far *f = run ? far_of(p, id, run) : NULL;
        steno_conv_close(conv);
        if (f) {
                f->seen = true;
                steno_run_read(all->server->store, p->project, run, f->seq, take_event, f, NULL);
        }
        bool still = !run;
        free(run);
        return still;
}

static void drop_unseen(struct place *p)
{
        for (struct far **at = &p->runs; *at;) {
                struct far *f = *at;
                if (f->seen) {
                        f->seen = false;
                        at = &f->next;
                } else {
                        *at = f->next;
                        far_free(f);
                }
        }
}

/* Looks at the newest conversations, if it is time to. Under the mutex. */
static void look(struct waiting *all, struct place *p)
{
        struct steno_list_options opt = {.size = sizeof opt, .limit = LOOK_TOP};
        struct still still[LOOK_TOP];
        size_t count = 0;
        struct json j;
        char *list = NULL;
        int64_t now = http_now_ms();
        if (p->looked && now - p->looked < LOOK_MS)
                return;
        p->looked = now;
        json_init(&j);
        if (steno_list(all->server->store, p->project, &opt, &list, NULL) == 0 &&
            json_parse(&j, list, strlen(list), NULL, NULL) == 0) {
                json_ref items = json_get(&j, 0, "items");
                for (json_ref i = json_child(&j, items); i != JSON_NONE && count < LOOK_TOP;
                     i = json_next(&j, items, i)) {
                        char *id = json_dup_string(&j, json_get(&j, i, "id"));
                        struct str raw = json_raw(&j, i);
                        struct still s = {id ? hash_64(id, strlen(id)) : 0, hash_64(raw.p, raw.n)};
                        if (id && (is_still(p, &s) || look_at(all, p, id)))
                                still[count++] = s;
                        free(id);
                }
                drop_unseen(p);
                memcpy(p->still, still, count * sizeof *still);
                p->still_count = count;
        }
        json_release(&j);
        steno_free(list);
}

/* ---- answers ---- */

void waiting_put(struct waiting *all, const char *project, struct buf *out)
{
        buf_puts(out, "{\"items\":[");
        size_t from = out->n;
        runner_put_waiting(all->server->chat, project, out);
        pthread_mutex_lock(&all->mutex);
        struct place *p = place_of(all, project);
        if (p)
                look(all, p);
        for (struct far *f = p ? p->runs : NULL; f; f = f->next) {
                if (!f->asked)
                        continue;
                if (out->n > from)
                        buf_putc(out, ',');
                buf_puts(out, f->asked);
        }
        pthread_mutex_unlock(&all->mutex);
        buf_puts(out, "]}");
}

enum runner_state waiting_state(struct waiting *all, const char *project, const char *conversation)
{
        enum runner_state state = runner_state(all->server->chat, project, conversation);
        if (state != RUNNER_IDLE)
                return state;
        pthread_mutex_lock(&all->mutex);
        struct place *p = place_of(all, project);
        if (p)
                look(all, p);
        for (struct far *f = p ? p->runs : NULL; f; f = f->next)
                if (strcmp(f->conversation, conversation) == 0)
                        state = f->asked ? RUNNER_WAITING : RUNNER_RUNNING;
        pthread_mutex_unlock(&all->mutex);
        return state;
}

void waiting_put_states(struct waiting *all, const char *project, struct buf *out)
{
        runner_put_states(all->server->chat, project, out);
        pthread_mutex_lock(&all->mutex);
        struct place *p = place_of(all, project);
        if (p)
                look(all, p);
        for (struct far *f = p ? p->runs : NULL; f; f = f->next)
                buf_printf(out, "%s %s\n", f->conversation, f->asked ? f->call : "");
        pthread_mutex_unlock(&all->mutex);
}
