/*
 * pairing.c - see pairing.h for the rule.
 *
 * Invariants:
 *   1. `calls` holds the calls of the last PAIRING_WINDOW records in order of (seq, index);
 *      those before `first` have left the window and wait for the next compaction.
 *   2. A bucket's chain goes from the newest call to the oldest, so a walk may stop at the first
 *      one that has left the window, and calls of one block stand together within an id.
 *   3. The arrays refer to each other by index and offset, so a clone is four copies.
 *   4. `notes` holds what amendments need to know of the records in the window. The notes of a
 *      record have its seq; notes that are added for it later are further back, and leave the
 *      window later.
 */
#include "model/pairing.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "model/message.h"

#define NONE UINT32_MAX
#define BUCKETS_MIN 64

struct call {
        uint64_t seq;
        uint64_t block;
        uint64_t answered; /* seq of its result, 0 while open */
        uint64_t hash;
        uint32_t index;
        uint32_t id_off;
        uint32_t id_len;
        uint32_t older; /* index of the next call in the bucket's chain */
        bool gone;      /* its message was deleted or replaced */
};

enum note_kind {
        NOTE_NOTHING, /* the note does not count any more */
        NOTE_ID,      /* the hash is that of the record's id */
        NOTE_ANSWER,  /* the record answers the call with this hash */
        NOTE_SPARE,   /* the record has a second result for the call with this hash */
};

struct note {
        uint64_t seq;
        uint64_t hash;
        enum note_kind kind;
};

struct pairing {
        struct call *calls;
        uint32_t first;
        uint32_t count;
        uint32_t cap;
        char *ids;
        uint32_t id_used;
        uint32_t id_cap;
        uint32_t *buckets;
        uint32_t bucket_count; /* a power of two */
        struct note *notes;
        uint32_t first_note;
        uint32_t note_count;
        uint32_t note_cap;
        uint64_t block;      /* first seq of the current block, 0: none is open */
        uint64_t last_block; /* first seq of the latest block that had calls, 0: none yet */
        bool answered;       /* the current block has a result already, so a call begins the next
                                block */
};

struct pairing *pairing_new(void)
{
        struct pairing *p = calloc(1, sizeof *p);
        if (!p)
                return NULL;
        p->bucket_count = BUCKETS_MIN;
        p->buckets = malloc(p->bucket_count * sizeof *p->buckets);
        if (!p->buckets) {
                free(p);
                return NULL;
        }
        pairing_clear(p);
        return p;
}

void pairing_free(struct pairing *p)
{
        if (!p)
                return;
        free(p->calls);
        free(p->ids);
        free(p->buckets);
        free(p->notes);
        free(p);
}

void pairing_clear(struct pairing *p)
{
        p->first = p->count = p->id_used = 0;
        p->first_note = p->note_count = 0;
        p->block = p->last_block = 0;
        p->answered = false;
        memset(p->buckets, 0xff, p->bucket_count * sizeof *p->buckets);
}

static void *copy_of(const void *from, size_t n)
{
        void *to = malloc(n ? n : 1);
        if (to && n)
                memcpy(to, from, n);
        return to;
}

struct pairing *pairing_clone(const struct pairing *p)
{
        struct pairing *c = copy_of(p, sizeof *p);
        if (!c)
                return NULL;
        c->calls = copy_of(p->calls, p->count * sizeof *p->calls);
        c->cap = p->count;
        c->ids = copy_of(p->ids, p->id_used);
        c->id_cap = p->id_used;
        c->buckets = copy_of(p->buckets, p->bucket_count * sizeof *p->buckets);
        c->notes = copy_of(p->notes, p->note_count * sizeof *p->notes);
        c->note_cap = p->note_count;
        if (c->calls && c->ids && c->buckets && c->notes)
                return c;
        pairing_free(c);
        return NULL;
}

static void link_all(struct pairing *p)
{
        memset(p->buckets, 0xff, p->bucket_count * sizeof *p->buckets);
        for (uint32_t i = 0; i < p->count; i++) {
                uint32_t *head = &p->buckets[p->calls[i].hash & (p->bucket_count - 1)];
                p->calls[i].older = *head;
                *head = i;
        }
}

/* Frees the memory of calls that have left the window, once they are more than half of all. */
static void compact(struct pairing *p)
{
        if (p->first < 64 || p->first < p->count / 2)
                return;
        uint32_t live = p->count - p->first;
        uint32_t id_from = p->id_used;
        /* Calls that were moved may have smaller offsets. */
        for (uint32_t i = p->first; i < p->count; i++)
                id_from = p->calls[i].id_off < id_from ? p->calls[i].id_off : id_from;
        memmove(p->calls, p->calls + p->first, live * sizeof *p->calls);
        memmove(p->ids, p->ids + id_from, p->id_used - id_from);
        p->id_used -= id_from;
        for (uint32_t i = 0; i < live; i++)
                p->calls[i].id_off -= id_from;
        p->first = 0;
        p->count = live;
        link_all(p);
}

