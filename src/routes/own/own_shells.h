/*
 * own_shells.h - the tools that run commands, whatever stands before the name. Other tools may call
 * an argument "command" and mean anything. tools/shell-names writes the page's list from this one
 * (ui/src/shell_names.ts).
 */
#ifndef ROUTES_OWN_OWN_SHELLS_H
#define ROUTES_OWN_OWN_SHELLS_H

static const char *const OWN_SHELLS[] = {"execute_command", "bash", "shell", "sh", "exec",
    "exec_command", "shell_command", "run_command", "run_shell_command", "run_terminal_cmd",
    "local_shell", "terminal"};

#endif
