/*
 * acp_replay.c - what an agent repeats when a session is loaded. See acp_record.h
 *
 * An agent repeats an old session in its own pieces: it may join two messages, or cut one in two.
 * So texts are searched in all stored text of the same role, in order and without white space, and
 * calls are searched by their ids. Everything behind the last stored piece is new: the session was
 * continued without Steno.
 */
#include "acp/acp_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

struct old {
        struct buf user, assistant; /* without white space */
        struct buf calls, results;  /* ids, each between two line feeds */
        size_t user_at, assistant_at;
        bool any;
};

void acp_replay_begin(struct acp_record *r)
{
        acp_record_flush(r);
        r->replaying = true;
}

/* ---- what is stored ---- */

static void note_content(const struct json *j, json_ref content, struct buf *out)
{
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        if (!json_string(j, content, &text, NULL))
                for (json_ref p = json_child(j, content); p != JSON_NONE;
                     p = json_next(j, content, p))
                        json_string(j, json_get(j, p, "text"), &text, NULL);
        acp_put_bare(buf_str(&text), out);
        buf_release(&text);
}

static void note_id(const struct json *j, json_ref id, struct buf *out)
{
        if (!out->n)
                buf_putc(out, '\n');
        json_string(j, id, out, NULL);
        buf_putc(out, '\n');
}

static int note(void *ctx, const struct steno_record *record)
{
        struct old *old = ctx;
        struct json j;
        char *message = NULL;
        size_t n = 0;
        if (strcmp(steno_record_kind(record), "message") != 0 ||
            steno_record_message(record, &message, &n, NULL) != 0)
                return 0;
        json_init(&j);
        if (json_parse(&j, message, n, NULL, NULL) == 0 &&
            json_bool(&j, json_get(&j, 0, "includeInContext"), true)) {
                json_ref role = json_get(&j, 0, "role"), calls = json_get(&j, 0, "tool_calls");
                old->any = true;
                if (json_is(&j, role, "tool"))
                        note_id(&j, json_get(&j, 0, "tool_call_id"), &old->results);
                else
                        note_content(&j, json_get(&j, 0, "content"),
                            json_is(&j, role, "user") ? &old->user : &old->assistant);
                for (json_ref c = json_child(&j, calls); c != JSON_NONE;
                     c = json_next(&j, calls, c))
                        note_id(&j, json_get(&j, c, "id"), &old->calls);
        }
        json_release(&j);
        steno_free(message);
        return 0;
}

/* ---- what the agent repeats ---- */

static bool has_text(const struct buf *all, size_t *at, struct str text)
{
        struct buf bare;
        buf_init(&bare, MESSAGE_MAX);
        acp_put_bare(text, &bare);
        const char *found =
            bare.n && *at < all->n ? memmem(all->p + *at, all->n - *at, bare.p, bare.n) : NULL;
        if (found)
                *at = (size_t)(found - all->p) + bare.n;
        buf_release(&bare);
        return found != NULL;
}

static bool has_id(const struct buf *ids, const char *id)
{
        struct buf b;
        buf_init(&b, 64 * KIB);
        buf_printf(&b, "\n%s\n", id);
        bool has = !b.failed && ids->n && memmem(ids->p, ids->n, b.p, b.n);
        buf_release(&b);
        return has;
}

static bool is_stored(struct old *old, const struct acp_item *item)
{
        if (item->kind == ACP_SAID_RESULT)
                return has_id(&old->results, item->call->id);
        if (item->kind == ACP_SAID_USER)
                return has_text(&old->user, &old->user_at, buf_str(&item->text));
        if (item->kind != ACP_SAID_ASSISTANT)
                return false;
        for (size_t i = 0; i < item->call_count; i++)
                if (has_id(&old->calls, item->calls[i]->id))
                        return true;
        return has_text(&old->assistant, &old->assistant_at, buf_str(&item->text));
}

/* Returns the item behind the last one that is stored. */
static struct acp_item *find_new(struct old *old, struct acp_item *list)
{
        struct acp_item *first = old->any ? NULL : list;
        for (struct acp_item *item = list; item && old->any; item = item->next)
                if (is_stored(old, item))
                        first = item->next;
        return first;
}

void acp_replay_over(struct acp_record *r)
{
        struct old old = {0};
        struct steno_error err = {0};
        acp_record_flush(r);
        acp_terminals_turn_over(r);
        acp_calls_settle(r);
        struct acp_item *item = r->replayed;
        r->replaying = false;
        r->replayed = NULL;
        r->replayed_end = &r->replayed;
        buf_init(&old.user, 0);
        buf_init(&old.assistant, 0);
        buf_init(&old.calls, 0);
        buf_init(&old.results, 0);
        int rc = item ? steno_read(r->conv, 0, 0, note, &old, &err) : 0;
        if (rc)
                acp_record_fail(r, rc, &err);
        struct acp_item *first = rc == 0 ? find_new(&old, item) : NULL;
        bool fresh = false;
        while (item) {
                struct acp_item *next = item->next;
                fresh = fresh || item == first;
                if (fresh)
                        acp_record_emit(r, item);
                else
                        acp_item_free(item);
                item = next;
        }
        buf_release(&old.user);
        buf_release(&old.assistant);
        buf_release(&old.calls);
        buf_release(&old.results);
}
