/*
 * steno.h - the verbatim record of conversations with tools.
 *
 * This header is the manual, together with the headers that it includes at its end: steno_bundle.h,
 * steno_import.h, steno_output.h, steno_run.h, steno_search.h and steno_seal.h. It needs only the
 * types of the C library and can be used from C++. Every call can be reached with dlopen, because
 * no macro is needed. Structs are opaque, except those that will not grow and option structs, which
 * begin with their own size.
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
 *   stub          the text that a model sees in place of a large output: its beginning and end, its
 *                 errors and its ref.
 *   view          a history in some format, edited, repaired and cut to a budget. Never changes the
 *                 store.
 *   run           one execution of the tool loop, with an event log of its own.
 *
 *
 * GUARANTEES
 *
 *   1. What a receipt names is on the disk (STENO_FULL), in order, byte for byte. It survives
 *      kills, power loss and a full disk. "Byte for byte" holds for JSON tokens: number spellings,
 *      key order, duplicate keys and escapes are kept. White space between tokens is kept too,
 *      except that a raw CR or LF becomes a space.
 *   2. No reader ever sees half of a batch.
 *   3. A message that is sent again with the same id and the same bytes is not stored again. The
 *      same id with other bytes is refused.
 *   4. Any number of threads and processes may append and read at the same time. No call fails
 *      because the store is busy, and readers never wait for writers.
 *   5. Damage is reported with its place, and everything that is not damaged stays readable.
 *      Recovery deletes nothing: bytes that cannot be read move to the store's quarantine folder.
 *   6. Every ref that a reader sees can be read. Where its bytes are gone, the error says what
 *      became of them.
 *   7. A view is always valid for its format: every call has exactly one result, and every result
 *      has a call.
 *
 *
 * CAVEATS
 *
 *   - The embedded store needs a local file system; network file systems are refused
 *     (STENO_EUNSUPPORTED), because their locks and syncs are too weak for the guarantees above.
 *   - After a failed sync nobody knows what the disk holds. The conversation handle is then
 *     poisoned: every call on it fails with STENO_EPOISONED until the handle is closed and the
 *     conversation is opened again.
 *   - Do not use a handle in a child process after fork(); open the store again in the child. A
 *     child may close a handle that it inherited, which does not affect the parent. A call that
 *     would change a conversation through an inherited handle is refused (STENO_EINVAL).
 *   - An open conversation keeps three file descriptors. A program that works on more conversations
 *     than its limit allows (RLIMIT_NOFILE) should close those that it does not use. Opening one
 *     again is cheap, because the store keeps recently used conversations open internally.
 *   - A reader in another process may see a record shortly before its writer has the receipt:
 *     before the sync of that record has ended.
 *
 *
 * CONVENTIONS
 *
 *   - Calls that can fail return 0 (or a count where they say so) or a negative enum steno_code,
 *     and fill `err`, which may be NULL. Outputs are untouched on failure.
 *   - An out pointer to a handle or a char * gives something the caller owns: a handle has its
 *     close or free call, which accepts NULL, and text is freed with steno_free(). Handles may be
 *     closed in any order: an open handle keeps what it needs. Returned const pointers are borrowed
 *     and live as long as the object they came from. An argument may be NULL only where its
 *     description says so.
 *   - Text is UTF-8. Ids are NUL-terminated (they cannot contain control characters); JSON is
 *     passed as pointer and length; returned JSON is also NUL-terminated.
 *   - Answers with many members are JSON. The names of members are stable, and new members may be
 *     added.
 *   - Option structs: set `size` to sizeof the struct and leave the members that you do not need at
 *     zero. A NULL pointer means all defaults. The library refuses a size that is not set, and
 *     non-zero flags or members that it does not know (STENO_EINVAL).
 *   - Callbacks (sinks, sources, records, findings, progress) run on the thread that made the call,
 *     before it returns; they may make other calls of the library. There are three exceptions. A
 *     store's `warning` and `progress` may be called on any thread that uses the store. The
 *     callback of steno_run_listen is called on a thread that belongs to the run. `on_ref` of an
 *     output is called on the thread that writes to it.
 *   - struct steno_store and struct steno_conv may be shared by any number of threads. A receipt,
 *     an output, the writer of a run and a fold may each be used by one thread at a time.
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

/* Codes are only ever appended to this list. */
enum steno_code {
        STENO_OK = 0,
        STENO_ENOMEM = -1,        /* out of memory; nothing happened */
        STENO_EINVAL = -2,        /* the caller's mistake: a wrong option, id or format name */
        STENO_EPROTO = -3,        /* the data is wrong: malformed JSON, a result without a call */
        STENO_ECONFLICT = -4,     /* the id exists with other bytes or is taken, or expected_seq is
                                     stale */
        STENO_ENOTFOUND = -5,     /* no such conversation, ref, run or message */
        STENO_ECORRUPT = -6,      /* the stored data is too damaged for this call */
        STENO_EIO = -7,           /* a system call failed; `sys` is its errno */
        STENO_EFULL = -8,         /* no room: disk, quota or file size; nothing was kept */
        STENO_ELIMIT = -9,        /* the data is larger, deeper or more than a limit allows */
        STENO_EPOISONED = -10,    /* a sync failed earlier on this handle */
        STENO_EDENIED = -11,      /* permission */
        STENO_ETIMEOUT = -12,     /* a deadline passed */
        STENO_EINTERRUPTED = -13, /* stopped by the caller */
        STENO_EUNSUPPORTED = -14, /* not possible here; the message says what to do */
        STENO_EQUOTA = -15,       /* a quota of store.json is used up: that of one output, of a
                                     conversation or of the store */
        STENO_EINDOUBT = -16, /* unknown whether it is stored: the connection to a database broke,
                                 or no standby has confirmed it; send it again with the same ids or
                                 idempotency key to find out */
};

