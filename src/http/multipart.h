/*
 * multipart.h - multipart/form-data: the parts of a body, as spans of it.
 */
#ifndef HTTP_MULTIPART_H
#define HTTP_MULTIPART_H

#include "base/arena.h"
#include "base/str.h"

#define MULTIPART_MAX 64

struct multipart_part {
        struct str name;
        struct str filename; /* empty: a plain field */
        struct str type;
        struct str body;
};

struct multipart {
        struct multipart_part parts[MULTIPART_MAX];
        size_t count;
};

/* `type` is the Content-Type header. False: not well formed, or too many parts. */
bool multipart_parse(const char *type, struct str body, struct arena *arena, struct multipart *out);
const struct multipart_part *multipart_find(const struct multipart *m, const char *name);

#endif
