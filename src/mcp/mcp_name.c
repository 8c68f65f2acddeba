/*
 * mcp_name.c - offered names: readable while that is possible, unique always.
 */
#include "mcp/mcp_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define HASH_DIGITS 10

static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
}

bool mcp_name_offer(const char *server, const char *tool,
    bool (*taken)(void *ctx, const char *name), void *ctx, char out[MCP_NAME_MAX + 1])
{
        char *full = NULL;
        char hash[SHA256_HEX];
        int n = asprintf(&full, "mcp__%s__%s", server, tool);

        if (n < 0)
                return false;
        /* Hashed with a NUL between, so that ("a", "b__c") and ("a__b", "c") differ. */
        size_t raw_n = strlen(server) + strlen(tool) + 2;
        char *raw = malloc(raw_n);
        if (!raw) {
                free(full);
                return false;
        }
        memcpy(raw, server, strlen(server) + 1);
        memcpy(raw + strlen(server) + 1, tool, strlen(tool) + 1);
        bool hashed = hash_sha256_hex(raw, raw_n - 1, hash) == 0;
        free(raw);

        for (char *p = full; *p; p++)
                if (!is_plain(*p))
                        *p = '_';
        bool fits = n <= MCP_NAME_MAX;
        if (fits)
                memcpy(out, full, (size_t)n + 1);
        if (fits && !taken(ctx, out)) {
                free(full);
                return true;
        }
        size_t keep =
            (size_t)n < MCP_NAME_MAX - HASH_DIGITS - 1 ? (size_t)n : MCP_NAME_MAX - HASH_DIGITS - 1;
        memcpy(out, full, keep);
        snprintf(out + keep, MCP_NAME_MAX + 1 - keep, "_%.*s", HASH_DIGITS, hash);
        free(full);
        return hashed && !taken(ctx, out);
}
