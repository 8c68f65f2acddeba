/*
 * steno.h - the verbatim record of conversations with tools.
 *
 * This header is the manual, together with those that it includes at its end: steno_bundle.h,
 * steno_import.h, steno_search.h and steno_seal.h. It needs nothing but the C library's types, it
 * is usable from C++, and every call can be reached with dlopen: no macro is needed, and no struct
 * that may grow is laid open except option structs, which begin with their own size.
 *
 *
 * VOCABULARY
 *
 *   store         a folder of plain files (or a database), opened with steno_open().
 *   project       the unit of isolation inside a store. The default is "default".
 *   conversation  an append-only log of records, numbered 1, 2, 3 ... without a gap: their seq.
 *   record        a message exactly as it came, or an amendment (delete, meta, supersede).
 *   batch         the messages of one append: all of them are stored, or none.
 *   receipt       what an append answers: seqs, ids, and the durability that was reached.
 *   output        what a tool printed. A large one becomes an artifact: a file of its own.
 *   ref           the name of an artifact, "ctx_...". Opaque, stable, not a path.
 *   stub          what a model sees in place of a large output: both ends, the errors, the ref.
 *   view          a history in some format, edited, repaired, budgeted. Never changes the store.
 *   run           one execution of the tool loop, with an event log of its own.
 *
 *
 * GUARANTEES
 *
 *   1. What a receipt names is on the disk (STENO_FULL), in order, byte for byte, and stays
 *      there through kills, power loss and a full disk. "Byte for byte" is about tokens: number
 *      spellings, key order, duplicate keys and escapes survive; of the white space between
 *      tokens, a raw CR or LF becomes a space.
 *   2. A batch is never half there, for any reader, at any time.
 *   3. The same message id with the same bytes is stored once, however often it is sent. With
 *      other bytes it is refused.
 *   4. Any number of threads and processes may append and read at the same time. Nobody gets
 *      "busy", readers never wait for writers.
 *   5. Damage is reported where it is and costs nothing else. Nothing is deleted to recover:
 *      what cannot be read moves to the store's quarantine folder.
 *   6. A ref that can be seen can be read, or says what became of it.
 *   7. A view is always valid for its format: every call has one result, every result a call.
 *
 *
 * CAVEATS
 *
 *   - The embedded store needs a local file system; network file systems are refused
 *     (STENO_EUNSUPPORTED), because their locks and syncs do not hold what is promised here.
 *   - After a failed sync nothing is known about what the disk holds. The conversation handle is
 *     then poisoned: every call answers STENO_EPOISONED until it is closed and opened again.
 *   - Do not use a handle in a child after fork(); open the store there. A child may close what it
 *     inherited, which does nothing to its parent. What would change a conversation through it is
 *     refused (STENO_EINVAL).
 *   - An open conversation keeps three descriptors. A program that works on more of them than its
 *     limit allows (RLIMIT_NOFILE) closes those that it does not use: what was used lately stays
 *     open behind the scenes, so opening it again is cheap.
 *   - A reader in another process may see a record one sync before its writer has its receipt.
 *
 *
 * CONVENTIONS
 *
 *   - Calls that can fail return 0 (or a count where they say so) or a negative enum steno_code,
 *     and fill `err`, which may be NULL. Outputs are untouched on failure.
 *   - An out pointer to a handle or a char * gives something the caller owns: handles have their
 *     close or free call (NULL is accepted; in any order: what is open keeps what it needs), text
 *     is freed with steno_free(). Returned const pointers are borrowed and live as long as what
 *     they came from. Where it is not said that an argument may be NULL, it may not.
 *   - Text is UTF-8. Ids are NUL-terminated (they cannot contain control characters); JSON is
 *     pointer and length, and what comes back is also NUL-terminated.
 *   - Rich answers are JSON with stable names, so that they can grow.
 *   - Option structs: set `size` to sizeof the struct you were compiled with and leave what you
 *     do not need zero. NULL means all defaults. A size that is not set, and flags or members that
 *     this library does not know and that are not zero, are refused (STENO_EINVAL).
 *   - Callbacks (sinks, sources, records, findings, progress) run on the thread that made the call,
 *     before it returns; they may make other calls of the library. There are three exceptions. A
 *     store's `warning` and `progress` are called on the thread of whoever uses the store, so on
 *     any. A run's mail (steno_run_listen) comes on a thread of the run's own. `on_ref` of an
 *     output is called on the thread that writes to it.
 *   - struct steno_store and struct steno_conv may be shared by any number of threads. Receipts,
 *     outputs, runs' writers, folds: one thread at a time each.
 */
#ifndef STENO_H
#define STENO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef STENO_API
#define STENO_API __attribute__((visibility("default")))
#endif

/* ------------------------------------------------------------------ errors */

/* Only ever appended to. */
enum steno_code {
        STENO_OK = 0,
        STENO_ENOMEM = -1,     /* out of memory; nothing happened */
        STENO_EINVAL = -2,     /* the call itself is wrong: an option, an id, a format name */
        STENO_EPROTO = -3,     /* what was sent is wrong: malformed JSON, a result with no call */
        STENO_ECONFLICT = -4,  /* an id with other bytes, expected_seq, an id that is taken */
        STENO_ENOTFOUND = -5,  /* no such conversation, ref, run or message */
        STENO_ECORRUPT = -6,   /* what was read is damaged beyond this call's use */
        STENO_EIO = -7,        /* the system failed; `sys` says how */
        STENO_EFULL = -8,      /* no room: disk, quota or file size; nothing was kept */
        STENO_ELIMIT = -9,     /* larger, deeper or more than a limit allows */
        STENO_EPOISONED = -10, /* a sync failed earlier on this handle */
        STENO_EDENIED = -11,   /* permission */
        STENO_ETIMEOUT = -12,  /* a deadline passed */
        STENO_EINTERRUPTED = -13, /* stopped by the caller */
        STENO_EUNSUPPORTED = -14, /* not possible here; the message gives advice */
        STENO_EQUOTA = -15,   /* the outputs of a conversation or a store, or one of them, take all
                                 the room that store.json gives them */
        STENO_EINDOUBT = -16, /* it may be stored or not: the connection to a database broke, or no
                                 standby has confirmed it; the same ids or key find out */
};

