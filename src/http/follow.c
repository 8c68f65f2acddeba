/*
 * follow.c - see follow.h.
 *
 * Each followed run has one thread. It reads the journal from the place of the reader that is
 * furthest behind and has room, and hands each event to every reader that has not had it. A reader
 * without room waits for the next round, and others do not wait for it. A reader that takes nothing
 * for too long is cut off.
 */
#include "http/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/json.h"
#include "base/wait.h"
#include "http/server_core.h"
#include "http/http_limits.h"
#include "model/event.h"

#define POLL_MIN_MS 20
#define POLL_MAX_MS 250
#define DEAD_CHECK_MS 1500
#define STALLED_MS 30000
#define DRAINING_MS 500 /* a full reader that took bytes within this time will soon have room */
#define DRAIN_POLL_MS 2

struct reader {
        struct reader *next;
        struct stream *stream;
        const struct projection *projection;
        void *state;    /* of the projection */
        uint64_t after; /* has had all events up to this one */
        uint64_t mute;  /* up to this one it wants to see nothing of them */
        bool full;      /* in this round */
        bool over;
};

struct followed {
        struct followed *next;
        struct follow *all;
        char *project;
        char *run;
        struct reader *readers;
        struct reader *joining; /* under the mutex */
        bool handed;            /* something, in this round */
        bool poked;
        unsigned count; /* of readers who may answer, under the mutex */
        pthread_cond_t wake;
};

struct follow {
        struct server *server;
        pthread_mutex_t mutex;
        pthread_cond_t empty;
        struct followed *list;
        unsigned threads;
        bool stopping;
};

/* ---- one round ---- */

static void reader_free(struct reader *r)
{
        stream_unref(r->stream);
        (r->projection->end ? r->projection->end : free)(r->state);
        free(r);
}

/* Writes one event. False: the reader is gone. */
static bool tell(struct reader *r, const struct projected *e)
{
        struct buf out;
        buf_init(&out, 0);
        bool ok = r->projection->event(r->state, e, &out) && !out.failed;
        if (ok && out.n && e->seq > r->mute)
                ok = stream_write(r->stream, out.p, out.n);
        else if (!ok)
                stream_break(r->stream);
        buf_release(&out);
        return ok;
}

static int hand_out(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct followed *f = ctx;
        bool waiting = false;
        (void)at;
        for (struct reader *r = f->readers; r; r = r->next) {
                if (!r->over && !r->full && r->after < seq && !stream_has_room(r->stream))
                        r->full = true;
                if (r->over || r->full)
                        continue;
                waiting = true;
                if (r->after >= seq)
                        continue;
                struct projected e = {
                    .run = f->run, .seq = seq, .type = type, .data = data, .n = n};
                if (!tell(r, &e))
                        r->over = true;
                r->after = seq;
                f->handed = true;
                if (event_find(type) == STENO_EVENT_RUN_FINISHED) {
                        stream_end(r->stream);
                        r->over = true;
                }
        }
        return waiting ? 0 : 1; /* nobody can take more in this round */
}

/* Readers without room are left out of this round. Answers whether one of them is reading right
 * now. */
static bool mark_full(struct followed *f)
{
        bool draining = false;
        for (struct reader *r = f->readers; r; r = r->next) {
                r->full = !stream_has_room(r->stream);
                draining = draining || (r->full && stream_stalled(r->stream) < DRAINING_MS);
        }
        return draining;
}

static uint64_t furthest_behind(struct followed *f)
{
        uint64_t after = UINT64_MAX;
        for (struct reader *r = f->readers; r; r = r->next)
                if (!r->over && !r->full && r->after < after)
                        after = r->after;
        return after;
}

/* Removes readers that are gone, finished or stuck. */
static void drop_readers(struct followed *f)
{
        for (struct reader **at = &f->readers; *at;) {
                struct reader *r = *at;
                if (!r->over && stream_stalled(r->stream) > STALLED_MS) {
                        stream_break(r->stream);
                        atomic_fetch_add(&f->all->server->metrics.streams_cut, 1);
                        r->over = true;
                }
                if (r->over || !stream_is_open(r->stream)) {
                        *at = r->next;
                        reader_free(r);
                } else {
                        at = &r->next;
                }
        }
}

