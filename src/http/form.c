/*
 * form.c - multipart/form-data through MHD_PostProcessor (form.h).
 *
 * The body was read whole before a handler sees it, because limits and identity count first; so it
 * is handed over in one piece. The library reports each part in one or more pieces, the first of
 * them at offset 0.
 */
#include "http/form.h"

#include <strings.h>

#include "base/limits.h"
#include "http/libmhd.h"

#define FORM_BUFFER (32 * KIB) /* for the headers of a part and a piece of its body */

bool form_is(const struct request *r)
{
        const char *type = request_header(r, "Content-Type");
        return type && strncasecmp(type, "multipart/", 10) == 0;
}

static struct str keep(struct form *f, const char *text)
{
        return text ? arena_dup(f->arena, str_of(text)) : (struct str){0};
}

/* A part may begin with an empty piece: the one behind it is at offset 0 too. */
static bool goes_on(const struct form *f, const char *name, uint64_t offset)
{
        if (f->count == 0)
                return false;
        const struct form_part *last = &f->parts[f->count - 1];
        return offset > 0 || (last->body.n == 0 && str_eq(last->name, str_of(name)));
}

static enum MHD_Result take_piece(void *ctx, enum MHD_ValueKind kind, const char *name,
    const char *filename, const char *type, const char *encoding, const char *data, uint64_t offset,
    size_t n)
{
        struct form *f = ctx;
        (void)kind;
        (void)encoding;
        if (!goes_on(f, name, offset)) {
                if (f->count == FORM_PARTS_MAX) {
                        f->too_many = true;
                        return MHD_NO;
                }
                f->parts[f->count++] = (struct form_part){
                    .name = keep(f, name), .filename = keep(f, filename), .type = keep(f, type)};
        }
        f->parts[f->count - 1].body.n += n;
        buf_put(&f->bytes, data, n);
        return f->bytes.failed || f->arena->failed ? MHD_NO : MHD_YES;
}

bool form_read(struct form *f, struct request *r)
{
        f->count = 0;
        f->too_many = false;
        f->arena = &r->arena;
        buf_init(&f->bytes, 0);
        struct MHD_PostProcessor *p =
            libmhd.create_post_processor(r->connection, FORM_BUFFER, take_piece, f);
        if (!p)
                return false;
        bool taken = r->body.n && libmhd.post_process(p, r->body.p, r->body.n) == MHD_YES;
        bool ended = libmhd.destroy_post_processor(p) == MHD_YES;
        size_t at = 0;
        for (size_t i = 0; i < f->count; i++) {
                f->parts[i].body.p = f->bytes.n ? f->bytes.p + at : "";
                at += f->parts[i].body.n;
        }
        return taken && ended && !f->too_many && !f->bytes.failed && !f->arena->failed;
}

void form_release(struct form *f)
{
        buf_release(&f->bytes);
}

const struct form_part *form_find(const struct form *f, const char *name)
{
        for (size_t i = 0; i < f->count; i++)
                if (str_is(f->parts[i].name, name))
                        return &f->parts[i];
        return NULL;
}