struct steno_error {
        int code;
        int sys; /* an errno, or 0 */
        char msg[240];
};

/* A code in words: "not found", "conflict" ... */
STENO_API const char *steno_code_name(int code);

/* The version of this header, and of the library that runs ("0.1.0"). A program that was compiled
 * with an older header works with a newer library of the same major number. */
#define STENO_VERSION_MAJOR 0
#define STENO_VERSION_MINOR 1
#define STENO_VERSION_PATCH 0
#define STENO_VERSION_NUMBER                                                                       \
        (STENO_VERSION_MAJOR * 1000000 + STENO_VERSION_MINOR * 1000 + STENO_VERSION_PATCH)
STENO_API const char *steno_version(void);
STENO_API void steno_free(void *p);

/* Receives the pieces of a streamed answer. A non-zero return stops the call, which then returns
 * STENO_EINTERRUPTED. */
typedef int (*steno_sink)(void *ctx, const void *p, size_t n);
/* Writes the next bytes to `p`, at most `n`. Returns how many, 0 at the end, or -errno. */
typedef long (*steno_source)(void *ctx, void *p, size_t n);

/* Called during long work with its progress; total is 0 while unknown. A non-zero return stops the
 * work. */
typedef int (*steno_progress)(void *ctx, const char *what, uint64_t done, uint64_t total);

/* ------------------------------------------------------------------- store */

struct steno_store;
struct steno_conv;

enum steno_open_flags {
        STENO_OPEN_EXISTING = 1, /* fail where there is no store, instead of making one */
        STENO_OPEN_REPAIR = 2,   /* open the store even if its store.json cannot be used, or if
                                    something else stands where its folder of projects should be, so
                                    that steno_check can repair it */
};

/* Receives a sentence about a problem that does not stop the work. */
typedef void (*steno_warning)(void *ctx, const char *what);

struct steno_open_options {
        size_t size;
        uint32_t flags;
        steno_progress progress; /* for a rebuild of the index; may be NULL */
        void *progress_ctx;
        steno_warning warning; /* may be NULL; called on any thread that uses the store */
        void *warning_ctx;
        const char
            *seal_key; /* a private key (steno_key_new), copied; may be NULL. steno_seal signs with
                          it, and a purge of sealed records is signed with it at once */
};

/*
 * Opens a store, and creates it on first use. `url` is a path, or a file: URL with its escapes
 * (%20). The cost does not depend on the size of the store. STENO_EUNSUPPORTED: a network file
 * system, a newer format, another kind of URL.
 */
STENO_API int steno_open(const char *url, const struct steno_open_options *opt,
    struct steno_store **out, struct steno_error *err);
STENO_API void steno_close(struct steno_store *store);

