/*
 * recording_request.c - the records of a request: what stands beside its messages, where that has
 * changed, and the messages that are new (recording_core.h).
 */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "gateway/recording_core.h"

#define BATCH_COUNT 256
#define BATCH_BYTES (256 * KIB)

static bool changes_every_time(struct str key, const struct wire *w)
{
        static const char *const names[] = {"stream", "stream_options", "metadata",
            "client_metadata", "user", "prompt_cache_key", "previous_response_id", "conversation",
            "thread", "include"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (str_is(key, names[i]))
                        return true;
        return str_is(key, w->list);
}

/* Prompt, tools and parameters: what stands beside the messages. */
static void put_beside(const struct recording *k, struct jsonw *w)
{
        const struct json *j = &k->request;
        for (json_ref key = json_child(j, 0); key != JSON_NONE; key = json_next_key(j, 0, key))
                if (!changes_every_time(json_inner(j, key), k->wire))
                        jsonw_copy_member(w, j, key);
}

/* Instructions that are messages, where they are not stored as such. */
static void put_instructions(const struct recording *k, struct jsonw *w)
{
        if (k->place.kind != LINEAGE_NEW && k->count && k->links[0].system) {
                size_t i = 0;
                jsonw_key(w, "instructionMessages");
                jsonw_array(w);
                for (json_ref m = json_child(&k->list, 0); m != JSON_NONE && k->links[i].system;
                     m = json_next(&k->list, 0, m), i++)
                        jsonw_raw(w, json_raw(&k->list, m));
                jsonw_array_end(w);
        }
}

int recording_store_beside(struct recording *k, struct steno_error *err)
{
        struct buf beside, message;
        char digest[SHA256_HEX];
        bool changed = false;
        buf_init(&beside, 0);
        buf_init(&message, 0);
        struct jsonw w = jsonw_to(&beside);
        put_beside(k, &w);
        bool any = beside.n > 0;
        size_t n = beside.n;
        buf_puts(&beside, k->system);
        int rc = buf_check(&beside, err);
        if (rc == 0 && hash_sha256_hex(beside.p, beside.n, digest) != 0)
                rc = error_nomem(err);
        beside.n = n;
        if (rc == 0)
                rc = lineage_changed(k->to->lineage, k->conv_id, digest, &changed, err);
        if (rc == 0 && changed && any) {
                struct jsonw m = jsonw_to(&message);
                jsonw_object(&m);
                jsonw_field_cstr(&m, "role", "system");
                jsonw_field_cstr(&m, "content", "");
                jsonw_field_cstr(&m, "partType", "request");
                jsonw_field_bool(&m, "includeInContext", false);
                jsonw_key(&m, "request");
                jsonw_object(&m);
                put_beside(k, &m);
                put_instructions(k, &m);
                jsonw_object_end(&m);
                jsonw_object_end(&m);
                rc = buf_check(&message, err);
                if (rc == 0)
                        rc = recording_append(k, buf_str(&message), NULL, false, NULL, err);
        }
        buf_release(&beside);
        buf_release(&message);
        return rc;
}

/* ---- messages ---- */

/* Messages of a request that are stored together: a long history is a few appends. */
struct batch {
        struct buf text; /* with commas between */
        size_t from;     /* the first of them in the request */
        size_t count;
};

/* Appends them, and notes where each stands. */
static int flush_batch(struct recording *k, struct batch *b, struct steno_error *err)
{
        struct buf list;
        if (b->count == 0)
                return 0;
        buf_init(&list, 0);
        if (b->count > 1)
                buf_putc(&list, '[');
        buf_put_str(&list, buf_str(&b->text));
        if (b->count > 1)
                buf_putc(&list, ']');
        int rc = buf_check(&list, err);
        if (rc == 0)
                rc = recording_append(k, buf_str(&list), k->wire->format, false, NULL, err);
        uint64_t last = k->last_seq;
        for (size_t i = 0; i < b->count && rc == 0; i++) {
                const struct elements_link *link = &k->links[b->from + i];
                memcpy(k->chain, link->chain, sizeof k->chain);
                k->last_seq = last - (b->count - 1 - i);
                if (b->from + i + 1 < k->count && !link->system)
                        rc = recording_note_node(k, false, false, err);
        }
        k->last_seq = last;
        buf_release(&list);
        buf_clear(&b->text);
        b->from += b->count;
        b->count = 0;
        return rc;
}

int recording_store_request(struct recording *k, struct steno_error *err)
{
        const struct json *j = &k->list;
        struct batch b = {.from = k->place.from};
        size_t i = 0;
        int rc = 0;
        buf_init(&b.text, 0);
        if (k->place.from)
                memcpy(k->chain, k->links[k->place.from - 1].chain, sizeof k->chain);
        for (json_ref m = json_child(j, 0); m != JSON_NONE && rc == 0; m = json_next(j, 0, m)) {
                if (i++ < k->place.from)
                        continue;
                if (b.count)
                        buf_putc(&b.text, ',');
                buf_put_str(&b.text, json_raw(j, m));
                b.count++;
                if (b.count == BATCH_COUNT || b.text.n >= BATCH_BYTES)
                        rc = flush_batch(k, &b, err);
        }
        if (rc == 0)
                rc = flush_batch(k, &b, err);
        buf_release(&b.text);
        return rc;
}
