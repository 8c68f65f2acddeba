/*
 * elements.c - see elements.h
 */
#include "gateway/elements.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/limits.h"

/* ---- values ---- */

struct member {
        struct str key;
        json_ref value;
};

static int by_key(const void *a, const void *b)
{
        const struct member *x = a, *y = b;
        size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
        int order = memcmp(x->key.p, y->key.p, n);
        return order ? order : (x->key.n > y->key.n) - (x->key.n < y->key.n);
}

static bool is_ignored(struct str key)
{
        static const char *const names[] = {
            "cache_control", "thoughtSignature", "annotations", "logprobs"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (str_is(key, names[i]))
                        return true;
        return str_starts(key, "internal_");
}

static void put_object(const struct json *j, json_ref obj, struct buf *out)
{
        uint32_t count = json_count(j, obj), n = 0;
        struct member *list = calloc(count + 1, sizeof *list);
        if (!list) {
                out->failed = STENO_ENOMEM;
                return;
        }
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k))
                if (!is_ignored(json_inner(j, k)))
                        list[n++] = (struct member){json_inner(j, k), json_value(j, k)};
        if (n)
                qsort(list, n, sizeof *list, by_key);
        buf_putc(out, '{');
        for (uint32_t i = 0; i < n; i++) {
                buf_puts(out, i ? ",\"" : "\"");
                buf_put_str(out, list[i].key);
                buf_puts(out, "\":");
                elements_put_value(j, list[i].value, out);
        }
        buf_putc(out, '}');
        free(list);
}

static void put_text(const struct json *j, json_ref r, struct buf *out)
{
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        json_string(j, r, &text, NULL);
        json_put_string(out, buf_str(&text));
        if (text.failed)
                out->failed = text.failed;
        buf_release(&text);
}

void elements_put_value(const struct json *j, json_ref r, struct buf *out)
{
        int64_t whole;
        double number;
        switch (json_type(j, r)) {
        case JSON_OBJECT:
                put_object(j, r, out);
                return;
        case JSON_ARRAY:
                buf_putc(out, '[');
                for (json_ref e = json_child(j, r); e != JSON_NONE; e = json_next(j, r, e)) {
                        elements_put_value(j, e, out);
                        buf_putc(out, ',');
                }
                buf_putc(out, ']');
                return;
        case JSON_STRING:
                put_text(j, r, out);
                return;
        case JSON_NUMBER:
                if (json_i64(j, r, &whole))
                        buf_printf(out, "%lld", (long long)whole);
                else if (json_double(j, r, &number))
                        buf_printf(out, "%.17g", number);
                else
                        buf_put_str(out, json_raw(j, r));
                return;
        default:
                buf_put_str(out, json_raw(j, r));
        }
}

/* ---- what a message says ---- */

/* A piece of it: a kind, and fields with their lengths, so that no two pieces look alike. */
static void put_field(struct buf *out, struct str s)
{
        buf_printf(out, "%zu:", s.n);
        buf_put_str(out, s);
}

static void put_string_field(struct buf *out, const struct json *j, json_ref r)
{
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        json_string(j, r, &text, NULL);
        put_field(out, buf_str(&text));
        buf_release(&text);
}

/* Arguments: a JSON text, or the value itself. */
static void put_arguments(struct buf *out, const struct json *j, json_ref r)
{
        struct buf text, value;
        struct json inner;
        buf_init(&text, MESSAGE_MAX);
        buf_init(&value, MESSAGE_MAX);
        json_init(&inner);
        if (json_type(j, r) != JSON_STRING) {
                if (json_type(j, r) == JSON_NOTHING)
                        buf_puts(&value, "{}");
                else
                        elements_put_value(j, r, &value);
        } else {
                json_string(j, r, &text, NULL);
                if (text.n && json_parse(&inner, text.p, text.n, NULL, NULL) == 0)
                        elements_put_value(&inner, 0, &value);
                else if (text.n)
                        buf_put_str(&value, buf_str(&text));
                else
                        buf_puts(&value, "{}");
        }
        put_field(out, buf_str(&value));
        json_release(&inner);
        buf_release(&value);
        buf_release(&text);
}

static void put_call(
    struct buf *out, const struct json *j, json_ref id, json_ref name, json_ref arguments)
{
        buf_puts(out, "call ");
        put_string_field(out, j, id);
        put_string_field(out, j, name);
        put_arguments(out, j, arguments);
}

/* Texts are joined, because the number of parts does not matter. */
static void put_words(struct buf *out, struct buf *words, const char *role)
{
        if (words->n == 0)
                return;
        buf_printf(out, "text %s ", role);
        put_field(out, buf_str(words));
        buf_clear(words);
}

