/* dialog.c - see dialog.h */
#include "routes/dialog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "http/follow.h"
#include "http/server_core.h"
#include "routes/history.h"

/* ---- runs ---- */

int dialog_newest_run(struct steno_conv *conv, struct dialog_run *out, struct steno_error *err)
{
        struct json j;
        char *list = NULL;
        *out = (struct dialog_run){0};
        json_init(&j);
        int rc = steno_run_list(conv, &list, err);
        if (rc == 0)
                rc = json_parse(&j, list, strlen(list), NULL, err);
        json_ref run = rc ? JSON_NONE : json_child(&j, json_get(&j, 0, "items"));
        char *id = run == JSON_NONE ? NULL : json_dup_string(&j, json_get(&j, run, "id"));
        if (id) {
                snprintf(out->id, sizeof out->id, "%s", id);
                out->live = !json_is(&j, json_get(&j, run, "state"), "finished");
                out->died = json_is(&j, json_get(&j, run, "reason"), "died");
        }
        free(id);
        json_release(&j);
        steno_free(list);
        return rc;
}

void dialog_watch(struct request *r, const char *run, const struct projection *projection)
{
        struct steno_error err = {0};
        struct stream *s = stream_events(r, NULL, NULL);
        if (!s)
                return;
        const char *named = arena_dup(&r->arena, str_of(run)).p;
        if (named)
                request_header_out(r, "X-Run-Id", named);
        if (projection->header[0])
                request_header_out(r, projection->header[0], projection->header[1]);
        if (follow_add(r->server->follow, r->who.project, run, 0, projection, s, &err)) {
                stream_break(s);
                stream_unref(s);
        }
}

static bool is_there(struct request *r, const struct runner_turn *turn)
{
        struct json j;
        char *info = NULL;
        json_init(&j);
        bool there = steno_run_info(r->store, r->who.project, turn->run, &info, NULL) == 0 &&
                     json_parse(&j, info, strlen(info), NULL, NULL) == 0 &&
                     json_is(&j, json_get(&j, 0, "conversation"), turn->conversation);
        json_release(&j);
        steno_free(info);
        return there;
}

void dialog_start(
    struct request *r, const struct runner_turn *turn, const struct projection *projection)
{
        struct steno_error err = {0};
        char run[64];
        if (!r->server->chat) {
                request_error(r, 501, "unsupported", "this server was started without a model");
                return;
        }
        if (turn->run && is_there(r, turn)) {
                dialog_watch(r, turn->run, projection);
                return;
        }
        int rc = runner_start(r->server->chat, turn, run, &err);
        if (rc)
                request_failed(r, rc, &err);
        else
                dialog_watch(r, run, projection);
}

/* ---- conversations ---- */

bool dialog_open(struct request *r, const char *id, struct steno_conv **out, bool *made)
{
        struct steno_error err = {0};
        int rc = steno_conv_open(r->store, r->who.project, id, out, &err);
        *made = rc == STENO_ENOTFOUND;
        if (*made) {
                rc = steno_conv_create(r->store, r->who.project, id, NULL, out, &err);
                if (rc == STENO_ECONFLICT) /* somebody else was faster */
                        rc = steno_conv_open(r->store, r->who.project, id, out, &err);
        }
        if (rc)
                request_failed(r, rc, &err);
        return rc == 0;
}

/* ---- messages ---- */

struct found {
        uint64_t seq;
        bool deleted;
};

static int note_seq(void *ctx, const struct steno_record *record)
{
        struct found *f = ctx;
        f->seq = steno_record_seq(record);
        return 0;
}

static int note_deleted(void *ctx, const struct steno_record *record)
{
        const char **id = ctx;
        bool same = strcmp(steno_record_kind(record), "delete") == 0 &&
                    strcmp(steno_record_target(record), *id) == 0;
        if (same)
                *id = NULL;
        return same;
}

static bool is_message(const struct steno_record *record)
{
        return strcmp(steno_record_kind(record), "message") == 0;
}