struct steno_error {
        int code;
        int sys; /* an errno, or 0 */
        char msg[240];
};

/* "not found", "conflict" ...: a word for a code. */
STENO_API const char *steno_code_name(int code);

/* The version of this header, and of the library that runs ("0.1.0"). Within one major number a
 * program that was compiled with an older header works with a newer library. */
#define STENO_VERSION_MAJOR 0
#define STENO_VERSION_MINOR 1
#define STENO_VERSION_PATCH 0
#define STENO_VERSION_NUMBER                                                                       \
        (STENO_VERSION_MAJOR * 1000000 + STENO_VERSION_MINOR * 1000 + STENO_VERSION_PATCH)
STENO_API const char *steno_version(void);
STENO_API void steno_free(void *p);

/* Takes pieces of a streamed answer. A non-zero return stops the call, which then answers
 * STENO_EINTERRUPTED. */
typedef int (*steno_sink)(void *ctx, const void *p, size_t n);
/* Gives the next bytes: how many, 0 at the end, or a negative errno. */
typedef long (*steno_source)(void *ctx, void *p, size_t n);

/* Told how far long work has come; total is 0 while unknown. Non-zero stops it. */
typedef int (*steno_progress)(void *ctx, const char *what, uint64_t done, uint64_t total);

/* ------------------------------------------------------------------- store */

struct steno_store;
struct steno_conv;

enum steno_open_flags {
        STENO_OPEN_EXISTING = 1, /* do not make a store where there is none */
        STENO_OPEN_REPAIR = 2, /* a store.json that cannot be used is left to steno_check, and so is
                                  what stands in the place of the folder of projects */
};

/* A sentence about something that is not in order and stops nothing. */
typedef void (*steno_warning)(void *ctx, const char *what);

struct steno_open_options {
        size_t size;
        uint32_t flags;
        steno_progress progress; /* for a rebuild of the index; may be NULL */
        void *progress_ctx;
        steno_warning warning; /* may be NULL, and called by whoever uses the store */
        void *warning_ctx;
        const char
            *seal_key; /* a private key (steno_key_new), copied; may be NULL. With it steno_seal
                          signs, and a purge of what is sealed is signed at once */
};

/*
 * Opens a store; makes it on first use. `url` is a path, or a file: URL with its escapes (%20).
 * Cost does not depend on what is in it. STENO_EUNSUPPORTED: a network file system, a newer
 * format, another kind of URL.
 */
STENO_API int steno_open(const char *url, const struct steno_open_options *opt,
    struct steno_store **out, struct steno_error *err);
STENO_API void steno_close(struct steno_store *store);

/*
 * Makes a store with settings other than the defaults: {"profile":"default"|"runtime-store",
 * "maxInlineChars":n,"maxInlineBytes":n,"maxOutputBytes":n,"maxConversationBytes":n,
 * "maxStoreBytes":n}. The last three are quotas of what outputs and large parts of messages take, 0
 * for none. On an existing store it changes them, for handles that are opened later; data needs no
 * migration.
 */
STENO_API int steno_init(const char *url, const char *settings_json, struct steno_error *err);
STENO_API int steno_settings(struct steno_store *store, char **json, struct steno_error *err);

/*
 * Settings of a project ("default" when NULL): {"outputs":"stub"|"full"}, {} where none is set.
 * They are what clients that stored large outputs get back when neither the request nor the configs
 * of the conversation say it. A change is an object that goes over them, and null removes;
 * *settings (may be NULL) is what they are afterwards. STENO_EINVAL: no such setting, or no such
 * value.
 */
STENO_API int steno_project_settings(
    struct steno_store *store, const char *project, char **json, struct steno_error *err);
STENO_API int steno_project_change(struct steno_store *store, const char *project, const char *json,
    size_t n, char **settings, struct steno_error *err);

/* How many bytes that could not be read this handle has moved to quarantine/ since it was opened:
 * whoever opens a store for a person tells them when this grows. */
STENO_API uint64_t steno_quarantined(const struct steno_store *store);

/* Figures: conversations, messages, bytes (with outputs), materialization (outputs.*), the trash.
 */
STENO_API int steno_stats(struct steno_store *store, char **json, struct steno_error *err);

/* ----------------------------------------------------------- conversations */

/*
 * Makes a conversation. `id` NULL makes one up; else 1 to 256 bytes of UTF-8 without control
 * characters (it never becomes a path as it is). `meta_json` may be NULL or an object such as
 * {"title":"...","configs":{...},"metadata":{...}}. STENO_ECONFLICT: the id is taken.
 */
STENO_API int steno_conv_create(struct steno_store *store, const char *project, const char *id,
    const char *meta_json, struct steno_conv **out, struct steno_error *err);

/* Opens one that exists; else STENO_ENOTFOUND. Bounded in time, whatever its length. */
STENO_API int steno_conv_open(struct steno_store *store, const char *project, const char *id,
    struct steno_conv **out, struct steno_error *err);
STENO_API void steno_conv_close(struct steno_conv *conv);
/* For a second owner, such as another thread: the handle stays open until each has closed it. */
STENO_API void steno_conv_keep(struct steno_conv *conv);

