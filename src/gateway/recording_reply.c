/*
 * recording_reply.c - the records of an answer that is a reply: its messages, the rounds that the
 * gateway answered itself, and what the endpoint said about it (recording_core.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "gateway/recording_core.h"

static int remember_ids(
    struct recording *k, const struct json *j, json_ref m, struct steno_error *err)
{
        char digest[ELEMENTS_CHAIN];
        struct str id = json_inner(j, json_get(j, m, "id"));
        int rc = elements_digest(k->wire, j, m, digest);
        if (rc)
                return error_nomem(err);
        elements_continue(k->chain, digest);
        if (id.n && strcmp(k->wire->name, "responses") == 0)
                rc = lineage_add_id(
                    k->to->lineage, k->owner, id, digest, k->conv_id, k->last_seq, err);
        return rc;
}

void recording_name_told(const char *chain, char out[ELEMENTS_CHAIN + 8])
{
        snprintf(out, ELEMENTS_CHAIN + 8, "told/%s", chain);
}

int recording_note_reply(struct recording *k, struct steno_error *err)
{
        char name[ELEMENTS_CHAIN + 8];
        int rc = 0;
        recording_name_told(k->chain, name);
        if (k->reply.id.n)
                rc = lineage_add_id(k->to->lineage, k->owner, buf_str(&k->reply.id), k->chain,
                    k->conv_id, k->last_seq, err);
        if (rc == 0 && k->chain[0])
                rc = lineage_add_id(
                    k->to->lineage, k->owner, str_of(name), k->chain, k->conv_id, k->last_seq, err);
        struct buf theirs;
        buf_init(&theirs, 4 * KIB);
        if (rc == 0 && recording_name_theirs(k, &theirs))
                rc = lineage_add_id(k->to->lineage, k->owner, buf_str(&theirs), k->chain,
                    k->conv_id, k->last_seq, err);
        buf_release(&theirs);
        return rc;
}

/* ---- rounds that the client did not see ---- */

static int append_each(struct recording *k, const struct json *j, json_ref list, bool sync,
    char id[LINEAGE_CONV], struct steno_error *err)
{
        int rc = 0;
        for (json_ref m = json_child(j, list); m != JSON_NONE && rc == 0; m = json_next(j, list, m))
                rc = recording_append(k, json_raw(j, m), k->wire->format, sync, id, err);
        return rc;
}

/* Results that the client's next message begins with are one here. */
static int append_lead(struct recording *k, struct str lead, struct steno_error *err)
{
        struct buf b;
        bool gemini = strcmp(k->wire->name, "gemini") == 0;
        buf_init(&b, MESSAGE_MAX);
        buf_printf(&b, "{\"role\":\"user\",\"%s\":", gemini ? "parts" : "content");
        buf_put_str(&b, lead);
        buf_putc(&b, '}');
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = recording_append(k, buf_str(&b), k->wire->format, true, NULL, err);
        buf_release(&b);
        return rc;
}

static int store_round(
    struct recording *k, const struct json *j, char id[LINEAGE_CONV], struct steno_error *err)
{
        bool final = json_bool(j, json_get(j, 0, "final"), false);
        json_ref lead = json_get(j, 0, "lead");
        int rc = append_each(k, j, json_get(j, 0, "messages"), final, id, err);
        if (rc == 0 && lead != JSON_NONE)
                rc = append_lead(k, json_raw(j, lead), err);
        k->told = k->told || final;
        return rc;
}

int recording_store_rounds(struct recording *k, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct str rest = buf_str(&k->parts.notes);
        struct json j;
        int rc = 0;
        json_init(&j);
        while (rest.n && rc == 0) {
                const char *end = memchr(rest.p, '\n', rest.n);
                if (!end)
                        break; /* torn: it had not been sent */
                size_t n = (size_t)(end - rest.p);
                if (json_parse(&j, rest.p, n, NULL, NULL) == 0)
                        rc = store_round(k, &j, id, err);
                rest = str_span(end + 1, rest.n - n - 1);
        }
        json_release(&j);
        return rc;
}

