/*
 * clean.h - a line of a tool's output made fit to stand in a stub.
 *
 * Escape sequences go, of text that carriage returns overwrote only the last state stays, bytes
 * that are not UTF-8 are written as \xNN, and control characters and the separators that some
 * readers take for a line's end (U+0085, U+2028, U+2029) are written as escapes. So one line in is
 * one line out.
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

/* Appends the cleaned line, without frame guard; the raw line has no LF. Where `line` was cut out
 * of a longer one, its ends are legal cuts already. */
void clean_put(struct buf *out, struct str line);

/* Could this cleaned line be taken for one of the frame's? */
bool clean_looks_framed(struct str line);

/* A name from outside for the frame's own lines: as it is while it is plain
 * ([A-Za-z0-9_.:/@-], at most `max` bytes), else quoted as JSON, control characters escaped and
 * clamped. */
void clean_put_name(struct buf *out, struct str name, size_t max);

#endif
