/*
 * exec_modes.h - the file modes of guarded directories, put back after a command or an MCP server.
 *
 * Landlock does not confine chmod, ACLs and the like: under it a command cannot read the store, but
 * could let another user of the machine read it, or take away what Steno itself needs. So Steno
 * notes the modes of each guarded directory and of the files in it before a command runs, and
 * checks them afterwards. For an MCP server it notes them when the server starts, and checks them
 * after each call of one of its tools and at its end. Changes that the user makes at another time
 * are kept. Below that, only the folders above conversations are noted, and not all of them in a
 * store of very many projects, because they are checked around each command. A command in
 * namespaces of its own does not reach them at all.
 */
#ifndef EXEC_EXEC_MODES_H
#define EXEC_EXEC_MODES_H

#include "steno.h"

struct exec_modes;
struct steno_tool_call;

/* Notes them; `hidden` is a NULL-terminated list, or NULL. Free it with exec_modes_free(). */
int exec_modes_note(const char *const *hidden, struct exec_modes **out, struct steno_error *err);
/* Puts the modes back and returns for how many files. It never adds access for others, and never
 * takes access from the owner, so it does no harm when commands overlap. Any thread. */
unsigned exec_modes_restore(const struct exec_modes *m);
/* Reports as a step of the call that `changed` modes were put back; does nothing for 0. */
void exec_modes_tell(struct steno_tool_call *call, unsigned changed);
void exec_modes_free(struct exec_modes *m);

#endif
