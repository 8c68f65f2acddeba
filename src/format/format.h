/*
 * format.h - the table of message formats. To add a format, add a file and a line in format.c.
 *
 * A format has a describer (for appends), a reader (JSON to the hub, model/message.h) and a writer
 * (the hub to JSON). To convert a history, call
 *
 *      format_read_history()    JSON array -> struct history
 *      repair_history()         model/repair.h: pairs, moves, fills, leaves out (optional)
 *      format_write_history()   struct history -> JSON array, with losses reported
 *
 * Rules that every pair of reader and writer keeps:
 *
 *   1. A message that was not edited comes back unchanged in its own format, token by token.
 *   2. Rebuilt in its own format (`rebuild`, or after an edit) it has the same members with the
 *      same values; only their order may differ.
 *   3. Written in another format, everything that the other format cannot express is reported with
 *      its name in the source. The members of these pairs count as equal and are not reported: a
 *      string content and an array of one text; no content, null and "" beside calls; results of
 *      one turn in one message or in several; the tool's name on a result, which is that of its
 *      call; an openai entry that holds its result and a call with a tool message.
 *   4. With `valid`, the provider accepts the output if every call has its result (repair makes
 *      sure of that): roles alternate and results are placed as required, and nothing is empty that
 *      must not be. The changes that this needs are reported as well.
 *
 * Formats know neither each other nor stores, nor how a history was chosen.
 */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "model/about.h"
#include "model/message.h"
#include "model/repair.h"

/* Reports a loss; called for each member and message that was lost. `field` is its name in the
 * source, with dots if it is inside of another member ("tool_calls.extra_content"). */
typedef void (*format_loss_fn)(void *ctx, uint64_t seq, struct str field, const char *why);

struct writer {
        struct buf *out;        /* the JSON is written to it */
        struct arena *arena;    /* memory for values that are made while writing */
        bool valid;             /* write what the provider accepts; otherwise what is closest to the
                                   source */
        bool rebuild;           /* never copy `raw`: for tests of rule 2 */
        bool strip_own;         /* openai: leave out Steno's own members */
        bool strict;            /* with `valid`: only members of the provider's table (rules.h) */
        struct str via;         /* the endpoint that will read the output (model/via.h); absent: not
                                   known */
        format_loss_fn on_loss; /* may be NULL */
        void *loss_ctx;
        void (*on_repair)(void *ctx, const struct repair_note *note); /* may be NULL */
        void *repair_ctx;
        /* the writer itself uses the rest */
        const struct format *format;
        struct jsonw json;
        struct steno_error *err;
        struct names *names; /* the names under which tools are written (names.h); NULL: their
                                own names */
        struct writer_seen { /* hashes of ids in an open hash table; 0 is a free slot */
                uint64_t *list;
                size_t count, cap;
        } seen, item_ids; /* of calls, and of items if the format has items */
};

/* Properties of a format. The history is arranged by them before the format's writer sees it. */
enum format_flags {
        FORMAT_PROVIDER = 1,         /* a model reads it, so an open call needs a synthetic
                                        result */
        FORMAT_ITEMS = 2,            /* a turn is several items, and calls are messages of their
                                        own */
        FORMAT_EMBEDS = 4,           /* results are in the message of their call */
        FORMAT_UNIQUE_IDS = 8,       /* call ids must be unique in a request and consist of
                                        [A-Za-z0-9_-] */
        FORMAT_NAMELESS = 16,        /* calls need no id: results are matched by name and order */
        FORMAT_USER_MEDIA = 32,      /* images and files are allowed only in user messages */
        FORMAT_TEXT_RESULTS = 64,    /* results cannot hold images */
        FORMAT_TEXT_ARGUMENTS = 256, /* arguments are usually a string, in other formats an
                                        object */
        FORMAT_OBJECT_RESULTS = 512, /* results are usually objects */
        FORMAT_REF_MEMBER = 1024,    /* a tool message has the ref of its output as a member */
        FORMAT_MEMBERS = 2048,       /* its describer reads Steno's own members
                                        (model/members.h) */
        FORMAT_ANSWERED = 8192,      /* a model reads it, through a library that checks it first,
                                        so an open call needs a synthetic result */
        FORMAT_MESSAGE_IDS = 4096,   /* every message has an id: the id of its record */
        FORMAT_CARRIER = 128,        /* keeps signatures of thinking from all endpoints */
};

/* The version of the rule behind `ready`. It grows when the rule becomes stricter, so that an
 * earlier "yes" in a record no longer counts. */
#define FORMAT_READY_RULE 3

/* A set of kinds of calls. */
#define FORMAT_KIND(kind) (1u << (kind))

