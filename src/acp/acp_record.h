/*
 * acp_record.h - what happens in a session, as records of a conversation. Private to acp.
 *
 *   acp_record.c    the session: messages, entries that are not messages, appends
 *   acp_calls.c     tool calls, from their beginning to their end
 *   acp_terminal.c  terminals: four shapes of output
 *   acp_result.c    the outputs of both
 *   acp_replay.c    what is told again
 *
 * Messages and results leave a session as items. An item is appended at once. While the agent
 * replays an old session, an item is held back until it is known whether it is already stored.
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
        struct acp_member *members; /* in the order in which they came first */
        int64_t began;              /* ms since 1970 */
        bool written;               /* a message has the call */
        uint64_t seq;               /* of that message; 0: not stored yet */
        bool over;                  /* completed, failed or cancelled */
        bool cancelled;
        bool unfinished;               /* the recording ended before it did */
        struct acp_terminal *terminal; /* whose output is its result, once it is over; owned */
};

/* ---- terminals ---- */

struct acp_terminal {
        struct acp_terminal *next, *prev;
        struct acp_node by_id, by_call;
        uint64_t number; /* in the order in which they were told of */
        char *id;
        char *command;            /* JSON of what was started; NULL: not known */
        char *call;               /* the id of the call that shows it; NULL: none yet */
        struct steno_output *out; /* where pieces go, as soon as its call is known */
        struct buf text;          /* all of it (a snapshot), or pieces without a place yet */
        bool snapshots;           /* the client tells all of it each time */
        bool own_call;            /* it is recorded as a call of its own */
        bool ended;
        bool truncated; /* the client had dropped some */
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
        struct buf text;         /* its text, to be compared */
        struct acp_call **calls; /* that the message makes; borrowed */
        size_t call_count;
        struct acp_call *call; /* of a result; owned */
};

struct acp_record {
        struct acp_record *next;
        char *conversation;
        const char *journal;
        struct steno_conv *conv;
        int failed;             /* an error after which nothing more is appended */
        bool refused;           /* something could not be stored; the rest is recorded */
        struct steno_error why; /* of the first of both */
        int64_t now;            /* the time of the frame */
        /* appends of this journal */
        size_t appended;
        uint64_t *stored; /* seqs of those that are there from before a kill */
        size_t stored_count;
        /* the message that is being told */
        enum acp_said open; /* ACP_SAID_OTHER: none */
        char *open_id;
        int64_t open_at;
        struct buf text, thought;
        struct buf blocks;       /* JSON of what is not text, or says more than text, with commas */
        struct acp_member *told; /* by messageId: the text that was recorded; newest first */
        char *prompt;            /* the text of the last prompt, without white space */
        bool titled;
        struct acp_call *calls, *last_call;
        struct acp_call *unwritten; /* the first call that is not in a message; the later ones are
                                       not either */
        size_t unwritten_count;
        struct acp_index calls_by_id;
        struct acp_terminal *terminals, *last_terminal;
        uint64_t terminal_count; /* that were told of */
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
        const char *known; /* the conversation that this one continues as a fork; NULL: none */
        const char *journal;
        const char *agent;
        const char *cwd; /* NULL: not known */
        bool again;      /* the journal may have been recorded in part */
};

int acp_record_open(
    const struct acp_record_options *opt, struct acp_record **out, struct steno_error *err);
/* Closes whatever is still open, as it is. */
void acp_record_finish(struct acp_record *r);
void acp_record_close(struct acp_record *r);

void acp_record_prompt(struct acp_record *r, const struct json *j, json_ref prompt);
void acp_record_update(struct acp_record *r, const struct json *j, json_ref update);
/* The turn has ended: an answer to the prompt, or the state "idle". */
void acp_record_turn_over(struct acp_record *r, bool cancelled);
/* Records something that is not a message, completely; no model is shown it. `words` are for
 * people, `about` has JSON members. A message whose chunks are still arriving stays open, so that a
 * usage figure between two chunks does not split it. */
void acp_record_entry(struct acp_record *r, struct str words, struct str about);
/* Writes the open message, and the calls that are not in a message yet. */
void acp_record_flush(struct acp_record *r);

/* Takes the item: appends it, or keeps it while something is told again. */
void acp_record_emit(struct acp_record *r, struct acp_item *item);
struct acp_item *acp_item_new(enum acp_said kind);
void acp_item_free(struct acp_item *item);
/* Appends a message. `of_seq` as in steno_append_options. *seq (may be NULL): where it is. */
void acp_record_append(struct acp_record *r, struct str message, uint64_t of_seq, bool decided,
    bool sync, uint64_t *seq);
