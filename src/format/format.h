/*
 * format.h - the table of message formats. Adding one is adding a file and a line in format.c.
 *
 * A format has a describer (what an append needs), a reader (JSON to the hub, model/message.h)
 * and a writer (the hub to JSON). Converting a history is
 *
 *      format_read_history()    JSON array -> struct history
 *      repair_history()         model/repair.h: pairs, moves, fills, leaves out (optional)
 *      format_write_history()   struct history -> JSON array, with losses reported
 *
 * Rules that every pair of reader and writer keeps:
 *
 *   1. A message that was not touched comes back in its own format as it stood, token by token.
 *   2. Rebuilt in its own format (`rebuild`, or after an edit) it has the same members with the
 *      same values; only their order may differ.
 *   3. Written in another format, everything that the other format cannot express is reported, with
 *      the source's name for it. These are the same thing and not reported: a string content and an
 *      array of one text; no content, null and "" beside calls; results of one turn in one message
 *      or in several; the tool's name on a result, which is that of its call; an openai entry that
 *      holds its result, and a call with a tool message.
 *   4. With `valid`, the output is acceptable to the provider if pairs are whole (repair sees to
 *      that): roles alternate where they must, results stand where they must, nothing is empty
 *      that may not be. What had to change for it is reported as well.
 *
 * Formats do not know each other, nor stores, nor how a history was chosen.
 */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "model/about.h"
#include "model/message.h"
#include "model/repair.h"

/* Reports a loss; called for each member and message that was lost. `field` is the source's name
 * for it, dotted where it stands inside ("tool_calls.extra_content"). */
typedef void (*format_loss_fn)(void *ctx, uint64_t seq, struct str field, const char *why);

struct writer {
        struct buf *out;     /* JSON goes here */
        struct arena *arena; /* for what has to be made on the way */
        bool valid;          /* what the provider accepts; else as near as can be */
        bool rebuild;        /* never copy `raw`: for tests of rule 2 */
        bool strip_own;      /* openai: leave Steno's own fields out */
        bool strict;         /* with `valid`: only members of the provider's table (rules.h) */
        struct str via;      /* the endpoint that will read it (model/via.h); absent: not known */
        format_loss_fn on_loss; /* may be NULL */
        void *loss_ctx;
        void (*on_repair)(void *ctx, const struct repair_note *note); /* may be NULL */
        void *repair_ctx;
        /* the rest is the writer's own */
        const struct format *format;
        struct jsonw json;
        struct steno_error *err;
        struct names *names; /* of tools, as they are written (names.h); NULL: as they are */
        struct writer_seen { /* hashes of ids: an open table, 0 is free */
                uint64_t *list;
                size_t count, cap;
        } seen, item_ids; /* of calls, and of items where the format has them */
};

/* What sets a format apart; the history is arranged for it before its writer sees it. */
enum format_flags {
        FORMAT_PROVIDER = 1,      /* a model reads it: an open call needs a synthetic result */
        FORMAT_ITEMS = 2,         /* a turn is several items: calls are messages of their own */
        FORMAT_EMBEDS = 4,        /* results stand in the message of their call */
        FORMAT_UNIQUE_IDS = 8,    /* call ids are unique in a request, of [A-Za-z0-9_-] */
        FORMAT_NAMELESS = 16,     /* calls need no id: names and their order tell results apart */
        FORMAT_USER_MEDIA = 32,   /* images and files only where the user speaks */
        FORMAT_TEXT_RESULTS = 64, /* results hold no images */
        FORMAT_TEXT_ARGUMENTS = 256, /* arguments are a string by nature, else an object */
        FORMAT_OBJECT_RESULTS = 512, /* results are objects by nature */
        FORMAT_REF_MEMBER = 1024,    /* a tool message has the ref of its output as a member */
        FORMAT_MEMBERS = 2048,       /* its describer reads Steno's own members (model/members.h) */
        FORMAT_ANSWERED = 8192,      /* a model reads it, through a library that checks it first: an
                                        open call needs a synthetic result */
        FORMAT_MESSAGE_IDS = 4096,   /* every message has an id: that of its record */
        FORMAT_CARRIER = 128,        /* keeps the signatures of thinking for whoever made them */
};

/* The number of the rule behind `ready`. It grows when the rule becomes stricter, so that an
 * earlier yes no longer counts. */
#define FORMAT_READY_RULE 3

/* A set of kinds of calls. */
#define FORMAT_KIND(kind) (1u << (kind))

