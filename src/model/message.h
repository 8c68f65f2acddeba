/*
 * message.h - the hub: one message of any format as a role and ordered parts.
 *
 * A format's reader (format/format.h) makes it from JSON, its writer makes JSON of it; repair,
 * fold, edits and budgets work on it and know no format. Nothing is lost by accident:
 *
 *   - `raw` is the message as it came. A message that was not edited is written in its own format
 *     by copying `raw`.
 *   - What the hub has no field for stands in `extras`, of the message and of each part. The
 *     writer of the same format puts them back; every other writer reports each as a loss.
 *   - A part of a type that the hub does not know is PART_OPAQUE with its raw value.
 *
 * STRINGS. Every `struct str` called a *string* below is the inside of a JSON string token, its
 * escapes as they stood: copying one between formats costs nothing and loses nothing. Absent is
 * p == NULL; "" is present and empty. token.h decodes and makes them. *Raw* ones are whole JSON
 * values. All are borrowed: from the text that was read or from the arena of the reading.
 *
 * EDITS. Use the message_* calls at the end: they clear `raw`, so that writers rebuild the
 * message from its fields (members then come in the format's usual order, extras last).
 */
#ifndef MODEL_MESSAGE_H
#define MODEL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "model/members.h"

struct format; /* only its address matters here: which format a message came in */

enum role {
        ROLE_NONE, /* an item that nobody says (responses: any other type) */
        ROLE_SYSTEM,
        ROLE_DEVELOPER,
        ROLE_USER,
        ROLE_ASSISTANT,
        ROLE_TOOL, /* nothing but results */
};

enum part_kind {
        PART_TEXT,     /* text */
        PART_IMAGE,    /* media */
        PART_AUDIO,    /* media */
        PART_FILE,     /* media */
        PART_CALL,     /* id, name, arguments */
        PART_RESULT,   /* id, name, the output; assistant messages hold one where the call carries
                          its own result (chat, legacy, openai entries with a result) */
        PART_THINKING, /* text, signature */
        PART_REDACTED, /* text: the opaque data */
        PART_REFUSAL,  /* text */
        PART_OPAQUE,   /* raw */
};

/* A member without a field in the hub. */
struct extra {
        struct str key;   /* raw: the token with its quotes */
        struct str value; /* raw */
        bool inner;       /* of the part's inner object: function{}, source{}, meta{}, result{} */
        bool idle;        /* has no meaning: other formats leave it out without a report */
        struct extra *next;
};

/* What an image, sound or file is made of; strings. */
struct media {
        struct str mime;    /* "image/png" */
        struct str data;    /* base64 */
        struct str url;     /* where it is, when there is no data */
        struct str file_id; /* at the provider */
        struct str name;    /* file name */
        struct str detail;  /* openai's low | high | auto */
};

enum output_kind {
        OUTPUT_NONE,  /* no member for it */
        OUTPUT_TEXT,  /* output is a string */
        OUTPUT_DATA,  /* output is a raw JSON value */
        OUTPUT_PARTS, /* children: text, images, opaque blocks */
};

/* What a call is at the provider that made it. A writer that has no such kind writes a function
 * call of the same name, its arguments as JSON. */
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
        CALL_SERVER, /* a tool of another provider that ran it itself */
};

/* The members that every walk over a history reads come first, because a long history does not fit
 * into the caches of a processor. */
struct part {
        enum part_kind kind;
        enum call_kind call; /* of calls, and of results that are of a kind of their own */
        enum output_kind output_kind;
        enum call_ending ending; /* of a result */
        int stray;           /* of a result without a call: its enum pairing_verdict (repair.h) */
        bool given_id;       /* the message has no id here: it was given (message_give_ids) */
        bool by_name;        /* a call without one, of a format that goes by the name */
        bool with_call;      /* a result that stands in the entry of the call before it, and is
                                of that one whatever ids say */
        bool provider_run;   /* the provider ran the tool itself: nobody else has to run it */
        bool arguments_text; /* see arguments */
        bool error;          /* the result is a failure */
        bool foreign;        /* a text of a type that another format has for it */
        bool output_object;  /* output_raw must stay an object: a text is {"output": text} */
        struct str raw;      /* the value it was read from, or absent when it was made */
        struct str text;

        /* calls and results */
        struct str id;     /* the call's id; absent or empty: there is none */
        struct part *peer; /* set by pairing (repair.h, fold.h): of a result its call, of a call its
                              result */
        struct str name;   /* the tool's */
        struct extra *extras;
        struct part *children;
        size_t child_count;
        struct str arguments; /* a string when arguments_text, else a raw value */
        struct str output;
        struct str output_raw; /* raw: the value in the message that the output was read from, so
                                  that it can be replaced there; absent when there is none. In
                                  `legacy` it points into the record's decoded JSON instead. */
        struct str signature;  /* thinking and calls: the provider's proof, opaque */
        uint64_t seq;          /* of the message it came in, once it was paired or joined; else 0 */
        struct str server;     /* the MCP server that has the tool */
        struct str exit_code;  /* raw number: what a command ended with, where it is known */

