import { SHELL_NAMES } from "./shell_names";

// Tools that run commands. Other tools may have an argument "command" that means something else.
export const SHELLS = new RegExp(`(^|[._/-])(${SHELL_NAMES.join("|")})$`, "i");
export const quoted = (s: string) => (/^[\w@%+=:,./-]+$/.test(s) ? s : `'${s.replace(/'/g, "'\\''")}'`);
