/*
 * acp_record.h - stores what happens in a session as records of a conversation. Private to acp.
 *
 *   acp_record.c    the session: messages, entries that are not messages, appends
 *   acp_calls.c     tool calls, from their beginning to their end
 *   acp_terminal.c  terminals: four shapes of output
 *   acp_result.c    the outputs of calls and terminals
 *   acp_replay.c    what an agent repeats
 *
 * Messages and results of a session become items. An item is appended at once, except while the
 * agent replays an old session: then it is held back until it is known whether it is already
 * stored.
 */
#ifndef ACP_ACP_RECORD_H
#define ACP_ACP_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acp/acp_index.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/str.h"
#include "steno.h"

/* ---- tool calls ---- */

/* A member of a call: the last value that the agent sent. */
struct acp_member {
        struct acp_member *next;
        char *key;
        char *json;
};

struct acp_call {
        struct acp_call *next, *prev;
        struct acp_node by_id;
        char *id;
        struct acp_member *members; /* in the order in which they first came */
        int64_t began;              /* ms since 1970 */
        bool written;               /* a message has the call */
        uint64_t seq;               /* seq of that message; 0: not stored yet */
        bool over;                  /* completed, failed or cancelled */
        bool cancelled;
        bool unfinished;               /* the recording ended before the call did */
        struct acp_terminal *terminal; /* the terminal whose output becomes the result when the
                                          call is over; owned */
};

/* ---- terminals ---- */

struct acp_terminal {
        struct acp_terminal *next, *prev;
        struct acp_node by_id, by_call;
        uint64_t number; /* in the order in which the terminals appeared */
        char *id;
        char *command;            /* JSON of the command; NULL: not known */
        char *call;               /* the id of the call that shows it; NULL: none yet */
        struct steno_output *out; /* the output for its pieces, as soon as its call is known */
        struct buf text;          /* the whole output (a snapshot), or pieces that wait for their
                                     call */
        bool snapshots;           /* the client sends the whole output each time */
        bool own_call;            /* the terminal is recorded as a call of its own */
        bool ended;
        bool truncated; /* the client had dropped some of the output */
        bool has_exit;
        int64_t exit_code;
        char *signal;
        int64_t began;
};

/* ---- a session ---- */

enum acp_said {
        ACP_SAID_USER,
        ACP_SAID_ASSISTANT,
        ACP_SAID_RESULT,
        ACP_SAID_OTHER,
};

struct acp_item {
        struct acp_item *next;
        enum acp_said kind;
        struct buf json;         /* the message */
        struct buf text;         /* its text, for comparisons */
        struct acp_call **calls; /* the calls that the message makes; borrowed */
        size_t call_count;
        struct acp_call *call; /* the call of a result; owned */
};

struct acp_record {
        struct acp_record *next;
        char *conversation;
        const char *journal;
        struct steno_conv *conv;
        int failed;             /* an error after which nothing more is appended */
        bool refused;           /* something could not be stored; the rest is recorded */
        struct steno_error why; /* the first error of these */
        int64_t now;            /* the time of the frame */
        /* the appends of this journal */
        size_t appended;
        uint64_t *stored; /* seqs of the appends that were made before a kill */
        size_t stored_count;
        /* the message that is arriving */
        enum acp_said open; /* ACP_SAID_OTHER: none */
        char *open_id;
        int64_t open_at;
        struct buf text, thought;
        struct buf blocks;       /* JSON of blocks that are not only text, separated by commas */
        struct acp_member *told; /* for each messageId: the text that was recorded; newest
                                    first */
        char *prompt;            /* the text of the last prompt, without white space */
        bool titled;
        struct acp_call *calls, *last_call;
        struct acp_call *unwritten; /* the first call that is not in a message yet; neither are
                                       the later ones */
        size_t unwritten_count;
        struct acp_index calls_by_id;
        struct acp_terminal *terminals, *last_terminal;
        uint64_t terminal_count; /* number of terminals so far */
        struct acp_index terminals_by_id, terminals_by_call;
        bool replaying;
        struct acp_item *replayed;
        struct acp_item **replayed_end;
};

/* ---- acp_record.c ---- */

struct acp_record_options {
        struct steno_store *store;
        const char *project;
        const char *conversation;
        const char *known; /* the conversation from which this one was forked; NULL: none */
        const char *journal;
        const char *agent;
        const char *cwd; /* NULL: not known */
        bool again;      /* a part of the journal may have been recorded before */
};

int acp_record_open(
    const struct acp_record_options *opt, struct acp_record **out, struct steno_error *err);
/* Closes everything that is still open, in its present state. */
void acp_record_finish(struct acp_record *r);
void acp_record_close(struct acp_record *r);

void acp_record_prompt(struct acp_record *r, const struct json *j, json_ref prompt);
void acp_record_update(struct acp_record *r, const struct json *j, json_ref update);
/* Says that the turn has ended: by an answer to the prompt, or by the state "idle". */
void acp_record_turn_over(struct acp_record *r, bool cancelled);
/* Records something that is not a message, completely; no model is shown it. `words` are for
 * people, `about` has JSON members. A message whose chunks are still arriving stays open, so that a
 * usage figure between two chunks does not split it. */
void acp_record_entry(struct acp_record *r, struct str words, struct str about);
/* Writes the open message, and the calls that are not in a message yet. */
void acp_record_flush(struct acp_record *r);