static void put_other(struct buf *out, const struct json *j, json_ref part)
{
        struct buf value;
        buf_init(&value, MESSAGE_MAX);
        elements_put_value(j, part, &value);
        buf_puts(out, "part ");
        put_field(out, buf_str(&value));
        buf_release(&value);
}

static void put_content(
    struct buf *out, const struct json *j, json_ref content, const char *role, bool is_result);

/* Content blocks of Anthropic and parts of the others. */
static void put_block(
    struct buf *out, struct buf *words, const struct json *j, json_ref block, const char *role)
{
        json_ref type = json_get(j, block, "type");
        json_ref call = json_get(j, block, "functionCall");
        json_ref response = json_get(j, block, "functionResponse");
        json_ref text = json_get(j, block, "text");
        if (json_is(j, type, "thinking") || json_is(j, type, "redacted_thinking") ||
            json_bool(j, json_get(j, block, "thought"), false))
                return;
        if (json_type(j, text) == JSON_STRING) {
                json_string(j, text, words, NULL);
                return;
        }
        put_words(out, words, role);
        if (json_is(j, type, "tool_use")) {
                put_call(out, j, json_get(j, block, "id"), json_get(j, block, "name"),
                    json_get(j, block, "input"));
        } else if (json_is(j, type, "tool_result")) {
                buf_puts(out, "result ");
                put_string_field(out, j, json_get(j, block, "tool_use_id"));
                put_content(out, j, json_get(j, block, "content"), role, true);
        } else if (json_type(j, call) == JSON_OBJECT) {
                put_call(out, j, json_get(j, call, "id"), json_get(j, call, "name"),
                    json_get(j, call, "args"));
        } else if (json_type(j, response) == JSON_OBJECT) {
                buf_puts(out, "result ");
                put_string_field(out, j, json_get(j, response, "id"));
                put_string_field(out, j, json_get(j, response, "name"));
                put_other(out, j, json_get(j, response, "response"));
        } else {
                put_other(out, j, block);
        }
}

static void put_content(
    struct buf *out, const struct json *j, json_ref content, const char *role, bool is_result)
{
        struct buf words;
        buf_init(&words, MESSAGE_MAX);
        if (json_type(j, content) == JSON_STRING)
                json_string(j, content, &words, NULL);
        else if (json_type(j, content) == JSON_ARRAY)
                for (json_ref b = json_child(j, content); b != JSON_NONE;
                     b = json_next(j, content, b))
                        put_block(out, &words, j, b, role);
        else if (is_result && json_type(j, content) != JSON_NOTHING)
                put_other(out, j, content);
        put_words(out, &words, role);
        if (words.failed)
                out->failed = words.failed;
        buf_release(&words);
}

/* An item of Responses; also other messages, which have no type. */
static void put_item(struct buf *out, const struct json *j, json_ref m, struct str type)
{
        if (str_is(type, "reasoning"))
                return;
        if (str_is(type, "function_call")) {
                put_call(out, j, json_get(j, m, "call_id"), json_get(j, m, "name"),
                    json_get(j, m, "arguments"));
        } else if (str_is(type, "custom_tool_call")) {
                buf_puts(out, "custom ");
                put_string_field(out, j, json_get(j, m, "call_id"));
                put_string_field(out, j, json_get(j, m, "name"));
                put_string_field(out, j, json_get(j, m, "input"));
        } else if (str_is(type, "function_call_output") ||
                   str_is(type, "custom_tool_call_output")) {
                buf_puts(out, "result ");
                put_string_field(out, j, json_get(j, m, "call_id"));
                put_content(out, j, json_get(j, m, "output"), "tool", true);
        } else {
                /* Hosted tools and unknown items: without the members that change when they are
                 * sent back. */
                struct buf value;
                buf_init(&value, MESSAGE_MAX);
                for (json_ref k = json_child(j, m); k != JSON_NONE; k = json_next_key(j, m, k)) {
                        struct str key = json_inner(j, k);
                        if (str_is(key, "id") || str_is(key, "status") || is_ignored(key))
                                continue;
                        put_field(&value, key);
                        elements_put_value(j, json_value(j, k), &value);
                }
                buf_puts(out, "item ");
                put_field(out, buf_str(&value));
                buf_release(&value);
        }
}

static const char *role_of(const struct json *j, json_ref m)
{
        static const char *const names[] = {
            "system", "developer", "user", "assistant", "tool", "function"};
        json_ref role = json_get(j, m, "role");
        if (json_is(j, role, "model"))
                return "assistant";
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (json_is(j, role, names[i]))
                        return names[i];
        return "user";
}

