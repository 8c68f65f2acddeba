/*
 * buckets.h - rate limits: how often a caller may do something in a minute. They are kept in
 * memory, so a restart resets them.
 */
#ifndef HTTP_BUCKETS_H
#define HTTP_BUCKETS_H

#include <stdbool.h>

struct buckets;

struct buckets *buckets_new(void);
void buckets_free(struct buckets *all);
/* Takes one of `most` a minute. False: there is none left. */
bool buckets_take(struct buckets *all, const char *key, unsigned most);

#endif
