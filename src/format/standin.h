/*
 * standin.h - texts that replace content which a format cannot express. They are for APIs that
 * promise to return every message that was stored through them.
 *
 * If the format can express no part of a message (only thinking, a part of a type that only another
 * format has, an empty text), the message becomes one text that describes the parts. A result
 * without a call becomes a text in its place:
 *
 *      [Thinking] ...
 *      [Thinking that only its provider can read]
 *      [A part that this format does not have] {"executableCode":...}
 *      [A file that this format does not have] {"type":"image",...}
 *      [A result of the call "x", which is not there] ...
 *      [A second result of the call "x"] ...
 *      [An empty message]
 *
 * Each is reported as a loss. A message that the format can express in part is not changed, and
 * neither is an item of a turn (responses), because it is not a message of its own.
 */
#ifndef FORMAT_STANDIN_H
#define FORMAT_STANDIN_H

#include "format/format.h"

/* Replaces every message of `h` for which `f` (with w->valid) would write nothing and, if `strays`
 * is set, every result without a call. The list of `h` is changed, but the parts of its messages
 * are copied. 0 or STENO_ENOMEM. */
int standin_history(const struct format *f, struct writer *w, struct history *h, bool strays);

/* Makes texts of all results of a message. */
int standin_results(struct writer *w, struct message *m);

#endif
