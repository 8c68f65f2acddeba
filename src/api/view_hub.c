/* view_hub.c - see view_hub.h */
#include "api/view_hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_record_as.h"
#include "base/error.h"
#include "format/standin.h"
#include "model/token.h"

void view_hub_init(struct view_hub *v)
{
        arena_init(&v->arena);
        json_init(&v->tape);
        buf_init(&v->text, 0);
        buf_init(&v->out, 0);
        v->charge = (struct format_charge){0};
        v->h = (struct history){0};
        v->cap = 0;
        v->items = NULL;
}

void view_hub_release(struct view_hub *v)
{
        free(v->h.list);
        free(v->items);
        buf_release(&v->out);
        buf_release(&v->text);
        json_release(&v->tape);
        arena_release(&v->arena);
}

void view_hub_forget(struct view_hub *v)
{
        arena_reset(&v->arena);
        v->charge = (struct format_charge){0};
        v->h.count = 0;
}

/* ---- in ---- */

static bool make_room(struct view_hub *v)
{
        if (v->h.count < v->cap)
                return true;
        size_t cap = v->cap ? v->cap * 2 : 64;
        struct message *list = realloc(v->h.list, cap * sizeof *list);
        if (list)
                v->h.list = list;
        struct hub_item *items = realloc(v->items, cap * sizeof *items);
        if (items)
                v->items = items;
        if (!list || !items)
                return false;
        v->cap = cap;
        return true;
}

static int to_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

enum view_lack view_hub_lack(const struct view_hub *v, const struct about *about)
{
        bool full = v->outputs == STENO_OUTPUTS_FULL;
        if (!v->source->lack || carry_is_plain(about, full))
                return VIEW_LACKS_NOTHING;
        return v->source->lack(v->source->ctx, about, full);
}

/*
 * The message with everything put back, in the arena. Damage to an output costs that output.
 * c->places become where its outputs stand.
 */
static int carry_whole(
    struct view_hub *v, const struct feed_item *item, struct carry_out *c, struct str *out)
{
        const struct about *a = item->about;
        *c = (struct carry_out){.m = item->m, .about = a, .full = v->outputs == STENO_OUTPUTS_FULL};
        if (c->full && view_hub_lack(v, a) == VIEW_LACKS_OUTPUT) {
                view_report_damage(v->report, item->seq, item->seq);
                c->full = false;
        }
        if (a->out_count) {
                c->places = arena_zalloc(&v->arena, a->out_count * sizeof *c->places);
                if (!c->places)
                        return error_nomem(v->err);
        }
        if (carry_is_plain(a, c->full) && !a->out_count) {
                *out = arena_dup(&v->arena, item->m);
                return out->p ? 0 : error_nomem(v->err);
        }
        buf_clear(&v->text);
        int rc = v->source->carry(v->source->ctx, c, to_buf, &v->text, v->err);
        if (v->text.failed)
                rc = buf_check(&v->text, v->err);
        if (rc)
                return rc;
        *out = arena_dup(&v->arena, buf_str(&v->text));
        return out->p ? 0 : error_nomem(v->err);
}

/* The ref object of an output, as a raw value. */
static struct str ref_value(struct view_hub *v, const struct about_out *o)
{
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_str(&w, "id", o->ref);
        jsonw_field_cstr(&w, "kind", "artifact");
        jsonw_field_str(&w, "mimeType", o->mime.n ? o->mime : STR("text/plain"));
        jsonw_field_u64(&w, "byteSize", o->ref_size);
        jsonw_field_i64(&w, "createdAt", id_time(o->ref));
        jsonw_field_str(&w, "hint", o->hint);
        jsonw_object_end(&w);
        struct str s = b.failed ? (struct str){0} : arena_dup(&v->arena, buf_str(&b));
        buf_release(&b);
        return s;
}

/* Texts of an output that were emptied, because the stub stands in the first of them. */
static void drop_emptied(struct message *m, struct part *result)
{
        size_t n = 0;
        for (size_t i = 0; i < result->child_count; i++)
                if (result->children[i].kind != PART_TEXT || result->children[i].text.n)
                        result->children[n++] = result->children[i];
        if (n == result->child_count)
                return;
        result->child_count = n;
        result->raw = (struct str){0};
        message_touch(m);
}

