/*
 * mcp_param.c - see mcp_param.h
 */
#include "mcp/mcp_param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/limits.h"

#define KEY "x-mcp-header"

/* The characters of a header's name (RFC 9110). */
static bool is_name(struct str s)
{
        bool legal = s.n > 0 && s.n < MCP_PARAM_NAME - sizeof "Mcp-Param-";
        for (size_t i = 0; i < s.n && legal; i++)
                legal = s.p[i] > ' ' && s.p[i] < 0x7F && !strchr("\"(),/:;<=>?@[\\]{}", s.p[i]);
        return legal;
}

static bool is_type(const struct json *j, json_ref property)
{
        json_ref type = json_get(j, property, "type");
        return json_is(j, type, "string") || json_is(j, type, "integer") ||
               json_is(j, type, "boolean");
}

static bool is_used_before(const struct json *j, json_ref all, json_ref property, struct str name)
{
        for (json_ref k = json_child(j, all); k != JSON_NONE; k = json_next_key(j, all, k)) {
                json_ref other = json_value(j, k);
                struct str s = json_inner(j, json_get(j, other, KEY));
                if (other == property)
                        return false;
                if (s.n == name.n && strncasecmp(s.p, name.p, s.n) == 0)
                        return true;
        }
        return false;
}

bool mcp_param_legal(struct str schema)
{
        struct json j;
        bool legal = true;
        json_init(&j);
        if (json_parse(&j, schema.p, schema.n, NULL, NULL) == 0) {
                json_ref all = json_get(&j, 0, "properties");
                for (json_ref k = json_child(&j, all); k != JSON_NONE && legal;
                     k = json_next_key(&j, all, k)) {
                        json_ref property = json_value(&j, k), name = json_get(&j, property, KEY);
                        struct str s = json_inner(&j, name);
                        legal = name == JSON_NONE ||
                                (json_type(&j, name) == JSON_STRING && !json_is_escaped(&j, name) &&
                                    is_name(s) && is_type(&j, property) &&
                                    !is_used_before(&j, all, property, s));
                }
        }
        json_release(&j);
        return legal;
}

/* A string as it is, a number or a boolean as it is spelled; NULL: there is none. */
static char *value_of(const struct json *j, json_ref v)
{
        struct str raw = json_raw(j, v);
        switch (json_type(j, v)) {
        case JSON_STRING:
                return json_dup_string(j, v);
        case JSON_NUMBER:
        case JSON_TRUE:
        case JSON_FALSE:
                return strndup(raw.p, raw.n);
        default:
                return NULL;
        }
}

void mcp_param_each(struct str schema, struct str args,
    void (*each)(void *ctx, const char *header, const char *value), void *ctx)
{
        struct json j, a;
        json_init(&j);
        json_init(&a);
        if (json_parse(&j, schema.p, schema.n, NULL, NULL) == 0 &&
            json_parse(&a, args.p, args.n, NULL, NULL) == 0) {
                json_ref all = json_get(&j, 0, "properties");
                for (json_ref k = json_child(&j, all); k != JSON_NONE;
                     k = json_next_key(&j, all, k)) {
                        struct str name = json_inner(&j, json_get(&j, json_value(&j, k), KEY));
                        char *key = name.n ? json_dup_string(&j, k) : NULL;
                        char *value = key ? value_of(&a, json_get(&a, 0, key)) : NULL;
                        char header[MCP_PARAM_NAME];
                        snprintf(header, sizeof header, "Mcp-Param-%.*s", (int)name.n, name.p);
                        if (value)
                                each(ctx, header, value);
                        free(key);
                        free(value);
                }
        }
        json_release(&j);
        json_release(&a);
}