void follow_bury(struct server *server, const char *project, const char *run_id)
{
        struct steno_store *store = server->store;
        char *info = NULL;
        struct json j;
        struct steno_conv *conv = NULL;
        json_init(&j);
        if (steno_run_info(store, project, run_id, &info, NULL) == 0 &&
            json_parse(&j, info, strlen(info), NULL, NULL) == 0 &&
            json_is(&j, json_get(&j, 0, "state"), "dead")) {
                char *id = json_dup_string(&j, json_get(&j, 0, "conversation"));
                if (id && steno_conv_open(store, project, id, &conv, NULL) == 0)
                        steno_conv_recover(conv, NULL, NULL);
                free(id);
        }
        steno_conv_close(conv);
        json_release(&j);
        steno_free(info);
}

/* Takes in new readers; false when there is nobody left and the thread may go. */
static bool next_round(struct followed *f)
{
        struct follow *all = f->all;
        pthread_mutex_lock(&all->mutex);
        while (f->joining) {
                struct reader *r = f->joining;
                f->joining = r->next;
                r->next = f->readers;
                f->readers = r;
        }
        bool stay = f->readers && !all->stopping;
        if (!stay) {
                for (struct followed **at = &all->list; *at; at = &(*at)->next) {
                        if (*at == f) {
                                *at = f->next;
                                break;
                        }
                }
        }
        f->count = 0;
        for (struct reader *r = f->readers; r; r = r->next)
                f->count += stream_may_answer(r->stream);
        f->poked = false;
        pthread_mutex_unlock(&all->mutex);
        return stay;
}

static void rest(struct followed *f, int ms)
{
        pthread_mutex_lock(&f->all->mutex);
        if (!f->poked && !f->joining && !f->all->stopping)
                wait_for(&f->wake, &f->all->mutex, ms);
        pthread_mutex_unlock(&f->all->mutex);
}

static void followed_free(struct followed *f)
{
        for (struct reader *r = f->readers, *next; r; r = next) {
                next = r->next;
                reader_free(r);
        }
        pthread_cond_destroy(&f->wake);
        free(f->project);
        free(f->run);
        free(f);
}

/* What is written already still goes out. */
static void last_round(struct followed *f)
{
        uint64_t after = furthest_behind(f);
        if (after != UINT64_MAX)
                steno_run_read(f->all->server->store, f->project, f->run, after, hand_out, f, NULL);
}

static void *run(void *arg)
{
        struct followed *f = arg;
        struct follow *all = f->all;
        struct steno_store *store = all->server->store;
        int idle_ms = POLL_MIN_MS;
        int64_t quiet_since = time_monotonic_ms() - DEAD_CHECK_MS;
        while (next_round(f)) {
                bool draining = mark_full(f);
                uint64_t after = furthest_behind(f);
                f->handed = false;
                if (after != UINT64_MAX &&
                    steno_run_read(store, f->project, f->run, after, hand_out, f, NULL) < 0) {
                        for (struct reader *r = f->readers; r; r = r->next)
                                stream_break(r->stream);
                }
                bool moved = f->handed;
                drop_readers(f);
                idle_ms = moved ? POLL_MIN_MS : idle_ms < POLL_MAX_MS ? idle_ms + 10 : POLL_MAX_MS;
                int64_t now = time_monotonic_ms();
                if (moved)
                        quiet_since = now;
                if (now - quiet_since >= DEAD_CHECK_MS) {
                        quiet_since = now;
                        follow_bury(all->server, f->project, f->run);
                }
                if (!moved)
                        rest(f, draining ? DRAIN_POLL_MS : idle_ms);
        }
        last_round(f);
        followed_free(f);
        pthread_mutex_lock(&all->mutex);
        all->threads--;
        pthread_cond_broadcast(&all->empty);
        pthread_mutex_unlock(&all->mutex);
        return NULL;
}

/* ---- the table ---- */

