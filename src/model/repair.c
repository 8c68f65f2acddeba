/* repair.c - see repair.h */
#include "model/repair.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/join.h"
#include "model/pairing.h"
#include "model/token.h"

static const struct {
        const char *name;
        const char *text;
} classes[] = {
    [REPAIR_UNRECORDED] = {"unrecorded",
        "[No result was recorded for this tool call. It is not known whether the tool ran; verify "
        "its effects before calling it again.]"},
    [REPAIR_NOT_DISPATCHED] = {"not_dispatched",
        "[This tool was never started and had no effect. Call it again if it is still needed.]"},
    [REPAIR_INDETERMINATE] = {"indeterminate",
        "[This tool was started, but the process died before its result was recorded. Its side "
        "effects are unknown: verify them before a retry.]"},
    [REPAIR_CUT] = {"cut",
        "[The arguments of this tool call were cut off, so it was not run. Call it again with "
        "complete arguments.]"},
    [REPAIR_INTERRUPTED] = {"interrupted",
        "[This tool call was stopped before it finished. It may have had effects in part.]"},
    [REPAIR_RUNNING] = {"running", "[This tool is still running. Its result is not there yet.]"},
    [REPAIR_WAITING] = {"waiting", "[This tool has not been started yet.]"},
    [REPAIR_ORPHAN] = {"orphan", "a result without a call was left out"},
    [REPAIR_DUPLICATE] = {"duplicate", "a second result for the same call was left out"},
    [REPAIR_MOVED] = {"moved", "a result was moved to its call"},
    [REPAIR_RENAMED] = {"renamed",
        "a call got another id: its own occurs twice, or the provider does not accept it"},
};

const char *repair_class_name(enum repair_class c)
{
        return classes[c].name;
}

const char *repair_class_text(enum repair_class c)
{
        return classes[c].text;
}

const char *repair_stray_text(enum repair_class c, bool kept)
{
        if (kept && c == REPAIR_ORPHAN)
                return "a result without a call is shown as a text";
        if (kept && c == REPAIR_DUPLICATE)
                return "a second result for the same call is shown as a text";
        return classes[c].text;
}

struct str repair_id(const struct part *p, struct arena *arena)
{
        return token_decode(p->id.n ? p->id : p->name, arena, NULL);
}

void repair_describe(const struct message *m, struct str *ids, uint32_t *calls, struct arena *arena,
    struct about *out)
{
        *out = (struct about){.calls = ids, .answer_calls = calls};
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_CALL)
                        ids[out->call_count++] = repair_id(&m->parts[i], arena);
        out->answers = ids + out->call_count;
        uint32_t before = 0; /* the number of calls before the part */
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                before += p->kind == PART_CALL;
                if (p->kind != PART_RESULT)
                        continue;
                calls[out->answer_count] = p->with_call ? before : 0;
                out->answers[out->answer_count++] = repair_id(p, arena);
        }
}

/* ---- linking ---- */

struct link {
        struct history *h;
        struct pairing *pairing;
        struct arena *arena;
        struct str *ids; /* these three: room for the largest message */
        uint32_t *calls;
        struct pairing_match *matches;
};

static const struct message *find_seq(const struct history *h, uint64_t seq)
{
        size_t lo = 0, hi = h->count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (h->list[mid].seq < seq)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo < h->count && h->list[lo].seq == seq ? &h->list[lo] : NULL;
}

static struct part *nth_call(const struct message *m, uint32_t n)
{
        for (size_t i = 0; m && i < m->count; i++)
                if (m->parts[i].kind == PART_CALL && n-- == 0)
                        return &m->parts[i];
        return NULL;
}

