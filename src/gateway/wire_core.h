/*
 * wire_core.h - what the four readers of answers share (wire.h).
 *
 * A reader goes through the answer twice: once with a struct wire_walk, which notes ids, usage,
 * choices and everything odd, and once to build the message, with a provider's own reader or by
 * collecting pieces.
 */
#ifndef GATEWAY_WIRE_CORE_H
#define GATEWAY_WIRE_CORE_H

#include <stdint.h>

#include "gateway/wire.h"
#include "provider/provider_http.h"

#define WIRE_ODD_MAX (4 * KIB)
#define WIRE_CHOICES_MAX 128         /* as many as OpenAI's endpoint gives */
#define WIRE_CHOICES_BYTES (1 * GIB) /* that are read for them, since a stream is read for each */

int wire_read_chat(struct str body, bool stream, struct wire_answer *out);
int wire_read_items(struct str body, bool stream, struct wire_answer *out);
int wire_read_blocks(struct str body, bool stream, struct wire_answer *out);
int wire_read_parts(struct str body, bool stream, struct wire_answer *out);

/* ---- the walk (wire_walk.c) ---- */

/* Each event of a stream, parsed, or the whole body, given to `each`. */
struct wire_walk {
        struct json j;
        int (*each)(struct wire_walk *w, const struct json *j);
        struct wire_answer *out;
        void *own;
        bool stream;
        const char *last; /* the data, or the type, of a stream's last event; NULL: none is known */
        bool any;         /* a part of a reply was seen */
        size_t events, broken, late;
};
int wire_walk_answer(struct wire_walk *w, struct str body, bool stream);

/* Takes a string member, unless one was found before. */
void wire_take_string(const struct json *j, json_ref obj, const char *key, struct buf *out);
void wire_take_word(const struct json *j, json_ref r, char *out, size_t size);
/* The endpoint's words for an error: its message, or all of it. */
void wire_take_problem(const struct json *j, json_ref error, struct wire_answer *out);
void wire_take_usage(const struct json *j, json_ref usage, struct wire_answer *out);

/* Adds a sentence to `odd` unless it stands there already. */
__attribute__((format(printf, 2, 3))) void wire_note_odd(
    struct wire_answer *out, const char *fmt, ...);
/* Notes a role that is not the wanted one. */
void wire_check_role(
    const struct json *j, json_ref role, const char *wanted, struct wire_answer *out);

/* ---- replies (wire_reply.c) ---- */

/* The unchanged message, except that it gets this role, because a message without a legal role
 * cannot be stored. */
void wire_put_with_role(const struct json *j, json_ref message, const char *role, struct buf *out);
/* The message of a whole answer, as it came, in place of what the reader made of it. */
int wire_take_verbatim(struct wire_answer *out, const struct buf *message);
/* Nothing in the answer can be a reply, so it counts as incomplete. `what` is missing. */
void wire_refuse_nothing(struct wire_answer *out, const char *what);
/* One choice of an answer, put together by the provider's own reader. `finish` (may be NULL) gets
 * the endpoint's word for its end. */
int wire_read_as(const struct provider *provider, struct str body, bool stream, int64_t choice,
    struct wire_answer *out, char finish[40]);

/* Which choices a stream has, in the order of their numbers. */
struct wire_choices {
        int64_t index[WIRE_CHOICES_MAX];
        size_t count;
        struct buf message; /* of a whole answer: the first */
};
/* The choices in one event or body, whose walk's `own` begins with a struct wire_choices; those of
 * a body but the first are taken as they are. */
void wire_note_choices(struct wire_walk *w, const struct json *j, json_ref list);
/* A further choice, to be stored beside the first. */
void wire_add_other(struct wire_answer *out, struct str choice);

#endif
