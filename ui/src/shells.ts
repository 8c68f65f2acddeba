import { SHELL_NAMES } from "./shell_names";

// Tools that run commands. Other tools may call an argument "command" and mean anything.
export const SHELLS = new RegExp(`(^|[._/-])(${SHELL_NAMES.join("|")})$`, "i");
export const quoted = (s: string) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replace(/'/g, "'\\''")}'`);