struct format {
        const char *name;
        uint32_t flags;
        uint32_t
            kinds; /* of calls that it has beside function calls; what it has not becomes one */
        /*
         * Checks one message of this format (a JSON object at `msg`) and says what it is: role,
         * calls, answers, own id, marks. 0, or STENO_EPROTO with what is wrong with it ("role
         * \"robot\" is not one of ...", "no role"). Strings live in `arena`.
         */
        int (*describe)(const struct json *j, json_ref msg, struct arena *arena, struct about *out,
            struct steno_error *err);
        /*
         * One message that `describe` accepts, as a hub message. `m` is cleared, with origin, raw
         * and seq set. Strings point into j's text or the arena. 0 or STENO_ENOMEM: what is odd
         * inside a message becomes PART_OPAQUE or an extra, never an error.
         */
        int (*read)(const struct json *j, json_ref msg, struct arena *arena, struct message *m);
        /* Both at once, where that saves work: says the same as `describe` of a message that is
         * wrong. NULL: one after the other. */
        int (*check_and_read)(const struct json *j, json_ref msg, struct arena *arena,
            struct message *m, struct steno_error *err);
        /* Writes all of it, separated by commas, without the array's brackets. */
        int (*write)(struct writer *w, const struct history *h);
        /*
         * May a message of this format, as it stands in a log, go into a view of this format as it
         * is? It is valid JSON on one line. A yes is kept in the record (about.plain) together with
         * FORMAT_READY_RULE. NULL: never.
         */
        bool (*ready)(struct str m);
        /* Is a message of this format, as it stands in a log, nothing but reasoning, which stays or
         * goes with the message behind it (message.h)? NULL: never. */
        bool (*reasons)(struct str m);
        /* Does it write this part at all? NULL: texts, calls and results, media with data or an
         * address, and of its own messages everything. */
        bool (*carries)(const struct writer *w, const struct message *m, const struct part *p);
        /* How certain it is that a message is of this format: from 0 (no) to 100 (certain). */
        int (*detect)(const struct json *j, json_ref msg);
};

/* NULL: no such format. */
const struct format *format_find(const char *name);
/* The same by a name that is not NUL-terminated. */
const struct format *format_named(struct str name);
/* The i-th format, NULL behind the last. */
const struct format *format_at(size_t i);

/* The format that most of a JSON array's messages look like; openai when nothing speaks against
 * it; NULL when no format knows them. `list` may be a single message. */
const struct format *format_detect(const struct json *j, json_ref list);

/*
 * The format of a history that nobody named. A format accepts it when its reader understands every
 * message, every part and every member that holds content or calls. It is taken when it is the
 * only one, or when all that accept it read the same history; then it is openai, if that is one of
 * them. NULL: the candidates, with ", " between them, are in `candidates` (empty: none). Messages
 * without content and calls decide nothing.
 */
const struct format *format_choose(
    const struct json *j, json_ref list, struct arena *arena, char *candidates, size_t size);
/* The names of all formats, with ", " between them. */
void format_names(char *names, size_t size);
/* STENO_EINVAL: there is no format of this name; the error lists the formats. */
int format_unknown(const char *name, struct steno_error *err);

/*
 * Reads a JSON array of messages, or a single one. seqs are 1, 2, 3 ... Everything lives in the
 * arena and in j's text. STENO_EPROTO names the message that is wrong.
 */
int format_read_history(const struct format *f, const struct json *j, json_ref list,
    struct arena *arena, struct history *out, struct steno_error *err);

/* The memory that messages held at the same time need, estimated from their parts (limits.h). */
struct format_charge {
        size_t parts;
        size_t bytes;
};
/* Adds a message before it is read; STENO_ELIMIT when they are too many. */
int format_charge(struct format_charge *c, const struct json *j, json_ref msg);
/* Checks that a message has no more parts and values than it may have (limits.h). 0 or
 * STENO_ELIMIT. */
int format_measure(const struct json *j, json_ref msg, struct steno_error *err);

/* Checks one message and says what it is, whatever escapes its words are spelled with: the format's
 * own `describe`, and what Steno's members beside it say of the run that wrote it. */
int format_describe(const struct format *f, const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err);

/* One message, checked and read. */
int format_read_message(const struct format *f, const struct json *j, json_ref msg, uint64_t seq,
    struct arena *arena, struct message *out, struct steno_error *err);

/* Writes "[...]" to w->out. Peers must be set (model/repair.h): results
 * without a name or an id take them from their call. 0,
 * STENO_ENOMEM or STENO_ELIMIT (w->out's cap). */
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
