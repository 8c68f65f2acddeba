/*
 * vercel.h - the AI SDK of Vercel: the stream of UI message chunks that its useChat() reads.
 */
#ifndef ROUTES_VERCEL_VERCEL_H
#define ROUTES_VERCEL_VERCEL_H

#include "http/projection.h"

/* ?format=ui */
extern const struct projection vercel_projection;

#endif
