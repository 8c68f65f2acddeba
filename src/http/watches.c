/*
 * watches.c - see watches.h.
 *
 * One thread a watch, because there is one watch a browser. In each round it looks at every topic
 * and sends what is new; while nothing is, it rests, and longer the longer nothing comes. A reader
 * without room is left alone until it has some.
 */
#include "http/watches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/percent.h"
#include "base/wait.h"
#include "http/follow.h"
#include "http/server_core.h"
#include "http/waiting.h"
#include "model/event.h"

#define WATCHES_MAX 1000 /* each has a thread */
#define TOPICS_MAX 400   /* of one watch: twenty windows with a few each */
#define TOPIC_MAX 1200   /* bytes: an encoded id and a ref */
#define REST_MIN_MS 20
#define REST_MAX_MS 200
#define LIST_MS 1000 /* between two looks at the list of conversations */
#define LIST_TOP 100 /* of it are compared */
#define RUNS_MS 2000 /* between two looks at its runs, while nothing is appended */
#define DEAD_MS 1500 /* without an event a run may be dead */
#define STALLED_MS 30000

enum topic_kind { TOPIC_LIST, TOPIC_APPROVALS, TOPIC_CONVERSATION, TOPIC_RUN, TOPIC_OUTPUT };

struct topic {
        struct topic *next;
        enum topic_kind kind;
        char *name; /* as the reader spelled it */
        char *what; /* the conversation or the run */
        char *ref;
        struct steno_conv *conv;
        uint64_t at;   /* seq or offset that the reader has */
        uint64_t told; /* a hash of what was told last */
        bool once;     /* something was told */
        int64_t look_ms;
        int64_t moved_ms;
        bool over;
};

struct watch {
        struct watch *next;
        struct watches *all;
        char id[WATCH_ID];
        char *project;
        struct stream *stream;
        struct topic *topics; /* the thread's own */
        /* under the mutex */
        struct topic *adding;
        char **removing;
        size_t remove_count;
        size_t count; /* of topics, those to be added among them */
        bool asks;    /* watches approvals */
        bool poked;
        pthread_cond_t wake;
};

struct watches {
        struct server *server;
        pthread_mutex_t mutex;
        pthread_cond_t empty;
        struct watch *list;
        unsigned threads;
        bool stopping;
};

/* ---- topics ---- */

static void topic_free(struct topic *t)
{
        if (!t)
                return;
        steno_conv_close(t->conv);
        free(t->name);
        free(t->what);
        free(t->ref);
        free(t);
}

static void topics_free(struct topic *list)
{
        for (struct topic *next; list; list = next) {
                next = list->next;
                topic_free(list);
        }
}

/* False: it is not in the list. */
static bool topics_drop(struct topic **list, const char *name)
{
        for (struct topic **at = list; *at; at = &(*at)->next) {
                struct topic *t = *at;
                if (strcmp(t->name, name) == 0) {
                        *at = t->next;
                        topic_free(t);
                        return true;
                }
        }
        return false;
}

/* A percent-encoded piece, decoded; NULL: it is not one, or memory is out. */
static char *decoded(struct str s)
{
        struct arena arena;
        struct str text;
        char *out = NULL;
        arena_init(&arena);
        if (s.n && percent_decode(&arena, s, false, &text))
                out = strndup(text.p, text.n);
        arena_release(&arena);
        return out;
}

