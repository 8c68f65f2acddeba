/*
 * strategies.h - the four edit strategies, which remove parts of a model's context.
 *
 *   remove_tool_result       {keep_recent_n_tool_results=3, tool_result_placeholder="Done",
 *                             keep_tools=[], gt_token?}
 *   remove_tool_call_params  {keep_recent_n_tool_calls=3, keep_tools=[], gt_token?}
 *   middle_out               {token_reduce_to}
 *   token_limit              {limit_tokens}
 *
 * They are always applied in this order; two of one kind are applied in the given order. They work
 * on results and calls in the order of the view. They never change messages that a repair made or
 * messages behind the pin, and never split a pair. The placeholder of a result that has a ref names
 * it: "Done [full output: ctx_...]".
 */
#ifndef VIEW_STRATEGIES_H
#define VIEW_STRATEGIES_H

#include "view/work.h"

/* The number of tokens for `auto` if no budget is given: half of the smallest common context
 * size. */
#define STRATEGIES_AUTO_TOKENS 64000

enum strategy_kind {
        STRATEGY_REMOVE_TOOL_RESULT,
        STRATEGY_REMOVE_TOOL_CALL_PARAMS,
        STRATEGY_MIDDLE_OUT,
        STRATEGY_TOKEN_LIMIT,
};

struct strategy {
        enum strategy_kind kind;
        uint64_t keep_recent;
        struct str placeholder; /* decoded text */
        struct str *keep_tools; /* names, as decoded text */
        size_t keep_tool_count;
        uint64_t gt_token; /* 0: not given */
        uint64_t tokens;   /* for middle_out and token_limit */
};

/*
 * Reads a JSON array of {"type","params"?} and sorts it into the order of application.
 * STENO_EPROTO: it is not JSON or not an array of objects. STENO_EINVAL: an unknown type, or a
 * parameter that is missing or out of range; the message names it.
 */
int strategies_parse(struct str json, struct arena *arena, struct strategy **list, size_t *count,
    struct steno_error *err);

/* Does the list have a strategy of this kind? */
bool strategies_have(const struct strategy *list, size_t count, enum strategy_kind kind);

/* Applies the strategies. The list must live until they are reported. */
int strategies_apply(
    struct work *w, const struct strategy *list, size_t count, struct steno_error *err);

/*
 * Does nothing if the history fits in `tokens`. Otherwise removes old results, then old parameters,
 * then (if `limit`) whole messages; each step is taken only if the one before was not enough.
 */
int strategies_auto(struct work *w, uint64_t tokens, bool limit, struct steno_error *err);

/* Adds to w->report what each strategy did to the messages that are left, and how many messages it
 * dropped. Call it once, after the last message was dropped; if budget_apply trims, it makes this
 * call. */
void strategies_report(struct work *w);

#endif