/* Results whose output was taken out get their ref. `text` is what the message was read from. */
static void give_refs(
    struct view_hub *v, const struct carry_out *c, struct str text, struct message *m)
{
        const struct about *a = c->about;
        for (size_t i = 0; a->out_count && i < m->count; i++) {
                struct part *p = &m->parts[i];
                if (p->kind != PART_RESULT || !p->output_raw.p || p->output_raw.p < text.p ||
                    p->output_raw.p >= text.p + text.n)
                        continue;
                uint64_t from = (uint64_t)(p->output_raw.p - text.p);
                for (size_t k = 0; k < a->out_count; k++) {
                        if (c->places[k] < from || c->places[k] >= from + p->output_raw.n ||
                            !a->outs[k].ref.n)
                                continue;
                        if (!p->ref.p)
                                p->ref = ref_value(v, &a->outs[k]);
                        if (!c->full && p->output_kind == OUTPUT_PARTS)
                                drop_emptied(m, p);
                        break;
                }
        }
}

static void hide_results(struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_RESULT)
                        message_set_output(
                            m, &m->parts[i], STR("[This result is kept out of the context.]"));
}

/* A page shows damage where it stands; a provider's format has no mark for it. */
static int add_damage(struct view_hub *v, const struct feed_item *item)
{
        char text[320], which[80] = "this record";
        view_report_damage(v->report, item->seq, item->last_seq);
        if (strcmp(v->format->name, "chat") != 0)
                return 0;
        if (!make_room(v))
                return error_nomem(v->err);
        if (item->last_seq > item->seq)
                snprintf(which, sizeof which, "the records from seq %llu to %llu",
                    (unsigned long long)item->seq, (unsigned long long)item->last_seq);
        snprintf(text, sizeof text,
            "{\"id\":\"damaged_%llu\",\"role\":\"assistant\",\"content\":\"\","
            "\"partType\":\"error\",\"error\":{\"code\":\"CORRUPT_RECORD\",\"message\":"
            "\"%s cannot be read\",\"retryable\":false}}",
            (unsigned long long)item->seq, which);
        struct str m = arena_dup(&v->arena, str_of(text));
        if (!m.p)
                return error_nomem(v->err);
        int rc = json_parse(&v->tape, m.p, m.n, NULL, v->err);
        if (!rc)
                rc = format_read_message(
                    v->format, &v->tape, 0, item->seq, &v->arena, &v->h.list[v->h.count], v->err);
        if (!rc)
                v->items[v->h.count++] = (struct hub_item){.seq = item->seq};
        return rc;
}

static struct str escaped_id(struct view_hub *v, struct str id)
{
        struct buf b;
        buf_init(&b, 0);
        json_put_escaped(&b, id);
        struct str s = arena_dup(&v->arena, buf_str(&b));
        buf_release(&b);
        return s;
}

/* A page knows messages by the ids of their records. What was put in a message's place may bring
 * an id of its own and is shown under that of the message. Providers know no ids of messages. */
static void set_id(struct view_hub *v, const struct feed_item *item, struct message *m)
{
        if (v->format->flags & FORMAT_PROVIDER)
                return;
        if (m->id.p ? str_eq(token_decode(m->id, &v->arena, NULL), item->id)
                    : !(v->format->flags & FORMAT_MESSAGE_IDS) && !item->replaced)
                return;
        if (m->id.p || item->replaced)
                message_touch(m);
        m->id = escaped_id(v, item->id);
}

/* A message that an older version accepted and that has more parts or values than a view can
 * process. */
static int add_opaque(struct view_hub *v, const struct feed_item *item, struct message *to)
{
        static const char NOTE[] = "[This message has too many parts or values for this view. The "
                                   "view stored has all of it.]";
        struct part *p = arena_zalloc(&v->arena, sizeof *p);
        if (!p)
                return error_nomem(v->err);
        *p = (struct part){.kind = PART_TEXT, .text = STR(NOTE)};
        *to = (struct message){.seq = item->seq,
            .role = str_is(item->about->role, "assistant") ? ROLE_ASSISTANT : ROLE_USER,
            .shape = SHAPE_STRING,
            .parts = p,
            .count = 1};
        view_report_loss(v->report, item->seq, STR("content"), "too many parts or values");
        set_id(v, item, to);
        v->items[v->h.count++] =
            (struct hub_item){.seq = item->seq, .id = arena_dup(&v->arena, item->id)};
        return v->arena.failed ? error_nomem(v->err) : 0;
}

/* A copy that lives as long as what was added; most are empty. */
static struct str copy_of(struct view_hub *v, struct str s)
{
        return s.n ? arena_dup(&v->arena, s) : STR("");
}

/* Short parts cost far more memory than their bytes: many of them would take much more than the
 * size of the history suggests. */
