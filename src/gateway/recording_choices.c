/*
 * recording_choices.c - the records of further choices: an answer may have several, of which the
 * first is the reply and the others stand beside it (recording_core.h).
 */
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "gateway/recording_core.h"

void recording_name_choice(const char *conv, const char *chain, struct buf *out)
{
        buf_printf(out, "choice/%s/%s", chain, conv);
}

/* A client that goes on with this choice is known by the chain behind it. */
static int note_choice(struct recording *k, const struct json *j, json_ref choice,
    const char *asked, uint64_t asked_seq, struct steno_error *err)
{
        json_ref message = json_get(j, choice, "message");
        char chain[ELEMENTS_CHAIN], digest[ELEMENTS_CHAIN];
        struct buf name;
        if (message == JSON_NONE)
                message = json_get(j, choice, "content");
        if (elements_digest(k->wire, j, message, digest) != 0)
                return error_nomem(err);
        memcpy(chain, asked, sizeof chain);
        elements_continue(chain, digest);
        if (!digest[0] || strcmp(chain, k->chain) == 0)
                return 0; /* it says the same as the first */
        struct lineage_node node = {
            .conv = k->conv_id, .seq = k->last_seq, .chain = chain, .replied = true, .tip = true};
        int rc = lineage_add(k->to->lineage, &k->who, &node, err);
        buf_init(&name, 4 * KIB);
        recording_name_choice(k->conv_id, chain, &name);
        if (rc == 0)
                rc = lineage_add_id(
                    k->to->lineage, k->owner, buf_str(&name), chain, k->conv_id, asked_seq, err);
        buf_release(&name);
        return rc;
}

/* A message that no model is shown, beside the reply. */
static int store_choice(
    struct recording *k, const struct json *j, json_ref choice, struct steno_error *err)
{
        json_ref message = json_get(j, choice, "message");
        struct buf b, text;
        buf_init(&b, MESSAGE_MAX);
        buf_init(&text, MESSAGE_MAX);
        recording_put_text(
            j, message == JSON_NONE ? json_get(j, choice, "content") : message, &text);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_field_str(&w, "content", buf_str(&text));
        jsonw_field_cstr(&w, "partType", "choice");
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_field_copy(&w, "choice", j, choice);
        jsonw_object_end(&w);
        int rc = text.failed ? error_nomem(err) : buf_check(&b, err);
        if (rc == 0)
                rc = recording_append(k, buf_str(&b), NULL, true, NULL, err);
        buf_release(&b);
        buf_release(&text);
        return rc;
}

int recording_store_choices(
    struct recording *k, const char *asked, uint64_t asked_seq, struct steno_error *err)
{
        struct buf list;
        struct json j;
        if (k->reply.other_count == 0)
                return 0;
        buf_init(&list, 0);
        json_init(&j);
        buf_putc(&list, '[');
        buf_put_str(&list, buf_str(&k->reply.others));
        buf_putc(&list, ']');
        int rc = buf_check(&list, err);
        if (rc == 0)
                rc = json_parse(&j, list.p, list.n, NULL, err);
        for (json_ref c = rc ? JSON_NONE : json_child(&j, 0); c != JSON_NONE && rc == 0;
             c = json_next(&j, 0, c)) {
                rc = store_choice(k, &j, c, err);
                if (rc == 0)
                        rc = note_choice(k, &j, c, asked, asked_seq, err);
        }
        json_release(&j);
        buf_release(&list);
        return rc;
}