STENO_API const char *steno_conv_id(const struct steno_conv *conv);
STENO_API const char *steno_conv_project(const struct steno_conv *conv);
/* What its configs say of outputs, else its project's settings: *outputs is an enum steno_outputs,
 * STENO_OUTPUTS_DEFAULT where neither says anything. */
STENO_API int steno_conv_outputs(struct steno_conv *conv, int *outputs, struct steno_error *err);

/* The last seq, 0 when empty. */
STENO_API int steno_conv_last_seq(struct steno_conv *conv, uint64_t *seq, struct steno_error *err);
/* Bytes of its log, its outputs and its large tokens. */
STENO_API int steno_conv_size(struct steno_conv *conv, uint64_t *bytes, struct steno_error *err);

/* {"id","project","createdAt","title"?,"configs"?, ...}. */
STENO_API int steno_conv_meta(struct steno_conv *conv, char **json, struct steno_error *err);
/* Merges an object into it, member by member at the top level; null removes a member. */
STENO_API int steno_conv_set_meta(
    struct steno_conv *conv, const char *patch_json, struct steno_error *err);

/* Waits until a record behind `after_seq` is there (1), the time is over (0), or fails. */
STENO_API int steno_conv_wait(
    struct steno_conv *conv, uint64_t after_seq, int timeout_ms, struct steno_error *err);

struct steno_list_options {
        size_t size;
        uint32_t limit;     /* 20 when 0, 1000 at most */
        const char *cursor; /* next_cursor of the page before */
        const char *query;  /* words that the title or id must contain; may be NULL */
        int complete;       /* 1: waits after a boot until every conversation was looked at */
};

/*
 * Conversations of a project (NULL: of all), newest activity first:
 * {"items":[{"id","project","title","createdAt","updatedAt","messages","lastSeq","bytes"}],
 *  "next_cursor"?,"catching_up"?}
 * `messages` counts what can be seen: neither amendments nor what was deleted. `bytes` counts the
 * log, outputs and large tokens. Conversations that
 * cannot be read are left out, with a warning. Needs no room and no right to write.
 * After a boot every conversation is looked at once, in the background until steno_close(). The
 * list answers meanwhile from what was known before, with "catching_up":true; `complete` waits
 * instead.
 */
STENO_API int steno_list(struct steno_store *store, const char *project,
    const struct steno_list_options *opt, char **json, struct steno_error *err);

/* ------------------------------------------------------------------ append */

enum steno_durability {
        STENO_FULL = 0,    /* acknowledged after the bytes are synced to the disk */
        STENO_PROCESS = 1, /* survives the process; synced in the background */
};

enum steno_append_flags {
        STENO_RECORD = 1,       /* take broken pairing, also without ids, and mark it */
        STENO_EXPECT_SEQ = 2,   /* expected_seq counts */
        STENO_KEEP_OUTPUTS = 4, /* steno_record_message gives its outputs back whole, because the
                                   client that sends it expects what it sent */
        STENO_DECIDED = 8,      /* outputs stay as they are: steno_output_message has decided */
        STENO_RECOVERED = 16, /* written in place of a run that died; makes no expected_seq stale */
        STENO_ANEW = 32, /* with STENO_RECORD: a message whose id is used is stored again, under
                            a made id, also where it is the same (steno_record_own_id) */
};

struct steno_append_options {
        size_t size;
        uint32_t flags;
        int durability;
        uint64_t expected_seq; /* last seq the writer saw, 0 for empty; STENO_ECONFLICT else */
        const char *format;    /* "openai" when NULL */
        const char *idempotency_key; /* may be NULL */
        const char *profile;         /* of materialization; NULL: the store's */
        uint64_t max_inline_chars;   /* 0: the store's */
        uint64_t max_inline_bytes;
        const char *message_id; /* for one message that carries no id of its own; NULL makes one */
        const char *via; /* of a model's reply: the URL of the endpoint that made it, a space, and
                            the model; NULL: not known. See steno_view_options */
        uint64_t of_seq; /* of a result: the seq of the message that made its call, so that it is
                            paired with that call alone; 0: it is found by its id */
        uint64_t after_seq; /* with STENO_RECOVERED: the record that whole views show it behind */
        struct steno_run *run; /* whose message it is: STENO_ECONFLICT when somebody has taken that
                                  run over, however late this arrives; NULL: of no run */
        const char *deletes; /* a message that goes when these come: its deletion is the last record
                                of the batch, so that nobody ever sees both, or neither.
                                STENO_ENOTFOUND as in steno_amend; NULL: none. For steno_append */
};

struct steno_receipt;

/*
 * Appends one message (a JSON object) or one atomic batch (a non-empty array of objects).
 *
 * STENO_EPROTO   not JSON, no legal role, a result without a call or a second one (unless
 *                STENO_RECORD); the message says which message of the batch and why
 * STENO_ECONFLICT an id that is there with other bytes, or was before a purge; expected_seq
 * STENO_ELIMIT   over 1,000 messages a batch; over 64 MiB, 512 levels, 1,024 calls, 10,000 parts
 *                or 1,000,000 values a message
 * STENO_EFULL, STENO_EIO  nothing of the batch was kept
 */
STENO_API int steno_append(struct steno_conv *conv, const char *json, size_t n,
    const struct steno_append_options *opt, struct steno_receipt **receipt,
    struct steno_error *err);

STENO_API uint64_t steno_receipt_first_seq(const struct steno_receipt *r);
STENO_API uint64_t steno_receipt_last_seq(const struct steno_receipt *r);
STENO_API size_t steno_receipt_count(const struct steno_receipt *r);
STENO_API const char *steno_receipt_id(const struct steno_receipt *r, size_t i);
STENO_API int steno_receipt_durability(const struct steno_receipt *r);
/* Was this a replay: everything had been stored before? White space between tokens makes no
 * difference, unless the message is so large that some of it is kept in a file of its own. */
