/*
 * clean.h - makes a line of a tool's output safe for a stub.
 *
 * Escape sequences are removed. If carriage returns overwrote text, only the last state is kept.
 * Bytes that are not UTF-8 are written as \xNN. Control characters, and the separators that some
 * readers take for the end of a line (U+0085, U+2028, U+2029), are written as escapes. So one line
 * of input gives one line of output.
 *
 * A line that could be taken for part of the frame (`--- tail (`, `[INCOMPLETE`, `More:` ..., also
 * with blanks, other dashes or invisible characters before it) gets a backslash in front. Lines
 * that already have such a backslash get another, so that the frame stays recognisable whatever
 * the content, stubs of stubs included.
 */
#ifndef OUTPUT_CLEAN_H
#define OUTPUT_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* Appends the cleaned line, without frame guard; the raw line has no LF. If `line` was cut out of a
 * longer one, its ends must already be legal cuts. */
void clean_put(struct buf *out, struct str line);

/* Could this cleaned line be taken for one of the frame's? */
bool clean_looks_framed(struct str line);

/* A name from outside for the frame's own lines: as it is while it is plain
 * ([A-Za-z0-9_.:/@-], at most `max` bytes), else quoted as JSON, control characters escaped and
 * clamped. */
void clean_put_name(struct buf *out, struct str name, size_t max);

#endif
