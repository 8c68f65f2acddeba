/*
 * commands.c - the list of commands. One line each, in the order of the help.
 */
#include "cli/command.h"

#define COMMANDS(X)                                                                                \
        X(cmd_new)                                                                                 \
        X(cmd_append)                                                                              \
        X(cmd_output)                                                                              \
        X(cmd_record)                                                                              \
        X(cmd_acp)                                                                                 \
        X(cmd_fork)                                                                                \
        X(cmd_ls)                                                                                  \
        X(cmd_log)                                                                                 \
        X(cmd_messages)                                                                            \
        X(cmd_search)                                                                              \
        X(cmd_convert)                                                                             \
        X(cmd_check_history)                                                                       \
        X(cmd_context_list)                                                                        \
        X(cmd_context_read)                                                                        \
        X(cmd_context_tail)                                                                        \
        X(cmd_context_grep)                                                                        \
        X(cmd_chat)                                                                                \
        X(cmd_run)                                                                                 \
        X(cmd_continue)                                                                            \
        X(cmd_watch)                                                                               \
        X(cmd_stop)                                                                                \
        X(cmd_approve)                                                                             \
        X(cmd_exec)                                                                                \
        X(cmd_trust)                                                                               \
        X(cmd_demo)                                                                                \
        X(cmd_serve)                                                                               \
        X(cmd_mcp)                                                                                 \
        X(cmd_token_new)                                                                           \
        X(cmd_token_ls)                                                                            \
        X(cmd_token_rm)                                                                            \
        X(cmd_init)                                                                                \
        X(cmd_project)                                                                             \
        X(cmd_stats)                                                                               \
        X(cmd_export)                                                                              \
        X(cmd_import)                                                                              \
        X(cmd_backup)                                                                              \
        X(cmd_restore)                                                                             \
        X(cmd_copy)                                                                                \
        X(cmd_migrate)                                                                             \
        X(cmd_seal)                                                                                \
        X(cmd_verify)                                                                              \
        X(cmd_prove)                                                                               \
        X(cmd_key_new)                                                                             \
        X(cmd_key_show)                                                                            \
        X(cmd_check)                                                                               \
        X(cmd_rm)                                                                                  \
        X(cmd_trash)                                                                               \
        X(cmd_purge)                                                                               \
        X(cmd_completion)

#define DECLARE(name) extern const struct command name;
#define ROW(name) &name,

COMMANDS(DECLARE)

static const struct command *const rows[] = {COMMANDS(ROW)};

const struct command *const *commands_all(size_t *n)
{
        *n = sizeof(rows) / sizeof(rows[0]);
        return rows;
}
