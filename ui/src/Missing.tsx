// The view for what does not exist, with a way back. It does not say whether it never existed or may not be
// seen.
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { hrefOf } from "./route";

// The name of what is shown, for the title of the tab.
export const named = signal("");

export function Missing({ what, children }: { what: string; children: preact.ComponentChildren }) {
  useEffect(() => { named.value = "Not found"; }, []);
  return <section class="welcome" id="missing" aria-label="Not found" tabIndex={-1}>
    <h2>There is no such {what}</h2>
    <p>It may have been deleted, or the link is from another server or project.</p>
    <p class="buttons"><a class="button primary" href={hrefOf({ view: "home", id: "" })}>Go to Home</a>{children}</p>
  </section>;
}
