/*
 * api_record_as.c - one record in another format, as it stands: nothing is repaired, nothing is
 * left out. For APIs that give back single items.
 */
#include "api/api_record_as.h"

#include <stdlib.h>

#include "base/error.h"
#include "format/format.h"
#include "model/repair.h"

int api_record_convert(const struct format *from, const struct format *to, const struct json *j,
    struct buf *out, struct steno_error *err)
{
        struct arena arena;
        struct history h;
        arena_init(&arena);
        int rc = format_read_history(from, j, 0, &arena, &h, err);
        if (rc == 0 && repair_link(&h, &arena))
                rc = error_nomem(err);
        if (rc == 0) {
                struct writer w = {.out = out, .arena = &arena, .strip_own = from != to};
                rc = format_write_history(to, &w, &h, err);
        }
        arena_release(&arena);
        return rc;
}

static int record_as(const struct steno_record *r, const char *format, bool whole, char **json,
    size_t *n, struct steno_error *err)
{
        const struct format *from = format_find(steno_record_format(r));
        const struct format *to = format_find(format);
        struct json j;
        struct buf out;
        char *message = NULL;
        size_t size = 0;
        if (!to)
                return format_unknown(format, err);
        if (!from)
                return error_set(err, STENO_ECORRUPT, "the record is of no format that is known");
        json_init(&j);
        buf_init(&out, 0);
        int rc = whole ? steno_record_original(r, &message, &size, err)
                       : api_record_stubs(r, &message, &size, err);
        if (rc == 0)
                rc = json_parse(&j, message, size, NULL, err);
        if (rc == 0)
                rc = api_record_convert(from, to, &j, &out, err);
        if (rc == 0)
                rc = buf_check(&out, err);
        if (rc == 0) {
                char *text = buf_take(&out, n);
                if (text)
                        *json = text;
                else
                        rc = error_nomem(err);
        }
        json_release(&j);
        buf_release(&out);
        steno_free(message);
        return rc;
}

int steno_record_as(const struct steno_record *r, const char *format, char **json, size_t *n,
    struct steno_error *err)
{
        return record_as(r, format, false, json, n, err);
}

int steno_record_whole(const struct steno_record *r, const char *format, char **json, size_t *n,
    struct steno_error *err)
{
        return record_as(r, format, true, json, n, err);
}
