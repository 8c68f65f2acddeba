/*
 * message.h - the hub: a message of any format, represented as a role and ordered parts.
 *
 * A format's reader (format/format.h) makes it from JSON, and its writer makes JSON from it.
 * Repair, fold, edits and budgets work on it and know no format. Nothing is lost by accident:
 *
 *   - `raw` holds the original bytes of the message. A message that was not edited is written in
 *     its own format by copying `raw`.
 *   - Members that have no field in the hub are kept in `extras`, of the message and of each part.
 *     The writer of the same format puts them back; every other writer reports each as a loss.
 *   - A part of a type that the hub does not know is PART_OPAQUE with its raw value.
 *
 * STRINGS. Every `struct str` called a *string* below is the inside of a JSON string token with its
 * escapes unchanged: copying such a string between formats costs nothing and loses nothing. An
 * absent string has p == NULL; "" is present and empty. token.h decodes and makes strings. A *raw*
 * value is a whole JSON value. All of them are borrowed, from the text that was read or from the
 * arena of the reading.
 *
 * EDITS. Use the message_* calls at the end: they clear `raw`, so that writers rebuild the message
 * from its fields. The members then come in the format's usual order, extras last.
 */
#ifndef MODEL_MESSAGE_H
#define MODEL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "model/members.h"

struct format; /* only its address is used here: it says which format a message came in */

enum role {
        ROLE_NONE, /* an item that has no speaker (responses: any other type) */
        ROLE_SYSTEM,
        ROLE_DEVELOPER,
        ROLE_USER,
        ROLE_ASSISTANT,
        ROLE_TOOL, /* has nothing but results */
};

enum part_kind {
        PART_TEXT,     /* text */
        PART_IMAGE,    /* media */
        PART_AUDIO,    /* media */
        PART_FILE,     /* media */
        PART_CALL,     /* id, name, arguments */
        PART_RESULT,   /* id, name, the output. An assistant message holds a result if its call
                          carries the result (chat, legacy, openai entries with a result). */
        PART_THINKING, /* text, signature */
        PART_REDACTED, /* text: the opaque data */
        PART_REFUSAL,  /* text */
        PART_OPAQUE,   /* raw */
};

/* A member that has no field in the hub. */
struct extra {
        struct str key;   /* raw: the token of the key with its quotes */
        struct str value; /* raw */
        bool inner;       /* it is in the part's inner object: function{}, source{}, meta{},
                             result{} */
        bool idle;        /* it has no meaning, so other formats leave it out without a report */
        struct extra *next;
};

/* The content of an image, a sound or a file; all are strings. */
struct media {
        struct str mime;    /* "image/png" */
        struct str data;    /* base64 */
        struct str url;     /* URL of the content, if there is no data */
        struct str file_id; /* id of the file at the provider */
        struct str name;    /* file name */
        struct str detail;  /* openai's low | high | auto */
};

enum output_kind {
        OUTPUT_NONE,  /* the result has no member for its output */
        OUTPUT_TEXT,  /* output is a string */
        OUTPUT_DATA,  /* output is a raw JSON value */
        OUTPUT_PARTS, /* children: text, images, opaque blocks */
};

/* The kind that a call has at its provider. A writer that does not know the kind writes a function
 * call of the same name with its arguments as JSON. */
enum call_kind {
        CALL_FUNCTION,
        CALL_CUSTOM, /* arguments are free text, not JSON */
        CALL_MCP,
        CALL_SHELL,
        CALL_LOCAL_SHELL,
        CALL_COMPUTER,
        CALL_APPLY_PATCH,
        CALL_WEB_SEARCH,
        CALL_CODE_INTERPRETER,
        CALL_FILE_SEARCH,
        CALL_IMAGE_GENERATION,
        CALL_LEGACY, /* openai's function_call with role "function": it has no id */
        CALL_SERVER, /* a tool that another provider ran itself */
};

/* The members that every walk over a history reads come first, because a long history does not fit
 * into the processor's caches. */
struct part {
        enum part_kind kind;
        enum call_kind call; /* for calls, and for results that have a kind of their own */
        enum output_kind output_kind;
        enum call_ending ending; /* for a result */
        int stray;               /* for a result without a call: its enum pairing_verdict
                                    (repair.h) */
        bool given_id;           /* the id is not in the message; message_give_ids set it */
        bool by_name;            /* a call without an id, in a format that pairs by name */
        bool with_call;          /* the result is in the entry of the call before it and belongs to
                                    that call, whatever the ids say */
        bool provider_run;   /* the provider ran the tool itself, so nobody else has to run it */
        bool arguments_text; /* see arguments */
        bool error;          /* the result is a failure */
        bool foreign;        /* the text comes from a type that only another format has */
        bool output_object;  /* output_raw must stay an object: a text is written as {"output":
                                text} */
        struct str raw;      /* the value that the part was read from; absent if the part was
                                made */
        struct str text;

