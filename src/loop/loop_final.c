/*
 * loop_final.c - the event final_message: the last text, and each call of the run as every other
 * reader gets it.
 */
#include "base/error.h"
#include "base/limits.h"
#include "loop/loop.h"
#include "loop/toldcalls.h"

void loop_note_caller(struct loop *c)
{
        buf_put(&c->callers, c->message_id, strlen(c->message_id) + 1);
        c->caller = c->last_stored;
        steno_run_set_caller(c->run, c->caller);
}

int loop_put_calls(struct loop *c, struct buf *out, struct steno_error *err)
{
        return toldcalls_put(c->opt.conv, c->before, &c->callers, out, err);
}

int loop_tell_final(struct loop *c, struct str text, struct steno_error *err)
{
        struct event e;
        struct buf calls;
        buf_init(&calls, MESSAGE_MAX);
        int rc = loop_put_calls(c, &calls, err);
        if (rc == 0) {
                journal_event_begin(&e, &c->journal, STENO_EVENT_FINAL_MESSAGE, c->message_id);
                jsonw_field_str(&e.w, "text", text);
                jsonw_field_str(&e.w, "message", text);
                /* Past its size limit the list would be incomplete. */
                jsonw_field_raw(&e.w, "toolCalls", calls.failed ? STR("[]") : buf_str(&calls));
                journal_event_end(&e, &c->journal);
                rc = journal_check(&c->journal, err);
                c->told_final = true;
        }
        buf_release(&calls);
        return rc;
}
