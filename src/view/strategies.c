/* strategies.c - applies strategies; see strategies.h. strategies_parse.c reads them. */
#include "view/strategies.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/token.h"
#include "view/ranks.h"
#include "view/tokens.h"

static const char *const NAMES[] = {
    [STRATEGY_REMOVE_TOOL_RESULT] = "remove_tool_result",
    [STRATEGY_REMOVE_TOOL_CALL_PARAMS] = "remove_tool_call_params",
    [STRATEGY_MIDDLE_OUT] = "middle_out",
    [STRATEGY_TOKEN_LIMIT] = "token_limit",
};

/* ---- results and parameters ---- */

static bool is_kept_tool(struct work *w, const struct strategy *s, const struct part *p)
{
        struct str name = p->name.p || !p->peer ? p->name : p->peer->name;
        if (!s->keep_tool_count || !name.p)
                return false;
        name = token_decode(name, &w->weigher.decode, NULL);
        for (size_t i = 0; i < s->keep_tool_count; i++)
                if (str_eq(s->keep_tools[i], name))
                        return true;
        return false;
}

/* Is the text longer than gt_token allows? Without gt_token, every text is. */
static bool is_heavy(const struct strategy *s, struct str text)
{
        if (!s->gt_token)
                return true;
        return text.n > 0 && tokens_count(text.p, text.n) > s->gt_token;
}

static bool remove_result(
    struct work *w, const struct strategy *s, struct message *m, struct part *p)
{
        struct str text = weigh_output(&w->weigher, p);
        if (!is_heavy(s, text))
                return false;
        struct str placeholder = work_placeholder(w, s->placeholder, m, p);
        if (p->output_kind == OUTPUT_TEXT && str_eq(text, placeholder))
                return false;
        message_set_output(m, p, token_make(placeholder, w->arena));
        return true;
}

static bool remove_params(
    struct work *w, const struct strategy *s, struct message *m, struct part *p)
{
        struct str text = weigh_arguments(&w->weigher, p);
        if (!is_heavy(s, text) || str_is(text, "{}"))
                return false;
        message_set_arguments(m, p, STR("{}"));
        return true;
}

/* Changes all but the last keep_recent parts of a kind, oldest first. */
static void remove_old(struct work *w, const struct strategy *s, enum part_kind kind,
    bool (*remove)(struct work *w, const struct strategy *s, struct message *m, struct part *p),
    uint32_t *changed)
{
        uint64_t seen = 0;
        for (int pass = 0; pass < 2; pass++) {
                uint64_t old = seen > s->keep_recent ? seen - s->keep_recent : 0;
                seen = 0;
                for (size_t i = 0; i < w->h->count; i++) {
                        struct message *m = &w->h->list[i];
                        bool touched = false;
                        if (w->dropped[i] || !work_sees(w, i))
                                continue;
                        weigh_forget(&w->weigher);
                        for (size_t k = 0; k < m->count; k++) {
                                struct part *p = &m->parts[k];
                                if (p->kind != kind || is_kept_tool(w, s, p))
                                        continue;
                                if (pass == 1 && seen < old && remove(w, s, m, p)) {
                                        touched = true;
                                        if (changed)
                                                changed[i]++;
                                }
                                seen++;
                        }
                        if (touched)
                                work_reweigh(w, i);
                }
        }
}

/* ---- whole messages ---- */

struct dropping {
        struct work *w;
        struct ranks *ranks; /* the messages that strategies see; may be NULL */
        uint64_t total;
        size_t count;
};

static void count_dropped(void *ctx, size_t i)
{
        struct dropping *d = ctx;
        if (d->w->pin == UINT64_MAX || work_sees(d->w, i))
                d->total -= d->w->weight[i];
        if (d->ranks && work_sees(d->w, i))
                ranks_remove(d->ranks, i);
        d->count++;
}

static size_t drop_oldest(struct work *w, uint64_t limit)
{
        struct dropping d = {.w = w, .total = work_total(w)};
        for (size_t i = 0; i < w->h->count && d.total > limit; i++)
                if (work_sees(w, i))
                        work_drop(w, i, count_dropped, &d);
        w->limited = w->limited || d.count > 0;
        return d.count;
}

/* Drops the middle message until the total is small enough. If two are left, drops the older
 * one. */
static size_t drop_middle(struct work *w, uint64_t reduce_to)
{
        struct ranks ranks;
        if (!ranks_init(&ranks, w->h->count, w->arena))
                return 0;
        for (size_t i = 0; i < w->h->count; i++)
                if (!w->dropped[i] && work_sees(w, i))
                        ranks_add(&ranks, i);
        struct dropping d = {.w = w, .ranks = &ranks, .total = work_total(w)};
        while (d.total > reduce_to && ranks.count > 0) {
                size_t at = ranks.count <= 2 ? 0 : ranks.count / 2;
                work_drop(w, ranks_find(&ranks, at), count_dropped, &d);
                if (w->arena->failed)
                        break;
        }
        return d.count;
}

/* ---- applying and reporting ---- */

