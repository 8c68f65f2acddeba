/*
 * veil_core.h - struct veil, for the files that know how each API spells an answer.
 */
#ifndef GATEWAY_VEIL_CORE_H
#define GATEWAY_VEIL_CORE_H

#include "base/json.h"
#include "gateway/veil.h"
#include "net/sse.h"

/* A call or an item of the round's answer, by the endpoint's number. */
struct veil_slot {
        int64_t index;
        bool known; /* its name is */
        bool hidden;
        int64_t to;      /* its number for the app */
        struct buf held; /* what came of it before its name was known */
        /* Of calls in chat completions, as far as they came; raw inside of their quotes. */
        struct buf id, name, arguments;
        bool is_done; /* its arguments came as an object, which is whole */
};

#define VEIL_FIRST 3 /* members that the app gets from the first answer: id, time, model */

struct veil {
        const struct wire *wire;
        const struct veil_spelling *spelling;
        struct sse sse;
        struct json j;
        struct buf *out; /* of the call at hand */
        struct buf held; /* the end, until it may be told */
        struct buf raw;  /* the round as it came */
        bool stream, last;
        unsigned rounds; /* this one is counted */

        /* of this round */
        struct veil_slot *slots;
        size_t slot_count, slot_cap;
        size_t hidden;    /* calls of context tools */
        size_t calls;     /* calls of the app's */
        bool ended;       /* its end was told, */
        bool whole;       /* and was neither a failure nor a lack of room */
        struct buf usage; /* as it was told last; raw */

        /* of the turn */
        bool any_hidden;
        struct buf first[VEIL_FIRST];
        struct buf usage_before; /* the sum of the rounds before */
        int64_t next;            /* number of the app's next block or item */
        int64_t calls_told;      /* of calls in chat completions */
        int64_t sequence;        /* of the next event, Responses */
        struct buf seen;         /* blocks, items or parts that the app saw; with commas between */
        struct buf words;        /* chat, not streamed: raw inside of its quotes */
        int failed;
};

struct veil_spelling {
        const char *wire;
        const char *first[VEIL_FIRST]; /* names of the members; NULL: none */
        /* One event of a stream; v->j has its data where `is_json`. */
        void (*event)(struct veil *v, struct str name, struct str data, bool is_json);
        /* A whole answer in v->j: notes what it hides and collects what the app sees. */
        void (*look)(struct veil *v);
        /* The whole answer for the app, from the last round's in v->j. */
        void (*put)(struct veil *v, struct buf *out);
};

extern const struct veil_spelling veil_chat, veil_blocks, veil_items, veil_parts;

/* ---- what they share (veil.c) ---- */

/* Another value for a member of an object; without one it is left out. */
struct veil_swap {
        const char *key;
        struct str with;
};
void veil_put_object(struct buf *out, const struct json *j, json_ref obj,
    const struct veil_swap *swaps, size_t count);

/* An event to the app, now or with the end. */
void veil_emit(struct veil *v, struct str name, struct str data);
/* The round's slot with this number, or a new one (*fresh). NULL: no memory. */
struct veil_slot *veil_slot(struct veil *v, int64_t index, bool *fresh);
/* The round has come to its end: `normal` is false where it ran out of room or was refused. */
void veil_ended(struct veil *v, bool normal);
/* Keeps id, time and model of the first answer, */
void veil_keep_first(struct veil *v, const struct json *j, json_ref obj);
/* and gives them for later ones: as many swaps as are written to `to`. */
size_t veil_first(struct veil *v, struct veil_swap to[VEIL_FIRST]);
void veil_keep_usage(struct veil *v, const struct json *j, json_ref usage);
/* Usage of all rounds so far. */
struct str veil_usage(struct veil *v, struct buf *out);
void veil_see(struct veil *v, struct str raw);

#endif
