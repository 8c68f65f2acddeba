/*
 * acontext_check.h - checks that Acontext makes before it stores a message.
 */
#ifndef ROUTES_ACONTEXT_ACONTEXT_CHECK_H
#define ROUTES_ACONTEXT_ACONTEXT_CHECK_H

#include "base/json.h"

/* NULL, or why this is not a valid message of the format ("openai", "anthropic", "gemini",
 * "acontext"). */
const char *acontext_check(const struct json *j, json_ref blob, const char *format);

#endif
