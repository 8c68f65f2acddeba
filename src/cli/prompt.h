/*
 * prompt.h - reads lines that a person or a script enters.
 *
 * On a capable terminal, lines are edited with libedit (UTF-8, history, the keys of ~/.editrc);
 * elsewhere they are read as they come. Nothing is read ahead, because a question about permission
 * reads from the same input.
 */
#ifndef CLI_PROMPT_H
#define CLI_PROMPT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

struct prompt;

/* `person`: standard input and error are a terminal. NULL: out of memory. */
struct prompt *prompt_new(bool person, bool colours);
void prompt_free(struct prompt *p);

/* A line for the history, as if it had been typed; lines with control characters are left out. */
void prompt_remember(struct prompt *p, const char *line);

enum prompt_got {
        PROMPT_LINE,
        PROMPT_END,
        PROMPT_INTERRUPTED, /* `stop_fd` is readable; what had been typed is gone */
        PROMPT_FAILED,      /* errno says why; EMSGSIZE for a line that is too long */
};

/* The next line, without its end; `line` was made with the most bytes it may have. */
enum prompt_got prompt_read(struct prompt *p, int stop_fd, struct buf *line);

/* Asks on the terminal, in its own line mode. What was typed before the question is thrown away:
 * it was not meant as the answer. An answer that is too long counts as an empty one. */
enum prompt_got prompt_ask(struct str question, int stop_fd, char answer[16]);

#endif