static bool reserve(struct pairing *p, size_t calls, size_t id_bytes)
{
        if (p->count + calls > p->cap) {
                size_t cap = (p->count + calls) * 2;
                struct call *to = realloc(p->calls, cap * sizeof *to);
                if (!to)
                        return false;
                p->calls = to;
                p->cap = (uint32_t)cap;
        }
        if (p->id_used + id_bytes > p->id_cap) {
                size_t cap = (p->id_used + id_bytes) * 2;
                if (cap > UINT32_MAX)
                        return false;
                char *to = realloc(p->ids, cap);
                if (!to)
                        return false;
                p->ids = to;
                p->id_cap = (uint32_t)cap;
        }
        if (p->count + calls > p->bucket_count) {
                size_t n = p->bucket_count;
                while (n < p->count + calls)
                        n *= 2;
                uint32_t *to = realloc(p->buckets, n * sizeof *to);
                if (!to)
                        return false;
                p->buckets = to;
                p->bucket_count = (uint32_t)n;
                link_all(p);
        }
        return true;
}

static void add_call(struct pairing *p, uint64_t seq, uint32_t index, struct str id)
{
        uint64_t hash = hash_64(id.p, id.n);
        uint32_t *head = &p->buckets[hash & (p->bucket_count - 1)];
        p->calls[p->count] = (struct call){
            .seq = seq,
            .block = p->block,
            .hash = hash,
            .index = index,
            .id_off = p->id_used,
            .id_len = (uint32_t)id.n,
            .older = *head,
        };
        *head = p->count++;
        if (id.n)
                memcpy(p->ids + p->id_used, id.p, id.n);
        p->id_used += (uint32_t)id.n;
}

static bool has_id(const struct pairing *p, const struct call *c, uint64_t hash, struct str id)
{
        return c->hash == hash && str_eq(str_span(p->ids + c->id_off, c->id_len), id);
}

/*
 * Returns the call that a result at `seq` answers: an open call of its own message, else the
 * earliest open call in the latest block that has one. If there is none, returns NULL and sets
 * *answered to the newest answered call of that id, and *gone if a call of that id was deleted or
 * replaced.
 */
static struct call *find_open(
    struct pairing *p, uint64_t seq, struct str id, struct call **answered, bool *gone)
{
        uint64_t hash = hash_64(id.p, id.n);
        struct call *best = NULL;
        *answered = NULL;
        *gone = false;
        for (uint32_t i = p->buckets[hash & (p->bucket_count - 1)]; i != NONE && i >= p->first;
             i = p->calls[i].older) {
                struct call *c = &p->calls[i];
                if (c->seq > seq || !has_id(p, c, hash, id))
                        continue;
                if (c->gone) {
                        *gone = true;
                        continue;
                }
                if (!*answered && c->answered)
                        *answered = c;
                if (best && (c->block != best->block || (best->seq == seq && c->seq != seq)))
                        break;
                if (!c->answered)
                        best = c;
        }
        return best;
}

/* A call without an id is found by its tool's name, or by the derived id that encodes its place. */
static struct call *find_derived(
    struct pairing *p, uint64_t seq, struct str id, struct call **answered, bool *gone)
{
        uint64_t of;
        uint32_t place;
        if (!message_is_derived_id(id, &of, &place) || of > seq)
                return NULL;
        for (uint32_t i = p->count; i-- > p->first && p->calls[i].seq >= of;) {
                struct call *c = &p->calls[i];
                if (c->seq != of || c->index != place)
                        continue;
                *gone |= c->gone;
                if (c->answered && !c->gone)
                        *answered = c;
                return c->answered || c->gone ? NULL : c;
        }
        return NULL;
}

/* Returns the call of that id in the message at `of`; calls of other messages do not count. */
static struct call *find_of(
    struct pairing *p, uint64_t of, struct str id, struct call **answered, bool *gone)
{
        uint64_t hash = hash_64(id.p, id.n);
        struct call *best = NULL;
        *answered = NULL;
        *gone = false;
        for (uint32_t i = p->buckets[hash & (p->bucket_count - 1)]; i != NONE && i >= p->first;
             i = p->calls[i].older) {
                struct call *c = &p->calls[i];
                if (c->seq != of || !has_id(p, c, hash, id))
                        continue;
                *gone = *gone || c->gone;
                if (c->answered && !c->gone)
                        *answered = c;
                else if (!c->gone)
                        best = c;
        }
        return best;
}

