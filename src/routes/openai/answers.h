/*
 * answers.h - /v1/responses: how the events of a response stand in the journal of its run.
 */
#ifndef ROUTES_OPENAI_ANSWERS_H
#define ROUTES_OPENAI_ANSWERS_H

#include "http/projection.h"

/* The events as OpenAI's clients read them. It is not offered as ?format=. */
extern const struct projection answers_projection;

#endif
