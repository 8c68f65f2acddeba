/*
 * callview.h - a tool call and its result in words for a person.
 *
 * Everything comes from a model or from a tool, and is made safe for a terminal here.
 */
#ifndef CLI_CALLVIEW_H
#define CLI_CALLVIEW_H

#include "base/buf.h"
#include "base/str.h"

/* Writes what a call does: a command as it would be typed in a shell, otherwise its arguments as
 * they are. May have several lines. */
void callview_put(struct buf *b, const char *tool, struct str args);

/* A word as a shell would take it. */
void callview_put_word(struct buf *b, const char *word);

/* The same as callview_put in one row of at most `columns`, cut with an ellipsis. */
void callview_put_row(struct buf *b, const char *tool, struct str args, unsigned columns);

/* Writes all of it for a question about permission, in rows of a terminal of `columns` (0: 80).
 * Each row has a bar in front, wrapped rows a broken bar; runs of blank rows are counted. */
void callview_put_whole(struct buf *b, const char *tool, struct str args, unsigned columns);

/* A result's first rows, each with a bar in front; for a stub some rows of each section, for a
 * search its matches. `sgr` may be NULL. */
void callview_put_result(struct buf *b, struct str content, unsigned columns, const char *sgr);

#endif
