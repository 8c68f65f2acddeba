/*
 * mcp_message.c - telling JSON-RPC messages apart, and writing those that are always the same.
 */
#include "mcp/mcp_transport.h"

static uint64_t number(const struct json *j, json_ref r)
{
        uint64_t v;

        return json_u64(j, r, &v) ? v : 0;
}

enum mcp_kind mcp_message_kind(const struct json *j, uint64_t *id)
{
        json_ref method = json_get(j, 0, "method");
        json_ref ident = json_get(j, 0, "id");
        bool answers =
            json_get(j, 0, "result") != JSON_NONE || json_get(j, 0, "error") != JSON_NONE;

        *id = 0;
        if (json_type(j, 0) != JSON_OBJECT || !json_is(j, json_get(j, 0, "jsonrpc"), "2.0"))
                return MCP_NONSENSE;
        if (method == JSON_NONE) {
                if (!answers)
                        return MCP_NONSENSE;
                *id = number(j, ident);
                return MCP_ANSWER;
        }
        if (ident != JSON_NONE)
                return MCP_REQUEST;
        *id = number(j, json_get(j, json_get(j, 0, "params"), "progressToken"));
        return MCP_NOTIFICATION;
}

void mcp_message_reply(struct buf *b, const struct json *j)
{
        struct jsonw w = jsonw_to(b);

        jsonw_object(&w);
        jsonw_field_cstr(&w, "jsonrpc", "2.0");
        jsonw_field_copy(&w, "id", j, json_get(j, 0, "id"));
        if (json_is(j, json_get(j, 0, "method"), "ping")) {
                jsonw_field_raw(&w, "result", STR("{}"));
        } else {
                jsonw_key(&w, "error");
                jsonw_raw(
                    &w, STR("{\"code\":-32601,\"message\":\"not supported by this client\"}"));
        }
        jsonw_object_end(&w);
}

void mcp_message_cancel(struct buf *b, uint64_t id, const char *reason)
{
        struct jsonw w = jsonw_to(b);

        jsonw_object(&w);
        jsonw_field_cstr(&w, "jsonrpc", "2.0");
        jsonw_field_cstr(&w, "method", "notifications/cancelled");
        jsonw_key(&w, "params");
        jsonw_object(&w);
        jsonw_field_u64(&w, "requestId", id);
        jsonw_field_cstr(&w, "reason", reason);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
}
