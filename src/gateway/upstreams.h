/*
 * upstreams.h - the endpoints that the gateway passes requests on to, and how they are configured.
 *
 *   {"openai": {"url": "https://api.openai.com/v1", "key": "env:OPENAI_API_KEY",
 *               "stubs": true, "contextTools": true, "whenGone": "cancel"}, ...}
 *
 * A new upstream is a row of the table in upstreams.c.
 */
#ifndef GATEWAY_UPSTREAMS_H
#define GATEWAY_UPSTREAMS_H

#include <stdbool.h>

#include "base/str.h"
#include "steno.h"

#define UPSTREAMS_COUNT 4

/* The app whose own route answers /api/chat; it has no URL unless it is configured. */
#define UPSTREAMS_APP "chat"

struct upstream {
        const char *name;
        const char *prefix;     /* of the paths here; NULL: it is not a model's (UPSTREAMS_APP) */
        const char *key_header; /* what stands before the key */
        char *url;              /* what the prefix stands for */
        char *key;              /* NULL: none is configured */
        bool stubs;             /* the model gets large results as stubs */
        bool tools;             /* and it has the context tools */
        bool cancel_when_gone;
        bool best_effort; /* requests that cannot be recorded are passed on */
};

struct upstreams {
        struct upstream list[UPSTREAMS_COUNT];
};

/* `text` is the configuration, a JSON object or NULL. `env` has the variables for "env:NAME".
 * STENO_EINVAL: the configuration is wrong. The caller releases `u` also after a failure. */
int upstreams_configure(
    struct upstreams *u, const char *text, const char *const *env, struct steno_error *err);
void upstreams_release(struct upstreams *u);

/* NULL: there is none of that name. */
const struct upstream *upstreams_find(const struct upstreams *u, const char *name);

/* The name of the upstream that a path belongs to, or NULL; *rest is what stands behind the prefix,
 * with its slash. */
const char *upstreams_of_path(struct str path, struct str *rest);

#endif
