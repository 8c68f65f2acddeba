/* tails.c - see tails.h */
#include "http/tails.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"

#define POLL_MS 100

struct tailing {
        struct tailing *next;
        struct steno_conv *conv;
        struct stream *stream;
        char *ref;
        uint64_t offset;
        bool over;
};

struct tails {
        pthread_mutex_t mutex;
        pthread_cond_t wake;
        pthread_t thread;
        bool running;
        bool stopping;
        struct tailing *joining; /* under the mutex */
        struct tailing *list;    /* the thread's own */
};

static void tailing_free(struct tailing *t)
{
        stream_unref(t->stream);
        steno_conv_close(t->conv);
        free(t->ref);
        free(t);
}

/* ---- one reader ---- */

/* Tells what a read answered. `moved`: there may be more at once. */
static void tell(struct tailing *t, const char *json, const struct json *j, bool *moved)
{
        uint64_t next = t->offset;
        json_u64(j, json_get(j, 0, "next_offset"), &next);
        bool unfinished = json_bool(j, json_get(j, 0, "unfinished"), false);
        bool done = json_bool(j, json_get(j, 0, "done"), false);
        if (next > t->offset) {
                char id[24];
                snprintf(id, sizeof id, "%llu", (unsigned long long)next);
                t->over = !stream_event(t->stream, id, "tail", json, strlen(json));
                t->offset = next;
                *moved = true;
        }
        if (!t->over && done && !unfinished) {
                stream_event(t->stream, NULL, "end", "{}", 2);
                stream_end(t->stream);
                t->over = true;
        }
}

static void send_new(struct tailing *t, bool *moved)
{
        struct buf args;
        struct json j;
        char *json = NULL;
        buf_init(&args, 4 * KIB);
        json_init(&j);
        buf_puts(&args, "{\"ref\":");
        json_put_string(&args, str_of(t->ref));
        buf_printf(&args, ",\"offset\":%llu}", (unsigned long long)t->offset);
        if (args.failed || steno_context(t->conv, "read", args.p, args.n, &json, NULL) ||
            json_parse(&j, json, strlen(json), NULL, NULL)) {
                stream_break(t->stream);
                t->over = true;
        } else {
                tell(t, json, &j, moved);
        }
        json_release(&j);
        steno_free(json);
        buf_release(&args);
}

/* ---- the thread ---- */

/* Takes in who joined; with nobody there, waits for one. False: it is over. */
static bool gather(struct tails *all, bool rest)
{
        pthread_mutex_lock(&all->mutex);
        if (rest && !all->stopping && !all->joining && all->list)
                wait_for(&all->wake, &all->mutex, POLL_MS);
        while (!all->stopping && !all->joining && !all->list)
                pthread_cond_wait(&all->wake, &all->mutex);
        while (all->joining) {
                struct tailing *t = all->joining;
                all->joining = t->next;
                t->next = all->list;
                all->list = t;
        }
        bool go_on = !all->stopping;
        pthread_mutex_unlock(&all->mutex);
        return go_on;
}

static void *run(void *arg)
{
        struct tails *all = arg;
        bool moved = true;
        while (gather(all, !moved)) {
                moved = false;
                for (struct tailing **at = &all->list; *at;) {
                        struct tailing *t = *at;
                        if (stream_is_open(t->stream) && stream_has_room(t->stream))
                                send_new(t, &moved);
                        if (t->over || !stream_is_open(t->stream)) {
                                *at = t->next;
                                tailing_free(t);
                        } else {
                                at = &t->next;
                        }
                }
        }
        while (all->list) {
                struct tailing *next = all->list->next;
                tailing_free(all->list);
                all->list = next;
        }
        return NULL;
}

/* ---- from outside ---- */

struct tails *tails_new(void)
{
        struct tails *all = calloc(1, sizeof *all);
        if (all) {
                pthread_mutex_init(&all->mutex, NULL);
                wait_init(&all->wake);
        }
        return all;
}

int tails_add(struct tails *all, struct steno_conv *conv, char *ref, uint64_t offset,
    struct stream *stream, struct steno_error *err)
{
        struct tailing *t = calloc(1, sizeof *t);
        int rc = 0;
        if (!t) {
                stream_unref(stream);
                steno_conv_close(conv);
                free(ref);
                return error_nomem(err);
        }
        *t = (struct tailing){.conv = conv, .ref = ref, .offset = offset, .stream = stream};
        pthread_mutex_lock(&all->mutex);
        if (!all->running && !all->stopping)
                all->running = pthread_create(&all->thread, NULL, run, all) == 0;
        if (!all->running || all->stopping) {
                rc = error_nomem(err);
        } else {
                t->next = all->joining;
                all->joining = t;
                pthread_cond_signal(&all->wake);
        }
        pthread_mutex_unlock(&all->mutex);
        if (rc)
                tailing_free(t);
        return rc;
}

void tails_stop(struct tails *all)
{
        if (!all)
                return;
        pthread_mutex_lock(&all->mutex);
        all->stopping = true;
        bool running = all->running;
        all->running = false;
        pthread_cond_signal(&all->wake);
        pthread_mutex_unlock(&all->mutex);
        if (running)
                pthread_join(all->thread, NULL);
}

void tails_free(struct tails *all)
{
        if (!all)
                return;
        tails_stop(all);
        pthread_mutex_destroy(&all->mutex);
        pthread_cond_destroy(&all->wake);
        free(all);
}