/*
 * Makes a store with settings other than the defaults: {"profile":"default"|"runtime-store",
 * "maxInlineChars":n,"maxInlineBytes":n,"maxOutputBytes":n,"maxConversationBytes":n,
 * "maxStoreBytes":n}. The last three are quotas on the bytes of outputs and of large parts of
 * messages, 0 for none. On an existing store the call changes its settings, for handles that are
 * opened later; no data is migrated.
 */
STENO_API int steno_init(const char *url, const char *settings_json, struct steno_error *err);
STENO_API int steno_settings(struct steno_store *store, char **json, struct steno_error *err);

/*
 * Settings of a project ("default" when NULL): {"outputs":"stub"|"full"}, {} where none is set.
 * `outputs` says what clients that stored large outputs get back, where neither the request nor the
 * configs of the conversation say so. `json` of a change is an object that is merged into the
 * settings; null removes a setting. *settings (may be NULL) are the settings afterwards.
 * STENO_EINVAL: no such setting, or no such value.
 */
STENO_API int steno_project_settings(
    struct steno_store *store, const char *project, char **json, struct steno_error *err);
STENO_API int steno_project_change(struct steno_store *store, const char *project, const char *json,
    size_t n, char **settings, struct steno_error *err);

/* How many unreadable bytes this handle has moved to quarantine/ since it was opened. An
 * interactive program should tell its user when this number grows. */
STENO_API uint64_t steno_quarantined(const struct steno_store *store);

/* Figures: conversations, messages, bytes (with outputs), materialization (outputs.*), the trash.
 */
STENO_API int steno_stats(struct steno_store *store, char **json, struct steno_error *err);

/* ----------------------------------------------------------- conversations */

/*
 * Makes a conversation. `id` NULL makes one up; an id has 1 to 256 bytes of UTF-8 without control
 * characters (it is encoded before it becomes part of a path). `meta_json` may be NULL or an object
 * such as {"title":"...","configs":{...},"metadata":{...}}. STENO_ECONFLICT: the id is taken.
 */
STENO_API int steno_conv_create(struct steno_store *store, const char *project, const char *id,
    const char *meta_json, struct steno_conv **out, struct steno_error *err);

/* Opens an existing conversation. STENO_ENOTFOUND: there is none. The time is bounded, however long
 * the conversation is. */
STENO_API int steno_conv_open(struct steno_store *store, const char *project, const char *id,
    struct steno_conv **out, struct steno_error *err);
STENO_API void steno_conv_close(struct steno_conv *conv);
/* For a second owner, such as another thread: the handle stays open until each has closed it. */
STENO_API void steno_conv_keep(struct steno_conv *conv);

STENO_API const char *steno_conv_id(const struct steno_conv *conv);
STENO_API const char *steno_conv_project(const struct steno_conv *conv);
/* The `outputs` of its configs, else of its project's settings. *outputs is an enum steno_outputs:
 * STENO_OUTPUTS_DEFAULT where neither has it. */
STENO_API int steno_conv_outputs(struct steno_conv *conv, int *outputs, struct steno_error *err);

/* The last seq, 0 when empty. */
STENO_API int steno_conv_last_seq(struct steno_conv *conv, uint64_t *seq, struct steno_error *err);
/* Bytes of its log, its outputs and its large tokens. */
STENO_API int steno_conv_size(struct steno_conv *conv, uint64_t *bytes, struct steno_error *err);

/* {"id","project","createdAt","title"?,"configs"?, ...}. */
STENO_API int steno_conv_meta(struct steno_conv *conv, char **json, struct steno_error *err);
/* Merges an object into the metadata, member by member at the top level; null removes a member. */
STENO_API int steno_conv_set_meta(
    struct steno_conv *conv, const char *patch_json, struct steno_error *err);

/* Waits for a record behind `after_seq`. Returns 1 when there is one, 0 when the time is over. */
STENO_API int steno_conv_wait(
    struct steno_conv *conv, uint64_t after_seq, int timeout_ms, struct steno_error *err);

struct steno_list_options {
        size_t size;
        uint32_t limit;     /* 20 when 0, 1000 at most */
        const char *cursor; /* next_cursor of the page before */
        const char *query;  /* words that the title or id must contain; may be NULL */
        int complete;       /* 1: after a boot, wait until every conversation was looked at */
};

