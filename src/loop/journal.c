/*
 * journal.c - writing a run's events (journal.h).
 */
#include "loop/journal.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "tool/tool.h"

void journal_init(struct journal *j, struct steno_run *run)
{
        *j = (struct journal){.run = run};
        pthread_mutex_init(&j->lock, NULL);
        buf_init(&j->text, MESSAGE_MAX);
}

void journal_release(struct journal *j)
{
        buf_release(&j->text);
        pthread_mutex_destroy(&j->lock);
}

/* With the lock held. */
static int store(struct journal *j, enum steno_event type, struct buf *data, int durability)
{
        if (j->failed.code)
                return j->failed.code;
        uint64_t seq = 0;
        const char *z = buf_cstr(data);
        int rc =
            z ? steno_run_event(j->run, event_name(type), z, data->n, durability, &seq, &j->failed)
              : error_nomem(&j->failed);
        if (rc) {
                j->failed.code = rc;
                return rc;
        }
        if (j->on_event)
                j->on_event(j->ctx, seq, event_name(type), z, data->n);
        return 0;
}

static void begin(struct event *e, const struct journal *j, const char *message_id)
{
        buf_init(&e->data, MESSAGE_MAX);
        e->w = jsonw_to(&e->data);
        jsonw_object(&e->w);
        jsonw_field_cstr(&e->w, "runId", steno_run_id(j->run));
        if (message_id) {
                jsonw_field_cstr(&e->w, "messageId", message_id);
        }
}

static int flush_locked(struct journal *j)
{
        if (j->text.n == 0)
                return 0;
        struct event e = {
            .type = j->kind == REPLY_TEXT ? STENO_EVENT_MESSAGE : STENO_EVENT_THINKING};
        begin(&e, j, j->message_id);
        jsonw_field_str(&e.w, "text", buf_str(&j->text));
        jsonw_object_end(&e.w);
        int rc = store(j, e.type, &e.data, STENO_PROCESS);
        buf_release(&e.data);
        buf_clear(&j->text);
        return rc;
}

void journal_event_begin(
    struct event *e, const struct journal *j, enum steno_event type, const char *message_id)
{
        e->type = type;
        begin(e, j, message_id);
}

/* That a tool begins stands in the dispatch before it as well, which is synced. */
static int durability_of(enum steno_event type)
{
        return type == STENO_EVENT_TOOL_CALL_RUNNING ? STENO_PROCESS : STENO_FULL;
}

int journal_event_end(struct event *e, struct journal *j)
{
        jsonw_object_end(&e->w);
        pthread_mutex_lock(&j->lock);
        int rc = flush_locked(j);
        if (rc == 0)
                rc = store(j, e->type, &e->data, durability_of(e->type));
        pthread_mutex_unlock(&j->lock);
        buf_release(&e->data);
        return rc;
}

void journal_message(struct journal *j, const char *message_id)
{
        pthread_mutex_lock(&j->lock);
        flush_locked(j);
        snprintf(j->message_id, sizeof(j->message_id), "%s", message_id);
        pthread_mutex_unlock(&j->lock);
}

int journal_piece(struct journal *j, enum reply_piece kind, struct str text)
{
        pthread_mutex_lock(&j->lock);
        int rc = 0;
        if (j->text.n && kind != j->kind)
                rc = flush_locked(j);
        if (j->text.n == 0)
                j->since = time_monotonic_ms();
        j->kind = kind;
        buf_put_str(&j->text, text);
        if (rc == 0 && time_monotonic_ms() - j->since >= JOURNAL_MERGE_MS)
                rc = flush_locked(j);
        pthread_mutex_unlock(&j->lock);
        return rc;
}

int journal_tick(struct journal *j)
{
        pthread_mutex_lock(&j->lock);
        int64_t left = -1;
        if (j->text.n) {
                left = j->since + JOURNAL_MERGE_MS - time_monotonic_ms();
                if (left <= 0) {
                        flush_locked(j);
                        left = -1;
                }
        }
        pthread_mutex_unlock(&j->lock);
        return (int)left;
}

int journal_flush(struct journal *j)
{
        pthread_mutex_lock(&j->lock);
        int rc = flush_locked(j);
        pthread_mutex_unlock(&j->lock);
        return rc;
}

int journal_check(struct journal *j, struct steno_error *err)
{
        pthread_mutex_lock(&j->lock);
        int rc = j->failed.code;
        if (rc && err)
                *err = j->failed;
        pthread_mutex_unlock(&j->lock);
        return rc;
}