        /* what Steno and chat pages know of a call; raw values, mostly absent */
        struct str duration, steps, invoked_at, ref;
        struct str run;    /* raw: of an open call, the id of the run that made it */
        const char *state; /* of an open call: what is known of it (repair_class_name), or NULL */
        /* how a page shows it: of a result returnDisplay, of a call the other two */
        struct str display, display_name, description;
        struct media media;
};

/* How the content stood, for the formats that know both ways. */
enum shape {
        SHAPE_ANY, /* a string where it is one text */
        SHAPE_ABSENT,
        SHAPE_NULL,
        SHAPE_STRING,
        SHAPE_ARRAY,
};

struct message {
        const struct format *origin; /* NULL: made here */
        uint64_t seq;                /* of its record, or its place in the history from 1 */
        uint64_t of; /* of a result: seq of the message with its call; 0: not known */
        enum role role;
        struct str native_role; /* string: the role as it stood */
        struct str raw;         /* the message as it stood; absent: touched or made */
        struct str id;          /* string; the message's own */
        struct str name;        /* string; the speaker's */
        struct str created_at;  /* string */
        struct str via;         /* text (via.h): the endpoint and model; absent: not known */
        enum shape shape;
        struct part *parts;
        size_t count;
        struct extra *extras;
        bool respelled; /* `raw` spells words with escapes; the fields do not (format/spelling.h) */
        bool own_fields; /* carries fields of Steno's that providers do not have */
        bool piece; /* `id` is that of a provider's response, which several entries may share */
        bool after_result; /* before this message was a result that is not in the history: calls
                              from here on belong to another block (pairing.h) */
        bool item;         /* one of several items of a turn (responses), not a turn of its own */
        /* A reasoning item and the item after it are kept or left out together, because the
         * endpoint that made them refuses one without the other. */
        bool reasoning; /* nothing but reasoning */
        bool apart;     /* what it came behind was deleted, replaced or left out */
        bool bereft;    /* and was the reasoning that belongs to it */
};

/* Messages in order. */
struct history {
        struct message *list;
        size_t count;
};

/* For a walk over a long history that is at message `i`: has the processor fetch what a message
 * further on begins with. */
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

/* Marks a message as touched; call it after changing fields by hand. */
static inline void message_touch(struct message *m)
{
        m->raw = (struct str){0};
}

/* Replaces the content of a result by a text (a string, see above). */
void message_set_output(struct message *m, struct part *result, struct str string);
/* Replaces the arguments of a call by a raw JSON value such as {}. */
void message_set_arguments(struct message *m, struct part *call, struct str raw);
/* Removes the parts for which `gone` is set (one flag each). The others move up, and the peers of
 * calls and results are adjusted. */
void message_drop_parts(struct message *m, const bool *gone);

/* Does it have a part of this kind? */
bool message_has(const struct message *m, enum part_kind kind);
size_t message_count(const struct message *m, enum part_kind kind);

/*
 * Ids that the store gave to what came without one: to the calls of a message, and to its results
 * the id of the call that each answers. Entry i is of the i-th call (result) of the message, as
 * decoded text; an empty entry, or one behind the end, gives nothing.
 */
struct message_ids {
        const struct str *calls;
        size_t call_count;
        const struct str *answers;
        size_t answer_count;
};

/*
 * Gives ids to the calls and results of `m` that have none; those that have one keep it. Call it
 * right after reading a stored message, before pairing: every view then uses the same ids. `raw`
 * stays, because the message itself did not change: a view in its own format still gives its bytes
 * back, and writers for providers put the id in (given_id). 0 or STENO_ENOMEM.
 */
int message_give_ids(struct message *m, const struct message_ids *ids, struct arena *arena);

/*
 * The id of a call that has none and was never given one, as in old records: it is made from the
 * seq of its record and its place among the record's calls. pairing.h accepts a result under it. A
 * string in the arena; absent: out of memory.
 */
struct str message_derived_id(uint64_t seq, size_t place, struct arena *arena);
/* Takes such an id (as text) apart. False: it is another. */
bool message_is_derived_id(struct str id, uint64_t *seq, uint32_t *place);

/* A made message with room for `count` parts, in the arena; NULL: out of memory. */
struct message *message_new(struct arena *arena, enum role role, size_t count);

#endif