/* Was the next append already made before a kill? Then it is skipped. */
bool acp_record_is_stored(struct acp_record *r, uint64_t *seq);
void acp_record_fail(struct acp_record *r, int rc, const struct steno_error *err);
/* "createdAt": the time of the frame, or another. */
void acp_put_time(struct jsonw *w, const char *key, int64_t at);

/* ---- acp_calls.c ---- */

/* tool_call and tool_call_update, and the call of a permission. */
void acp_call_take(struct acp_record *r, const struct json *j, json_ref update);
/* tool_call_content_chunk */
void acp_call_add_content(struct acp_record *r, const struct json *j, json_ref update);
struct acp_call *acp_call_find(struct acp_record *r, const char *id);
const char *acp_call_get(const struct acp_call *c, const char *key); /* JSON, or NULL */
bool acp_call_is(const struct acp_call *c, const char *key, const char *value);
void acp_call_free(struct acp_call *c);
void acp_members_free(struct acp_member *m);
/* The name and the arguments of a call; the name is freed with free(). */
char *acp_call_name(const struct acp_call *c);
void acp_call_put(const struct acp_call *c, struct jsonw *w);
/* The other facts about a call, as a JSON object; for a `result` also those that its `output` does
 * not show. */
void acp_call_put_about(const struct acp_call *c, bool result, struct str output, struct buf *out);
/* Stores the results of calls that have ended, together with their terminals: of the call with this
 * id, which has changed, or of all calls. */
void acp_call_settle(struct acp_record *r, const char *id);
void acp_calls_settle(struct acp_record *r);
void acp_calls_cancel(struct acp_record *r);
void acp_calls_finish(struct acp_record *r);

/* ---- acp_result.c ---- */

/* Stores the result of a call that is over. */
void acp_call_store_result(struct acp_record *r, struct acp_call *c);
/* Records a terminal that is not a call's result as a call of its own, which no model is shown. */
void acp_terminal_store(struct acp_record *r, struct acp_terminal *t);
/* The id of that call. */
void acp_terminal_call_id(const struct acp_terminal *t, char out[CALL_ID_MAX]);
/* Begins the output of a terminal. */
int acp_output_begin(struct acp_record *r, const char *tool, const char *call, bool terminal,
    struct steno_output **out);

/* ---- acp_terminal.c ---- */

struct acp_terminal *acp_terminal_get(struct acp_record *r, struct str id, bool make);
void acp_terminal_free(struct acp_terminal *t);
void acp_terminal_created(
    struct acp_record *r, const struct json *j, json_ref params, struct str id);
/* The answer to terminal/output or terminal/wait_for_exit. */
void acp_terminal_snapshot(
    struct acp_record *r, struct str id, const struct json *j, json_ref result);
void acp_terminal_released(struct acp_record *r, struct str id);
/* _meta of an update that has terminal_info, terminal_output, ... */
void acp_terminal_take_meta(
    struct acp_record *r, const char *call, const struct json *j, json_ref meta);
/* terminal_update and terminal_output_chunk of version 2 */
void acp_terminal_update(struct acp_record *r, const struct json *j, json_ref update);
void acp_terminal_chunk(struct acp_record *r, const struct json *j, json_ref update);
/* A call shows a terminal. */
void acp_terminal_attach(struct acp_record *r, struct str id, const struct acp_call *c);
/* The terminal whose output is the result of this call: the first that it shows, or NULL. The
 * others are recorded as calls of their own. */
struct acp_terminal *acp_terminal_of_call(struct acp_record *r, const struct acp_call *c);
bool acp_terminals_open(struct acp_record *r, const struct acp_call *c);
/* Takes it out of the session; the caller owns it. */
void acp_terminal_take(struct acp_record *r, struct acp_terminal *t);
/* Ends the terminals that are known only by pieces, because agents do not always report the end. A
 * terminal that no call has shown by now belongs to no call. */
void acp_terminals_turn_over(struct acp_record *r);
/* Records those that have ended and that no call has as its result: of a call with this id, or
 * of all. */
void acp_terminals_settle_of(struct acp_record *r, const char *call);
void acp_terminals_settle(struct acp_record *r, bool all);

/* ---- acp_replay.c ---- */

void acp_replay_begin(struct acp_record *r);
/* Appends those replayed items that are not stored yet. */
void acp_replay_over(struct acp_record *r);

/* Appends the text of content blocks; *other (may be NULL) when there is more than text. */
void acp_put_blocks_text(const struct json *j, json_ref blocks, struct buf *out, bool *other);
void acp_put_block_text(const struct json *j, json_ref block, struct buf *out, bool *other);
/* Without white space, for comparisons. */
void acp_put_bare(struct str text, struct buf *out);

#endif
