// Written by tools/shell-names from src/routes/own/own_shells.h: the tools that run commands.
export const SHELL_NAMES = ["execute_command", "bash", "shell", "sh", "exec", "exec_command", "shell_command", "run_command", "run_shell_command", "run_terminal_cmd", "local_shell", "terminal"];
