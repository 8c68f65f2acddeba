/*
 * clean.h - makes a line of a tool's output safe for a stub.
 *
 * Escape sequences are removed. If carriage returns overwrote text, only the last state is kept.
 * Bytes that are not UTF-8 are written as \xNN. Control characters are written as escapes, and so
 * are the separators that some readers treat as the end of a line (U+0085, U+2028, U+2029). So one
 * line of input gives one line of output.
 *
 * A line that looks like a part of the frame (`--- tail (`, `[INCOMPLETE`, `More:` ..., also with
 * blanks, other dashes or invisible characters before it) gets a backslash in front. A line that
 * already has such a backslash gets another one. So the frame is recognisable whatever the content
 * is, also in stubs of stubs.
 */
#ifndef OUTPUT_CLEAN_H
#define OUTPUT_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends the cleaned line, without the frame guard; the raw line has no LF. If `line` was cut out
 * of a longer line, it must begin and end at legal cuts. */
void clean_put(struct buf *out, struct str line);

/* Does this cleaned line look like one of the frame's lines? */
bool clean_looks_framed(struct str line);

/* Writes a name from outside for the frame's own lines. A plain name ([A-Za-z0-9_.:/@-], at most
 * `max` bytes) is not changed. Any other name is quoted as JSON, with control characters escaped,
 * and clamped. */
void clean_put_name(struct buf *out, struct str name, size_t max);

#endif
