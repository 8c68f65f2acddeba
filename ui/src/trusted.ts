// Only the addresses of the page's two workers become code (see the policy in src/http/page.c).
interface Policies { createPolicy(name: string, rules: { createScriptURL(u: string): string }): { createScriptURL(u: string): unknown } }
const policies = (globalThis as { trustedTypes?: Policies }).trustedTypes;
const policy = policies?.createPolicy("steno-worker", {
  createScriptURL(u) {
    if (!/^\/assets\/(worker|lexer)-[\w-]+\.js$/.test(u)) throw new TypeError("not one of the page's workers");
    return u;
  },
});
export const scriptUrl = (u: string): unknown => policy?.createScriptURL(u) ?? u;