static int charge(struct view_hub *v)
{
        if (!format_charge(&v->charge, &v->tape, 0))
                return 0;
        return error_set(v->err, STENO_ELIMIT,
            "%zu parts in %zu messages of %zu bytes are too many for one view; read them page by "
            "page (limit, then after), or in the format stored",
            v->charge.parts, v->h.count + 1, v->charge.bytes);
}

int view_hub_add(struct view_hub *v, const struct feed_item *item)
{
        struct carry_out carried;
        struct str m = {0};
        if (item->damaged)
                return add_damage(v, item);
        if (view_hub_lack(v, item->about) == VIEW_LACKS_PART) {
                struct feed_item lost = {.seq = item->seq, .last_seq = item->seq, .damaged = true};
                return add_damage(v, &lost);
        }
        if (!make_room(v))
                return error_nomem(v->err);
        const struct format *from = format_named(item->fmt);
        int rc = carry_whole(v, item, &carried, &m);
        if (rc)
                return rc;
        struct message *to = &v->h.list[v->h.count];
        if (from)
                rc = json_parse(&v->tape, m.p, m.n, NULL, v->err);
        if (from && !rc && (rc = charge(v)))
                return rc;
        if (from && !rc)
                rc = format_read_message(from, &v->tape, 0, item->seq, &v->arena, to, v->err);
        if (rc == STENO_ENOMEM)
                return rc;
        if (from && rc == STENO_ELIMIT)
                return add_opaque(v, item, to);
        if (!from || rc) {
                /* A message of a format that this build does not know or no longer accepts. */
                view_report_damage(v->report, item->seq, item->seq);
                return 0;
        }
        if (api_record_give_ids(to, item->about, &v->arena))
                return error_nomem(v->err);
        to->after_result = item->after_result;
        to->apart = item->apart;
        to->bereft = item->bereft;
        to->via = copy_of(v, item->about->via);
        give_refs(v, &carried, m, to);
        if (item->hidden)
                hide_results(to);
        set_id(v, item, to);
        to->of = item->about->of;
        v->items[v->h.count++] = (struct hub_item){.seq = item->seq,
            .id = arena_dup(&v->arena, item->id),
            .ref = copy_of(v, item->about->ref),
            .run = copy_of(v, item->about->run),
            .duplicate = item->about->duplicate && !item->about->orphan};
        return v->arena.failed ? error_nomem(v->err) : 0;
}

/* ---- looking up ---- */

/* Of several with one seq the first is the record of that seq; the others were placed there. */
static const struct hub_item *item_of(const struct view_hub *v, uint64_t seq)
{
        size_t lo = 0, hi = v->h.count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (v->items[mid].seq < seq)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo < v->h.count && v->items[lo].seq == seq ? &v->items[lo] : NULL;
}

static const struct hub_item *item_for(struct view_hub *v, const struct message *m)
{
        const struct hub_item *item = m->origin ? item_of(v, m->seq) : NULL;
        const struct hub_item *end = v->items + v->h.count;
        if (!item || item + 1 == end || item[1].seq != m->seq || !m->id.p)
                return item;
        struct str id = token_decode(m->id, &v->arena, NULL);
        for (const struct hub_item *i = item; i < end && i->seq == m->seq; i++)
                if (str_eq(i->id, id))
                        return i;
        return item;
}

static struct str ref_of(void *ctx, const struct message *m)
{
        struct view_hub *v = ctx;
        const struct hub_item *item = item_for(v, m);
        return item ? item->ref : (struct str){0};
}

static enum repair_class classify(
    void *ctx, uint64_t seq, struct str id, struct repair_facts *facts)
{
        struct view_hub *v = ctx;
        const struct hub_item *item = item_of(v, seq);
        if (!item || !v->source->classify)
                return REPAIR_UNRECORDED;
        return v->source->classify(v->source->ctx, item->run, seq, id, facts);
}

/* A segment does not hold the first result of a call that was answered before it; the mark that
 * the append made knows better. */
static void tell_repair(void *ctx, const struct repair_note *note)
{
        struct view_hub *v = ctx;
        struct repair_note told = *note;
        const struct hub_item *item = item_of(v, note->seq);
        if (note->class == REPAIR_ORPHAN && item && item->duplicate) {
                told.class = REPAIR_DUPLICATE;
                told.text = repair_stray_text(REPAIR_DUPLICATE, v->every);
        }
        if (v->left_out)
                view_report_repair_left_out(v->report, &told);
        else
                view_report_repair(v->report, &told);
}

