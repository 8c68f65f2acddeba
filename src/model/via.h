/*
 * via.h - the origin of a model's reply: the URL of the endpoint, a space, the model.
 *
 * Only the endpoint that made a reply understands some parts of it: thinking with its signature,
 * encrypted reasoning, members that no API documents. They are sent back to that endpoint and to no
 * other.
 */
#ifndef MODEL_VIA_H
#define MODEL_VIA_H

#include <stdbool.h>

#include "base/str.h"

/* Returns only the endpoint, without the model. */
static inline struct str via_endpoint(struct str via)
{
        const char *space = via.n ? memchr(via.p, ' ', via.n) : NULL;
        return space ? str_span(via.p, (size_t)(space - via.p)) : via;
}

static inline struct str via_model(struct str via)
{
        struct str url = via_endpoint(via);
        return url.n < via.n ? str_span(via.p + url.n + 1, via.n - url.n - 1) : STR("");
}

/* Was the reply made by another endpoint than the one that will read it? False if one of the two is
 * not known. */
static inline bool via_is_foreign(struct str made, struct str reader)
{
        return made.n && reader.n && !str_eq(via_endpoint(made), via_endpoint(reader));
}

#endif
