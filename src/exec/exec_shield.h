/*
 * exec_shield.h - keeps a child process away from directories and from its parent.
 *
 * Hiding is done in one of two ways, whichever the machine and the caller's directory allow:
 *
 *   namespace  an empty read-only file system is mounted over each hidden directory, in a mount
 *              namespace of the child's own. Everything else looks as it always does.
 *   landlock   an allow-list of everything beside the path to each hidden directory. Landlock has
 *              no "all but", so the directories on that path lose what belongs to themselves:
 *              they cannot be listed, and names that are made in them later cannot be used.
 *
 * Either way the child ends in a Landlock domain where the kernel has one: it can undo no mount,
 * trace no process outside, and read no /proc/<pid>/environ of one. Where the machine has neither,
 * EXEC_SHIELD_NONE says so and only file modes protect.
 */
#ifndef EXEC_EXEC_SHIELD_H
#define EXEC_EXEC_SHIELD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "steno.h"

#define EXEC_HIDDEN_MAX 4

enum exec_shield {
        EXEC_SHIELD_NONE,
        EXEC_SHIELD_LANDLOCK,
        EXEC_SHIELD_NAMESPACE,
};

struct exec_shield_plan {
        char hidden[EXEC_HIDDEN_MAX][PATH_MAX]; /* resolved */
        size_t count;
        int strict; /* Landlock rules: all but the hidden ones; -1 where there is no Landlock */
        int loose;  /* Landlock rules: all */
        bool namespace_first;
        char user_map[64];
        char group_map[64];
};

/*
 * Done by the parent, because it allocates. `hidden` is a NULL-terminated list of directories (or
 * NULL); one that does not exist is left out. `directory` is where the child will work.
 */
int exec_shield_plan(struct exec_shield_plan *plan, const char *const *hidden,
    const char *directory, struct steno_error *err);
void exec_shield_release(struct exec_shield_plan *plan);

/*
 * Done by the child between fork and exec: only system calls. Returns the shield that holds now,
 * or -1 when a namespace was entered and could not be set up: the process cannot be used then,
 * and the caller tries again in a new one with namespaces off.
 */
int exec_shield_apply(const struct exec_shield_plan *plan, bool namespaces);

#endif