STENO_API bool steno_receipt_replayed(const struct steno_receipt *r);
/* {"conversation","first_seq","last_seq","ids":[...],"durability","calls"?:[{"message","ids"}...]}.
 * `calls` has the messages (by their place in the batch, from 0) that came with a call without an
 * id, and the ids of all calls of each, the made ones among them. */
STENO_API const char *steno_receipt_json(const struct steno_receipt *r);
STENO_API void steno_receipt_free(struct steno_receipt *r);

/*
 * An amendment: `kind` "delete" (json NULL), "meta" (an object that is merged into the message's
 * metadata; null removes) or "supersede" (the message that takes the target's place). The target is
 * a message that was not deleted, by the id it was appended under (also after it was replaced: what
 * is shown in its place keeps that id), or by the id of what stands in its place now; else
 * STENO_ENOTFOUND.
 */
STENO_API int steno_amend(struct steno_conv *conv, const char *kind, const char *target_id,
    const char *json, size_t n, const struct steno_append_options *opt,
    struct steno_receipt **receipt, struct steno_error *err);

/* ----------------------------------------------------------------- records */

struct steno_record; /* borrowed, valid inside the callback */

STENO_API uint64_t steno_record_seq(const struct steno_record *r);
STENO_API const char *steno_record_id(const struct steno_record *r);
/* The id that the message itself carries, where its record has another; else "". */
STENO_API const char *steno_record_own_id(const struct steno_record *r);
/* The idempotency key of the batch that this record is the first of; else "". */
STENO_API const char *steno_record_key(const struct steno_record *r);
STENO_API const char *steno_record_at(const struct steno_record *r);     /* ISO 8601 */
STENO_API const char *steno_record_format(const struct steno_record *r); /* "openai", ... */
/* "message", "delete", "meta", "supersede", "tombstone" (purged) or "damaged" */
STENO_API const char *steno_record_kind(const struct steno_record *r);
STENO_API const char *steno_record_target(const struct steno_record *r); /* of an amendment */
/* What Steno says about it: {"role","calls":[...],"answers":[...],"run","mode","ref", marks ...} */
STENO_API const char *steno_record_about(const struct steno_record *r, size_t *n);
/* The message, its large tokens spliced back. Freed with steno_free. */
STENO_API int steno_record_message(
    const struct steno_record *r, char **json, size_t *n, struct steno_error *err);

/* The message as its client sent it: its outputs and large tokens put back. */
STENO_API int steno_record_original(
    const struct steno_record *r, char **json, size_t *n, struct steno_error *err);

/* The same in another format: a JSON array of one or more messages or items, as they stand,
 * without repairs. Large outputs are stubs. */
STENO_API int steno_record_as(const struct steno_record *r, const char *format, char **json,
    size_t *n, struct steno_error *err);
/* The same with its outputs in full, of the message as its client sent it. */
STENO_API int steno_record_whole(const struct steno_record *r, const char *format, char **json,
    size_t *n, struct steno_error *err);

typedef int (*steno_record_fn)(void *ctx, const struct steno_record *r);

/*
 * Records with seq > after_seq, oldest first, at most `limit` (0: all). A non-zero return of
 * `each` ends the reading and is returned.
 */
STENO_API int steno_read(struct steno_conv *conv, uint64_t after_seq, uint64_t limit,
    steno_record_fn each, void *ctx, struct steno_error *err);
/* Amendments only, newest first, without reading the log between them. */
STENO_API int steno_read_amendments(
    struct steno_conv *conv, steno_record_fn each, void *ctx, struct steno_error *err);
/* The one record with this id. */
STENO_API int steno_read_id(struct steno_conv *conv, const char *id, steno_record_fn each,
    void *ctx, struct steno_error *err);

/* ------------------------------------------------------------------- views */

enum steno_outputs {
        STENO_OUTPUTS_DEFAULT = 0, /* stub: views are what a model reads */
        STENO_OUTPUTS_STUB = 1,
        STENO_OUTPUTS_FULL = 2,
};

struct steno_view_options {
        size_t size;
        const char *format;          /* openai, responses, anthropic, gemini, acontext,
                                        toolmessage2, toolmessage, chat, legacy, uimessage,
                                        modelmessage, langchain, or stored: every message as it
                                        came, below */
        const char *edit_strategies; /* JSON array, or "auto" */
        const char *pin;             /* message id: strategies see nothing behind it */
        uint64_t budget;             /* tokens; 0: none */
        uint64_t after_seq;          /* only messages behind it */
        uint64_t before_seq;         /* only messages before it; 0: no bound */
        uint64_t limit;              /* messages, oldest first; 0: all */
        uint64_t last;               /* only the last n messages; 0: all */
        int outputs;                 /* enum steno_outputs */
        bool count_tokens;           /* fill "tokens" of the report (costs time) */
        bool all_messages;           /* also those with includeInContext false; `chat` has them */
        bool no_ids;                 /* the report has no "ids" (a third of its cost) */
        bool strict;                 /* only members that the provider's types have; otherwise what
                                        Steno does not know is passed on */
        bool own_bytes;              /* for the client that stored the messages: those that were
                                        sent in this format are given as they were sent, others
                                        among them are written in it; all in full, unrepaired and
                                        in their places. Where none was sent in it, it is the usual
                                        view with outputs in full. No edits, no budget */
        const char *via;             /* the endpoint and model that will read it, as in
                                        steno_append_options. What only the endpoint understands
                                        that made it (thinking, signatures, members that no API
                                        has) is left out for another one. NULL: nothing is */
        bool every_message;          /* no message is left out: a text stands for one of which the
                                        format has no place for anything, and for a result without
                                        a call, and the report says so */
};

