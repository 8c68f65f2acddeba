/*
 * exec_modes.h - the file modes of guarded directories, put back after a command.
 *
 * Landlock does not confine chmod, ACLs and the like: under it a command cannot read the store, but
 * could let another user of the machine read it, or take away what Steno itself needs. So the modes
 * of each guarded directory and of the files in it are noted at the start, before any command runs,
 * and looked at after each one. Deeper files are behind the directory. In namespaces of its own a
 * command does not reach them at all.
 */
#ifndef EXEC_EXEC_MODES_H
#define EXEC_EXEC_MODES_H

#include "steno.h"

struct exec_modes;

/* Notes them; `hidden` is a NULL-terminated list, or NULL. Free it with exec_modes_free(). */
int exec_modes_note(const char *const *hidden, struct exec_modes **out, struct steno_error *err);
/* Puts them back and says of how many files. Never lets anybody in who is not let in now: bits of
 * the group and of others are only taken away. */
unsigned exec_modes_restore(const struct exec_modes *m);
void exec_modes_free(struct exec_modes *m);

#endif
