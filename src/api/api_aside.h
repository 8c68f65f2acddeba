/*
 * api_aside.h - a conversation whose dead run is completed in memory, for readers that may not
 * write or have no room to.
 */
#ifndef API_API_ASIDE_H
#define API_API_ASIDE_H

#include "api/api_store.h"

/* The same conversation in a store of its own that writes nothing (backend_aside); `run` is the
 * name of the journal of the run that died. Closed with steno_conv_close. */
int api_aside_open(
    struct steno_conv *conv, const char *run, struct steno_conv **out, struct steno_error *err);

#endif
