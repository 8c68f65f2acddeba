/*
 * own_facts.h - facts about the records behind a view, for the page: their seqs, and members that
 * the view's format does not have.
 */
#ifndef ROUTES_OWN_OWN_FACTS_H
#define ROUTES_OWN_OWN_FACTS_H

#include "base/buf.h"
#include "steno.h"

/*
 * Appends a JSON array, one entry a record from `first` to `last`: {"seq","id","at","format",
 * "kind","target"?,"about","fields":{...},"displays":[{"call","display"}]}. `fields` are the
 * message's own small members, `displays` what a tool wants to have shown instead of its result.
 */
int own_facts_put(struct steno_conv *conv, uint64_t first, uint64_t last, struct buf *out,
    struct steno_error *err);

#endif
