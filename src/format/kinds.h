/*
 * kinds.h - the kinds of calls that Responses items know: one row each, in one table.
 *
 * For some calls the output is an item of its own (shell_call and shell_call_output). Calls that
 * the provider ran itself hold their output (mcp_call). In the hub both are a call and a result.
 * Used inside format/ only.
 */
#ifndef FORMAT_KINDS_H
#define FORMAT_KINDS_H

#include "format/format.h"
#include "format/reading.h"

struct kinds_row {
        enum call_kind kind;
        const char *call;      /* type of the item with the call */
        const char *answer;    /* type of the item with the output; NULL: the call holds its
                                  output */
        const char *name;      /* the tool's name; NULL: the item has it */
        const char *id;        /* member with the id that pairs call and output */
        const char *input;     /* member with the arguments */
        const char *output;    /* member with the output; NULL: there is none */
        enum json_type wanted; /* the type that the output must have; JSON_NOTHING: a text or
                                  blocks */
};

/* Returns the row for the type of an item; *answer: it is the type of the output's item. NULL: the
 * item is not a call. */
const struct kinds_row *kinds_find(const struct json *j, json_ref msg, bool *answer);
/* Returns the row of a kind; NULL: Responses does not have this kind. */
const struct kinds_row *kinds_of(enum call_kind kind);

/* Returns the member that holds the id of an item. Some clients write call_id where the API has
 * id. */
json_ref kinds_id(const struct json *j, json_ref msg, const struct kinds_row *k);
/* Returns the output that an item of the provider's own tool holds: its result or its error. */
json_ref kinds_output(const struct json *j, json_ref msg, const struct kinds_row *k, bool *failed);

/* Reads an item with a call or an output; `block` reads one block of an output that is a list. */
void kinds_read(struct reading *r, json_ref msg, const struct kinds_row *k, bool answer,
    void (*block)(struct reading *r, json_ref v));

/*
 * Can this call and its result be written with their own kind? Not if one of them was edited, or if
 * the output does not have the type that the API requires: then both become a function call and its
 * output.
 */
bool kinds_is_native(const struct part *p);
/* Returns the name of a kind for a report, such as "shell_call". */
const char *kinds_name(enum call_kind kind);

/* Writes the members of a call or a result with its own kind, the id first, into the open object.
 * The caller writes the extras of the message. */
void kinds_write(struct writer *w, const struct message *m, const struct part *p);

#endif