int view_hub_tell_lost(struct view_hub *v, const struct feed_item *item)
{
        for (size_t i = 0; i < item->about->answer_count; i++) {
                struct repair_note note = {.class = REPAIR_ORPHAN,
                    .seq = item->seq,
                    .call = escaped_id(v, item->about->answers[i]),
                    .text = repair_stray_text(REPAIR_ORPHAN, v->every)};
                if (v->left_out)
                        view_report_repair_left_out(v->report, &note);
                else
                        view_report_repair(v->report, &note);
        }
        return v->arena.failed ? error_nomem(v->err) : 0;
}

int view_hub_add_lost(struct view_hub *v, const struct feed_item *item)
{
        size_t before = v->h.count;
        struct writer w = {.format = v->format,
            .arena = &v->arena,
            .on_loss = view_report_loss,
            .loss_ctx = v->report};
        view_report_seq(v->report, item->seq);
        int rc = view_hub_tell_lost(v, item);
        if (!rc)
                rc = view_hub_add(v, item);
        if (!rc && v->h.count > before && standin_results(&w, &v->h.list[before]))
                rc = error_nomem(v->err);
        return rc;
}

/* ---- out ---- */

bool view_hub_has(const struct view_hub *v, enum strategy_kind kind)
{
        struct arena arena;
        struct strategy *list;
        size_t count;
        if (!v->edit_strategies)
                return false;
        if (strcmp(v->edit_strategies, "auto") == 0)
                return kind != STRATEGY_MIDDLE_OUT && (kind != STRATEGY_TOKEN_LIMIT || !v->budget);
        arena_init(&arena);
        bool has = strategies_parse(str_of(v->edit_strategies), &arena, &list, &count, NULL) == 0 &&
                   strategies_have(list, count, kind);
        arena_release(&arena);
        return has;
}

/* *cuts: a token limit is among them, which leaves out the oldest. */
static int edit(struct view_hub *v, struct work *w, bool *cuts)
{
        *cuts = false;
        if (!v->edit_strategies)
                return 0;
        if (strcmp(v->edit_strategies, "auto") == 0) {
                uint64_t tokens = v->budget ? v->budget : STRATEGIES_AUTO_TOKENS;
                *cuts = !v->budget;
                return strategies_auto(w, tokens, !v->budget, v->err);
        }
        struct strategy *list;
        size_t count;
        int rc = strategies_parse(str_of(v->edit_strategies), &v->arena, &list, &count, v->err);
        if (rc)
                return rc;
        *cuts = strategies_have(list, count, STRATEGY_TOKEN_LIMIT);
        return strategies_apply(w, list, count, v->err);
}

struct work view_hub_work(struct view_hub *v, struct history *h)
{
        return (struct work){.h = h,
            .arena = &v->arena,
            .pin = v->pin,
            .ref_of = ref_of,
            .ref_ctx = v,
            .report = v->report->wanted ? &v->report->edits.w : NULL};
}

static int fit(struct view_hub *v, struct work *w, const struct budget_before *before, bool *more)
{
        bool cuts;
        int rc = edit(v, w, &cuts);
        if (rc)
                return rc;
        if (before->there && (cuts ? !w->limited : w->spared)) {
                *more = true;
                return 0;
        }
        /* If a token limit left out messages, it left out all that were not read. */
        if (v->budget)
                rc = budget_apply(w, v->budget, cuts ? NULL : before, more, v->err);
        if (!rc && !*more)
                strategies_report(w);
        return rc;
}

static int edit_and_weigh(
    struct view_hub *v, struct history *h, const struct budget_before *before, bool *more)
{
        *more = false;
        if (!v->edit_strategies && !v->budget && !v->count_tokens)
                return 0;
        struct work w = view_hub_work(v, h);
        w.missing = before->left.count;
        int rc = work_init(&w, v->err);
        if (!rc)
                rc = fit(v, &w, before, more);
        if (!rc && !*more) {
                v->report->counted = true;
                v->report->tokens += work_tokens(&w);
        }
        work_release(&w);
        return rc;
}

static void tell_id(struct view_hub *v, const struct message *m)
{
        const struct hub_item *item = item_for(v, m);
        if (item)
                view_report_id(v->report, item->id);
        else if (m->id.p)
                view_report_id(v->report, token_decode(m->id, &v->arena, NULL));
}

