/* items.c - see items.h */
#include "routes/openai/items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/text.h"

static const struct {
        const char *type;
        const char *prefix;
        bool status;
} TYPES[] = {
    {"message", "msg_", true},
    {"function_call", "fc_", true},
    {"function_call_output", "fco_", true},
    {"reasoning", "rs_", false},
};

static void make_id(const char *prefix, struct str seed, size_t index, char out[80])
{
        if (!seed.n) {
                id_make(env_real(), prefix, out);
                return;
        }
        char hex[SHA256_HEX];
        struct buf b;
        buf_init(&b, 0);
        buf_put_str(&b, seed);
        buf_printf(&b, "\n%zu", index);
        if (b.failed || hash_sha256_hex(b.p, b.n, hex))
                id_make(env_real(), prefix, out);
        else
                snprintf(out, 80, "%s%.32s", prefix, hex);
        buf_release(&b);
}

static void put_text_part(struct jsonw *w, const struct json *j, json_ref text, bool assistant)
{
        jsonw_array(w);
        jsonw_object(w);
        jsonw_field_cstr(w, "type", assistant ? "output_text" : "input_text");
        jsonw_field_copy(w, "text", j, text);
        if (assistant) {
                jsonw_field_raw(w, "annotations", STR("[]"));
                jsonw_field_raw(w, "logprobs", STR("[]"));
        }
        jsonw_object_end(w);
        jsonw_array_end(w);
}

bool items_normalise(const struct json *j, json_ref item, struct str seed, size_t index,
    struct buf *out, const char **why)
{
        json_ref type = json_get(j, item, "type");
        json_ref role = json_get(j, item, "role");
        json_ref id = json_get(j, item, "id");
        if (json_type(j, item) != JSON_OBJECT) {
                *why = "an item must be an object";
                return false;
        }
        bool untyped = json_type(j, type) != JSON_STRING;
        if (untyped && json_type(j, role) != JSON_STRING) {
                *why = "an item needs a type, or a role and content";
                return false;
        }
        size_t known = sizeof TYPES / sizeof *TYPES;
        for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
                if (untyped ? i == 0 : json_is(j, type, TYPES[i].type))
                        known = i;
        bool is_known = known < sizeof TYPES / sizeof *TYPES;
        bool message = known == 0;
        if (message && json_type(j, role) != JSON_STRING) {
                *why = "a message needs a role";
                return false;
        }
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_key(&w, "id");
        if (json_type(j, id) == JSON_STRING && json_inner(j, id).n) {
                jsonw_raw(&w, json_raw(j, id));
        } else {
                char made[80];
                make_id(is_known ? TYPES[known].prefix : "item_", seed, index, made);
                jsonw_cstr(&w, made);
        }
        if (untyped) {
                jsonw_field_cstr(&w, "type", "message");
        }
        for (json_ref k = json_child(j, item); k != JSON_NONE; k = json_next_key(j, item, k)) {
                json_ref v = json_value(j, k);
                if (json_is(j, k, "id") || (untyped && json_is(j, k, "type")))
                        continue;
                if (message && json_is(j, k, "content") && json_type(j, v) == JSON_STRING) {
                        jsonw_key(&w, "content");
                        put_text_part(&w, j, v, json_is(j, role, "assistant"));
                } else if (is_known && json_is(j, k, "status") && json_type(j, v) == JSON_NULL) {
                        continue;
                } else {
                        jsonw_copy_member(&w, j, k);
                }
        }
        json_ref status = json_get(j, item, "status");
        if (is_known && TYPES[known].status && json_type(j, status) != JSON_STRING) {
                jsonw_field_cstr(&w, "status", "completed");
        }
        if (known == 3 && json_get(j, item, "summary") == JSON_NONE) {
                jsonw_field_raw(&w, "summary", STR("[]"));
        }
        jsonw_object_end(&w);
        return true;
}

/* ---- from stored messages ---- */

size_t items_count(const struct history_item *message)
{
        struct json j;
        size_t n = 0;
        json_init(&j);
        if (json_parse(&j, message->json, message->n, NULL, NULL) == 0)
                n = json_type(&j, 0) == JSON_ARRAY ? json_count(&j, 0) : 1;
        json_release(&j);
        return n;
}

/* An item that came as something else: its id is the message's and, of several, its place. */
static void put_foreign(const struct json *j, json_ref item, const char *id, struct buf *out)
{
        struct json again;
        struct buf made;
        const char *why;
        buf_init(&made, 0);
        json_init(&again);
        buf_puts(&made, "{\"id\":");
        json_put_string(&made, str_of(id));
        for (json_ref k = json_child(j, item); k != JSON_NONE; k = json_next_key(j, item, k)) {
                if (json_is(j, k, "id"))
                        continue;
                buf_putc(&made, ',');
                buf_put_str(&made, json_raw(j, k));
                buf_putc(&made, ':');
                buf_put_str(&made, json_raw(j, json_value(j, k)));
        }
        buf_putc(&made, '}');
        if (!made.failed && json_parse(&again, made.p, made.n, NULL, NULL) == 0)
                items_normalise(&again, 0, (struct str){0}, 0, out, &why);
        json_release(&again);
        buf_release(&made);
}

void items_id(const struct history_item *message, size_t k, char out[ITEMS_ID])
{
        snprintf(out, ITEMS_ID, items_count(message) > 1 ? "%s~%zu" : "%s", message->id, k);
}

bool items_without(const struct history_item *message, size_t k, struct buf *out)
{
        struct json j;
        json_init(&j);
        bool ok = json_parse(&j, message->json, message->n, NULL, NULL) == 0 &&
                  json_type(&j, 0) == JSON_ARRAY && k < json_count(&j, 0);
        struct jsonw w = jsonw_to(out);
        jsonw_array(&w);
        for (size_t i = 0; ok && i < json_count(&j, 0); i++)
                if (i != k)
                        jsonw_raw(&w, json_raw(&j, json_at(&j, 0, (uint32_t)i)));
        jsonw_array_end(&w);
        json_release(&j);
        return ok && !out->failed;
}

bool items_of_message(const struct history_item *message, size_t k, struct buf *out)
{
        struct json j;
        char id[ITEMS_ID];
        json_init(&j);
        bool ok = json_parse(&j, message->json, message->n, NULL, NULL) == 0;
        bool array = ok && json_type(&j, 0) == JSON_ARRAY;
        bool several = array && json_count(&j, 0) > 1;
        json_ref item = array ? json_at(&j, 0, (uint32_t)k) : ok && k == 0 ? 0 : JSON_NONE;
        if (item == JSON_NONE) {
                json_release(&j);
                return false;
        }
        snprintf(id, sizeof id, several ? "%s~%zu" : "%s", message->id, k);
        /* Items that came as items have their own id and everything else already. */
        if (strcmp(message->format, "responses") == 0)
                buf_put_str(out, json_raw(&j, item));
        else
                put_foreign(&j, item, id, out);
        json_release(&j);
        return true;
}

void items_split_id(const char *id, char message[300], size_t *k)
{
        const char *tilde = strrchr(id, '~');
        *k = 0;
        if (tilde && tilde[1] >= '0' && tilde[1] <= '9') {
                *k = strtoul(tilde + 1, NULL, 10);
                snprintf(message, 300, "%.*s", (int)(tilde - id), id);
        } else {
                snprintf(message, 300, "%s", id);
        }
}