/*
 * Streams a JSON array of messages. *report (may be NULL) becomes {"repairs":[{"call","class",
 * "seq",...}],"losses":[{"seq","field",...}],"more_losses"?:n,"damaged":[seq or {"from","to"},...],
 * "damaged_count":n,"tokens":n,"exact":bool,"edits":[...],"first_seq","last_seq","has_more",
 * "ids":[...]}. At most 1,000 damaged ranges are named; the count is of all damaged records. No
 * page, limit or budget ever splits a call from its result.
 *
 * The format "stored" is [{"seq","id","at","fmt","m","meta"?,"note"?}...] for every message: `m` is
 * what its client sent, every member and token, with outputs and large tokens put back; `meta` is
 * what amendments gave it; what superseded a message stands in its place. Nothing but deleted
 * messages is left out; what cannot be read is {"seq","last_seq"?,"damaged":true}. `note` is
 * "rendering only" where an earlier version did not keep the original. Where an output is missing
 * or not whole, `m` has its stub, beside "damaged":true. It takes no edits, no budget and no stubs,
 * and needs constant memory.
 */
STENO_API int steno_view(struct steno_conv *conv, const struct steno_view_options *opt,
    steno_sink sink, void *ctx, char **report, struct steno_error *err);

/* A history (JSON array) from one format to another; `from` NULL finds it out (see below). */
STENO_API int steno_convert(const char *from, const char *to, const char *json, size_t n,
    steno_sink sink, void *ctx, char **report, struct steno_error *err);

struct steno_convert_options {
        size_t size;
        const char *from; /* NULL: found out; refused, with the candidates, where it is not clear */
        const char *to;
        bool strict; /* as in steno_view_options */
};
STENO_API int steno_convert_with(const struct steno_convert_options *opt, const char *json,
    size_t n, steno_sink sink, void *ctx, char **report, struct steno_error *err);

/*
 * Is a history in the provider's own format acceptable to it ("openai", "responses", "anthropic",
 * "gemini")? A member that the provider's types do not have is a violation too.
 * *violations is a JSON array of {"rule","message","call"?,"text"}, empty when it is.
 */
STENO_API int steno_check_history(
    const char *provider, const char *json, size_t n, char **violations, struct steno_error *err);

/* Tokens of a text (o200k_base); *exact is false where the build had no rank data. */
STENO_API uint64_t steno_count_tokens(const char *text, size_t n, bool *exact);

/*
 * Folding: tool parts for a page, one message (openai or toolmessage2/toolmessage shaped) at a
 * time. steno_fold_json answers the messages so far in `chat` format, the same bytes that the
 * view of the whole history gives. A result with no call is STENO_EPROTO and changes nothing.
 */
struct steno_fold;
STENO_API int steno_fold_new(struct steno_fold **out, struct steno_error *err);
STENO_API int steno_fold_push(
    struct steno_fold *f, const char *json, size_t n, struct steno_error *err);
/* The same for a message of any format, by its name. */
STENO_API int steno_fold_push_as(
    struct steno_fold *f, const char *format, const char *json, size_t n, struct steno_error *err);
STENO_API int steno_fold_json(struct steno_fold *f, char **json, struct steno_error *err);
STENO_API void steno_fold_free(struct steno_fold *f);

/* ------------------------------------------------------------ tool outputs */

struct steno_output;

struct steno_output_options {
        size_t size;
        const char *tool;    /* name of the tool; must be given */
        const char *call_id; /* the call it answers; must be given */
        const char *server;  /* MCP server, may be NULL */
        bool terminal;       /* a command's output: artifacts/terminal, always a file */
        uint32_t flags;      /* STENO_RECORD */
        const char *profile;
        uint64_t max_inline_chars;
        uint64_t max_inline_bytes;
        bool context_tools; /* the model that will read the stub has the context_* tools */
        /* Called when the output becomes a file, before its first byte is there: whoever notes the
         * ref can name what had arrived after a kill. May be NULL. */
        void (*on_ref)(void *ctx, const char *ref);
        void *on_ref_ctx;
};

/*
 * A tool's output, stored as it comes: constant memory at any size, readable by others while it
 * grows (once it has passed the inline limit it has a ref), what had arrived survives a kill.
 */
STENO_API int steno_output_begin(struct steno_conv *conv, const struct steno_output_options *opt,
    struct steno_output **out, struct steno_error *err);
STENO_API int steno_output_write(
    struct steno_output *o, const void *p, size_t n, struct steno_error *err);
/* The ref, or NULL while (or because) the output is inline. */
STENO_API const char *steno_output_ref(const struct steno_output *o);

/*
 * Closes the artifact, synced, and answers the tool message {"id","role":"tool",...}, not yet
 * appended. `fields_json` (may be NULL) is an object whose members are added to the message:
 * isError, duration, invokedAt, steps, exitCode ...; exitCode also stands in the stub.
 */
STENO_API int steno_output_message(struct steno_output *o, const char *fields_json, char **message,
    size_t *n, struct steno_error *err);
/* The same, then appended: {"seq","id","content","ref"}. */
STENO_API int steno_output_finish(
    struct steno_output *o, const char *fields_json, char **json, struct steno_error *err);
/* Frees. An output that was not finished stays, marked as unfinished. */
STENO_API void steno_output_free(struct steno_output *o);

/* ----------------------------------------------------------- context files */

