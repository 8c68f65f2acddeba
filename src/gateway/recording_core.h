/*
 * recording_core.h - struct recording, for the files that store one kind of record each.
 *
 * recording.c has the order in which they are called. Every call returns 0 or a code and sets
 * `err`; on failure all of the exchange is tried again later.
 */
#ifndef GATEWAY_RECORDING_CORE_H
#define GATEWAY_RECORDING_CORE_H

#include "base/json.h"
#include "gateway/elements.h"
#include "gateway/recording.h"
#include "gateway/wire.h"

#define RECORDING_ERROR_WORDS (4 * KIB) /* of an error's body that are in its message */

/* One exchange while it is being stored. */
struct recording {
        struct recording_target *to;
        const struct recorder_fate *fate;
        const char *exchange;
        struct exchange_parts parts;
        struct json head;    /* of the request, gateway.c's */
        struct json answer;  /* the head of the answer */
        struct json request; /* the body */
        struct buf list_text;
        struct json list; /* its messages */
        struct elements_link *links;
        size_t count;
        const struct wire *wire;
        struct wire_answer reply;
        char *project, *group, *named, *owner;
        char system[ELEMENTS_CHAIN];
        struct lineage_who who;
        struct lineage_place place;
        struct lineage_place behind; /* what the request says that it goes on behind */
        char base[ELEMENTS_CHAIN];   /* and the history up to there; "": it says nothing */
        struct steno_conv *conv;
        const char *conv_id;
        char chain[ELEMENTS_CHAIN]; /* as far as it is stored */
        bool replied;
        uint64_t last_seq;
        unsigned appended;
        bool told; /* the reply was stored as the model said it, not as the client saw it */
        bool gap_told;
        bool encoded;      /* the answer, which could not be read */
        bool other_choice; /* the client goes on with another choice than the first */
        bool stream;       /* the answer is one */
        bool is_short;     /* it has fewer bytes than it said */
};

/* ---- what the exchange says (recording_read.c) ---- */

/* Leaves k->wire NULL where the request was passed on and is not understood. */
int recording_read_request(struct recording *k, struct steno_error *err);
int recording_read_answer(struct recording *k, struct steno_error *err);

/* The HTTP status of the answer; 0: none came. */
int64_t recording_status(const struct recording *k);
/* Did the answer come to its end? */
bool recording_is_whole(const struct recording *k);
/* Did the endpoint break off before the client could know that it had all? */
bool recording_is_broken_off(const struct recording *k);
/* A string member as a C string; "" where there is none, NULL without memory. The caller frees it.
 */
char *recording_member(const struct json *j, json_ref obj, const char *key);
/* The first text of a message. */
void recording_put_text(const struct json *j, json_ref m, struct buf *out);
/* The name under which the endpoint's own conversation is known here. False: it has none. */
bool recording_name_theirs(const struct recording *k, struct buf *out);

/* ---- its conversation (recording_place.c) ---- */

/* Sets k->place: where in which conversation the request goes on. */
int recording_find_place(struct recording *k, struct steno_error *err);
/* Opens, makes or forks the conversation of k->place. */
int recording_open_conv(struct recording *k, struct steno_error *err);
/* Removes the rest of an earlier attempt at the reply from the views; the record keeps it. */
int recording_supersede(struct recording *k, struct steno_error *err);

/* The record in which another exchange brought this reply along. */
struct recording_brought {
        char id[LINEAGE_CONV];
        char at[TIME_TEXT];
};
/*
 * A client continues as soon as it has read the last event, so its next request may end, and be
 * recorded, before this one. Then that request has already brought this reply into the
 * conversation, and only the facts about the reply are still missing. Without this check the reply
 * would become a fork that nobody made.
 */
bool recording_came_late(struct recording *k, struct recording_brought *b);

/* ---- appending (recording.c) ---- */

/* `format` NULL: Steno's own. `id` (may be NULL) gets the id of the first message. */
int recording_append(struct recording *k, struct str json, const char *format, bool sync,
    char id[LINEAGE_CONV], struct steno_error *err);
/* Notes in the lineage how far the history is stored: as the end of the conversation (`tip`), and
 * as one whose reply may be asked for again (`open`). */
int recording_note_node(struct recording *k, bool tip, bool open, struct steno_error *err);

/* ---- the request (recording_request.c) ---- */

/* Prompt, tools and parameters, where they are not those of the request before. */
int recording_store_beside(struct recording *k, struct steno_error *err);
/* The messages of the request that are new. */
int recording_store_request(struct recording *k, struct steno_error *err);

/* ---- the reply (recording_reply.c) ---- */

/* What the model was told and said in rounds that the gateway answered itself (rounds.h). They are
 * no part of the history that the client sends, so they have no nodes. */
int recording_store_rounds(struct recording *k, char id[LINEAGE_CONV], struct steno_error *err);
/* Appends the messages of the answer; the last one's id is left in `id`. */
int recording_store_reply(
    struct recording *k, bool whole, char id[LINEAGE_CONV], struct steno_error *err);
/* The name under which a reply is known that its own exchange has recorded. */
void recording_name_told(const char *chain, char out[ELEMENTS_CHAIN + 8]);
/* The reply is stored: by its id, and as one that was told by its own exchange. */
int recording_note_reply(struct recording *k, struct steno_error *err);
/* What the endpoint said about the reply, as metadata of its last message. */
int recording_store_facts(struct recording *k, const char *id, bool whole, struct steno_error *err);

/* ---- further choices (recording_choices.c) ---- */

/* The choices behind the first. `asked` is the history up to the end of the request. */
int recording_store_choices(
    struct recording *k, const char *asked, uint64_t asked_seq, struct steno_error *err);
/* The name under which a choice that the client may go on with is known; what stands there is the
 * end of the request. */
void recording_name_choice(const char *conv, const char *chain, struct buf *out);

/* ---- what is not a reply (recording_failure.c) ---- */

/* Records the parts of an answer that its messages do not have: in a message that no model is
 * shown, with the reason and the bytes. `id` gets its id where the answer has no other message. */
int recording_store_odd(struct recording *k, char id[LINEAGE_CONV], struct steno_error *err);
/* An answer that did not come to its end, or is an error. */
int recording_store_failure(struct recording *k, char id[LINEAGE_CONV], struct steno_error *err);

#endif
