/*
 * acontext_check.h - what Acontext refuses of a message before it is stored.
 */
#ifndef ROUTES_ACONTEXT_ACONTEXT_CHECK_H
#define ROUTES_ACONTEXT_ACONTEXT_CHECK_H

#include "base/json.h"

/* NULL, or why a message of this format ("openai", "anthropic", "gemini", "acontext") is none. */
const char *acontext_check(const struct json *j, json_ref blob, const char *format);

#endif
