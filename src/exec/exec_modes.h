/*
 * exec_modes.h - the file modes of guarded directories, put back after a command or an MCP server.
 *
 * Landlock does not confine chmod, ACLs and the like: under it a command cannot read the store, but
 * could let another user of the machine read it, or take away what Steno itself needs. So the modes
 * of each guarded directory and of the files in it are noted before a command runs, and looked at
 * after it; those of an MCP server when it starts, after each call of one of its tools, and at its
 * end. What the user changes at another time stays. Of what lies deeper only the folders are
 * noted, as far as they belong to the store's frame: conversations are behind them; and in a store
 * of very many projects not all, because they are looked at around each command. In namespaces of
 * its own a command does not reach them at all.
 */
#ifndef EXEC_EXEC_MODES_H
#define EXEC_EXEC_MODES_H

#include "steno.h"

struct exec_modes;
struct steno_tool_call;

/* Notes them; `hidden` is a NULL-terminated list, or NULL. Free it with exec_modes_free(). */
int exec_modes_note(const char *const *hidden, struct exec_modes **out, struct steno_error *err);
/* Puts them back and says of how many files. Never lets anybody in who is not let in now, and takes
 * nothing from the owner: so it does no harm where commands overlap. Any thread. */
unsigned exec_modes_restore(const struct exec_modes *m);
/* Tells, as a step of the call, that `changed` modes were put back; nothing for 0. */
void exec_modes_tell(struct steno_tool_call *call, unsigned changed);
void exec_modes_free(struct exec_modes *m);

#endif