/* Takes a name apart. */
static bool topic_read(struct topic *t, struct str name)
{
        const char *slash;
        const char *mark = memchr(name.p, '#', name.n);
        if (mark)
                name.n = (size_t)(mark - name.p);
        if (str_is(name, "list")) {
                t->kind = TOPIC_LIST;
                return true;
        }
        if (str_is(name, "approvals")) {
                t->kind = TOPIC_APPROVALS;
                return true;
        }
        if (name.n < 3 || name.n > TOPIC_MAX || name.p[1] != '/')
                return false;
        struct str rest = str_span(name.p + 2, name.n - 2);
        switch (name.p[0]) {
        case 'c':
                t->kind = TOPIC_CONVERSATION;
                t->what = decoded(rest);
                return t->what != NULL;
        case 'r':
                t->kind = TOPIC_RUN;
                t->what = decoded(rest);
                return t->what != NULL;
        case 'o':
                t->kind = TOPIC_OUTPUT;
                slash = memchr(rest.p, '/', rest.n);
                if (!slash)
                        return false;
                t->what = decoded(str_span(rest.p, (size_t)(slash - rest.p)));
                t->ref = decoded(str_span(slash + 1, rest.n - (size_t)(slash - rest.p) - 1));
                return t->what && t->ref;
        default:
                return false;
        }
}

static struct topic *topic_new(struct str name, uint64_t at)
{
        struct topic *t = calloc(1, sizeof *t);
        if (t) {
                t->at = at;
                t->name = strndup(name.p, name.n);
                t->moved_ms = http_now_ms();
        }
        if (!t || !t->name || memchr(name.p, '\n', name.n) || memchr(name.p, '\r', name.n) ||
            !topic_read(t, name)) {
                topic_free(t);
                return NULL;
        }
        return t;
}

/* The topics of an object; *count is how many. */
static int topics_read(
    const struct json *j, json_ref from, struct topic **out, size_t *count, struct steno_error *err)
{
        *out = NULL;
        *count = 0;
        if (from == JSON_NONE)
                return 0;
        if (json_type(j, from) != JSON_OBJECT)
                return error_set(err, STENO_EINVAL, "topics must be an object");
        for (json_ref k = json_child(j, from); k != JSON_NONE; k = json_next_key(j, from, k)) {
                struct buf name;
                uint64_t at = 0;
                buf_init(&name, TOPIC_MAX);
                json_u64(j, json_value(j, k), &at);
                struct topic *t = json_string(j, k, &name, NULL) && !name.failed && name.n
                                      ? topic_new(buf_str(&name), at)
                                      : NULL;
                buf_release(&name);
                if (!t || ++*count > TOPICS_MAX) {
                        struct str raw = json_raw(j, k);
                        topic_free(t);
                        topics_free(*out);
                        *out = NULL;
                        return error_set(err, STENO_EINVAL,
                            "%.*s is not a topic, or there are too many",
                            (int)(raw.n < 100 ? raw.n : 100), raw.p);
                }
                t->next = *out;
                *out = t;
        }
        return 0;
}

int watches_check(const struct json *j, json_ref topics, struct steno_error *err)
{
        struct topic *list;
        size_t count;
        int rc = topics_read(j, topics, &list, &count, err);
        topics_free(list);
        return rc;
}

/* ---- looking at one topic ---- */

struct topic_look {
        struct topic *t;
        struct server *server;
        const char *project;
        struct stream *stream;
        bool moved; /* something was sent */
};

static void tell(struct topic_look *l, struct str data)
{
        if (!stream_event(l->stream, NULL, l->t->name, data.p, data.n))
                l->t->over = true;
        l->t->once = true;
        l->t->moved_ms = http_now_ms();
        l->moved = true;
}

/* The last that is said about a topic. */
static void tell_end(struct topic_look *l, const char *data)
{
        tell(l, str_of(data));
        l->t->over = true;
}

/* Tells it when it is not what was told before. */
static void tell_new(struct topic_look *l, struct str data)
{
        uint64_t hash = hash_64(data.p, data.n);
        if (l->t->once && hash == l->t->told)
                return;
        l->t->told = hash;
        tell(l, data);
}

/* Is it time for another look at what costs something? */
static bool is_due(struct topic *t, int ms)
{
        int64_t now = http_now_ms();
        if (t->look_ms && now - t->look_ms < ms)
                return false;
        t->look_ms = now;
        return true;
}