/* Returns the call at `place` among those that the message at `seq` has just made. */
static struct call *find_own(struct pairing *p, uint64_t seq, uint32_t place)
{
        for (uint32_t i = p->count; i-- > p->first && p->calls[i].seq >= seq;) {
                struct call *c = &p->calls[i];
                if (c->seq == seq && c->index == place && !c->gone)
                        return c->answered ? NULL : c;
        }
        return NULL;
}

/* Pairs answer `i` of the message at `seq`. `about` has its calls and answers. */
static struct pairing_match match(
    struct pairing *p, uint64_t seq, const struct about *about, size_t i)
{
        struct str id = about->answers[i];
        uint64_t of = about->of;
        uint32_t own = about->answer_calls ? about->answer_calls[i] : 0;
        struct call *answered = NULL;
        bool gone = false;
        struct call *open = own ? find_own(p, seq, own - 1) : NULL;
        if (!open)
                open = of ? find_of(p, of, id, &answered, &gone)
                          : find_open(p, seq, id, &answered, &gone);
        if (!open && !answered && !of)
                open = find_derived(p, seq, id, &answered, &gone);
        struct call *c = open ? open : answered;
        if (!c)
                return (struct pairing_match){
                    PAIRING_ORPHAN, .block_seq = p->last_block, .gone = gone};
        struct pairing_match m = {
            .verdict = open ? PAIRING_OK : PAIRING_DUPLICATE,
            .call_seq = c->seq,
            .call_index = c->index,
            .block_seq = c->block,
            .result_seq = open ? 0 : c->answered,
        };
        if (open)
                open->answered = seq;
        return m;
}

/* Moves the window forward to `seq` and makes room for the calls of a message. */
static bool make_room(struct pairing *p, uint64_t seq, const struct about *about)
{
        size_t id_bytes = 0;
        for (size_t i = 0; i < about->call_count; i++)
                id_bytes += about->calls[i].n;
        while (p->first < p->count && p->calls[p->first].seq + PAIRING_WINDOW < seq)
                p->first++;
        compact(p);
        return reserve(p, about->call_count, id_bytes);
}

int pairing_add(
    struct pairing *p, uint64_t seq, const struct about *about, struct pairing_match *matches)
{
        if (!make_room(p, seq, about))
                return STENO_ENOMEM;
        if (!about->call_count && !about->answer_count)
                p->block = 0;
        if (about->call_count && (!p->block || p->answered)) {
                p->block = p->last_block = seq;
                p->answered = false;
        }
        for (size_t i = 0; i < about->call_count; i++)
                add_call(p, seq, (uint32_t)i, about->calls[i]);
        for (size_t i = 0; i < about->answer_count; i++)
                matches[i] = match(p, seq, about, i);
        if (about->answer_count)
                p->answered = true;
        return 0;
}

void pairing_pass_result(struct pairing *p)
{
        p->answered = true;
}

/* ---- amendments ---- */

static bool reserve_notes(struct pairing *p, uint64_t seq, size_t more)
{
        while (p->first_note < p->note_count && p->notes[p->first_note].seq + PAIRING_WINDOW < seq)
                p->first_note++;
        if (p->first_note >= 64 && p->first_note >= p->note_count / 2) {
                p->note_count -= p->first_note;
                memmove(p->notes, p->notes + p->first_note, p->note_count * sizeof *p->notes);
                p->first_note = 0;
        }
        if (p->note_count + more <= p->note_cap)
                return true;
        size_t cap = (p->note_count + more) * 2;
        struct note *to = realloc(p->notes, cap * sizeof *to);
        if (!to)
                return false;
        p->notes = to;
        p->note_cap = (uint32_t)cap;
        return true;
}

static void add_note(struct pairing *p, uint64_t seq, struct str id, enum note_kind kind)
{
        p->notes[p->note_count++] = (struct note){seq, hash_64(id.p, id.n), kind};
}

static void note_answers(
    struct pairing *p, uint64_t seq, const struct about *about, const struct pairing_match *matches)
{
        for (size_t i = 0; i < about->answer_count; i++)
                if (matches[i].verdict != PAIRING_ORPHAN)
                        add_note(p, seq, about->answers[i],
                            matches[i].verdict == PAIRING_OK ? NOTE_ANSWER : NOTE_SPARE);
}

/* Returns the seq of the message with this id; 0: it has left the window. */
static uint64_t find_place(const struct pairing *p, struct str id)
{
        uint64_t hash = hash_64(id.p, id.n);
        for (uint32_t i = p->note_count; i-- > p->first_note;)
                if (p->notes[i].kind == NOTE_ID && p->notes[i].hash == hash)
                        return p->notes[i].seq;
        return 0;
}