/*
 * op is "list", "read", "tail", "grep" or "json"; args a JSON object: {"kind"?,"limit"?,"after"?}
 * (after: a ref; the list begins behind it),
 * {"ref","offset","limit"} or {"ref","line","count"}, {"ref","lines"}, {"ref","pattern",
 * "max_results","context_lines","case_sensitive"}, {"ref","at"?,"from"?,"limit"?,"cursor"?} (one
 * level of an output that is JSON: docs/api.md). The answer is JSON. Reaches nothing but this
 * conversation. Unknown and foreign refs are the same STENO_ENOTFOUND; a deleted one's message
 * says when and by what. STENO_ELIMIT: "pattern too costly". "damaged" is true in answers about a
 * file that is shorter or longer than it was stored; a page is not held against the whole's hash.
 */
STENO_API int steno_context(struct steno_conv *conv, const char *op, const char *args, size_t n,
    char **json, struct steno_error *err);

struct steno_context_options {
        size_t size;
        steno_progress progress; /* of a grep: bytes that were searched, of how many; may be NULL.
                                    Non-zero ends it: STENO_EINTERRUPTED */
        void *progress_ctx;
};
/* The same for who wants to know how far it is, or to stop it. */
STENO_API int steno_context_with(struct steno_conv *conv, const char *op, const char *args,
    size_t n, const struct steno_context_options *opt, char **json, struct steno_error *err);

/* Streams an artifact's bytes from offset; length 0: to its end as it is now. STENO_ECORRUPT comes
 * behind the bytes: of the whole when they are not those that were stored, of a range when the file
 * has not the size that it had. */
STENO_API int steno_context_raw(struct steno_conv *conv, const char *ref, uint64_t offset,
    uint64_t length, steno_sink sink, void *ctx, struct steno_error *err);

/* The context_* tools as JSON for "openai", "anthropic" or "mcp", which also gets the schemas of
 * the answers. */
STENO_API int steno_context_tools(const char *flavour, char **json, struct steno_error *err);
/* Is this name one of them (plain or dotted)? */
STENO_API bool steno_is_context_tool(const char *name);
/*
 * Executes a model's call. Always answers text: mistakes of the model come back as words it can
 * act on, with *is_error set. The answer is never materialized again.
 */
STENO_API int steno_context_call(struct steno_conv *conv, const char *name, const char *args,
    size_t n, char **text, bool *is_error, struct steno_error *err);
STENO_API int steno_context_call_with(struct steno_conv *conv, const char *name, const char *args,
    size_t n, const struct steno_context_options *opt, char **text, bool *is_error,
    struct steno_error *err);

/* ------------------------------------------- results on their way to a model */

/*
 * Large results in a list of messages that somebody else sends to a model: found, replaced by
 * stubs, and kept at hand for the context tools while the answer is awaited. Nothing is stored. The
 * stub follows from the bytes and the limits alone, so that a prompt stays the same from request to
 * request; its ref names the bytes, and is good for steno_context as well, in every conversation
 * that has the same output.
 */
struct steno_stubs;

struct steno_stubs_options {
        size_t size;
        uint64_t max_inline_chars; /* 0: the usual ones */
        uint64_t max_inline_bytes;
        bool context_tools; /* the model has the context_* tools */
};

/* The bytes [at, at + n) of the list are to be replaced. Non-zero ends it, and is returned. */
typedef int (*steno_stub_fn)(void *ctx, size_t at, size_t n, const char *with, size_t with_n);

/* `messages` is a JSON array in `format` and must outlive the call only. `each` is told from the
 * beginning of the list to its end. Messages that the format does not know are left as they are. */
STENO_API int steno_stubs_new(const char *format, const char *messages, size_t n,
    const struct steno_stubs_options *opt, steno_stub_fn each, void *ctx, struct steno_stubs **out,
    struct steno_error *err);
STENO_API size_t steno_stubs_count(const struct steno_stubs *s);
/* A model's call of a context tool, answered from these results, as steno_context_call does. From
 * one thread at a time. */
STENO_API int steno_stubs_call(struct steno_stubs *s, const char *name, const char *args, size_t n,
    char **text, bool *is_error, struct steno_error *err);
STENO_API void steno_stubs_free(struct steno_stubs *s);

/* The limits that hold in a store: what is larger becomes a stub. */
STENO_API void steno_inline_limits(struct steno_store *store, uint64_t *chars, uint64_t *bytes);

/* -------------------------------------------------------------------- runs */

struct steno_run;

/*
 * A run's journal: numbered events, and the life of each tool call. The writer holds the run
 * until it is closed or its process dies; then others see it as dead.
 * `mode` is "chat", "agent" or "run". `id` NULL makes one up.
 *
 * A conversation has at most one live run, across threads, processes and servers. While there is
 * one, another begin is STENO_ECONFLICT, and the message names the run that is at work.
 */
STENO_API int steno_run_begin(struct steno_conv *conv, const char *id, const char *mode,
    struct steno_run **out, struct steno_error *err);
/*
 * The same in two steps. A claim keeps other runs away and writes nothing that a reader sees, so
 * its holder can look at the history and decide whether to start. Events come after the start.
 * steno_run_close gives a claim back.
 */
STENO_API int steno_run_claim(struct steno_conv *conv, const char *id, const char *mode,
    struct steno_run **out, struct steno_error *err);
STENO_API int steno_run_start(struct steno_run *run, struct steno_error *err);
STENO_API const char *steno_run_id(const struct steno_run *run);

/* Writes an event; `data` is a JSON object. Durable as asked when it returns. Events may be
 * written from several threads. The type "run_finished" ends the run: the conversation is free for
 * the next one, and further events are STENO_EINVAL. *seq may be NULL. */
STENO_API int steno_run_event(struct steno_run *run, const char *type, const char *data, size_t n,
    int durability, uint64_t *seq, struct steno_error *err);

/* Is the run still ours? STENO_ECONFLICT: another process took it for dead and completed it. The
 * calls below ask for themselves; whoever appends messages of a run asks before. */
