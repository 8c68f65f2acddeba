/*
 * api_record_as.h - one message in another format, as it stands: nothing is repaired, nothing is
 * left out.
 */
#ifndef API_API_RECORD_AS_H
#define API_API_RECORD_AS_H

#include "base/json.h"
#include "format/format.h"
#include "steno.h"

/* The message with stubs for its large outputs, whoever stored it. */
int api_record_stubs(const struct steno_record *r, char **json, size_t *n, struct steno_error *err);

/* The message at node 0 of `j` as an array of one or more of the other format. */
int api_record_convert(const struct format *from, const struct format *to, const struct json *j,
    struct buf *out, struct steno_error *err);

#endif
