/*
 * stub_play.h - makes a stub of a text that is in memory; the program makes stubs of streams.
 */
#ifndef OUTPUT_STUB_PLAY_H
#define OUTPUT_STUB_PLAY_H

#include "base/error.h"
#include "base/limits.h"
#include "output/excerpt.h"
#include "output/outline.h"
#include "output/stub.h"

/* Excerpt, outline when `kind` is STUB_JSON, stub. meta->outline is ignored. */
static inline int stub_of_text(
    struct str text, const struct stub_meta *meta, struct buf *out, struct steno_error *err)
{
        struct stub_meta m = *meta;
        struct buf outline;
        struct excerpt *e = excerpt_new(NULL);
        if (!e)
                return error_nomem(err);
        buf_init(&outline, 0);
        excerpt_feed(e, text.p, text.n);
        excerpt_finish(e);
        if (m.kind == STUB_JSON)
                (void)outline_put(&outline, text, OUTLINE_BYTES);
        m.outline = buf_str(&outline);
        int rc = stub_build(e, &m, out, err);
        buf_release(&outline);
        excerpt_free(e);
        return rc;
}

#endif