struct format {
        const char *name;
        uint32_t flags;
        uint32_t kinds; /* kinds of calls that the format has beside function calls; other kinds
                           become function calls */
        /*
         * Checks one message of this format (a JSON object at `msg`) and describes it: role, calls,
         * answers, own id, marks. 0, or STENO_EPROTO with the reason ("role \"robot\" is not one of
         * ...", "no role"). Strings live in `arena`.
         */
        int (*describe)(const struct json *j, json_ref msg, struct arena *arena, struct about *out,
            struct steno_error *err);
        /*
         * Reads one message that `describe` accepts into a hub message. `m` is cleared, with
         * origin, raw and seq set. Strings point into j's text or the arena. 0 or STENO_ENOMEM. An
         * unknown shape inside a message is no error: it becomes PART_OPAQUE or an extra.
         */
        int (*read)(const struct json *j, json_ref msg, struct arena *arena, struct message *m);
        /* Does both, if that saves work. Returns the same errors as `describe`. NULL: call one
         * after the other. */
        int (*check_and_read)(const struct json *j, json_ref msg, struct arena *arena,
            struct message *m, struct steno_error *err);
        /* Writes all messages, separated by commas, without the array's brackets. */
        int (*write)(struct writer *w, const struct history *h);
        /*
         * May a message of this format be copied unchanged from a log into a view of this format?
         * It is valid JSON on one line. A "yes" is kept in the record (about.plain) together with
         * FORMAT_READY_RULE. NULL: never.
         */
        bool (*ready)(struct str m);
        /* Has a message of this format in a log only reasoning, which is kept or left out together
         * with the message behind it (message.h)? NULL: never. */
        bool (*reasons)(struct str m);
        /* Does the format write this part at all? NULL: it writes texts, calls and results, media
         * with data or an address, and all parts of its own messages. */
        bool (*carries)(const struct writer *w, const struct message *m, const struct part *p);
        /* Returns how certain it is that a message is of this format: from 0 (no) to 100
         * (certain). */
        int (*detect)(const struct json *j, json_ref msg);
};

/* Returns NULL if there is no such format. */
const struct format *format_find(const char *name);
/* The same for a name that is not NUL-terminated. */
const struct format *format_named(struct str name);
/* The i-th format; NULL behind the last one. */
const struct format *format_at(size_t i);

/* Returns the format that most messages of a JSON array look like. It is openai if nothing
 * contradicts that, and NULL if no format knows the messages. `list` may be a single message. */
const struct format *format_detect(const struct json *j, json_ref list);

/*
 * Returns the format of a history whose format was not named. A format accepts a history if its
 * reader understands every message, every part and every member that holds content or calls. A
 * format is chosen if it is the only one that accepts the history, or if all that accept it read
 * the same messages; then openai is preferred. NULL: `candidates` has the names of the candidates,
 * separated by ", " (empty: none). Messages without content and calls do not count.
 */
const struct format *format_choose(
    const struct json *j, json_ref list, struct arena *arena, char *candidates, size_t size);
/* Writes the names of all formats, separated by ", ". */
void format_names(char *names, size_t size);
/* Returns STENO_EINVAL: there is no format of this name. The error lists the formats. */
int format_unknown(const char *name, struct steno_error *err);

/*
 * Reads a JSON array of messages, or a single message. seqs are 1, 2, 3 ... Everything lives in the
 * arena and in j's text. STENO_EPROTO names the invalid message.
 */
int format_read_history(const struct format *f, const struct json *j, json_ref list,
    struct arena *arena, struct history *out, struct steno_error *err);

/* The memory that is needed to hold messages at the same time, estimated from their parts
 * (limits.h). */
struct format_charge {
        size_t parts;
        size_t bytes;
};
/* Adds a message before it is read; STENO_ELIMIT if there are too many. */
int format_charge(struct format_charge *c, const struct json *j, json_ref msg);
/* Checks that a message does not have too many parts and values (limits.h). 0 or STENO_ELIMIT. */
int format_measure(const struct json *j, json_ref msg, struct steno_error *err);

/* Checks one message and describes it, whatever escapes its words have. It uses the format's own
 * `describe`, and Steno's members beside the message, which tell about the run that wrote it. */
int format_describe(const struct format *f, const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err);

/* Checks and reads one message. */
int format_read_message(const struct format *f, const struct json *j, json_ref msg, uint64_t seq,
    struct arena *arena, struct message *out, struct steno_error *err);

/* Writes "[...]" to w->out. Peers must be set (model/repair.h): results without a name or an id get
 * these from their call. 0, STENO_ENOMEM or STENO_ELIMIT (w->out's cap). */
int format_write_history(
    const struct format *f, struct writer *w, const struct history *h, struct steno_error *err);

extern const struct format format_openai;
extern const struct format format_responses;
extern const struct format format_anthropic;
extern const struct format format_gemini;
extern const struct format format_acontext;
extern const struct format format_toolmessage2;
extern const struct format format_toolmessage;
extern const struct format format_chat;
extern const struct format format_legacy;
extern const struct format format_uimessage;
extern const struct format format_modelmessage;
extern const struct format format_langchain;

#endif