struct follow *follow_new(struct server *server)
{
        struct follow *f = calloc(1, sizeof *f);
        if (f) {
                f->server = server;
                pthread_mutex_init(&f->mutex, NULL);
                wait_init(&f->empty);
        }
        return f;
}

/* Finds or makes the followed run. Under the mutex. */
static struct followed *followed_get(struct follow *all, const char *project, const char *run_id)
{
        for (struct followed *f = all->list; f; f = f->next)
                if (strcmp(f->run, run_id) == 0 && strcmp(f->project, project) == 0)
                        return f;
        struct followed *f = calloc(1, sizeof *f);
        if (!f)
                return NULL;
        f->all = all;
        f->project = strdup(project);
        f->run = strdup(run_id);
        wait_init(&f->wake);
        if (!f->project || !f->run) {
                followed_free(f);
                return NULL;
        }
        return f;
}

/* Whether a thread has it. Under the mutex. */
static bool is_listed(struct follow *all, struct followed *wanted)
{
        for (struct followed *f = all->list; f; f = f->next)
                if (f == wanted)
                        return true;
        return false;
}

static bool begin(struct follow *all, struct followed *f)
{
        pthread_t thread;
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        bool ok = pthread_create(&thread, &attr, run, f) == 0;
        pthread_attr_destroy(&attr);
        if (ok) {
                all->threads++;
                f->next = all->list;
                all->list = f;
        }
        return ok;
}

int follow_add(struct follow *all, const char *project, const char *run_id, uint64_t after,
    const struct projection *projection, struct stream *stream, struct steno_error *err)
{
        bool whole = projection->begin != NULL;
        struct reader *r = calloc(1, sizeof *r);
        void *state = r && whole ? projection->begin() : NULL;
        int rc = 0;
        if (!r || (whole && !state)) {
                free(r);
                return error_nomem(err);
        }
        *r = (struct reader){.stream = stream,
            .projection = projection,
            .state = state,
            .after = whole ? 0 : after,
            .mute = whole ? after : 0};
        pthread_mutex_lock(&all->mutex);
        struct followed *f = all->stopping ? NULL : followed_get(all, project, run_id);
        if (f) {
                r->next = f->joining;
                f->joining = r;
                pthread_cond_signal(&f->wake);
        }
        if (!f) {
                rc = error_nomem(err);
        } else if (!is_listed(all, f) && !begin(all, f)) {
                f->joining = NULL;
                followed_free(f);
                rc = error_nomem(err);
        }
        pthread_mutex_unlock(&all->mutex);
        if (rc) {
                r->stream = NULL; /* the caller's still */
                reader_free(r);
        }
        return rc;
}

unsigned follow_answerers(struct follow *all, const char *run_id)
{
        unsigned n = 0;
        pthread_mutex_lock(&all->mutex);
        for (struct followed *f = all->list; f; f = f->next) {
                if (strcmp(f->run, run_id) != 0)
                        continue;
                n += f->count;
                for (struct reader *r = f->joining; r; r = r->next)
                        n += stream_may_answer(r->stream);
        }
        pthread_mutex_unlock(&all->mutex);
        return n;
}

void follow_poke(struct follow *all, const char *run_id)
{
        pthread_mutex_lock(&all->mutex);
        for (struct followed *f = all->list; f; f = f->next) {
                if (strcmp(f->run, run_id) == 0) {
                        f->poked = true;
                        pthread_cond_signal(&f->wake);
                }
        }
        pthread_mutex_unlock(&all->mutex);
}

void follow_stop(struct follow *all)
{
        pthread_mutex_lock(&all->mutex);
        all->stopping = true;
        for (struct followed *f = all->list; f; f = f->next)
                pthread_cond_signal(&f->wake);
        while (all->threads)
                pthread_cond_wait(&all->empty, &all->mutex);
        pthread_mutex_unlock(&all->mutex);
}

void follow_free(struct follow *all)
{
        if (!all)
                return;
        pthread_mutex_destroy(&all->mutex);
        pthread_cond_destroy(&all->empty);
        free(all);
}