static int link_message(struct link *l, struct message *m)
{
        struct about a;
        for (size_t i = 0; i < m->count; i++)
                m->parts[i].peer = NULL; /* no earlier message can have set one of these */
        repair_describe(m, l->ids, l->calls, l->arena, &a);
        a.of = m->of;
        if (m->after_result)
                pairing_pass_result(l->pairing);
        if (pairing_add(l->pairing, m->seq, &a, l->matches) || l->arena->failed)
                return STENO_ENOMEM;
        size_t k = 0;
        for (size_t i = 0; a.answer_count && i < m->count; i++) {
                struct part *result = &m->parts[i];
                if (result->kind != PART_RESULT)
                        continue;
                const struct pairing_match *match = &l->matches[k++];
                /* Keeps the reason why a result has no peer, until the result is handled. */
                result->stray = match->verdict;
                result->seq = m->seq;
                if (match->verdict != PAIRING_OK)
                        continue;
                struct part *call = nth_call(find_seq(l->h, match->call_seq), match->call_index);
                result->peer = call;
                if (call) {
                        call->peer = result;
                        call->seq = call->seq ? call->seq : match->call_seq;
                }
        }
        return 0;
}

int repair_link(struct history *h, struct arena *arena)
{
        size_t most = 1;
        for (size_t i = 0; i < h->count; i++) {
                struct message *m = &h->list[i];
                if (m->count > most)
                        most = m->count;
        }
        struct link l = {.h = h, .arena = arena};
        l.ids = arena_alloc(arena, most * sizeof *l.ids);
        l.calls = arena_alloc(arena, most * sizeof *l.calls);
        l.matches = arena_alloc(arena, most * sizeof *l.matches);
        l.pairing = pairing_new();
        int rc = l.ids && l.calls && l.matches && l.pairing ? 0 : STENO_ENOMEM;
        for (size_t i = 0; i < h->count && !rc; i++) {
                message_ahead(h, i);
                rc = link_message(&l, &h->list[i]);
        }
        pairing_free(l.pairing);
        return rc;
}

/* ---- repairing ---- */

/* The place of a result. */
struct place {
        uint32_t message;
        uint32_t part;
};

struct repair {
        struct history *h;
        const struct repair_options *opt;
        struct arena *arena;
        struct message *out;
        size_t count;
        size_t cap;
        bool *done;            /* for each message: it was written */
        size_t next;           /* the first message that is not written yet */
        struct place *results; /* the results of the calls that are being written */
        size_t result_count;
        size_t result_cap;
};

static void note(struct repair *r, enum repair_class class, uint64_t seq, const struct part *p)
{
        struct repair_note n = {class, seq, p->id, repair_stray_text(class, r->opt->keep_strays)};
        if (r->opt->on_note)
                r->opt->on_note(r->opt->note_ctx, &n);
}

static void *grow(struct arena *arena, void *list, size_t count, size_t *cap, size_t size)
{
        size_t wider = *cap ? *cap * 2 : 16;
        void *to = arena_alloc(arena, wider * size);
        if (!to)
                return NULL;
        if (count)
                memcpy(to, list, count * size);
        *cap = wider;
        return to;
}

static struct message *put(struct repair *r, const struct message *m)
{
        if (r->count == r->cap) {
                struct message *to = grow(r->arena, r->out, r->count, &r->cap, sizeof *to);
                if (!to)
                        return NULL;
                r->out = to;
        }
        r->out[r->count] = *m;
        return &r->out[r->count++];
}

/* Writes a message with some of the parts of another one. Peers then point to the copies. */
static int put_some(struct repair *r, const struct message *m, enum role role, bool results,
    const struct place *only, size_t only_count)
{
        struct part *parts = arena_alloc(r->arena, (m->count + 1) * sizeof *parts);
        if (!parts)
                return STENO_ENOMEM;
        struct message some = *m;
        some.raw = (struct str){0};
        some.role = role;
        some.parts = parts;
        some.count = 0;
        if (results)
                some.extras = NULL;
        for (size_t i = 0; i < m->count; i++) {
                bool wanted = !results ? m->parts[i].kind != PART_RESULT : false;
                for (size_t k = 0; k < only_count; k++)
                        wanted |= only[k].part == i;
                if (!wanted)
                        continue;
                struct part *p = &parts[some.count++];
                *p = m->parts[i];
                if (p->peer)
                        p->peer->peer = p;
        }
        return put(r, &some) ? 0 : STENO_ENOMEM;
}