STENO_API int steno_run_check(struct steno_run *run, struct steno_error *err);
/* The seq of the message whose calls are carried out from now on. Dispatches and outcomes name it,
 * so that recovery knows the call of a result whose id was used before. */
STENO_API void steno_run_set_caller(struct steno_run *run, uint64_t seq);

/*
 * What others ask of the run through the store: to stop (`approval` is NULL), or a decision about
 * the call with this approval hash. Called on a thread of the run's, until the run has finished or
 * is closed; it must not call the run. `fn` NULL: nobody listens any more.
 */
typedef void (*steno_run_mail_fn)(void *ctx, const char *approval, bool allow);
STENO_API void steno_run_listen(struct steno_run *run, steno_run_mail_fn fn, void *ctx);
/* Asks a live run to stop, whichever process or server holds it. STENO_ENOTFOUND: there is no such
 * run, or it is over. */
STENO_API int steno_run_stop(
    struct steno_store *store, const char *project, const char *run_id, struct steno_error *err);
/*
 * Decides about a call that waits for permission. 0 when the run has taken the answer, 1 when it
 * has not within a second: it will when it goes on. `approval` is the hash that the event
 * tool_call_approval names: STENO_ECONFLICT when it is of another call, or when somebody else has
 * decided otherwise. STENO_ENOTFOUND: no such call waits.
 */
STENO_API int steno_run_answer(struct steno_store *store, const char *project, const char *run_id,
    const char *call_id, const char *approval, bool allow, struct steno_error *err);

/*
 * Somebody who may answer the questions of a project's runs is connected to this process, from
 * steno_watch_begin to steno_watch_end or the end of the process. Whoever holds a run asks
 * steno_watched, which knows of every process that uses the store.
 */
struct steno_watcher;
STENO_API int steno_watch_begin(struct steno_store *store, const char *project,
    struct steno_watcher **out, struct steno_error *err);
STENO_API void steno_watch_end(struct steno_watcher *watcher);
STENO_API bool steno_watched(struct steno_store *store, const char *project);

/* Before a tool's side effect: synced. The operation is (run, request, call_id). */
STENO_API int steno_run_dispatch(struct steno_run *run, uint64_t request, const char *call_id,
    const char *tool, const char *args, size_t n, struct steno_error *err);
/* The whole tool message, synced, before anyone is told; steno_append it afterwards. */
STENO_API int steno_run_outcome(struct steno_run *run, uint64_t request, const char *call_id,
    const char *message, size_t n, struct steno_error *err);

/* Frees; a run that has no run_finished event counts as dead from here on. */
STENO_API void steno_run_close(struct steno_run *run);

/* type "dispatch" and "outcome" are the lifecycle, everything else an event. */
typedef int (*steno_event_fn)(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n);
STENO_API int steno_run_read(struct steno_store *store, const char *project, const char *run_id,
    uint64_t after_seq, steno_event_fn each, void *ctx, struct steno_error *err);
/* Waits for an event behind after_seq: 1, 0 on time-out. */
STENO_API int steno_run_wait(struct steno_store *store, const char *project, const char *run_id,
    uint64_t after_seq, int timeout_ms, struct steno_error *err);
/* {"id","conversation","project","mode","state":"running"|"finished"|"dead","lastSeq",
 *  "reason"?} */
STENO_API int steno_run_info(struct steno_store *store, const char *project, const char *run_id,
    char **json, struct steno_error *err);
/* A conversation's runs, newest first: {"items":[info...]}. */
STENO_API int steno_run_list(struct steno_conv *conv, char **json, struct steno_error *err);

/*
 * After a crash: appends outcomes that never reached the log and text of a reply that somebody may
 * have seen, and ends dead runs with run_error and run_finished. Safe at any time, from any
 * process; live runs are left alone. Opening a conversation, views, lists and a new run do so
 * themselves; this call also looks at runs that earlier versions left. *report:
 * {"completed":[...],"ended":[run ids],"open":[{"call","class","run"}]}.
 */
STENO_API int steno_conv_recover(struct steno_conv *conv, char **report, struct steno_error *err);
/* The same for every conversation of the store that has an unfinished run, as the index knows it:
 * for a server that starts. *completed (may be NULL): how many runs had died. */
STENO_API int steno_recover(
    struct steno_store *store, uint64_t *completed, struct steno_error *err);

/* ------------------------------------------------------------------- forks */

enum steno_fork_flags {
        STENO_FORK_WHOLE_BATCH = 1, /* a cut inside a batch takes all of that batch */
};

struct steno_fork_options {
        size_t size;
        uint32_t flags;
        uint64_t at_seq;     /* the last record to take; 0: see the next two */
        const char *at;      /* the id of the last message to take; NULL: all of them */
        const char *before;  /* the id of the first message not to take; NULL: as `at` says */
        const char *id;      /* of the fork; NULL makes one up */
        const char *project; /* of the fork; NULL: the same */
};

/*
 * A new conversation with the history of this one up to a record. Its records have the same seqs,
 * ids, times and bytes; messages that were deleted or superseded by then are tombstones, amendments
 * behind the cut are left out, and idempotency keys do not come along. Outputs are shared, not
 * copied, where the file system can share; purging or removing one conversation costs the other
 * nothing. An output that is still being written comes as far as it is, and is closed. The fork's
 * metadata is this one's, with "origin": {"project","conversation","uid","seq"}.
 *
 * To replace an earlier message, fork `before` it and append the new one.
 *
 * STENO_ECONFLICT  the cut is inside a batch (the message names its ends), or the id is taken
 * STENO_ENOTFOUND  there is no such record or message
 * STENO_ECORRUPT   the log is damaged before the cut
 */
STENO_API int steno_fork(struct steno_conv *conv, const struct steno_fork_options *opt,
    struct steno_conv **out, struct steno_error *err);

