/*
 * exec_tool.h - execute_command as a tool of the loop.
 */
#ifndef EXEC_EXEC_TOOL_H
#define EXEC_EXEC_TOOL_H

#include "tool/tool.h"

struct exec_tool_options {
        const char *directory;          /* where commands run; NULL: the process's */
        const char *const *env;         /* the process's environment; commands see an excerpt */
        const char *const *environment; /* names that they may see beside the usual ones */
        const char *const *hidden;      /* directories they must not reach: the store's above all */
        uint64_t timeout_ms;            /* the most for a command; 0: the call's limit */
        uint64_t memory_bytes;          /* 0: no limit */
        uint64_t cpu_seconds;           /* 0: no limit */
        bool visitors;                  /* some rule opens a command to visitors */
};

/* Everything is copied except opt->env, which must live until the process's last command has
 * ended. */
int exec_tool_add(
    struct steno_tools *set, const struct exec_tool_options *opt, struct steno_error *err);

#endif