static size_t index_of(const struct repair *r, const struct part *p, size_t from)
{
        for (size_t i = from; i < r->h->count; i++) {
                const struct message *m = &r->h->list[i];
                if (p >= m->parts && p < m->parts + m->count)
                        return i;
        }
        return r->h->count;
}

static int add_result(struct repair *r, size_t message, size_t part)
{
        if (r->result_count == r->result_cap) {
                struct place *to =
                    grow(r->arena, r->results, r->result_count, &r->result_cap, sizeof *to);
                if (!to)
                        return STENO_ENOMEM;
                r->results = to;
        }
        struct place at = {(uint32_t)message, (uint32_t)part};
        size_t i = r->result_count++;
        for (; i > 0; i--) {
                struct place *before = &r->results[i - 1];
                if (before->message < at.message ||
                    (before->message == at.message && before->part < at.part))
                        break;
                r->results[i] = *before;
        }
        r->results[i] = at;
        return 0;
}

/* Collects the results of the calls of messages [from, to), in the order in which they came. */
static int collect(struct repair *r, size_t from, size_t to)
{
        r->result_count = 0;
        for (size_t i = from; i < to; i++) {
                const struct message *m = &r->h->list[i];
                for (size_t k = 0; k < m->count; k++) {
                        const struct part *result = m->parts[k].peer;
                        if (m->parts[k].kind != PART_CALL || !result)
                                continue;
                        size_t at = index_of(r, result, i);
                        if (at == i || at == r->h->count)
                                continue;
                        if (add_result(r, at, (size_t)(result - r->h->list[at].parts)))
                                return STENO_ENOMEM;
                }
        }
        return 0;
}

static bool stays_whole(const struct repair *r, size_t i, size_t results)
{
        const struct message *m = &r->h->list[i];
        if (message_count(m, PART_RESULT) != results || message_has(m, PART_CALL))
                return false;
        return m->count == results || i == r->next;
}

static void skip_done(struct repair *r)
{
        while (r->next < r->h->count && r->done[r->next])
                r->next++;
}

static int put_results(struct repair *r)
{
        for (size_t i = 0, n; i < r->result_count; i += n) {
                size_t at = r->results[i].message;
                const struct message *m = &r->h->list[at];
                for (n = 1; i + n < r->result_count && r->results[i + n].message == at;)
                        n++;
                bool whole = stays_whole(r, at, n);
                for (size_t k = 0; k < n && at != r->next; k++)
                        note(r, REPAIR_MOVED, m->seq, &m->parts[r->results[i + k].part]);
                if (whole) {
                        if (!put(r, m))
                                return STENO_ENOMEM;
                        r->done[at] = true;
                        skip_done(r);
                } else if (put_some(r, m, ROLE_TOOL, true, r->results + i, n)) {
                        return STENO_ENOMEM;
                }
        }
        return 0;
}

/* Arguments that end in the middle of a value were cut off, so nobody can have run the call (F4).
 * Arguments that are invalid JSON for another reason arrived complete, and whether somebody ran the
 * call is not known. */
static bool is_cut(struct repair *r, const struct part *call)
{
        if (!call->arguments_text || call->call == CALL_CUSTOM)
                return false;
        struct str text = token_decode(call->arguments, r->arena, NULL);
        size_t start;
        return text.n && !json_valid(text.p, text.n, NULL) &&
               json_scan_value(text.p, text.n, false, &start, NULL) == 0;
}

static enum repair_class classify(
    struct repair *r, const struct message *m, const struct part *call, struct repair_facts *facts)
{
        enum repair_class class = REPAIR_UNRECORDED;
        *facts = (struct repair_facts){0};
        if (r->opt->classify)
                class = r->opt->classify(
                    r->opt->classify_ctx, m->seq, repair_id(call, r->arena), facts);
        return class == REPAIR_UNRECORDED && is_cut(r, call) ? REPAIR_CUT : class;
}

