/*
 * vercel.h - the AI SDK of Vercel: the stream of UI message chunks that its useChat() reads.
 */
#ifndef ROUTES_VERCEL_VERCEL_H
#define ROUTES_VERCEL_VERCEL_H

#include "http/projection.h"
#include "http/request.h"

/* ?format=ui */
extern const struct projection vercel_projection;

/* A turn that an app's own route takes (vercel_app.c). */
struct vercel_app_turn {
        const char *continued;   /* the id of the reply that is continued; NULL: the reply is a new
                                    one */
        const struct str *parts; /* that it has */
        size_t parts_count;
};

/* Passes the request on and answers with the app's stream. Takes over the request and the
 * conversation; returns when the app's answer has ended. */
void vercel_app_run(struct request *r, struct steno_conv *conv, const struct vercel_app_turn *what);

#endif