static void look_list(struct topic_look *l)
{
        struct steno_list_options opt = {.size = sizeof opt, .limit = LIST_TOP};
        char *json = NULL;
        char data[40];
        if (!is_due(l->t, LIST_MS) || steno_list(l->server->store, l->project, &opt, &json, NULL))
                return;
        snprintf(data, sizeof data, "{\"state\":\"%016llx\"}",
            (unsigned long long)hash_64(json, strlen(json)));
        steno_free(json);
        tell_new(l, str_of(data));
}

static void look_approvals(struct topic_look *l)
{
        struct server *s = l->server;
        struct buf out;
        buf_init(&out, 0);
        waiting_put(s->waiting, l->project, &out);
        if (!out.failed)
                tell_new(l, buf_str(&out));
        buf_release(&out);
}

/* Opens the topic's conversation; false: it is not there. */
static bool open_conv(struct topic_look *l)
{
        struct topic *t = l->t;
        if (!t->conv && steno_conv_open(l->server->store, l->project, t->what, &t->conv, NULL)) {
                tell_end(l, "{\"type\":\"gone\"}");
                return false;
        }
        return true;
}

static void look_conversation(struct topic_look *l)
{
        struct topic *t = l->t;
        uint64_t seq = 0;
        char *runs = NULL;
        char data[64];
        if (!open_conv(l))
                return;
        if (steno_conv_last_seq(t->conv, &seq, NULL)) {
                tell_end(l, "{\"type\":\"gone\"}");
                return;
        }
        if (seq == t->at && t->once) {
                if (!is_due(t, RUNS_MS))
                        return;
                /* One that is open does not notice that it was moved to the trash. */
                steno_conv_close(t->conv);
                t->conv = NULL;
                if (!open_conv(l))
                        return;
        }
        if (steno_run_list(t->conv, &runs, NULL))
                return;
        t->at = seq;
        snprintf(data, sizeof data, "{\"lastSeq\":%llu,\"runs\":\"%016llx\"}",
            (unsigned long long)seq, (unsigned long long)hash_64(runs, strlen(runs)));
        steno_free(runs);
        tell_new(l, str_of(data));
}

static int hand_event(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct topic_look *l = ctx;
        struct buf out;
        (void)at;
        if (!stream_has_room(l->stream) || l->t->over)
                return 1;
        l->t->at = seq;
        if (!event_is_shown(type))
                return 0;
        buf_init(&out, 0);
        buf_printf(&out, "{\"type\":\"%s\",\"seq\":%llu,\"data\":", type, (unsigned long long)seq);
        buf_put(&out, data, n);
        buf_putc(&out, '}');
        if (out.failed)
                l->t->over = true;
        else
                tell(l, buf_str(&out));
        buf_release(&out);
        if (event_find(type) == STENO_EVENT_RUN_FINISHED)
                l->t->over = true;
        return 0;
}

static void look_run(struct topic_look *l)
{
        struct server *s = l->server;
        struct topic *t = l->t;
        if (steno_run_read(s->store, l->project, t->what, t->at, hand_event, l, NULL) < 0) {
                tell_end(l, "{\"type\":\"gone\"}");
                return;
        }
        if (http_now_ms() - t->moved_ms > DEAD_MS && is_due(t, DEAD_MS))
                follow_bury(s, l->project, t->what);
}

/* Tells what a read of an output answered. */
static void tell_output(struct topic_look *l, const char *json, const struct json *j)
{
        struct topic *t = l->t;
        uint64_t next = t->at;
        struct buf out;
        json_u64(j, json_get(j, 0, "next_offset"), &next);
        bool unfinished = json_bool(j, json_get(j, 0, "unfinished"), false);
        bool done = json_bool(j, json_get(j, 0, "done"), false);
        if (next > t->at) {
                buf_init(&out, 0);
                buf_printf(&out, "{\"type\":\"tail\",%s", json + 1);
                if (!out.failed)
                        tell(l, buf_str(&out));
                buf_release(&out);
                t->at = next;
        }
        if (!t->over && done && !unfinished)
                tell_end(l, "{\"type\":\"end\"}");
}

