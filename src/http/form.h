/*
 * form.h - the parts of a multipart/form-data body, as libmicrohttpd reads them.
 */
#ifndef HTTP_FORM_H
#define HTTP_FORM_H

#include "http/request.h"

#define FORM_PARTS_MAX 64

struct form_part {
        struct str name;
        struct str filename; /* empty: a plain field */
        struct str type;     /* its Content-Type; empty: none */
        struct str body;
};

struct form {
        struct form_part parts[FORM_PARTS_MAX];
        size_t count;
        /* while it is read */
        struct buf bytes; /* the bodies, one behind the other */
        struct arena *arena;
        bool too_many;
};

/* Is the request's body a form? */
bool form_is(const struct request *r);
/* Reads the body. Names live as long as the request, bodies until form_release(), which is needed
 * in any case. False: not well formed, more than FORM_PARTS_MAX parts, or out of memory. */
bool form_read(struct form *f, struct request *r);
void form_release(struct form *f);

/* The first part of this name, or NULL. */
const struct form_part *form_find(const struct form *f, const char *name);

#endif