/* Views call a message without an id of its own msg_<seq>. */
static int note_numbered(void *ctx, const struct steno_record *record)
{
        struct found *f = ctx;
        if (is_message(record))
                f->seq = steno_record_seq(record);
        return 1;
}

static int find_numbered(
    struct steno_conv *conv, const char *id, struct found *f, struct steno_error *err)
{
        char *end;
        if (strncmp(id, "msg_", 4) != 0 || id[4] < '1' || id[4] > '9')
                return 0;
        uint64_t seq = strtoull(id + 4, &end, 10);
        if (*end)
                return 0;
        int rc = steno_read(conv, seq - 1, 1, note_numbered, f, err);
        if (f->seq != seq)
                f->seq = 0;
        return rc == 1 ? 0 : rc;
}

int dialog_seq(struct steno_conv *conv, const char *id, uint64_t *seq, struct steno_error *err)
{
        struct found f = {0};
        const char *target = id;
        int rc = steno_read_id(conv, id, note_seq, &f, err);
        if (rc == STENO_ENOTFOUND || rc == STENO_EINVAL)
                rc = find_numbered(conv, id, &f, err);
        if (rc == 0 && f.seq) {
                rc = steno_read_amendments(conv, note_deleted, &target, err);
                rc = rc == 1 ? 0 : rc;
        }
        if (rc == 0)
                *seq = target ? f.seq : 0;
        return rc;
}

struct behind {
        struct steno_conv *conv;
        struct history *history;
        struct arena arena;
        const char **ids; /* to delete */
        size_t count;
        size_t cap;
        bool with_reply;
        bool any;
};

static bool is_of_user(const struct steno_record *record)
{
        struct json j;
        size_t n = 0;
        const char *about = steno_record_about(record, &n);
        json_init(&j);
        bool user = about && json_parse(&j, about, n, NULL, NULL) == 0 &&
                    !json_is(&j, json_get(&j, 0, "role"), "assistant") &&
                    !json_is(&j, json_get(&j, 0, "role"), "tool");
        json_release(&j);
        return user;
}

static int note_behind(void *ctx, const struct steno_record *record)
{
        struct behind *b = ctx;
        if (!is_message(record) || history_is_deleted(b->history, steno_record_id(record)))
                return 0;
        if (b->with_reply && !is_of_user(record))
                return 0;
        b->with_reply = false;
        b->any = true;
        if (!grow_room(b->ids, b->count, b->cap))
                return STENO_ENOMEM;
        b->ids[b->count] = arena_dup(&b->arena, str_of(steno_record_id(record))).p;
        return b->ids[b->count++] ? 0 : STENO_ENOMEM;
}

/* The visible messages behind `seq`, with their ids in b->ids. */
static int find_behind(
    struct behind *b, struct steno_conv *conv, uint64_t seq, struct steno_error *err)
{
        struct history h;
        int rc = history_open(&h, conv, err);
        if (rc)
                return rc;
        b->conv = conv;
        b->history = &h;
        rc = steno_read(conv, seq, 0, note_behind, b, err);
        history_close(&h);
        return rc == STENO_ENOMEM ? error_nomem(err) : rc;
}

int dialog_is_last(struct steno_conv *conv, uint64_t seq, bool *last, struct steno_error *err)
{
        struct behind b = {0};
        arena_init(&b.arena);
        int rc = find_behind(&b, conv, seq, err);
        *last = !b.any;
        free(b.ids);
        arena_release(&b.arena);
        return rc;
}

int dialog_cut(struct steno_conv *conv, uint64_t seq, bool with_reply, struct steno_error *err)
{
        struct behind b = {.with_reply = with_reply};
        struct steno_append_options opt = {.size = sizeof opt};
        arena_init(&b.arena);
        int rc = find_behind(&b, conv, seq, err);
        for (size_t i = b.count; rc == 0 && i-- > 0;) { /* results before their calls */
                rc = steno_amend(conv, "delete", b.ids[i], NULL, 0, &opt, NULL, err);
                if (rc == STENO_ENOTFOUND)
                        rc = 0;
        }
        free(b.ids);
        arena_release(&b.arena);
        return rc;
}
