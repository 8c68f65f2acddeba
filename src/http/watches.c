/*
 * watches.c - see watches.h.
 *
 * Each watch has one thread, because a browser has one watch. In each round the thread looks at
 * every topic and sends what is new. If nothing is new it pauses, and the pauses grow. A reader
 * without room gets nothing until it has room again.
 */
#include "http/watches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"
#include "http/server_core.h"
#include "http/topics.h"

#define WATCHES_MAX 1000 /* each has a thread */
#define REST_MIN_MS 20
#define REST_MAX_MS 200
#define STALLED_MS 30000

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

int watches_check(const struct json *j, json_ref topics, struct steno_error *err)
{
        struct topic *list;
        size_t count;
        int rc = topics_read(j, topics, &list, &count, err);
        topics_free(list);
        return rc;
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
