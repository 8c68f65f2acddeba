/*
 * config.h - what a person set up: model, MCP servers, permissions, limits.
 *
 * Weakest first: built in, $XDG_CONFIG_HOME/steno/config.json (~/.config/steno), steno.json in the
 * working directory, the environment, flags. A value of a stronger layer replaces a weaker one; a
 * server replaces the server of the same name; permission rules of a stronger layer come before
 * those of a weaker one.
 *
 *   {
 *     "provider": "openai", "baseUrl": "https://...", "apiKey": "...", "model": "...",
 *     "system": "...", "params": {"temperature": 0}, "strict": false,
 *     "toolCalls": "native",
 *     "mcpServers": {"files": {"command": "npx", "args": ["..."], "env": {"A": "b"}, "cwd": "..."},
 *                    "web": {"type": "http", "url": "https://...", "headers": {"A": "${TOKEN}"}}},
 *     "permissions": [...],              permission.h
 *     "upstreams": {"openai": {"url": "https://...", "key": "env:NAME"}},    gateway/gateway.h
 *     "prices": {"MODEL": {"input": 0.25, "output": 2, "cached": 0.025}},    $ a million tokens
 *     "responses": {"upstream": "openai"},
 *     "otlp": {"endpoint": "http://..."},                                    otel/otel.h
 *     "environment": ["NAME", ...],      more variables that commands and servers may see
 *     "limits": {"turns": 50, "seconds": 0, "tokens": 0, "toolSeconds": 600,
 *                "commandSeconds": 600, "commandMemoryMb": 4096, "commandCpuSeconds": 0,
 *                "approvalSeconds": 30}
 *   }
 *
 * Environment: STENO_MODEL, STENO_PROVIDER, and the variables that the provider's row names
 * (provider.h; OPENAI_BASE_URL and OPENAI_API_KEY of "openai"). In a server's command,
 * args, env, url and headers, ${NAME} and ${NAME:-default} are replaced from the environment.
 *
 * A steno.json may come from a cloned repository. Until it is trusted (trust.h) nothing in it is
 * used, and config->warnings names the keys that were ignored.
 */
#ifndef LOOP_CONFIG_H
#define LOOP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "loop/permission.h"
#include "mcp/mcp_servers.h"
#include "steno.h"

struct config_limits {
        uint64_t turns;
        uint64_t seconds;
        uint64_t tokens;
        uint64_t tool_seconds;
        uint64_t command_seconds;
        uint64_t command_memory_mb;
        uint64_t command_cpu_seconds;
        uint64_t approval_seconds;
};

enum config_switch {
        CONFIG_UNSET,
        CONFIG_ON,
        CONFIG_OFF,
};

struct config {
        char *provider;
        char *base_url;
        char *api_key;
        char *model;
        char *system;
        char *tool_calls;          /* "native", or "text" for models without function calling */
        char *params;              /* JSON object */
        enum config_switch strict; /* send only members that the provider's own types have */
        char *upstreams;           /* of the gateway, JSON object */
        char *prices;              /* dollars for a million tokens by model, JSON object */
        char *responses;           /* which of them serves /v1/responses, JSON object */
        char *otlp;                /* where runs are sent as traces (otel/otel.h), JSON object */
        struct mcp_servers servers;
        struct permission_rules rules;
        char **environment; /* names, NULL-terminated, may be NULL */
        struct config_limits limits;
        enum config_switch seal; /* the conversation of each run, when it has ended */
        char *warnings;          /* lines for the person at the terminal, or NULL */
};

struct config_sources {
        const char *const *env; /* the process's environment */
        const char *directory;  /* where steno.json is looked for; NULL: nowhere */
        const char *provider;   /* what a flag says; NULL: as configured */
};

/* STENO_EINVAL: a file has an unknown key or a wrong value (the message names the file and the
 * key), or there is no such provider. */
int config_load(struct config *c, const struct config_sources *from, struct steno_error *err);
void config_release(struct config *c);

/* A flag of the command line: "provider", "baseUrl", "apiKey", "model", "system" or
 * "toolCalls". */
int config_override(struct config *c, const char *key, const char *value, struct steno_error *err);

/* Steno's directory in the user's configuration, freed with free(). STENO_ENOTFOUND: neither
 * XDG_CONFIG_HOME nor HOME is set. */
int config_home(const char *const *env, char **path, struct steno_error *err);
/* Makes the directory and returns its path without symbolic links; NULL when it cannot be made.
 * Commands must not reach it: a command that could make it could write the rules of the next
 * start. */
char *config_home_make(const char *const *env);
/* A symbolic link of this user among the folders above it, or NULL: no mount can prevent a command
 * from replacing a link. Freed with free(). */
char *config_home_link(const char *const *env);

/* A small file whole, freed with free(); STENO_ENOTFOUND when there is none. */
int config_slurp(const char *path, char **text, size_t *n, struct steno_error *err);

#endif
