/*
 * libpq.h - PostgreSQL's client library, loaded when a store of that kind is opened:
 * libpq.exec() is PQexec(), and so on.
 */
#ifndef STORE_POSTGRES_LIBPQ_H
#define STORE_POSTGRES_LIBPQ_H

#include <libpq-fe.h>

#include "steno.h"

#define LIBPQ_CALLS(X)                                                                             \
        X(cancel)                                                                                  \
        X(clear)                                                                                   \
        X(cmdTuples)                                                                               \
        X(connectdbParams)                                                                         \
        X(consumeInput)                                                                            \
        X(errorMessage)                                                                            \
        X(exec)                                                                                    \
        X(execParams)                                                                              \
        X(finish)                                                                                  \
        X(flush)                                                                                   \
        X(freeCancel)                                                                              \
        X(freemem)                                                                                 \
        X(getCancel)                                                                               \
        X(getisnull)                                                                               \
        X(getlength)                                                                               \
        X(getResult)                                                                               \
        X(getvalue)                                                                                \
        X(isBusy)                                                                                  \
        X(nfields)                                                                                 \
        X(notifies)                                                                                \
        X(ntuples)                                                                                 \
        X(parameterStatus)                                                                         \
        X(resultErrorField)                                                                        \
        X(resultStatus)                                                                            \
        X(sendPrepare)                                                                             \
        X(sendQuery)                                                                               \
        X(sendQueryParams)                                                                         \
        X(sendQueryPrepared)                                                                       \
        X(serverVersion)                                                                           \
        X(setNoticeReceiver)                                                                       \
        X(socket)                                                                                  \
        X(status)

struct libpq {
#define X(name) __typeof__(PQ##name) *name;
        LIBPQ_CALLS(X)
#undef X
};

extern struct libpq libpq;

/* Loads it, once; from any thread. Nothing above may be called before. */
int libpq_need(struct steno_error *err);

#endif