/* ----------------------------------------------------------------- backups */

/*
 * Copies the store into the folder `path` while others write to it. Everything that was
 * acknowledged before the call is in the copy, every ref in it has its bytes, and what is being
 * written comes as far as it is. A conversation is locked only while its log is synced and its end
 * noted. Into the folder of an earlier backup it copies what changed, and removes what the store
 * purged or lost since. The copy is in the format of a store; complete.json is written last. Tokens
 * of projects and settings are in it, the server's own token and derived files are not. *report
 * (may be NULL): {"at","conversations","trashed","records","copied","damaged","findings"?};
 * `copied` counts bytes. `damaged` counts what was found damaged or lost in the store while it was
 * copied, and was not accepted as lost; the first 100 are
 * {"project","conversation","what","trash"?} in `findings`. Damaged bytes are copied as they are
 * where the backup has no better ones.
 *
 * STENO_ECONFLICT: the folder is not empty, and no backup.
 */
STENO_API int steno_backup(struct steno_store *store, const char *path, steno_progress progress,
    void *progress_ctx, char **report, struct steno_error *err);
struct steno_backup_options {
        size_t size;
        steno_progress progress;
        void *progress_ctx;
        bool verify; /* read every file that an earlier backup copied, and copy again what is
                        damaged there; else what nobody has written to since is left alone. The
                        report then has "mended", how many these were */
};
STENO_API int steno_backup_with(struct steno_store *store, const char *path,
    const struct steno_backup_options *opt, char **report, struct steno_error *err);
/*
 * The same as one stream, a .tar.zst, which plain `tar --zstd` opens: always all of it.
 * Conversations are copied one after the other into the folder `scratch`, which is empty or not
 * there yet and left almost empty, for the caller to remove. A stream without its end is not a
 * backup.
 */
STENO_API int steno_backup_stream(struct steno_store *store, const char *scratch, steno_sink sink,
    void *ctx, steno_progress progress, void *progress_ctx, char **report, struct steno_error *err);
/*
 * Makes a store of a backup. STENO_ECONFLICT: there is something at `store_url`; STENO_EPROTO: it
 * is not a backup; STENO_ECORRUPT: its last backup was cut off. *report (may be NULL):
 * {"files","bytes"}.
 */
STENO_API int steno_restore(
    const char *path, const char *store_url, char **report, struct steno_error *err);
/* The same from a stream, which is held against its own sum: all of it, or nothing. It may expand
 * as far as it likes, so it is for backups of one's own. */
STENO_API int steno_restore_stream(
    steno_source source, void *ctx, const char *store_url, char **report, struct steno_error *err);

/* ------------------------------------------------------------- maintenance */

/*
 * To the trash; waits for a running append. *trash_id (may be NULL) names this one among all that
 * were removed under the same id; steno_trash_restore and steno_purge take it in place of an id.
 */
STENO_API int steno_remove(struct steno_store *store, const char *project, const char *id,
    char **trash_id, struct steno_error *err);
/* Newest first: {"items":[{"project","id","trashId","deletedAt","bytes"}]} */
STENO_API int steno_trash_list(struct steno_store *store, char **json, struct steno_error *err);
/*
 * Back from the trash, the newest of that id, or the one with that trash id; under the id `as`
 * where that is not NULL. STENO_ECONFLICT: the id is in use.
 */
STENO_API int steno_trash_restore(struct steno_store *store, const char *project, const char *id,
    const char *as, struct steno_error *err);
/* Gone for good: what was deleted more than `days` days ago (0: everything). *count: how many. */
STENO_API int steno_trash_empty(
    struct steno_store *store, unsigned days, uint64_t *count, struct steno_error *err);
/*
 * Drops the bytes of deleted and superseded messages, and their artifacts, from the disk; seqs
 * stay as tombstones. Where there is no conversation of that id, all that are in the trash under
 * it, or the one with that trash id, are removed altogether. *report:
 * {"messages":n,"bytes":n,"damaged"?:n,"removed":[trash ids]}; `damaged` counts damaged places in
 * the log, which stay and may hold what was deleted: steno_check with `repair` moves them to the
 * quarantine.
 */
STENO_API int steno_purge(struct steno_store *store, const char *project, const char *id,
    char **report, struct steno_error *err);

/* A finding:
 * {"project"?,"conversation"?,"seq"?,"what","repaired","accepted"?,"repairable"?,"trash"?,"note"?};
 * without the first two it is about the store; accepted is true for a loss that was noted as such,
 * by now or before (one that was not stays a finding, also after a repair); repairable where a
 * check that repairs would mend it; trash where it is about a conversation there, which is looked
 * at but not repaired; note where it is worth knowing and no damage. The number of findings counts
 * neither notes nor accepted losses. */
typedef int (*steno_finding_fn)(void *ctx, const char *json);

struct steno_check_options {
        size_t size;
        const char *project; /* NULL: all */
        const char *id;      /* NULL: every conversation */
        bool repair; /* quarantine what is torn or damaged in logs, leaving tombstones; rebuild
                        derived files; deletes nothing */
        steno_progress progress;
        void *progress_ctx;
        bool accept; /* with `repair`: what cannot be mended is noted as a loss that was accepted */
};

/* Verifies every checksum, pair and ref, store.json, and of a whole store the index. The number of
 * findings, or a negative code. What cannot be looked at is a finding. Where a repair may not write
 * (STENO_EDENIED) or has no room (STENO_EFULL) all is looked at first, and nothing of it counts as
 * repaired. */
STENO_API int steno_check(struct steno_store *store, const struct steno_check_options *opt,
    steno_finding_fn each, void *ctx, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#include "steno_bundle.h"
#include "steno_import.h"
#include "steno_search.h"
#include "steno_seal.h"

#endif
