/* view_out.c - see view_out.h */
#include "api/view_out.h"

#include "base/error.h"

static int send(struct view_out *o, const char *p, size_t n)
{
        if (n && o->sink(o->ctx, p, n))
                return error_set(o->err, STENO_EINTERRUPTED, "the reader stopped the view");
        return 0;
}

int view_out_flush(struct view_out *o)
{
        size_t n = o->used;
        o->used = 0;
        return send(o, o->held, n);
}

int view_out_put(struct view_out *o, struct str s)
{
        if (s.n > sizeof o->held - o->used) {
                int rc = view_out_flush(o);
                if (rc || s.n > sizeof o->held / 2)
                        return rc ? rc : send(o, s.p, s.n);
        }
        memcpy(o->held + o->used, s.p, s.n);
        o->used += s.n;
        return 0;
}

int view_out_next(struct view_out *o)
{
        if (o->comma)
                return view_out_put(o, STR(","));
        o->comma = true;
        return 0;
}

int view_out_elements(struct view_out *o, struct str array)
{
        if (array.n <= 2)
                return 0;
        int rc = view_out_next(o);
        return rc ? rc : view_out_put(o, str_span(array.p + 1, array.n - 2));
}

int view_out_sink(void *ctx, const void *p, size_t n)
{
        return view_out_put(ctx, str_span(p, n));
}
