// Tools that run commands. Other tools may call an argument "command" and mean anything.
export const SHELLS = /(^|[._/-])(execute_command|bash|shell|sh|exec|exec_command|shell_command|run_command|run_shell_command|run_terminal_cmd|local_shell|terminal)$/i;
export const quoted = (s: string) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replace(/'/g, "'\\''")}'`);
