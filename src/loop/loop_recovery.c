/*
 * loop_recovery.c - before a run begins: what earlier runs left behind.
 *
 * steno_conv_recover completes tool calls and ends dead runs. What remains is text: pieces of a
 * reply that were shown to someone and whose message never came to be stored. They are in the
 * dead run's journal, and become an assistant message with partType "error" under the id that the
 * pieces were sent with, so that doing this twice changes nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "loop/loop.h"

/* How many of the newest runs are examined; older ones were examined when they were new. */
#define RESCUE_RUNS 3

/* ---- text of one dead run ---- */

struct pieces {
        char message_id[CHAT_ID];
        struct buf text;
        struct buf thinking;
};

static void start_message(struct pieces *p, const char *id)
{
        if (strcmp(p->message_id, id) == 0)
                return;
        snprintf(p->message_id, sizeof(p->message_id), "%s", id);
        buf_clear(&p->text);
        buf_clear(&p->thinking);
}

static int take_event(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        (void)seq;
        (void)at;
        struct pieces *p = ctx;
        enum steno_event kind = event_find(type);
        bool text = kind == STENO_EVENT_MESSAGE;
        bool thinking = kind == STENO_EVENT_THINKING;
        bool dropped = kind == STENO_EVENT_MESSAGE_DROPPED;
        if (!text && !thinking && !dropped)
                return 0;
        struct json j;
        json_init(&j);
        if (json_parse(&j, data, n, NULL, NULL) == 0) {
                char *id = json_dup_string(&j, json_get(&j, 0, "messageId"));
                start_message(p, dropped || !id ? "" : id);
                free(id);
                if (text || thinking)
                        json_string(
                            &j, json_get(&j, 0, "text"), text ? &p->text : &p->thinking, NULL);
        }
        json_release(&j);
        return 0;
}

static int note_seen(void *ctx, const struct steno_record *r)
{
        (void)r;
        *(bool *)ctx = true;
        return 0;
}

static int store_text(struct steno_conv *conv, const struct pieces *p, const char *run_id,
    const char *mode, struct steno_error *err)
{
        bool seen = false;
        int rc = steno_read_id(conv, p->message_id, note_seen, &seen, err);
        if (rc == 0 && seen)
                return 0;
        if (rc && rc != STENO_ENOTFOUND)
                return rc;
        struct buf json;
        buf_init(&json, MESSAGE_MAX);
        loop_put_died(&json, p->message_id, run_id, mode, buf_str(&p->text), buf_str(&p->thinking));
        rc = buf_check(&json, err);
        struct steno_append_options opt = {.size = sizeof(opt)};
        if (rc == 0)
                rc = steno_append(conv, json.p, json.n, &opt, NULL, err);
        buf_release(&json);
        return rc == STENO_ECONFLICT ? 0 : rc; /* someone else was as quick */
}

static int rescue_run(struct steno_store *store, struct steno_conv *conv, const char *run_id,
    const char *mode, struct steno_error *err)
{
        struct pieces p = {.message_id = ""};
        buf_init(&p.text, MESSAGE_MAX);
        buf_init(&p.thinking, MESSAGE_MAX);
        int rc = steno_run_read(store, steno_conv_project(conv), run_id, 0, take_event, &p, err);
        if (rc == 0 && p.message_id[0] && (p.text.n || p.thinking.n))
                rc = store_text(conv, &p, run_id, mode, err);
        buf_release(&p.text);
        buf_release(&p.thinking);
        return rc;
}

/* A run that the loop itself ended has stored all it had. */
static bool ended_by_itself(const struct json *j, json_ref run)
{
        static const char *const reasons[] = {"stop", "length", "content_filter", "required_tool",
            "interrupted", "max_turns", "max_time", "max_tokens", "repeated_calls"};
        json_ref reason = json_get(j, run, "reason");
        for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
                if (json_is(j, reason, reasons[i]))
                        return true;
        return false;
}

static int rescue_runs(struct steno_store *store, struct steno_conv *conv, const struct json *j,
    struct steno_error *err)
{
        json_ref items = json_get(j, 0, "items");
        int looked = 0;
        for (json_ref r = json_child(j, items); r != JSON_NONE && looked < RESCUE_RUNS;
             r = json_next(j, items, r), looked++) {
                if (ended_by_itself(j, r))
                        continue;
                char *id = json_dup_string(j, json_get(j, r, "id"));
                char *mode = json_dup_string(j, json_get(j, r, "mode"));
                int rc = id ? rescue_run(store, conv, id, mode ? mode : "chat", err) : 0;
                free(id);
                free(mode);
                if (rc)
                        return rc;
        }
        return 0;
}

static int refuse_if_live(const struct json *j, struct steno_error *err)
{
        json_ref items = json_get(j, 0, "items");
        for (json_ref r = json_child(j, items); r != JSON_NONE; r = json_next(j, items, r))
                if (json_is(j, json_get(j, r, "state"), "running")) {
                        struct str id = json_inner(j, json_get(j, r, "id"));
                        return error_set(err, STENO_ECONFLICT,
                            "run \"%.*s\" is at work in this conversation",
                            (int)(id.n < 100 ? id.n : 100), id.p);
                }
        return 0;
}

int loop_recover(struct steno_store *store, struct steno_conv *conv, struct steno_error *err)
{
        char *list = NULL;
        struct json j;
        json_init(&j);
        int rc = steno_conv_recover(conv, NULL, err);
        if (rc == 0)
                rc = steno_run_list(conv, &list, err);
        if (rc == 0)
                rc = json_parse(&j, list, strlen(list), NULL, err);
        if (rc == 0)
                rc = refuse_if_live(&j, err);
        if (rc == 0)
                rc = rescue_runs(store, conv, &j, err);
        json_release(&j);
        steno_free(list);
        return rc;
}
