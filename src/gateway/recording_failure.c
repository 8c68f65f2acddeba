/*
 * recording_failure.c - the records of an answer that is not a reply, or not all of it: what went
 * wrong, and the bytes as they came (recording_core.h).
 */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/limits.h"
#include "base/text.h"
#include "gateway/recording_core.h"

#define RAW_MAX (32 * MIB)      /* of an answer that is kept as it came, in one record */
#define RAW_TEXT_MAX (56 * MIB) /* as a JSON string, with room for the rest of a message */

/* Bytes of an answer from `from` on, as many as one record takes: as text where they are UTF-8. */
static size_t put_bytes(struct jsonw *w, struct str body, size_t from, bool text)
{
        struct str piece = str_span(body.p + from, body.n - from);
        struct buf b;
        if (piece.n > RAW_MAX)
                piece.n = text ? text_utf8_prefix(piece.p, RAW_MAX) : RAW_MAX;
        buf_init(&b, RAW_TEXT_MAX);
        if (text)
                json_put_string(&b, piece);
        if (text && !b.failed) {
                jsonw_field_raw(w, "raw", buf_str(&b));
        } else {
                buf_release(&b);
                buf_init(&b, RAW_TEXT_MAX);
                base64_put(&b, piece.p, piece.n);
                jsonw_field_str(w, "base64", buf_str(&b));
        }
        if (b.failed)
                w->b->failed = b.failed;
        buf_release(&b);
        return from + piece.n;
}

static bool is_text(struct str s)
{
        return s.n == 0 || text_utf8_prefix(s.p, s.n) == s.n;
}

/* The bytes of an answer that another record could not hold, from `from` on. */
static int store_bytes(struct recording *k, size_t from, struct steno_error *err)
{
        struct str body = k->parts.answer_body;
        bool text = is_text(body);
        int rc = 0;
        while (from < body.n && rc == 0) {
                struct buf b;
                char words[100];
                buf_init(&b, MESSAGE_MAX);
                struct jsonw w = jsonw_to(&b);
                snprintf(words, sizeof words, "The answer as it came, from byte %zu on.", from);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "role", "system");
                jsonw_field_cstr(&w, "content", words);
                jsonw_field_cstr(&w, "partType", "answer");
                jsonw_field_bool(&w, "includeInContext", false);
                jsonw_field_u64(&w, "from", from);
                from = put_bytes(&w, body, from, text);
                jsonw_object_end(&w);
                rc = buf_check(&b, err);
                if (rc == 0)
                        rc = recording_append(k, buf_str(&b), NULL, true, NULL, err);
                buf_release(&b);
        }
        return rc;
}

int recording_store_odd(struct recording *k, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct str body = k->parts.answer_body;
        struct buf b;
        size_t stored = 0;
        buf_init(&b, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "system");
        jsonw_field_str(&w, "content",
            k->reply.odd.n ? buf_str(&k->reply.odd) : STR("the answer has no message"));
        jsonw_field_cstr(&w, "partType", "answer");
        jsonw_field_bool(&w, "includeInContext", false);
        if (body.n)
                stored = put_bytes(&w, body, 0, is_text(body));
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = recording_append(k, buf_str(&b), NULL, true, id[0] ? NULL : id, err);
        buf_release(&b);
        return rc ? rc : store_bytes(k, stored, err);
}

/* ---- failures ---- */

/* The code of an answer that did not become a reply. */
static const char *code_of(const struct recording *k)
{
        int64_t status = recording_status(k);
        if (k->encoded)
                return "ENCODED";
        if (status == 0)
                return k->fate->known ? "INCOMPLETE" : "UPSTREAM_UNREACHABLE";
        if (status / 100 != 2)
                return "UPSTREAM_ERROR";
        bool all = !k->fate->cut && !recording_is_broken_off(k) && !k->stream;
        return all ? "UNREADABLE" : "INCOMPLETE";
}

/* Why it did not: what the gateway knows, the endpoint's words, what is wrong with it, and last
 * what ended it. */
static struct str words_of(const struct recording *k)
{
        if (k->fate->known)
                return str_of(k->fate->why);
        if (k->reply.problem.n)
                return buf_str(&k->reply.problem);
        if (k->reply.odd.n && !recording_is_broken_off(k))
                return buf_str(&k->reply.odd);
        if (recording_is_broken_off(k) && recording_status(k))
                return STR("the endpoint broke off the answer before its end");
        if (k->fate->why[0])
                return str_of(k->fate->why);
        return STR("the answer ended before it was complete");
}

/* Are there bytes of the answer that the message about its failure does not have? */
static bool lacks_bytes(const struct recording *k)
{
        struct str body = k->parts.answer_body;
        if (recording_status(k) && recording_status(k) / 100 != 2 && !k->encoded)
                return body.n > RECORDING_ERROR_WORDS || !is_text(body);
        return body.n > 0;
}

int recording_store_failure(struct recording *k, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct str body = k->parts.answer_body;
        struct buf b;
        size_t stored = body.n;
        buf_init(&b, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_field_str(&w, "content", buf_str(&k->reply.text));
        jsonw_field_cstr(&w, "partType", "error");
        jsonw_key(&w, "error");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "code", code_of(k));
        if (recording_status(k))
                jsonw_field_i64(&w, "status", recording_status(k));
        jsonw_field_str(&w, "message", words_of(k));
        jsonw_object_end(&w);
        /* What was put together of it; whole items of a stream are messages already. */
        if (k->reply.count && k->reply.messages.n < MIB &&
            !(k->stream && strcmp(k->wire->name, "responses") == 0))
                jsonw_field_raw(&w, "reply", buf_str(&k->reply.messages));
        if (lacks_bytes(k)) /* where there is much text, the bytes have records of their own */
                stored = k->reply.text.n > MIB ? 0 : put_bytes(&w, body, 0, is_text(body));
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = recording_append(k, buf_str(&b), NULL, true, id, err);
        buf_release(&b);
        return rc ? rc : store_bytes(k, stored, err);
}
