/*
 * exec_args.h - the arguments of execute_command, read in one way only.
 *
 * Permission rules and the tool itself both read them through this, so that both always understand
 * a call in the same way. Reading is strict: it must be an object whose keys are known and occur
 * once, with exactly one of `argv` and `shell`.
 */
#ifndef EXEC_EXEC_ARGS_H
#define EXEC_EXEC_ARGS_H

#include <stdint.h>

#include "base/str.h"
#include "steno.h"

struct exec_args {
        char **argv;      /* NULL-terminated; NULL when `shell` is set */
        char *shell;      /* one opaque string */
        char *directory;  /* NULL: the session's */
        uint64_t seconds; /* 0: the default limit */
};

/* The tool's schema, as JSON. */
extern const char exec_args_schema[];

/* STENO_EINVAL or STENO_EPROTO with words that a model can act on. */
int exec_args_parse(struct exec_args *a, struct str json, struct steno_error *err);
void exec_args_release(struct exec_args *a);

#endif