/*
 * Conversations of a project (NULL: of all), newest activity first:
 * {"items":[{"id","project","title","createdAt","updatedAt","messages","lastSeq","bytes"}],
 *  "next_cursor"?,"catching_up"?}
 * `messages` counts neither amendments nor deleted messages. `bytes` counts the log, outputs and
 * large tokens. Conversations that cannot be read are left out, with a warning. The call works on a
 * full disk and without the right to write. After a boot the library looks at every conversation
 * once, in the background, at most until steno_close(). Meanwhile the list is what was known
 * before, and has "catching_up":true; with `complete` the call waits instead.
 */
STENO_API int steno_list(struct steno_store *store, const char *project,
    const struct steno_list_options *opt, char **json, struct steno_error *err);

/* ------------------------------------------------------------------ append */

enum steno_durability {
        STENO_FULL = 0,    /* acknowledged after the bytes are synced to the disk */
        STENO_PROCESS = 1, /* survives the process; synced in the background */
};

enum steno_append_flags {
        STENO_RECORD = 1,       /* accept calls and results that do not pair, also without ids, and
                                   mark them */
        STENO_EXPECT_SEQ = 2,   /* check expected_seq */
        STENO_KEEP_OUTPUTS = 4, /* steno_record_message returns the outputs in full, for a client
                                   that expects what it sent */
        STENO_DECIDED = 8,      /* outputs stay as they are: steno_output_message has decided */
        STENO_RECOVERED = 16,   /* written on behalf of a run that died; makes no writer's
                                   expected_seq stale */
        STENO_ANEW = 32, /* with STENO_RECORD: a message whose id is already used is stored again,
                            under a generated id, even if it is the same message
                            (steno_record_own_id) */
};

