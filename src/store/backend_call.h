/*
 * backend_call.h - one call through the table of a handle's kind; private to the files that have
 * those calls (backend_records.c and its neighbours).
 */
#ifndef STORE_BACKEND_CALL_H
#define STORE_BACKEND_CALL_H

#include "store/backend.h"

/* `handle->ops->slot(handle, ...)`, whose last argument is `err`. A slot that is empty is answered
 * with STENO_EUNSUPPORTED (K4). */
#define BACKEND_CALL(handle, slot, ...)                                                            \
        ((handle)->ops->slot ? (handle)->ops->slot((handle), __VA_ARGS__)                          \
                             : backend_lacks(err, (handle)->ops, #slot))

#endif
