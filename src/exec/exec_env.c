/*
 * exec_env.c - which environment variables a child may see. By default a child gets only the
 * variables that programs usually need. Keys and tokens are not passed on.
 */
#include "exec/exec.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char *const always[] = {
    "PATH", "HOME", "LANG", "TERM", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", NULL};

static size_t name_length(const char *entry)
{
        const char *eq = strchr(entry, '=');
        return eq ? (size_t)(eq - entry) : 0;
}

static bool listed(const char *const *names, const char *entry, size_t n)
{
        for (size_t i = 0; names && names[i]; i++)
                if (strncmp(names[i], entry, n) == 0 && names[i][n] == '\0')
                        return true;
        return false;
}

static bool overridden(const char *const *extra, const char *entry, size_t n)
{
        for (size_t i = 0; extra && extra[i]; i++)
                if (name_length(extra[i]) == n && strncmp(extra[i], entry, n) == 0)
                        return true;
        return false;
}

static bool passes(const char *const *allowed, const char *const *extra, const char *entry)
{
        size_t n = name_length(entry);

        if (n == 0 || overridden(extra, entry, n))
                return false;
        return strncmp(entry, "LC_", 3) == 0 || listed(always, entry, n) ||
               listed(allowed, entry, n);
}

static size_t count(const char *const *list)
{
        size_t n = 0;

        while (list && list[n])
                n++;
        return n;
}

int exec_env(const char *const *from, const char *const *allowed, const char *const *extra,
    char ***out, struct steno_error *err)
{
        char **env = calloc(count(from) + count(extra) + 1, sizeof(*env));
        size_t n = 0;

        if (!env)
                return error_nomem(err);
        for (size_t i = 0; from && from[i]; i++) {
                if (!passes(allowed, extra, from[i]))
                        continue;
                env[n] = strdup(from[i]);
                if (!env[n++])
                        goto nomem;
        }
        for (size_t i = 0; extra && extra[i]; i++) {
                env[n] = strdup(extra[i]);
                if (!env[n++])
                        goto nomem;
        }
        *out = env;
        return 0;
nomem:
        exec_env_free(env);
        return error_nomem(err);
}

void exec_env_free(char **env)
{
        for (size_t i = 0; env && env[i]; i++)
                free(env[i]);
        free(env);
}