/* Returns the text of the class, with the id of the artifact that holds the output so far. */
static struct str text_of(struct repair *r, enum repair_class class, const struct repair_facts *f)
{
        struct str text = str_of(classes[class].text);
        static const char BEFORE[] = " What had arrived of its output is stored as ";
        size_t n = text.n + sizeof BEFORE + f->ref_id.n + 2;
        char *longer = f->ref_id.n ? arena_alloc(r->arena, n) : NULL;
        if (!longer)
                return text;
        int len = snprintf(longer, n, "%.*s%s%.*s.]", (int)text.n - 1, text.p, BEFORE,
            (int)f->ref_id.n, f->ref_id.p);
        return str_span(longer, (size_t)len);
}

/* Writes the state into the call itself, for a history that a page shows. */
static void tell_state(struct repair *r, const struct message *m, struct part *call)
{
        struct repair_facts f;
        enum repair_class class = classify(r, m, call, &f);
        if (class == REPAIR_UNRECORDED)
                return;
        call->state = classes[class].name;
        call->run = f.run;
        if (!call->steps.p)
                call->steps = f.steps;
        if (!call->invoked_at.p)
                call->invoked_at = f.invoked_at;
        if (!call->ref.p)
                call->ref = f.ref;
}

static int put_synthetic(struct repair *r, const struct message *m, struct part *call, size_t n)
{
        struct repair_facts facts;
        enum repair_class class = classify(r, m, call, &facts);
        struct message *made = message_new(r->arena, ROLE_TOOL, 1);
        char *name = arena_alloc(r->arena, 48);
        if (!made || !name)
                return STENO_ENOMEM;
        int len = snprintf(name, 48, "syn_%llu_%zu", (unsigned long long)m->seq, n);
        made->seq = m->seq;
        made->id = str_span(name, (size_t)len);
        made->count = 1;
        made->parts[0] = (struct part){
            .kind = PART_RESULT,
            .id = call->id,
            .name = call->name,
            .error = true,
            .ending = class == REPAIR_INTERRUPTED ? ENDING_INTERRUPTED
                      : class == REPAIR_CUT       ? ENDING_CUT
                                                  : ENDING_OWN,
            .output_kind = OUTPUT_TEXT,
            .output = text_of(r, class, &facts),
            .steps = facts.steps,
            .invoked_at = facts.invoked_at,
            .ref = facts.ref,
            .peer = call,
        };
        call->peer = &made->parts[0];
        note(r, class, m->seq, call);
        return put(r, made) ? 0 : STENO_ENOMEM;
}

/* Adds what is missing for the open calls of the messages [from, to) of the output. */
static int put_missing(struct repair *r, size_t from, size_t to)
{
        for (size_t i = from; i < to; i++) {
                struct message m = r->out[i];
                for (size_t k = 0, n = 0; k < m.count; k++) {
                        struct part *call = &m.parts[k];
                        if (call->kind != PART_CALL)
                                continue;
                        if (!call->peer && !r->opt->synthesize)
                                tell_state(r, &m, call);
                        else if (!call->peer && put_synthetic(r, &m, call, n))
                                return STENO_ENOMEM;
                        n++;
                }
        }
        return 0;
}

/* Returns the end of the run of items of one turn that begins with message `i`, which makes
 * calls. */
static size_t run_end(const struct repair *r, size_t i)
{
        size_t end = i + 1;
        if (!r->h->list[i].item)
                return end;
        for (size_t k = end; k < r->h->count; k++) {
                const struct message *m = &r->h->list[k];
                if (!m->item || m->role != ROLE_ASSISTANT || r->done[k])
                        break;
                if (message_has(m, PART_CALL))
                        end = k + 1;
                else if (message_count(m, PART_OPAQUE) != m->count)
                        break; /* texts begin a new turn */
        }
        return end;
}

