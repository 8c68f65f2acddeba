/*
 * recording_read.c - what an exchange says: its request, its answer, and whether that came to its
 * end (recording_core.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "gateway/naming.h"
#include "gateway/recording_core.h"

int64_t recording_status(const struct recording *k)
{
        int64_t status = 0;
        json_i64(&k->answer, json_get(&k->answer, 0, "status"), &status);
        return status;
}

char *recording_member(const struct json *j, json_ref obj, const char *key)
{
        char *z = json_dup_string(j, json_get(j, obj, key));
        return z ? z : strdup("");
}

void recording_put_text(const struct json *j, json_ref m, struct buf *out)
{
        json_ref content = json_get(j, m, "content");
        if (content == JSON_NONE)
                content = json_get(j, m, "parts");
        if (!json_string(j, content, out, NULL))
                for (json_ref p = json_child(j, content); p != JSON_NONE && out->n == 0;
                     p = json_next(j, content, p))
                        json_string(j, json_get(j, p, "text"), out, NULL);
}

/* ---- the request ---- */

static bool find_item(void *ctx, struct str id, char digest[ELEMENTS_CHAIN])
{
        struct recording *k = ctx;
        return lineage_find_id(k->to->lineage, k->owner, id, digest, NULL, NULL);
}

/* The session: as a header names it, else as the body does. */
static int name_group(struct recording *k, struct steno_error *err)
{
        struct buf name;
        buf_init(&name, 4 * KIB);
        if (naming_is_side(&k->list) && strncmp(k->group, "side/", 5) != 0)
                buf_puts(&name, "side/");
        buf_puts(&name, k->group);
        if (!k->group[0])
                naming_put_session(&k->request, &name);
        char *z = buf_take(&name, NULL);
        buf_release(&name);
        if (!z)
                return error_nomem(err);
        free(k->group);
        k->group = z;
        return 0;
}

bool recording_name_theirs(const struct recording *k, struct buf *out)
{
        struct str id = naming_conversation(&k->request);
        buf_puts(out, "conversation/");
        buf_put_str(out, id);
        return id.n && !out->failed;
}

/* Does the request name an answer or a conversation that was recorded here? Then its messages are
 * what is new, and behind an answer that was continued already they are a fork. */
static void find_behind(struct recording *k)
{
        struct lineage_place p = {.kind = LINEAGE_CONTINUE};
        struct str previous = naming_previous(&k->request);
        struct lineage *l = k->to->lineage;
        struct buf name;
        buf_init(&name, 4 * KIB);
        if (previous.n && lineage_find_id(l, k->owner, previous, k->base, p.conv, &p.seq)) {
                if (!lineage_is_tip(l, p.conv, k->base))
                        p.kind = LINEAGE_FORK;
                k->behind = p;
        } else if (recording_name_theirs(k, &name) &&
                   lineage_find_id(l, k->owner, buf_str(&name), k->base, p.conv, &p.seq)) {
                k->behind = p;
        }
        buf_release(&name);
}

int recording_read_request(struct recording *k, struct steno_error *err)
{
        int rc = json_parse(&k->head, k->parts.head.p, k->parts.head.n, NULL, err);
        if (rc)
                return rc;
        char *wire = recording_member(&k->head, 0, "wire");
        k->wire = wire_named(wire);
        free(wire);
        if (!k->wire)
                return 0; /* passed on, and not understood */
        k->project = recording_member(&k->head, 0, "project");
        k->group = recording_member(&k->head, 0, "group");
        k->named = recording_member(&k->head, 0, "conversation");
        k->owner = recording_member(&k->head, 0, "owner");
        if (!k->project || !k->group || !k->named || !k->owner)
                return error_nomem(err);
        struct steno_error why = {0};
        rc = json_parse(&k->request, k->parts.body.p, k->parts.body.n, NULL, &why);
        if (rc)
                return error_set(err, rc, "the request is not JSON that can be read: %s", why.msg);
        rc = wire_messages(k->wire, &k->request, &k->list_text);
        if (rc == 0)
                rc = json_parse(&k->list, k->list_text.p, k->list_text.n, NULL, err);
        if (rc == 0)
                rc = name_group(k, err);
        if (rc)
                return rc;
        find_behind(k);
        k->count = json_count(&k->list, 0);
        json_ref beside = k->wire->system ? json_get(&k->request, 0, k->wire->system) : JSON_NONE;
        k->links = elements_of(
            k->wire, &k->list, json_raw(&k->request, beside), k->base, find_item, k, k->system);
        k->who = (struct lineage_who){k->owner, k->group, k->system};
        return k->links ? 0 : error_nomem(err);
}

/* ---- the answer ---- */

int recording_read_answer(struct recording *k, struct steno_error *err)
{
        if (k->parts.answer_head.n == 0)
                return 0;
        int rc = json_parse(&k->answer, k->parts.answer_head.p, k->parts.answer_head.n, NULL, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? error_nomem(err) : 0; /* torn: as if none came */
        k->stream = wire_is_stream(
            k->parts.answer_body, json_bool(&k->answer, json_get(&k->answer, 0, "stream"), false));
        uint64_t length = 0;
        k->is_short = json_u64(&k->answer, json_get(&k->answer, 0, "length"), &length) &&
                      k->parts.answer_body.n < length;
        k->encoded = json_bool(&k->answer, json_get(&k->answer, 0, "encoded"), false);
        if (k->encoded) {
                buf_puts(&k->reply.problem, "the answer came encoded and was not read");
                return 0;
        }
        if (recording_status(k) / 100 != 2) {
                size_t n = k->parts.answer_body.n;
                if (n > RECORDING_ERROR_WORDS)
                        n = RECORDING_ERROR_WORDS;
                n = text_utf8_prefix(k->parts.answer_body.p, n);
                buf_printf(&k->reply.problem, "HTTP %lld: %.*s", (long long)recording_status(k),
                    (int)n, n ? k->parts.answer_body.p : "");
                return 0;
        }
        rc = k->wire->read_answer(k->parts.answer_body, k->stream, &k->reply);
        return rc ? error_set(err, rc, "%s", steno_code_name(rc)) : 0;
}

bool recording_is_broken_off(const struct recording *k)
{
        if (k->stream && k->reply.ended)
                return false;
        return (k->fate->cut && !k->fate->killed) || k->is_short;
}

bool recording_is_whole(const struct recording *k)
{
        return k->reply.complete && recording_status(k) / 100 == 2 && !recording_is_broken_off(k);
}
