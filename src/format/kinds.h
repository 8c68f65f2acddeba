/*
 * kinds.h - the kinds of calls that Responses items know: one row each, in one table.
 *
 * Some calls come back as an item of their own (shell_call and shell_call_output), others hold
 * what came of them (mcp_call): those the provider ran itself. In the hub both are a call and a
 * result. Used inside format/ only.
 */
#ifndef FORMAT_KINDS_H
#define FORMAT_KINDS_H

#include "format/format.h"
#include "format/reading.h"

struct kinds_row {
        enum call_kind kind;
        const char *call;      /* type of the item that calls */
        const char *answer;    /* type of the item that answers; NULL: the call holds its output */
        const char *name;      /* the tool's name; NULL: the item says it */
        const char *id;        /* member with the id that pairs call and output */
        const char *input;     /* member with the arguments */
        const char *output;    /* member with the output; NULL: there is none */
        enum json_type wanted; /* what the output has to be; JSON_NOTHING: a text or blocks */
};

/* The row of an item by its type; *answer: it is the item that answers. NULL: no call. */
const struct kinds_row *kinds_find(const struct json *j, json_ref msg, bool *answer);
/* The row of a kind; NULL: Responses does not have it. */
const struct kinds_row *kinds_of(enum call_kind kind);

/* The member that holds the id of an item; some clients write call_id where the API has id. */
json_ref kinds_id(const struct json *j, json_ref msg, const struct kinds_row *k);
/* The output that an item of the provider's own tool holds: its output or its error. */
json_ref kinds_output(const struct json *j, json_ref msg, const struct kinds_row *k, bool *failed);

/* Reads such an item; `block` reads one block of an output that is a list of them. */
void kinds_read(struct reading *r, json_ref msg, const struct kinds_row *k, bool answer,
    void (*block)(struct reading *r, json_ref v));

/*
 * May this call and its result be written as what they were? Not if one of them was edited, or if
 * the output is not what the API takes there: then both become a function call and its output.
 */
bool kinds_is_native(const struct part *p);
/* The kind's name for a report: "shell_call". */
const char *kinds_name(enum call_kind kind);

/* Writes the members of a call or a result of a kind of its own, the id first; the object is open.
 * The extras of the message are the caller's. */
void kinds_write(struct writer *w, const struct message *m, const struct part *p);

#endif