static void look_output(struct topic_look *l)
{
        struct topic *t = l->t;
        struct buf args;
        struct json j;
        char *json = NULL;
        if (!open_conv(l))
                return;
        buf_init(&args, 8 * KIB);
        json_init(&j);
        buf_puts(&args, "{\"ref\":");
        json_put_string(&args, str_of(t->ref));
        buf_printf(&args, ",\"offset\":%llu}", (unsigned long long)t->at);
        if (args.failed || steno_context(t->conv, "read", args.p, args.n, &json, NULL) ||
            json_parse(&j, json, strlen(json), NULL, NULL))
                tell_end(l, "{\"type\":\"gone\"}");
        else
                tell_output(l, json, &j);
        json_release(&j);
        steno_free(json);
        buf_release(&args);
}

static void topic_look(struct topic_look *l)
{
        switch (l->t->kind) {
        case TOPIC_LIST:
                look_list(l);
                break;
        case TOPIC_APPROVALS:
                look_approvals(l);
                break;
        case TOPIC_CONVERSATION:
                look_conversation(l);
                break;
        case TOPIC_RUN:
                look_run(l);
                break;
        case TOPIC_OUTPUT:
                look_output(l);
                break;
        }
}

/* ---- the thread of a watch ---- */

/* Takes what was changed from outside. */
static void take_changes(struct watch *w)
{
        pthread_mutex_lock(&w->all->mutex);
        struct topic *adding = w->adding;
        char **removing = w->removing;
        size_t n = w->remove_count;
        w->adding = NULL;
        w->removing = NULL;
        w->remove_count = 0;
        w->poked = false;
        pthread_mutex_unlock(&w->all->mutex);
        for (size_t i = 0; i < n; i++) {
                topics_drop(&w->topics, removing[i]);
                free(removing[i]);
        }
        free(removing);
        for (struct topic *next; adding; adding = next) {
                next = adding->next;
                topics_drop(&w->topics, adding->name);
                adding->next = w->topics;
                w->topics = adding;
        }
}

/* Forgets topics that are over, and says how many are left and whether one of them asks. */
static void count_topics(struct watch *w)
{
        size_t count = 0;
        bool asks = false;
        for (struct topic **at = &w->topics; *at;) {
                struct topic *t = *at;
                if (t->over) {
                        *at = t->next;
                        topic_free(t);
                        continue;
                }
                count++;
                asks = asks || t->kind == TOPIC_APPROVALS;
                at = &t->next;
        }
        pthread_mutex_lock(&w->all->mutex);
        for (struct topic *t = w->adding; t; t = t->next) {
                count++;
                asks = asks || t->kind == TOPIC_APPROVALS;
        }
        w->count = count;
        w->asks = asks;
        pthread_mutex_unlock(&w->all->mutex);
}

static void rest(struct watch *w, int ms)
{
        pthread_mutex_lock(&w->all->mutex);
        if (!w->poked && !w->adding && !w->removing && !w->all->stopping)
                wait_for(&w->wake, &w->all->mutex, ms);
        pthread_mutex_unlock(&w->all->mutex);
}

static void watch_free(struct watch *w)
{
        topics_free(w->topics);
        topics_free(w->adding);
        for (size_t i = 0; i < w->remove_count; i++)
                free(w->removing[i]);
        free(w->removing);
        stream_unref(w->stream);
        pthread_cond_destroy(&w->wake);
        free(w->project);
        free(w);
}

static bool goes_on(struct watch *w)
{
        pthread_mutex_lock(&w->all->mutex);
        bool stopping = w->all->stopping;
        pthread_mutex_unlock(&w->all->mutex);
        if (!stopping && stream_stalled(w->stream) > STALLED_MS)
                stream_break(w->stream);
        return !stopping && stream_is_open(w->stream);
}

