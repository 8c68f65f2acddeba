/*
 * loop_continue.c - is there something to continue?
 *
 * Decided from what a model would be shown, never from the last line of the log: what was deleted,
 * replaced or is off the context does not count, and a call without a result has one in the view.
 * So a history that does not end with the assistant's text can be continued. Text at its end is
 * complete unless its message says otherwise: by an error, or by a finish reason of a reply that
 * was cut off, in any format. Replies of earlier versions have no finish reason; for them the end
 * of their run counts.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "loop/loop.h"

/* How the history ends. */
struct ending {
        bool any;
        bool words; /* with the assistant's words */
        char *id;   /* of the message that ends it; may be NULL */
};

static int into_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

static json_ref last_of(const struct json *j, json_ref array)
{
        json_ref last = JSON_NONE;
        for (json_ref i = json_child(j, array); i != JSON_NONE; i = json_next(j, array, i))
                last = i;
        return last;
}

/* The last message of a view, parsed into `j`, whose text `text` holds. JSON_NONE: it is empty. */
static int read_view(struct steno_conv *conv, const struct steno_view_options *opt,
    struct buf *text, struct json *j, json_ref *last, char **report, struct steno_error *err)
{
        int rc = steno_view(conv, opt, into_buf, text, report, err);
        if (rc == 0)
                rc = buf_check(text, err);
        if (rc == 0)
                rc = json_parse(j, text->p, text->n, NULL, err);
        if (rc == 0)
                *last = last_of(j, 0);
        return rc;
}

static char *last_id(const char *report)
{
        struct json j;
        char *id = NULL;
        json_init(&j);
        if (report && json_parse(&j, report, strlen(report), NULL, NULL) == 0)
                id = json_dup_string(&j, last_of(&j, json_get(&j, 0, "ids")));
        json_release(&j);
        return id;
}

/* How the view of the last `count` messages ends. */
static int look_at_last(
    struct steno_conv *conv, size_t count, struct ending *end, struct steno_error *err)
{
        struct steno_view_options opt = {
            .size = sizeof(opt), .format = "openai", .last = count, .outputs = STENO_OUTPUTS_STUB};
        struct buf text;
        struct json j;
        json_ref last = JSON_NONE;
        char *report = NULL;
        buf_init(&text, 0);
        json_init(&j);
        int rc = read_view(conv, &opt, &text, &j, &last, &report, err);
        if (rc == 0) {
                end->any = last != JSON_NONE;
                end->words = json_is(&j, json_get(&j, last, "role"), "assistant") &&
                             json_count(&j, json_get(&j, last, "tool_calls")) == 0;
                end->id = last_id(report);
        }
        steno_free(report);
        json_release(&j);
        buf_release(&text);
        return rc;
}

/* A message that says nothing to a model (an empty reply, thinking alone) is in no view of it: then
 * the one before it ends the history. */
static int look_at_end(struct steno_conv *conv, struct ending *end, struct steno_error *err)
{
        uint64_t all = 0;
        int rc = steno_conv_last_seq(conv, &all, err);
        for (uint64_t count = 1; rc == 0 && !end->any; count *= 8) {
                free(end->id);
                end->id = NULL;
                rc = look_at_last(conv, (size_t)count, end, err);
                if (count >= all)
                        break;
        }
        return rc;
}

static int take_seq(void *ctx, const struct steno_record *r)
{
        *(uint64_t *)ctx = steno_record_seq(r);
        return 0;
}

static bool is_cut_off(const struct json *j, json_ref reason)
{
        static const char *const reasons[] = {"length", "content_filter", "content-filter",
            "max_tokens", "max_output_tokens", "MAX_TOKENS", "model_context_window_exceeded",
            "pause_turn", "incomplete", "in_progress", NULL};
        for (size_t i = 0; reasons[i]; i++)
                if (json_is(j, reason, reasons[i]))
                        return true;
        return false;
}

/* How a message says why it ended: OpenAI's, Anthropic's, Gemini's and the SDKs' words for it, and
 * the state of an item. */
static json_ref reason_in(const struct json *j, json_ref m)
{
        static const char *const names[] = {
            "finishReason", "finish_reason", "stop_reason", "stopReason", "status", NULL};
        for (size_t i = 0; names[i]; i++) {
                json_ref reason = json_get(j, m, names[i]);
                if (json_type(j, reason) == JSON_STRING)
                        return reason;
        }
        return JSON_NONE;
}

/* The message's own word, or that of the object in which a library keeps what the reply said. */
static json_ref reason_of(const struct json *j, json_ref m)
{
        static const char *const inner[] = {
            "response_metadata", "metadata", "meta", "additional_kwargs", NULL};
        json_ref data = json_get(j, m, "data");
        json_ref kwargs = json_get(j, m, "kwargs");
        const json_ref at[] = {m, data, kwargs};
        for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
                json_ref reason = reason_in(j, at[i]);
                for (size_t k = 0; reason == JSON_NONE && inner[k]; k++)
                        reason = reason_in(j, json_get(j, at[i], inner[k]));
                if (reason != JSON_NONE)
                        return reason;
        }
        return JSON_NONE;
}

/* Of a reply without a finish reason: its run's, which ended with it. */
static bool run_was_cut_off(struct loop *c, const struct json *message, json_ref m)
{
        char *run = json_dup_string(message, json_get(message, m, "runId"));
        char *info = NULL;
        struct json j;
        json_init(&j);
        bool cut =
            run &&
            steno_run_info(c->opt.store, steno_conv_project(c->opt.conv), run, &info, NULL) == 0 &&
            json_parse(&j, info, strlen(info), NULL, NULL) == 0 &&
            is_cut_off(&j, json_get(&j, 0, "reason"));
        json_release(&j);
        steno_free(info);
        free(run);
        return cut;
}

/* Does the stored message, or the one that replaces it, say that it is complete? */
static int says_complete(struct loop *c, const char *id, bool *complete, struct steno_error *err)
{
        uint64_t seq = 0;
        struct buf text;
        struct json j;
        json_ref last = JSON_NONE;
        *complete = true;
        if (!id || steno_read_id(c->opt.conv, id, take_seq, &seq, NULL) || !seq)
                return 0;
        struct steno_view_options opt = {
            .size = sizeof(opt), .format = "stored", .after_seq = seq - 1, .limit = 1};
        buf_init(&text, 0);
        json_init(&j);
        int rc = read_view(c->opt.conv, &opt, &text, &j, &last, NULL, err);
        if (rc == 0 && last != JSON_NONE) {
                json_ref m = json_get(&j, last, "m");
                json_ref reason = reason_of(&j, m);
                bool error = json_is(&j, json_get(&j, m, "partType"), "error");
                *complete = !error && !is_cut_off(&j, reason) &&
                            (reason != JSON_NONE || !run_was_cut_off(c, &j, m));
        }
        json_release(&j);
        buf_release(&text);
        return rc;
}

int loop_check_continue(struct loop *c, struct steno_error *err)
{
        struct ending end = {.any = false};
        bool complete = false;
        int rc = look_at_end(c->opt.conv, &end, err);
        if (rc == 0 && end.words)
                rc = says_complete(c, end.id, &complete, err);
        if (rc == 0 && (!end.any || complete))
                rc = error_set(err, STENO_EPROTO,
                    "nothing to continue: %s. To say something: steno run %.64s --prompt TEXT",
                    end.any ? "the last reply is complete" : "the conversation is empty",
                    steno_conv_id(c->opt.conv));
        free(end.id);
        return rc;
}