static void put_params(struct jsonw *out, const struct strategy *s)
{
        jsonw_key(out, "params");
        jsonw_object(out);
        switch (s->kind) {
        case STRATEGY_REMOVE_TOOL_RESULT:
                jsonw_field_u64(out, "keep_recent_n_tool_results", s->keep_recent);
                jsonw_field_str(out, "tool_result_placeholder", s->placeholder);
                break;
        case STRATEGY_REMOVE_TOOL_CALL_PARAMS:
                jsonw_field_u64(out, "keep_recent_n_tool_calls", s->keep_recent);
                break;
        case STRATEGY_MIDDLE_OUT:
                jsonw_field_u64(out, "token_reduce_to", s->tokens);
                break;
        case STRATEGY_TOKEN_LIMIT:
                jsonw_field_u64(out, "limit_tokens", s->tokens);
                break;
        }
        if (s->keep_tool_count) {
                jsonw_key(out, "keep_tools");
                jsonw_array(out);
                for (size_t i = 0; i < s->keep_tool_count; i++)
                        jsonw_str(out, s->keep_tools[i]);
                jsonw_array_end(out);
        }
        if (s->gt_token) {
                jsonw_field_u64(out, "gt_token", s->gt_token);
        }
        jsonw_object_end(out);
}

static void put_step(struct work *w, const struct work_step *step)
{
        static const char *const what[] = {"results", "calls", "dropped", "dropped"};
        const struct strategy *s = step->strategy;
        uint64_t changed = step->drops ? step->dropped : 0, tokens = 0;
        for (size_t i = 0; i < w->h->count; i++) {
                if (w->dropped[i])
                        continue;
                changed += step->changed[i];
                tokens += step->weight[i];
        }
        jsonw_object(w->report);
        jsonw_field_cstr(w->report, "type", NAMES[s->kind]);
        put_params(w->report, s);
        jsonw_field_u64(w->report, what[s->kind], changed);
        jsonw_field_u64(w->report, "tokens", tokens);
        if (step->automatic) {
                jsonw_field_bool(w->report, "auto", true);
        }
        jsonw_object_end(w->report);
}

void strategies_report(struct work *w)
{
        for (size_t i = 0; i < w->step_count; i++)
                put_step(w, &w->steps[i]);
        w->step_count = 0;
}

/* Returns room for recording what a strategy does. NULL: no report was asked for, or out of
 * memory. */
static struct work_step *add_step(struct work *w, const struct strategy *s, bool automatic)
{
        if (!w->report)
                return NULL;
        if (w->step_count == w->step_cap) {
                size_t cap = w->step_cap ? w->step_cap * 2 : 4;
                struct work_step *to = arena_alloc(w->arena, cap * sizeof *to);
                if (!to)
                        return NULL;
                if (w->step_count)
                        memcpy(to, w->steps, w->step_count * sizeof *to);
                w->steps = to;
                w->step_cap = cap;
        }
        struct work_step step = {.strategy = s, .automatic = automatic};
        step.changed = arena_zalloc(w->arena, (w->h->count + 1) * sizeof *step.changed);
        step.weight = arena_alloc(w->arena, (w->h->count + 1) * sizeof *step.weight);
        if (!step.changed || !step.weight)
                return NULL;
        w->steps[w->step_count] = step;
        return &w->steps[w->step_count++];
}

static void apply_one(struct work *w, const struct strategy *s, bool automatic)
{
        struct work_step *step = add_step(w, s, automatic), unwanted = {0};
        if (!step)
                step = &unwanted;
        switch (s->kind) {
        case STRATEGY_REMOVE_TOOL_RESULT:
                remove_old(w, s, PART_RESULT, remove_result, step->changed);
                break;
        case STRATEGY_REMOVE_TOOL_CALL_PARAMS:
                remove_old(w, s, PART_CALL, remove_params, step->changed);
                break;
        case STRATEGY_MIDDLE_OUT:
                step->drops = true;
                step->dropped = drop_middle(w, s->tokens);
                break;
        case STRATEGY_TOKEN_LIMIT:
                step->drops = true;
                step->dropped = drop_oldest(w, s->tokens) + w->missing;
                break;
        }
        if (step->weight && w->h->count)
                memcpy(step->weight, w->weight, w->h->count * sizeof *step->weight);
}

static int finish(struct work *w, struct steno_error *err)
{
        work_finish(w);
        return w->arena->failed ? error_nomem(err) : weigher_check(&w->weigher, err);
}

int strategies_apply(
    struct work *w, const struct strategy *list, size_t count, struct steno_error *err)
{
        for (size_t i = 0; i < count; i++)
                apply_one(w, &list[i], false);
        return finish(w, err);
}

bool strategies_have(const struct strategy *list, size_t count, enum strategy_kind kind)
{
        for (size_t i = 0; i < count; i++)
                if (list[i].kind == kind)
                        return true;
        return false;
}

int strategies_auto(struct work *w, uint64_t tokens, bool limit, struct steno_error *err)
{
        const struct strategy steps[] = {
            {.kind = STRATEGY_REMOVE_TOOL_RESULT, .keep_recent = 3, .placeholder = STR("Done")},
            {.kind = STRATEGY_REMOVE_TOOL_CALL_PARAMS, .keep_recent = 3},
            {.kind = STRATEGY_TOKEN_LIMIT, .tokens = tokens},
        };
        struct strategy *list = arena_alloc(w->arena, sizeof steps);
        size_t count = limit ? 3 : 2, done = 0;
        if (!list)
                return error_nomem(err);
        memcpy(list, steps, sizeof steps);
        for (; done < count && work_total(w) > tokens; done++)
                apply_one(w, &list[done], true);
        w->spared = done < count;
        return finish(w, err);
}