static void put_message(const struct wire *w, struct buf *out, const struct json *j, json_ref m)
{
        const char *role = role_of(j, m);
        struct str type = json_inner(j, json_get(j, m, "type"));
        if (strcmp(w->name, "responses") == 0 && type.n && !str_is(type, "message")) {
                put_item(out, j, m, type);
                return;
        }
        if (strcmp(role, "tool") == 0) {
                buf_puts(out, "result ");
                put_string_field(out, j, json_get(j, m, "tool_call_id"));
        }
        bool gemini = strcmp(w->name, "gemini") == 0;
        put_content(out, j, json_get(j, m, gemini ? "parts" : "content"), role, false);
        json_ref calls = json_get(j, m, "tool_calls");
        for (json_ref c = json_child(j, calls); c != JSON_NONE; c = json_next(j, calls, c)) {
                json_ref f = json_get(j, c, "function");
                json_ref custom = json_get(j, c, "custom");
                bool is_custom = json_type(j, custom) == JSON_OBJECT;
                put_call(out, j, json_get(j, c, "id"), json_get(j, is_custom ? custom : f, "name"),
                    json_get(j, is_custom ? custom : f, is_custom ? "input" : "arguments"));
        }
        json_ref old = json_get(j, m, "function_call");
        if (json_type(j, old) == JSON_OBJECT)
                put_call(
                    out, j, JSON_NONE, json_get(j, old, "name"), json_get(j, old, "arguments"));
}

/* ---- digests ---- */

static int digest_of(struct str text, char out[ELEMENTS_CHAIN])
{
        char hex[SHA256_HEX];
        int rc = hash_sha256_hex(text.n ? text.p : "", text.n, hex);
        snprintf(out, ELEMENTS_CHAIN, "%.32s", rc ? "" : hex);
        return rc;
}

int elements_digest(
    const struct wire *w, const struct json *j, json_ref message, char digest[ELEMENTS_CHAIN])
{
        struct buf said;
        buf_init(&said, 0);
        put_message(w, &said, j, message);
        digest[0] = '\0'; /* of what says nothing */
        int rc = said.failed;
        if (rc == 0 && said.n)
                rc = digest_of(buf_str(&said), digest);
        buf_release(&said);
        return rc;
}

void elements_continue(char chain[ELEMENTS_CHAIN], const char *digest)
{
        char both[2 * ELEMENTS_CHAIN + 1];
        if (digest[0] == '\0')
                return;
        int n = snprintf(both, sizeof both, "%s/%s", chain, digest);
        digest_of(str_span(both, (size_t)n), chain);
}

static bool is_instruction(const struct json *j, json_ref m)
{
        const char *role = role_of(j, m);
        return strcmp(role, "system") == 0 || strcmp(role, "developer") == 0;
}

static bool is_assistant(const struct json *j, json_ref m)
{
        struct str type = json_inner(j, json_get(j, m, "type"));
        if (type.n && !str_is(type, "message"))
                return !str_is(type, "function_call_output") &&
                       !str_is(type, "custom_tool_call_output") && !str_is(type, "item_reference");
        return strcmp(role_of(j, m), "assistant") == 0;
}

static int link_digest(const struct wire *w, const struct json *j, json_ref m, elements_find find,
    void *ctx, char digest[ELEMENTS_CHAIN])
{
        struct str id = json_inner(j, json_get(j, m, "id"));
        if (json_is(j, json_get(j, m, "type"), "item_reference") && find && find(ctx, id, digest))
                return 0;
        return elements_digest(w, j, m, digest);
}

struct elements_link *elements_of(const struct wire *w, const struct json *list, struct str beside,
    const char *start, elements_find find, void *ctx, char system[ELEMENTS_CHAIN])
{
        struct elements_link *links = calloc(json_count(list, 0) + 1, sizeof *links);
        char chain[ELEMENTS_CHAIN];
        size_t n = 0;
        bool head = true;
        snprintf(chain, sizeof chain, "%s", start);
        if (!links || digest_of(beside, system) != 0)
                goto failed;
        for (json_ref m = json_child(list, 0); m != JSON_NONE; m = json_next(list, 0, m)) {
                char digest[ELEMENTS_CHAIN];
                if (link_digest(w, list, m, find, ctx, digest) != 0)
                        goto failed;
                head = head && is_instruction(list, m);
                elements_continue(head ? system : chain, digest);
                links[n].system = head;
                links[n].assistant = is_assistant(list, m);
                memcpy(links[n].chain, chain, sizeof chain);
                n++;
        }
        return links;
failed:
        free(links);
        return NULL;
}
