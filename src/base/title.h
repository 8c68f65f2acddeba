/*
 * title.h - the title of a conversation, as lists and exports show it.
 */
#ifndef BASE_TITLE_H
#define BASE_TITLE_H

#include "base/json.h"

/* The member "title" of `meta`, decoded, or NULL; freed with free(). NUL characters become blanks,
 * so that nothing is lost behind them. */
char *title_dup(const struct json *j, json_ref meta);

#endif