/* ---- messages ---- */

/* A message of the answer that the store does not take, kept as it came. */
static int store_refused(struct recording *k, struct str message, const char *why,
    char id[LINEAGE_CONV], struct steno_error *err)
{
        struct buf b;
        buf_init(&b, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_field_cstr(&w, "content", "");
        jsonw_field_cstr(&w, "partType", "error");
        jsonw_key(&w, "error");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "code", "UNREADABLE");
        jsonw_field_cstr(&w, "message", why);
        jsonw_object_end(&w);
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_field_str(&w, "raw", message);
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = recording_append(k, buf_str(&b), NULL, true, id, err);
        buf_release(&b);
        return rc;
}

static int store_message(struct recording *k, struct str message, bool sync, char id[LINEAGE_CONV],
    struct steno_error *err)
{
        struct steno_error why = {0};
        int rc = recording_append(k, message, k->wire->format, sync, id, &why);
        if (rc == STENO_EINVAL || rc == STENO_EPROTO || rc == STENO_ELIMIT)
                return store_refused(k, message, why.msg, id, err);
        if (rc)
                *err = why;
        return rc;
}

int recording_store_reply(
    struct recording *k, bool whole, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = k->reply.messages.n
                     ? json_parse(&j, k->reply.messages.p, k->reply.messages.n, NULL, err)
                     : 0;
        size_t i = 0, n = k->reply.messages.n && rc == 0 ? json_count(&j, 0) : 0;
        for (json_ref m = n ? json_child(&j, 0) : JSON_NONE; m != JSON_NONE && rc == 0;
             m = json_next(&j, 0, m)) {
                bool last = ++i == n;
                if (!k->told)
                        rc = store_message(k, json_raw(&j, m), last && whole, id, err);
                if (rc == 0)
                        rc = remember_ids(k, &j, m, err);
                k->replied = true;
                if (rc == 0)
                        rc = recording_note_node(k, last, false, err);
        }
        if (rc == 0)
                rc = recording_note_reply(k, err);
        json_release(&j);
        return rc;
}

/* ---- facts ---- */

int recording_store_facts(struct recording *k, const char *id, bool whole, struct steno_error *err)
{
        struct buf b;
        char key[64];
        buf_init(&b, 256 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "gateway");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "exchange", k->exchange);
        if (k->reply.model.n)
                jsonw_field_str(&w, "model", buf_str(&k->reply.model));
        if (k->reply.id.n)
                jsonw_field_str(&w, "response", buf_str(&k->reply.id));
        if (k->reply.finish[0])
                jsonw_field_cstr(&w, "finish", k->reply.finish);
        if (k->reply.usage.n)
                jsonw_field_raw(&w, "usage", buf_str(&k->reply.usage));
        if (k->reply.other_count)
                jsonw_field_u64(&w, "choices", k->reply.other_count + (k->reply.count > 0));
        if (!whole)
                jsonw_field_bool(&w, "incomplete", true);
        if (k->fate->gone)
                jsonw_field_u64(&w, "delivered", k->fate->delivered);
        jsonw_field_copy(&w, "startedAt", &k->head, json_get(&k->head, 0, "at"));
        if (recording_status(k)) {
                jsonw_field_i64(&w, "status", recording_status(k));
                jsonw_field_copy(&w, "answeredAt", &k->answer, json_get(&k->answer, 0, "at"));
        }
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        snprintf(key, sizeof key, "%s/facts", k->exchange);
        struct steno_append_options opt = {
            .size = sizeof opt, .durability = STENO_PROCESS, .idempotency_key = key};
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = steno_amend(k->conv, "meta", id, b.p, b.n, &opt, NULL, err);
        buf_release(&b);
        /* An earlier try has told them, and knew more: the power failed behind it. */
        return rc == STENO_ECONFLICT ? 0 : rc;
}