struct steno_append_options {
        size_t size;
        uint32_t flags;
        int durability;
        uint64_t expected_seq;       /* the last seq that the writer saw, 0 for an empty log;
                                        STENO_ECONFLICT where the log has another one */
        const char *format;          /* "openai" when NULL */
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
 * STENO_EPROTO   not JSON, no legal role, or (unless STENO_RECORD) a result without a call or a
 *                second result of a call; the error says which message of the batch, and why
 * STENO_ECONFLICT the id exists with other bytes or existed before a purge, or expected_seq is
 *                stale
 * STENO_ELIMIT   more than 1,000 messages in a batch; more than 64 MiB, 512 levels, 1,024 calls,
 *                10,000 parts or 1,000,000 values in a message
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
/* Was this a replay: had everything been stored before? White space between tokens makes no
 * difference, unless the message is so large that some of it is kept in a file of its own. */
STENO_API bool steno_receipt_replayed(const struct steno_receipt *r);
/* {"conversation","first_seq","last_seq","ids":[...],"durability","calls"?:[{"message","ids"}...]}.
 * `calls` lists the messages that came with a call without an id: their place in the batch, from 0,
 * and the ids of all their calls, including the generated ones. */
STENO_API const char *steno_receipt_json(const struct steno_receipt *r);
STENO_API void steno_receipt_free(struct steno_receipt *r);

/*
 * An amendment: `kind` "delete" (json NULL), "meta" (an object that is merged into the message's
 * metadata; null removes) or "supersede" (the message that takes the target's place). The target is
 * a message that was not deleted; else STENO_ENOTFOUND. A message that was superseded can be named
 * by its own id, which its replacement keeps in views, or by the id of the replacement.
 */
STENO_API int steno_amend(struct steno_conv *conv, const char *kind, const char *target_id,
    const char *json, size_t n, const struct steno_append_options *opt,
    struct steno_receipt **receipt, struct steno_error *err);

/* ----------------------------------------------------------------- records */

struct steno_record; /* borrowed, valid inside the callback */

STENO_API uint64_t steno_record_seq(const struct steno_record *r);
STENO_API const char *steno_record_id(const struct steno_record *r);
/* The id inside the message, where it differs from the id of the record; else "". */
STENO_API const char *steno_record_own_id(const struct steno_record *r);
/* The idempotency key of its batch, for the first record of a batch; else "". */
STENO_API const char *steno_record_key(const struct steno_record *r);
STENO_API const char *steno_record_at(const struct steno_record *r);     /* ISO 8601 */
STENO_API const char *steno_record_format(const struct steno_record *r); /* "openai", ... */
/* "message", "delete", "meta", "supersede", "tombstone" (purged) or "damaged" */
STENO_API const char *steno_record_kind(const struct steno_record *r);
STENO_API const char *steno_record_target(const struct steno_record *r); /* of an amendment */
/* What Steno noted about it: {"role","calls":[...],"answers":[...],"run","mode","ref", marks
 * ...} */
STENO_API const char *steno_record_about(const struct steno_record *r, size_t *n);
/* The message, with its large tokens put back. Freed with steno_free. */
STENO_API int steno_record_message(
    const struct steno_record *r, char **json, size_t *n, struct steno_error *err);

/* The message as its client sent it, with its outputs and large tokens put back. */
STENO_API int steno_record_original(
    const struct steno_record *r, char **json, size_t *n, struct steno_error *err);

/* The message in another format: a JSON array of one or more messages or items, without repairs.
 * Large outputs are stubs. */
STENO_API int steno_record_as(const struct steno_record *r, const char *format, char **json,
    size_t *n, struct steno_error *err);
/* As steno_record_as, but from the message as its client sent it, with outputs in full. */
STENO_API int steno_record_whole(const struct steno_record *r, const char *format, char **json,
    size_t *n, struct steno_error *err);

typedef int (*steno_record_fn)(void *ctx, const struct steno_record *r);

/*
 * Records with seq > after_seq, oldest first, at most `limit` (0: all). Where `each` returns
 * non-zero, the call stops and returns that value.
 */
STENO_API int steno_read(struct steno_conv *conv, uint64_t after_seq, uint64_t limit,
    steno_record_fn each, void *ctx, struct steno_error *err);
/* Only amendments, newest first. The records between them are not read. */
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
                                        modelmessage, langchain, or stored: every message as it came
                                        (see steno_view) */
        const char *edit_strategies; /* JSON array, or "auto" */
        const char *pin;             /* message id: edit strategies do not see what follows this
                                        message */
        uint64_t budget;             /* tokens; 0: none */
        uint64_t after_seq;          /* only messages after this seq */
        uint64_t before_seq;         /* only messages before this seq; 0: no bound */
        uint64_t limit;              /* messages, oldest first; 0: all */
        uint64_t last;               /* only the last n messages; 0: all */
        int outputs;                 /* enum steno_outputs */
        bool count_tokens;           /* put "tokens" into the report (costs time) */
        bool all_messages;           /* also messages with includeInContext false; `chat` always has
                                        them */
        bool no_ids;                 /* leave "ids" out of the report (a third of its cost) */
        bool strict;                 /* only members that the provider's types have; otherwise
                                        members that Steno does not know are passed on */
        bool own_bytes;              /* for the client that stored the messages: messages that were
                                        sent in this format are returned as they were sent, and the
                                        others are converted to it. All are in full, in their places
                                        and without repairs. Where no message was sent in this
                                        format, the result is the usual view with outputs in full.
                                        No edits, no budget */
        const char *via;             /* the endpoint and model that will read the view, as in
                                        steno_append_options. Parts that only the endpoint that made
                                        them understands (thinking, signatures, members that no API
                                        has) are left out for other endpoints. NULL: nothing is left
                                        out */
        bool every_message;          /* leave no message out: a text stands for a message that the
                                        format cannot express at all, and for a result without a
                                        call; the report says so */
};

/*
 * Streams a JSON array of messages. *report (may be NULL) becomes {"repairs":[{"call","class",
 * "seq",...}],"losses":[{"seq","field",...}],"more_losses"?:n,"damaged":[seq or {"from","to"},...],
 * "damaged_count":n,"tokens":n,"exact":bool,"edits":[...],"first_seq","last_seq","has_more",
 * "ids":[...]}. At most 1,000 damaged ranges are named; damaged_count counts all damaged records.
 * No page, limit or budget ever splits a call from its result.
 *
 * The format "stored" is [{"seq","id","at","fmt","m","meta"?,"note"?}...] for every message: `m` is
 * what its client sent, with every member and token, and with outputs and large tokens put back.
 * `meta` is the metadata that amendments gave it. A message that was superseded is replaced by the
 * one that superseded it. Only deleted messages are left out; records that cannot be read are
 * {"seq","last_seq"?,"damaged":true}. `note` is "rendering only" where an earlier version did not
 * keep the original. Where an output is missing or incomplete, `m` has its stub, and "damaged":true
 * stands beside it. The format takes no edits, no budget and no stubs, and needs constant memory.
 */
STENO_API int steno_view(struct steno_conv *conv, const struct steno_view_options *opt,
    steno_sink sink, void *ctx, char **report, struct steno_error *err);