/* One look at every topic; true when something was sent. */
static bool look_around(struct watch *w)
{
        bool moved = false;
        for (struct topic *t = w->topics; t; t = t->next) {
                struct topic_look l = {
                    .t = t, .server = w->all->server, .project = w->project, .stream = w->stream};
                if (!stream_has_room(w->stream))
                        break;
                topic_look(&l);
                moved = moved || l.moved;
        }
        return moved;
}

static void leave(struct watch *w)
{
        struct watches *all = w->all;
        pthread_mutex_lock(&all->mutex);
        for (struct watch **at = &all->list; *at; at = &(*at)->next) {
                if (*at == w) {
                        *at = w->next;
                        break;
                }
        }
        pthread_mutex_unlock(&all->mutex);
        watch_free(w);
        pthread_mutex_lock(&all->mutex);
        all->threads--;
        pthread_cond_broadcast(&all->empty);
        pthread_mutex_unlock(&all->mutex);
}

static void *run(void *arg)
{
        struct watch *w = arg;
        int rest_ms = REST_MIN_MS;
        while (goes_on(w)) {
                take_changes(w);
                bool moved = look_around(w);
                count_topics(w);
                rest_ms = moved ? REST_MIN_MS : rest_ms < REST_MAX_MS ? rest_ms + 10 : REST_MAX_MS;
                if (!moved)
                        rest(w, rest_ms);
        }
        /* What was written already still goes out. */
        if (stream_is_open(w->stream))
                look_around(w);
        leave(w);
        return NULL;
}

/* ---- from outside ---- */

struct watches *watches_new(struct server *server)
{
        struct watches *all = calloc(1, sizeof *all);
        if (all) {
                all->server = server;
                pthread_mutex_init(&all->mutex, NULL);
                wait_init(&all->empty);
        }
        return all;
}

static struct watch *watch_new(struct watches *all, const char *project, struct stream *stream)
{
        struct watch *w = calloc(1, sizeof *w);
        if (!w)
                return NULL;
        w->all = all;
        w->stream = stream;
        w->project = strdup(project);
        wait_init(&w->wake);
        unsigned char random[16];
        env_real()->random(env_real(), random, sizeof random);
        hash_hex(random, sizeof random, w->id);
        return w;
}

/* Under the mutex. */
static bool begin(struct watches *all, struct watch *w)
{
        pthread_t thread;
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        bool ok = !all->stopping && pthread_create(&thread, &attr, run, w) == 0;
        pthread_attr_destroy(&attr);
        if (ok) {
                all->threads++;
                w->next = all->list;
                all->list = w;
        }
        return ok;
}

bool watches_full(struct watches *all)
{
        pthread_mutex_lock(&all->mutex);
        bool full = all->threads >= WATCHES_MAX;
        pthread_mutex_unlock(&all->mutex);
        return full;
}

int watches_add(struct watches *all, const char *project, const struct json *j, json_ref topics,
    struct stream *stream, struct steno_error *err)
{
        struct watch *w = watch_new(all, project, stream);
        char said[80];
        if (!w) {
                stream_unref(stream);
                return error_nomem(err);
        }
        int rc = w->project ? topics_read(j, topics, &w->adding, &w->count, err) : error_nomem(err);
        for (struct topic *t = w->adding; t; t = t->next)
                w->asks = w->asks || t->kind == TOPIC_APPROVALS;
        if (rc == 0) {
                snprintf(said, sizeof said, "{\"id\":\"%s\"}", w->id);
                stream_event(stream, NULL, "watch", said, strlen(said));
                pthread_mutex_lock(&all->mutex);
                if (!begin(all, w))
                        rc = error_nomem(err);
                pthread_mutex_unlock(&all->mutex);
        }
        if (rc)
                watch_free(w);
        return rc;
}

/* Puts the names behind those that are to be removed. One that was added a moment ago, and that the
 * thread has not taken yet, is never begun. Under the mutex. */
