/*
 * view_out.h - the caller's sink, with a buffer before it so that it is not called for every
 * comma. Large pieces go past the buffer.
 */
#ifndef API_VIEW_OUT_H
#define API_VIEW_OUT_H

#include "base/str.h"
#include "steno.h"

#define VIEW_OUT_BYTES 65536

struct view_out {
        steno_sink sink;
        void *ctx;
        struct steno_error *err;
        size_t used;
        bool comma; /* something was put into the array */
        char held[VIEW_OUT_BYTES];
};

/* 0 or STENO_EINTERRUPTED. */
int view_out_put(struct view_out *o, struct str s);
/* A comma where one is needed, before an element of the array. */
int view_out_next(struct view_out *o);
/* The elements of an array that is "[...]". */
int view_out_elements(struct view_out *o, struct str array);
int view_out_flush(struct view_out *o);
/* The same as a steno_sink; ctx is the view_out. */
int view_out_sink(void *ctx, const void *p, size_t n);

#endif