static void note_strays(struct repair *r, const struct message *m)
{
        for (size_t k = 0; k < m->count; k++) {
                const struct part *p = &m->parts[k];
                if (p->kind == PART_RESULT && !p->peer)
                        note(r, p->stray == PAIRING_DUPLICATE ? REPAIR_DUPLICATE : REPAIR_ORPHAN,
                            m->seq, p);
        }
}

/* Lists the places of the results without a call in a message. NULL: out of memory. */
static struct place *find_strays(struct repair *r, const struct message *m, size_t *count)
{
        struct place *list = arena_alloc(r->arena, (m->count + 1) * sizeof *list);
        *count = 0;
        for (size_t k = 0; list && k < m->count; k++)
                if (m->parts[k].kind == PART_RESULT && !m->parts[k].peer)
                        list[(*count)++] = (struct place){0, (uint32_t)k};
        return list;
}

/* Writes the rest of a message whose results were moved to their calls or left out. */
static int put_rest(struct repair *r, const struct message *m)
{
        size_t results = message_count(m, PART_RESULT);
        if (!results)
                return put(r, m) ? 0 : STENO_ENOMEM;
        note_strays(r, m);
        struct place *keep = NULL;
        size_t kept = 0;
        if (r->opt->keep_strays && !(keep = find_strays(r, m, &kept)))
                return STENO_ENOMEM;
        if (m->count == results && !kept)
                return 0;
        return put_some(r, m, m->role, false, keep, kept);
}

/* Writes a message with calls. Results in it stay there, except those without a call. */
static int put_caller(struct repair *r, const struct message *m)
{
        if (!message_has(m, PART_RESULT))
                return put(r, m) ? 0 : STENO_ENOMEM;
        size_t kept = 0, strays = 0;
        struct place *keep = arena_alloc(r->arena, message_count(m, PART_RESULT) * sizeof *keep);
        if (!keep)
                return STENO_ENOMEM;
        for (size_t k = 0; k < m->count; k++) {
                const struct part *p = &m->parts[k];
                if (p->kind != PART_RESULT)
                        continue;
                bool own = p->peer && p->peer >= m->parts && p->peer < m->parts + m->count;
                if (own || (r->opt->keep_strays && !p->peer))
                        keep[kept++] = (struct place){0, (uint32_t)k};
                strays += !own;
        }
        if (!strays)
                return put(r, m) ? 0 : STENO_ENOMEM;
        note_strays(r, m);
        return put_some(r, m, m->role, false, keep, kept);
}

int repair_history(
    struct history *h, const struct repair_options *opt, struct arena *arena, struct history *out)
{
        struct history joined;
        if (join_pieces(h, arena, &joined))
                return STENO_ENOMEM;
        h = &joined;
        struct repair r = {.h = h, .opt = opt, .arena = arena};
        r.done = arena_zalloc(arena, h->count + 1);
        r.cap = h->count + 1; /* enough if nothing is split or made */
        r.out = arena_alloc(arena, r.cap * sizeof *r.out);
        if (!r.done || !r.out || repair_link(h, arena))
                return STENO_ENOMEM;
        for (size_t i = 0; i < h->count; i++) {
                message_ahead(h, i);
                if (r.done[i])
                        continue;
                r.done[i] = true;
                skip_done(&r);
                struct message *m = &h->list[i];
                if (!message_has(m, PART_CALL)) {
                        if (put_rest(&r, m))
                                return STENO_ENOMEM;
                        continue;
                }
                size_t end = run_end(&r, i), from = r.count;
                for (size_t k = i; k < end; k++) {
                        if (put_caller(&r, &h->list[k]))
                                return STENO_ENOMEM;
                        r.done[k] = true;
                }
                skip_done(&r);
                size_t to = r.count;
                if (collect(&r, i, end) || put_results(&r) || put_missing(&r, from, to))
                        return STENO_ENOMEM;
        }
        *out = (struct history){r.out, r.count};
        return arena->failed;
}