static int remove_topics(
    struct watch *w, const struct json *j, json_ref names, struct steno_error *err)
{
        for (json_ref r = json_child(j, names); r != JSON_NONE; r = json_next(j, names, r)) {
                char **grown = realloc(w->removing, (w->remove_count + 1) * sizeof *grown);
                char *name = json_dup_string(j, r);
                if (grown)
                        w->removing = grown;
                if (!grown || !name) {
                        free(name);
                        return grown ? error_set(err, STENO_EINVAL, "a topic is a text")
                                     : error_nomem(err);
                }
                w->removing[w->remove_count++] = name;
                w->count -= topics_drop(&w->adding, name);
        }
        return 0;
}

/* Under the mutex. */
static struct watch *find(struct watches *all, const char *project, const char *id)
{
        struct watch *w = all->list;
        while (w && (strcmp(w->id, id) != 0 || strcmp(w->project, project) != 0))
                w = w->next;
        return w;
}

int watches_change(struct watches *all, const char *project, const char *id, const struct json *j,
    json_ref add, json_ref remove, struct steno_error *err)
{
        struct topic *list;
        size_t count;
        int rc = topics_read(j, add, &list, &count, err);
        if (rc)
                return rc;
        if (remove != JSON_NONE && json_type(j, remove) != JSON_ARRAY)
                rc = error_set(err, STENO_EINVAL, "remove must be an array");
        pthread_mutex_lock(&all->mutex);
        struct watch *w = find(all, project, id);
        if (rc == 0 && !w)
                rc = error_set(err, STENO_ENOTFOUND, "no such watch");
        if (rc == 0 && w->count + count > TOPICS_MAX)
                rc = error_set(err, STENO_EINVAL, "a watch has at most %d topics", TOPICS_MAX);
        if (rc == 0 && remove != JSON_NONE)
                rc = remove_topics(w, j, remove, err);
        if (rc == 0) {
                struct topic **end = &list;
                while (*end) {
                        w->asks = w->asks || (*end)->kind == TOPIC_APPROVALS;
                        w->count -= topics_drop(&w->adding, (*end)->name);
                        end = &(*end)->next;
                }
                *end = w->adding;
                w->adding = list;
                w->count += count;
                pthread_cond_signal(&w->wake);
                list = NULL;
        }
        pthread_mutex_unlock(&all->mutex);
        topics_free(list);
        return rc;
}

bool watches_end(struct watches *all, const char *project, const char *id)
{
        pthread_mutex_lock(&all->mutex);
        struct watch *w = find(all, project, id);
        if (w) {
                stream_end(w->stream);
                pthread_cond_signal(&w->wake);
        }
        pthread_mutex_unlock(&all->mutex);
        return w != NULL;
}

bool watches_anybody(struct watches *all, const char *project)
{
        bool found = false;
        pthread_mutex_lock(&all->mutex);
        for (struct watch *w = all->list; w && !found; w = w->next)
                found = w->asks && strcmp(w->project, project) == 0 && stream_is_open(w->stream);
        pthread_mutex_unlock(&all->mutex);
        return found;
}

void watches_poke(struct watches *all)
{
        pthread_mutex_lock(&all->mutex);
        for (struct watch *w = all->list; w; w = w->next) {
                w->poked = true;
                pthread_cond_signal(&w->wake);
        }
        pthread_mutex_unlock(&all->mutex);
}

void watches_stop(struct watches *all)
{
        if (!all)
                return;
        pthread_mutex_lock(&all->mutex);
        all->stopping = true;
        for (struct watch *w = all->list; w; w = w->next)
                pthread_cond_signal(&w->wake);
        while (all->threads)
                pthread_cond_wait(&all->empty, &all->mutex);
        pthread_mutex_unlock(&all->mutex);
}

void watches_free(struct watches *all)
{
        if (!all)
                return;
        watches_stop(all);
        pthread_mutex_destroy(&all->mutex);
        pthread_cond_destroy(&all->empty);
        free(all);
}