/* Converts a history (a JSON array) from one format to another. Where `from` is NULL, the format is
 * detected (see below). */
STENO_API int steno_convert(const char *from, const char *to, const char *json, size_t n,
    steno_sink sink, void *ctx, char **report, struct steno_error *err);

struct steno_convert_options {
        size_t size;
        const char *from; /* NULL: detected; where several formats fit, the call fails and names
                             them */
        const char *to;
        bool strict; /* as in steno_view_options */
};
STENO_API int steno_convert_with(const struct steno_convert_options *opt, const char *json,
    size_t n, steno_sink sink, void *ctx, char **report, struct steno_error *err);

/*
 * Is a history in the provider's own format acceptable to it ("openai", "responses", "anthropic",
 * "gemini")? A member that the provider's types do not have is a violation too. *violations is a
 * JSON array of {"rule","message","call"?,"text"}, empty when the history is acceptable.
 */
STENO_API int steno_check_history(
    const char *provider, const char *json, size_t n, char **violations, struct steno_error *err);

/* Tokens of a text (o200k_base); *exact is false when the library was built without the rank data
 * of the tokenizer. */
STENO_API uint64_t steno_count_tokens(const char *text, size_t n, bool *exact);

/*
 * A fold computes the `chat` format one message at a time, for a page that shows a growing history.
 * Messages are in the formats openai, toolmessage2 or toolmessage. steno_fold_json returns the
 * messages so far: the same bytes as the view of the whole history. A result without a call is
 * STENO_EPROTO and changes nothing.
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

/* ------------------------------------------------------------------- forks */

enum steno_fork_flags {
        STENO_FORK_WHOLE_BATCH = 1, /* where the cut is inside a batch, take the whole batch */
};

struct steno_fork_options {
        size_t size;
        uint32_t flags;
        uint64_t at_seq;     /* the last record to take; 0: use `at` or `before` */
        const char *at;      /* the id of the last message to take; NULL: all of them */
        const char *before;  /* the id of the first message not to take; NULL: use `at` */
        const char *id;      /* the fork's id; NULL makes one up */
        const char *project; /* the fork's project; NULL: the same project */
};

/*
 * A new conversation with the history of this one up to a record. Its records have the same seqs,
 * ids, times and bytes. Messages that were deleted or superseded before the cut become tombstones.
 * Amendments behind the cut and idempotency keys are not copied. Where the file system can share
 * file contents, outputs are shared instead of copied; purging or removing one of the conversations
 * does not affect the other. An output that is still being written is copied as far as it has come,
 * and closed. The fork's metadata is that of this conversation, plus "origin":
 * {"project","conversation","uid","seq"}.
 *
 * To replace an earlier message, fork with `before` and append the new message.
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
 * acknowledged before the call is in the copy, and every ref in the copy has its bytes. Outputs
 * that are still being written are copied as far as they have come. A conversation is locked only
 * while its log is synced and its end is noted. Where `path` has an earlier backup, the call copies
 * what has changed, and removes what the store has purged or lost since. The copy has the format of
 * a store; complete.json is written last. It includes the tokens of projects and the settings, but
 * not the server's own token and derived files. *report (may be NULL):
 * {"at","conversations","trashed","records","copied","damaged","findings"?}; `copied` counts bytes.
 * `damaged` counts what was found damaged or lost in the store, except losses that were accepted
 * (steno_check); `findings` has the first 100 as {"project","conversation","what","trash"?}.
 * Damaged bytes are copied as they are, unless the earlier backup has the undamaged ones.
 *
 * STENO_ECONFLICT: the folder is not empty and is not a backup.
 */
STENO_API int steno_backup(struct steno_store *store, const char *path, steno_progress progress,
    void *progress_ctx, char **report, struct steno_error *err);
struct steno_backup_options {
        size_t size;
        steno_progress progress;
        void *progress_ctx;
        bool verify; /* read every file of an earlier backup, and copy again those that are damaged
                        there; the report has their number as "mended". Otherwise files that have
                        not changed since are not read */
};
STENO_API int steno_backup_with(struct steno_store *store, const char *path,
    const struct steno_backup_options *opt, char **report, struct steno_error *err);
/*
 * A backup as one stream, a .tar.zst, which plain `tar --zstd` opens. It always has the whole
 * store. Conversations are copied one after the other into the folder `scratch`, which must be
 * empty or not exist. It is left almost empty, and the caller removes it. A stream that breaks off
 * is not a backup.
 */