/* Takes an item: appends it, or keeps it while a session is replayed. */
void acp_record_emit(struct acp_record *r, struct acp_item *item);
struct acp_item *acp_item_new(enum acp_said kind);
void acp_item_free(struct acp_item *item);
/* Appends a message. `of_seq` is as in steno_append_options. *seq (may be NULL) becomes its seq. */
void acp_record_append(struct acp_record *r, struct str message, uint64_t of_seq, bool decided,
    bool sync, uint64_t *seq);
/* Was the next append made before a kill? Then it is skipped. */
bool acp_record_is_stored(struct acp_record *r, uint64_t *seq);
void acp_record_fail(struct acp_record *r, int rc, const struct steno_error *err);
/* Writes "createdAt" or another member with a time: the time of the frame, or `at`. */
void acp_put_time(struct jsonw *w, const char *key, int64_t at);

/* ---- acp_calls.c ---- */

/* Takes tool_call and tool_call_update, and the call in a request for permission. */
void acp_call_take(struct acp_record *r, const struct json *j, json_ref update);
/* Takes tool_call_content_chunk. */
void acp_call_add_content(struct acp_record *r, const struct json *j, json_ref update);
struct acp_call *acp_call_find(struct acp_record *r, const char *id);
const char *acp_call_get(const struct acp_call *c, const char *key); /* JSON, or NULL */
bool acp_call_is(const struct acp_call *c, const char *key, const char *value);
void acp_call_free(struct acp_call *c);
void acp_members_free(struct acp_member *m);
/* Returns the name of a call, and writes its arguments. Free the name with free(). */
char *acp_call_name(const struct acp_call *c);
void acp_call_put(const struct acp_call *c, struct jsonw *w);
/* Writes the other facts about a call as a JSON object. For a `result`, also writes the facts that
 * its `output` does not show. */
void acp_call_put_about(const struct acp_call *c, bool result, struct str output, struct buf *out);
/* Stores the results of calls that have ended, together with their terminals. Checks the call with
 * this id, which has changed, or all calls. */
void acp_call_settle(struct acp_record *r, const char *id);
void acp_calls_settle(struct acp_record *r);
void acp_calls_cancel(struct acp_record *r);
void acp_calls_finish(struct acp_record *r);

/* ---- acp_result.c ---- */

/* Stores the result of a call that is over. */
void acp_call_store_result(struct acp_record *r, struct acp_call *c);
/* Records a terminal that is not a call's result as a call of its own, which no model is shown. */
void acp_terminal_store(struct acp_record *r, struct acp_terminal *t);
/* Writes the id of that call. */
void acp_terminal_call_id(const struct acp_terminal *t, char out[CALL_ID_MAX]);
/* Begins the output of a terminal. */
int acp_output_begin(struct acp_record *r, const char *tool, const char *call, bool terminal,
    struct steno_output **out);

/* ---- acp_terminal.c ---- */

struct acp_terminal *acp_terminal_get(struct acp_record *r, struct str id, bool make);
void acp_terminal_free(struct acp_terminal *t);
void acp_terminal_created(
    struct acp_record *r, const struct json *j, json_ref params, struct str id);
/* Takes the answer to terminal/output or terminal/wait_for_exit. */
void acp_terminal_snapshot(
    struct acp_record *r, struct str id, const struct json *j, json_ref result);
void acp_terminal_released(struct acp_record *r, struct str id);
/* Takes the _meta of an update that has terminal_info, terminal_output, ... */
void acp_terminal_take_meta(
    struct acp_record *r, const char *call, const struct json *j, json_ref meta);
/* Takes terminal_update and terminal_output_chunk of version 2. */
void acp_terminal_update(struct acp_record *r, const struct json *j, json_ref update);
void acp_terminal_chunk(struct acp_record *r, const struct json *j, json_ref update);
/* Says that a call shows a terminal. */
void acp_terminal_attach(struct acp_record *r, struct str id, const struct acp_call *c);
/* Returns the terminal whose output is the result of this call: the first that the call shows, or
 * NULL. Its other terminals are recorded as calls of their own. */
struct acp_terminal *acp_terminal_of_call(struct acp_record *r, const struct acp_call *c);
bool acp_terminals_open(struct acp_record *r, const struct acp_call *c);
/* Removes a terminal from the session. The caller then owns it. */
void acp_terminal_take(struct acp_record *r, struct acp_terminal *t);
/* Ends the terminals that are known only by pieces, because agents do not always report the end. A
 * terminal that no call has shown by now belongs to no call. */
void acp_terminals_turn_over(struct acp_record *r);
/* Records the terminals that have ended and that are not the result of a call: those of the call
 * with this id, or all. */
void acp_terminals_settle_of(struct acp_record *r, const char *call);
void acp_terminals_settle(struct acp_record *r, bool all);

/* ---- acp_replay.c ---- */

void acp_replay_begin(struct acp_record *r);
/* Appends the replayed items that are not stored yet. */
void acp_replay_over(struct acp_record *r);

/* Appends the text of content blocks. *other (may be NULL) is set if there is more than text. */
void acp_put_blocks_text(const struct json *j, json_ref blocks, struct buf *out, bool *other);
void acp_put_block_text(const struct json *j, json_ref block, struct buf *out, bool *other);
/* Copies text without white space, for comparisons. */
void acp_put_bare(struct str text, struct buf *out);

#endif
