/*
 * gateway_request.c - see gateway_request.h
 */
#include "gateway/gateway_request.h"

#include "base/env.h"
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "gateway/headers.h"
#include "gateway/passkeys.h"

void gateway_put_now(struct jsonw *w, const char *key)
{
        char at[TIME_TEXT];
        time_format(env_real()->now(env_real()), at);
        jsonw_field_cstr(w, key, at);
}

struct str gateway_request_header(const struct gateway_request *r, const char *wanted)
{
        for (size_t i = 0; r->headers[i]; i++) {
                struct str name, value;
                if (headers_split(str_of(r->headers[i]), &name, &value) &&
                    headers_name_is(name, wanted))
                        return value;
        }
        return (struct str){0};
}

struct str gateway_request_group(const struct gateway_request *r)
{
        static const char *const names[] = {
            "thread-id", "x-session-id", "session-id", "session_id", "conversation_id"};
        struct str group = {0};
        for (size_t i = 0; i < sizeof names / sizeof *names && group.n == 0; i++)
                group = gateway_request_header(r, names[i]);
        return group;
}

/* Requests that are not turns of a session have one beside it. */
static void put_group(struct jsonw *w, const struct gateway_request *r)
{
        struct str group = gateway_request_group(r),
                   meta = gateway_request_header(r, "x-codex-turn-metadata");
        struct json j;
        struct buf text;
        if (group.n == 0)
                return;
        json_init(&j);
        buf_init(&text, 4 * KIB);
        if (meta.n && json_parse(&j, meta.p, meta.n, NULL, NULL) == 0) {
                json_ref kind = json_get(&j, 0, "request_kind");
                if (json_type(&j, kind) == JSON_STRING && !json_is(&j, kind, "turn"))
                        buf_puts(&text, "side/");
        }
        buf_put_str(&text, group);
        jsonw_field_str(w, "group", buf_str(&text));
        struct str parent = gateway_request_header(r, "x-codex-parent-thread-id");
        if (parent.n == 0)
                parent = gateway_request_header(r, "x-parent-session-id");
        if (parent.n)
                jsonw_field_str(w, "parent", parent);
        buf_release(&text);
        json_release(&j);
}

void gateway_request_put_owner(
    struct buf *out, const struct gateway_request *r, const struct wire *wire)
{
        buf_printf(
            out, "%s/%s/%s/%s", r->project, r->token_id, r->upstream, wire ? wire->name : "");
}

void gateway_request_put_head(
    struct buf *out, const struct gateway_request *r, const struct wire *wire)
{
        struct buf owner;
        struct jsonw w = jsonw_to(out);
        buf_init(&owner, 4 * KIB);
        gateway_request_put_owner(&owner, r, wire);
        jsonw_object(&w);
        gateway_put_now(&w, "at");
        jsonw_field_cstr(&w, "project", r->project);
        jsonw_field_str(&w, "owner", buf_str(&owner));
        jsonw_field_cstr(&w, "upstream", r->upstream);
        if (wire)
                jsonw_field_cstr(&w, "wire", wire->name);
        jsonw_field_cstr(&w, "method", r->method);
        jsonw_field_str(&w, "path", r->rest);
        struct str named = gateway_request_header(r, "x-steno-conversation");
        if (named.n)
                jsonw_field_str(&w, "conversation", named);
        put_group(&w, r);
        jsonw_object_end(&w);
        buf_release(&owner);
}

bool gateway_request_has_key(const struct gateway_request *r)
{
        return r->own_credentials && !passkeys_as_key(r);
}

int gateway_request_check(
    const struct gateway_request *r, const struct upstream *up, struct steno_error *err)
{
        struct str named = gateway_request_header(r, "x-steno-conversation");
        if (named.n && !id_is_legal(named, ID_MAX))
                return error_set(err, STENO_EINVAL,
                    "x-steno-conversation must be 1 to %d bytes of UTF-8 without control "
                    "characters",
                    ID_MAX);
        if (passkeys_in(r, r->rest))
                return error_set(err, STENO_EPROTO,
                    "a token belongs before the prefix (/~TOKEN%s/...) and nowhere else in a path",
                    up->prefix);
        if (r->own_credentials && !up->key && !gateway_request_has_key(r))
                return error_set(err, STENO_EUNSUPPORTED,
                    "the key of this request is a Steno token, which goes to no endpoint: give the "
                    "client the key of %s, or set \"upstreams\"",
                    r->upstream);
        if (!r->own_credentials && !up->key)
                return error_set(err, STENO_EUNSUPPORTED,
                    "no key is configured for %s: set \"upstreams\", or put the token into the "
                    "path (/~TOKEN%s/...) so that your own key is passed on",
                    r->upstream, up->prefix);
        return 0;
}
