/*
 * standin.h - texts for content that a format cannot express, for readers who must see every
 * message: the API through which a message was stored has promised to show it again.
 *
 * A message without any part that the format can express (thinking alone, a part of a type that
 * only another format has, an empty text) becomes one text that says what it is. A result without a
 * call becomes a text in its place:
 *
 *      [Thinking] ...
 *      [Thinking that only its provider can read]
 *      [A part that this format does not have] {"executableCode":...}
 *      [A file that this format does not have] {"type":"image",...}
 *      [A result of the call "x", which is not there] ...
 *      [A second result of the call "x"] ...
 *      [An empty message]
 *
 * Each is reported as a loss. A message of which something can be carried stays as it is, and so
 * does an item of a turn (responses), which is not a message of its own.
 */
#ifndef FORMAT_STANDIN_H
#define FORMAT_STANDIN_H

#include "format/format.h"

/* For every message of `h` that `f`, with w->valid as it is, would write nothing of; and for
 * results without a call where `strays` is set. The list of `h` is changed, the parts of its
 * messages are copied. 0 or STENO_ENOMEM. */
int standin_history(const struct format *f, struct writer *w, struct history *h, bool strays);

/* Makes texts of all results of a message. */
int standin_results(struct writer *w, struct message *m);

#endif