/* A provider gets calls that carry their results as two messages. */
static void tell_ids(struct view_hub *v, const struct history *h)
{
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                tell_id(v, m);
                if ((v->format->flags & FORMAT_PROVIDER) && m->role == ROLE_ASSISTANT &&
                    message_has(m, PART_RESULT))
                        tell_id(v, m);
        }
}

int view_hub_repair(struct view_hub *v, struct history *out)
{
        struct repair_options opt = {
            .synthesize = v->format->flags & (FORMAT_PROVIDER | FORMAT_ANSWERED),
            .classify = classify,
            .classify_ctx = v,
            .keep_strays = v->every,
            .on_note = tell_repair,
            .note_ctx = v};
        int rc = repair_history(&v->h, &opt, &v->arena, out);
        struct writer w = {.arena = &v->arena,
            .valid = v->format->flags & FORMAT_PROVIDER,
            .on_loss = v->left_out ? NULL : view_report_loss,
            .loss_ctx = v->report};
        if (!rc && v->every)
                rc = standin_history(v->format, &w, out, true);
        return rc ? error_nomem(v->err) : 0;
}

static void tell_dropped(void *ctx, size_t i)
{
        struct work *w = ctx;
        struct view_hub *v = w->ref_ctx;
        view_report_loss(v->report, w->h->list[i].seq, STR("message"),
            "the reasoning that belongs to it is gone");
}

static bool is_bereft(const struct view_hub *v, const struct message *m)
{
        return m->bereft && m->role == ROLE_ASSISTANT && m->origin == v->format;
}

/* What a model said behind reasoning that was deleted: the endpoint that made both refuses it. */
static int drop_bereft(struct view_hub *v, struct history *h)
{
        bool any = false;
        for (size_t i = 0; v->format->reasons && i < h->count; i++)
                any |= is_bereft(v, &h->list[i]);
        if (!any)
                return 0;
        struct work w = view_hub_work(v, h);
        int rc = work_init(&w, v->err);
        for (size_t i = 0; !rc && i < h->count; i++)
                if (is_bereft(v, &h->list[i]))
                        work_drop(&w, i, tell_dropped, &w);
        if (!rc)
                work_finish(&w);
        work_release(&w);
        return rc;
}

int view_hub_write_end(
    struct view_hub *v, const struct budget_before *before, bool *more, struct str *json)
{
        struct history h;
        bool provider = v->format->flags & FORMAT_PROVIDER;
        struct writer w = {.out = &v->out,
            .arena = &v->arena,
            .valid = provider,
            .strip_own = provider,
            .strict = v->strict,
            .via = v->via,
            .on_loss = view_report_loss,
            .loss_ctx = v->report,
            .on_repair = tell_repair,
            .repair_ctx = v};
        buf_clear(&v->out);
        int rc = view_hub_repair(v, &h);
        if (!rc)
                rc = edit_and_weigh(v, &h, before, more);
        bool write = !rc && !*more && !before->guess;
        if (write)
                rc = drop_bereft(
                    v, &h); /* after the edits, because they count what they leave out */
        if (write && !rc)
                rc = format_write_history(v->format, &w, &h, v->err);
        if (write && !rc && v->report->wanted && !v->report->no_ids)
                tell_ids(v, &h);
        *json = buf_str(&v->out);
        view_hub_forget(v);
        return rc;
}

int view_hub_write(struct view_hub *v, struct str *json)
{
        static const struct budget_before nothing;
        bool more;
        return view_hub_write_end(v, &nothing, &more, json);
}

/* ---- one by one ---- */

int view_hub_link(struct view_hub *v)
{
        return repair_link(&v->h, &v->arena) ? error_nomem(v->err) : 0;
}

int view_hub_write_one(struct view_hub *v, uint64_t seq, struct str *json, size_t *count)
{
        const struct hub_item *item = item_of(v, seq);
        struct writer w = {.out = &v->out,
            .arena = &v->arena,
            .strip_own = true,
            .on_loss = view_report_loss,
            .loss_ctx = v->report};
        *json = (struct str){0};
        *count = 0;
        if (!item)
                return 0;
        struct history one = {.list = &v->h.list[item - v->items], .count = 1};
        buf_clear(&v->out);
        if (v->every && standin_history(v->format, &w, &one, false))
                return error_nomem(v->err);
        int rc = format_write_history(v->format, &w, &one, v->err);
        if (!rc)
                rc = json_parse(&v->tape, v->out.p, v->out.n, NULL, v->err);
        if (rc)
                return rc;
        *json = buf_str(&v->out);
        *count = json_count(&v->tape, 0);
        return 0;
}