STENO_API int steno_backup_stream(struct steno_store *store, const char *scratch, steno_sink sink,
    void *ctx, steno_progress progress, void *progress_ctx, char **report, struct steno_error *err);
/*
 * Makes a store from a backup. STENO_ECONFLICT: something exists at `store_url`; STENO_EPROTO:
 * `path` is not a backup; STENO_ECORRUPT: the last backup into `path` was interrupted. *report (may
 * be NULL): {"files","bytes"}.
 */
STENO_API int steno_restore(
    const char *path, const char *store_url, char **report, struct steno_error *err);
/* The same from a stream, which is checked against its checksum: all of it is restored, or nothing.
 * How far the stream expands is not limited, so use this only for your own backups. */
STENO_API int steno_restore_stream(
    steno_source source, void *ctx, const char *store_url, char **report, struct steno_error *err);

/* ------------------------------------------------------------- maintenance */

/*
 * Moves a conversation to the trash; waits for a running append. *trash_id (may be NULL) tells this
 * conversation from others that were removed under the same id; steno_trash_restore and steno_purge
 * accept it in place of an id.
 */
STENO_API int steno_remove(struct steno_store *store, const char *project, const char *id,
    char **trash_id, struct steno_error *err);
/* Newest first: {"items":[{"project","id","trashId","deletedAt","bytes"}]} */
STENO_API int steno_trash_list(struct steno_store *store, char **json, struct steno_error *err);
/*
 * Restores a conversation from the trash: the one that was removed last under that id, or the one
 * with that trash id. Where `as` is not NULL, it becomes the conversation's id. STENO_ECONFLICT:
 * the id is in use.
 */
STENO_API int steno_trash_restore(struct steno_store *store, const char *project, const char *id,
    const char *as, struct steno_error *err);
/* Deletes for good what was removed more than `days` days ago (0: everything). *count: how many. */
STENO_API int steno_trash_empty(
    struct steno_store *store, unsigned days, uint64_t *count, struct steno_error *err);
/*
 * Removes the bytes of deleted and superseded messages, and their artifacts, from the disk; their
 * seqs stay as tombstones. Where no conversation has that id, all conversations in the trash with
 * that id, or the one with that trash id, are deleted for good. *report:
 * {"messages":n,"bytes":n,"damaged"?:n,"removed":[trash ids]}; `damaged` counts damaged places in
 * the log. They are not purged and may hold deleted bytes; steno_check with `repair` moves them to
 * the quarantine.
 */
STENO_API int steno_purge(struct steno_store *store, const char *project, const char *id,
    char **report, struct steno_error *err);

/* A finding:
 * {"project"?,"conversation"?,"seq"?,"what","repaired","accepted"?,"repairable"?,"trash"?,"note"?}.
 * Without `project` and `conversation` it is about the store. `accepted` is true for a loss that
 * was accepted, now or by an earlier check; any other loss stays a finding, also after a repair.
 * `repairable` is true where a check with `repair` would mend it. `trash` is true for a
 * conversation in the trash, which is checked but not repaired. `note` is true where nothing is
 * damaged. The number of findings counts neither notes nor accepted losses. */
typedef int (*steno_finding_fn)(void *ctx, const char *json);

struct steno_check_options {
        size_t size;
        const char *project; /* NULL: all */
        const char *id;      /* NULL: every conversation */
        bool repair; /* move torn or damaged parts of logs to the quarantine, leaving tombstones;
                        rebuild derived files; delete nothing */
        steno_progress progress;
        void *progress_ctx;
        bool accept; /* with `repair`: note what cannot be mended as an accepted loss */
};

/* Verifies every checksum, every pair of call and result, every ref and store.json; for a whole
 * store the index as well. Returns the number of findings, or a negative code. A file that cannot
 * be read is a finding. Where a repair may not write (STENO_EDENIED) or has no room (STENO_EFULL),
 * the call still checks everything first, and reports nothing as repaired. */
STENO_API int steno_check(struct steno_store *store, const struct steno_check_options *opt,
    steno_finding_fn each, void *ctx, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#include "steno_bundle.h"
#include "steno_import.h"
#include "steno_output.h"
#include "steno_run.h"
#include "steno_search.h"
#include "steno_seal.h"

#endif