/* The call has lost its result: the first of its spare results replaces it. */
static void reopen(struct pairing *p, struct call *c)
{
        struct note *first = NULL;
        for (uint32_t i = p->first_note; i < p->note_count; i++) {
                struct note *n = &p->notes[i];
                if (n->kind == NOTE_SPARE && n->hash == c->hash && n->seq >= c->seq &&
                    (!first || n->seq < first->seq))
                        first = n;
        }
        c->answered = first ? first->seq : 0;
        if (first)
                first->kind = NOTE_ANSWER;
}

/* Removes the calls and the answers of a message. */
static void take_away(struct pairing *p, uint64_t place)
{
        for (uint32_t i = p->first_note; i < p->note_count; i++)
                if (p->notes[i].seq == place && p->notes[i].kind != NOTE_ID)
                        p->notes[i].kind = NOTE_NOTHING;
        for (uint32_t i = p->first; i < p->count; i++)
                p->calls[i].gone = p->calls[i].gone || p->calls[i].seq == place;
        for (uint32_t i = p->first; i < p->count; i++)
                if (p->calls[i].answered == place && !p->calls[i].gone)
                        reopen(p, &p->calls[i]);
}

static bool had_answer(const struct pairing *p, uint64_t place, struct str id)
{
        uint64_t hash = hash_64(id.p, id.n);
        for (uint32_t i = p->first_note; i < p->note_count; i++)
                if (p->notes[i].seq == place && p->notes[i].kind == NOTE_ANSWER &&
                    p->notes[i].hash == hash)
                        return true;
        return false;
}

/* Moves the `count` calls that were added last to where the calls of `place` are. */
static void move_calls(struct pairing *p, uint64_t place, uint32_t count)
{
        uint32_t old = p->count - count;
        uint32_t at = p->first;
        uint64_t block = place;
        for (; at < old && p->calls[at].seq <= place; at++)
                if (p->calls[at].seq == place)
                        block = p->calls[at].block;
        for (uint32_t i = old; i < p->count; i++)
                p->calls[i].block = block;
        if (at == old)
                return;
        for (uint32_t i = old; i < p->count; i++, at++) {
                struct call c = p->calls[i];
                memmove(&p->calls[at + 1], &p->calls[at], (i - at) * sizeof c);
                p->calls[at] = c;
        }
        link_all(p);
}

/* The caller has reserved the memory, so this cannot fail. */
static void replace(
    struct pairing *p, uint64_t place, const struct about *about, struct pairing_match *matches)
{
        for (size_t i = 0; i < about->answer_count; i++)
                matches[i].verdict =
                    had_answer(p, place, about->answers[i]) ? PAIRING_OK : PAIRING_ORPHAN;
        take_away(p, place);
        for (size_t i = 0; i < about->call_count; i++)
                add_call(p, place, (uint32_t)i, about->calls[i]);
        move_calls(p, place, (uint32_t)about->call_count);
        for (size_t i = 0; i < about->answer_count; i++) {
                struct pairing_match m = match(p, place, about, i);
                /* The call that the replaced message answered may have left the window or been
                 * removed. */
                bool kept = m.verdict == PAIRING_ORPHAN && matches[i].verdict == PAIRING_OK;
                matches[i] = kept ? (struct pairing_match){.verdict = PAIRING_OK} : m;
        }
        note_answers(p, place, about, matches);
}

int pairing_follow(struct pairing *p, uint64_t seq, struct str id, const struct about *about,
    struct pairing_match *matches, uint64_t *place)
{
        bool deletes = str_is(about->kind, "delete");
        bool replaces = about->target.n &&
                        (str_is(about->kind, "supersede") || str_is(about->kind, "tombstone"));
        if (!make_room(p, seq, about) || !reserve_notes(p, seq, 1 + about->answer_count))
                return STENO_ENOMEM;
        uint64_t at = deletes || replaces ? find_place(p, about->target) : seq;
        if (place)
                *place = at;
        if (str_is(about->kind, "meta"))
                return 0;
        if (!deletes && !replaces) {
                int rc = pairing_add(p, seq, about, matches);
                if (rc)
                        return rc;
                add_note(p, seq, id, NOTE_ID);
                note_answers(p, seq, about, matches);
        } else if (at && replaces) {
                replace(p, at, about, matches);
        } else if (at) {
                take_away(p, at);
        } else {
                for (size_t i = 0; i < about->answer_count; i++)
                        matches[i] = (struct pairing_match){.verdict = PAIRING_OK};
        }
        return 0;
}

int pairing_each_open(const struct pairing *p,
    int (*each)(void *ctx, uint64_t call_seq, uint32_t call_index, struct str id), void *ctx)
{
        for (uint32_t i = p->first; i < p->count; i++) {
                const struct call *c = &p->calls[i];
                if (c->answered || c->gone)
                        continue;
                int rc = each(ctx, c->seq, c->index, str_span(p->ids + c->id_off, c->id_len));
                if (rc)
                        return rc;
        }
        return 0;
}
