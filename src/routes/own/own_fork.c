/*
 * own_fork.c - POST /api/chat-sessions/:id/fork: a new conversation with the history up to some
 * record, and an edited message behind it where one is sent.
 */
#include "routes/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The message takes the place of the one that was cut off, under an id of its own. */
static int append_message(
    struct steno_conv *fork, const struct json *j, json_ref message, struct steno_error *err)
{
        static const char *const ID[] = {"id", NULL};
        struct json_edits edits;
        struct buf text;
        json_edits_init(&edits);
        buf_init(&text, 0);
        json_edit_remove_members(&edits, j, message, ID);
        int rc = json_edits_apply(&edits, j, message, &text);
        if (rc == 0)
                rc = steno_append(fork, text.p, text.n, NULL, NULL, err);
        buf_release(&text);
        json_edits_release(&edits);
        return rc;
}

static int fork_as_asked(struct request *r, struct steno_conv *conv, const struct json *j,
    struct steno_conv **out, struct steno_error *err)
{
        char keyed[SHA256_HEX], id[48];
        struct steno_fork_options opt = {.size = sizeof opt};
        json_ref message = json_get(j, 0, "message");
        opt.id = request_member(r, j, 0, "id");
        opt.before = request_member(r, j, 0, "before");
        if (!json_u64(j, json_get(j, 0, "at"), &opt.at_seq))
                opt.at = request_member(r, j, 0, "at");
        if (json_bool(j, json_get(j, 0, "wholeBatch"), false))
                opt.flags |= STENO_FORK_WHOLE_BATCH;
        bool again = !opt.id && request_keyed(r, r->path, keyed);
        if (again) {
                snprintf(id, sizeof id, "conv_%.26s", keyed);
                opt.id = id;
        }
        int rc = steno_fork(conv, &opt, out, err);
        if (rc == STENO_ECONFLICT && again &&
            steno_conv_open(r->store, r->who.project, id, out, NULL) == 0)
                return 0; /* the same request came twice */
        if (rc == 0 && json_type(j, message) == JSON_OBJECT) {
                rc = append_message(*out, j, message, err);
                if (rc) { /* a fork without the message is not what was asked for */
                        char *gone = NULL;
                        steno_remove(r->store, r->who.project, steno_conv_id(*out), &gone, NULL);
                        steno_free(gone);
                }
        }
        return rc;
}

void own_session_fork(struct request *r)
{
        static const struct body_rule RULES[] = {{"id", BODY_NAME}, {"before", BODY_NAME},
            {"at", BODY_NAME | BODY_SEQ}, {"wholeBatch", BODY_BOOL}, {"message", BODY_OBJECT}, {0}};
        struct steno_error err = {0};
        struct steno_conv *conv = NULL, *fork = NULL;
        struct json j;
        char *meta = NULL;
        json_init(&j);
        if (request_json(r, &j, RULES) && (conv = request_conv(r, r->params[0].p))) {
                int rc = fork_as_asked(r, conv, &j, &fork, &err);
                if (rc == 0)
                        rc = steno_conv_meta(fork, &meta, &err);
                if (rc) {
                        request_failed(r, rc, &err);
                } else {
                        buf_puts(&r->reply, meta);
                        request_reply_json(r, 201);
                }
        }
        steno_free(meta);
        steno_conv_close(fork);
        steno_conv_close(conv);
        json_release(&j);
}