        /* calls and results */
        struct str id;     /* the call's id; absent or empty: there is none */
        struct part *peer; /* set by pairing (repair.h, fold.h): the call of a result, or the
                              result of a call */
        struct str name;   /* the tool's name */
        struct extra *extras;
        struct part *children;
        size_t child_count;
        struct str arguments; /* a string if arguments_text is set, else a raw value */
        struct str output;
        struct str output_raw; /* raw: the value in the message that the output was read from, so
                                  that it can be replaced there; absent if there is none. In
                                  `legacy` it points into the record's decoded JSON instead. */
        struct str signature;  /* thinking and calls: the provider's opaque signature */
        uint64_t seq;          /* seq of the message that the part came in, set when it was
                                  paired or joined; else 0 */
        struct str server;     /* the MCP server that has the tool */
        struct str exit_code;  /* raw number: the exit code of a command, if it is known */

        /* what Steno and chat pages know about a call; raw values, mostly absent */
        struct str duration, steps, invoked_at, ref;
        struct str run;    /* raw: for an open call, the id of the run that made it */
        const char *state; /* for an open call: its repair_class_name, or NULL */
        /* how a page shows it: returnDisplay of a result; the other two of a call */
        struct str display, display_name, description;
        struct media media;
};

/* The shape of the content, for formats that allow a string and an array. */
enum shape {
        SHAPE_ANY, /* a string if the content is one text */
        SHAPE_ABSENT,
        SHAPE_NULL,
        SHAPE_STRING,
        SHAPE_ARRAY,
};

struct message {
        const struct format *origin; /* NULL: the message was made here */
        uint64_t seq;                /* seq of the message's record, or its place in the history
                                        from 1 */
        uint64_t of; /* for a result: seq of the message with its call; 0: not known */
        enum role role;
        struct str native_role; /* string: the role as it was written */
        struct str raw;         /* the original bytes; absent: the message was edited or made */
        struct str id;          /* string; the message's own id */
        struct str name;        /* string; the speaker's name */
        struct str created_at;  /* string */
        struct str via;         /* text (via.h): the endpoint and model; absent: not known */
        enum shape shape;
        struct part *parts;
        size_t count;
        struct extra *extras;
        bool respelled;    /* `raw` writes some words with escapes; the fields do not
                              (format/spelling.h) */
        bool own_fields;   /* has members of Steno's that providers do not know */
        bool piece;        /* `id` is the id of a provider's response, which several entries may
                              share */
        bool after_result; /* a result before this message is not in the history: calls from here
                              on belong to another block (pairing.h) */
        bool item;         /* one of several items of a turn (responses), not a whole turn */
        /* A reasoning item and the item after it are kept or left out together, because the
         * endpoint that made them refuses one without the other. */
        bool reasoning; /* the message has nothing but reasoning */
        bool apart;     /* the item before it was deleted, replaced or left out */
        bool bereft;    /* and that item was the reasoning that belongs to it */
};

/* Messages in order. */
struct history {
        struct message *list;
        size_t count;
};

/* Lets the processor fetch the beginning of a message some places behind `i`, for a walk over a
 * long history that is now at message `i`. */
static inline void message_ahead(const struct history *h, size_t i)
{
        enum { AHEAD = 6 };
        if (i + AHEAD < h->count && h->list[i + AHEAD].parts) {
                __builtin_prefetch(h->list[i + AHEAD].parts);
                __builtin_prefetch((const char *)h->list[i + AHEAD].parts + 64);
        }
}

/* Must message `i` and the next one be kept or left out together? */
bool message_is_tied(const struct history *h, size_t i);

/* ---- edits ---- */

/* Marks a message as edited. Call it after changing fields directly. */
static inline void message_touch(struct message *m)
{
        m->raw = (struct str){0};
}

/* Replaces the content of a result by a text. It is a string (see above). */
void message_set_output(struct message *m, struct part *result, struct str string);
/* Replaces the arguments of a call by a raw JSON value such as {}. */
void message_set_arguments(struct message *m, struct part *call, struct str raw);
/* Removes the parts for which `gone` is set (one flag each). The others move up, and the peers of
 * calls and results are adjusted. */
void message_drop_parts(struct message *m, const bool *gone);

/* Does the message have a part of this kind? */
bool message_has(const struct message *m, enum part_kind kind);
size_t message_count(const struct message *m, enum part_kind kind);

/*
 * Ids that the store gave to calls and results without one. A result gets the id of the call that
 * it answers. Entry i is for the i-th call (result) of the message, as decoded text. An empty or
 * missing entry gives no id.
 */
struct message_ids {
        const struct str *calls;
        size_t call_count;
        const struct str *answers;
        size_t answer_count;
};

/*
 * Gives ids to the calls and results of `m` that have none. Call it right after reading a stored
 * message, before pairing: every view then uses the same ids. `raw` stays, because the message
 * itself did not change: a view in its own format still returns its bytes, and writers for
 * providers add the id (given_id). 0 or STENO_ENOMEM.
 */
int message_give_ids(struct message *m, const struct message_ids *ids, struct arena *arena);

/*
 * Returns the id of a call that has none and was never given one, as in old records: it is made
 * from the seq of its record and its place among the record's calls. pairing.h accepts a result
 * with this id. The id is a string in the arena; absent: out of memory.
 */
struct str message_derived_id(uint64_t seq, size_t place, struct arena *arena);
/* Splits a derived id (given as text) into its seq and place. False: it is not a derived id. */
bool message_is_derived_id(struct str id, uint64_t *seq, uint32_t *place);

/* Returns a new message with room for `count` parts, in the arena; NULL: out of memory. */
struct message *message_new(struct arena *arena, enum role role, size_t count);

#endif
