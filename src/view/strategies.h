/*
 * strategies.h - the four edit strategies: what a model's context can do without.
 *
 *   remove_tool_result       {keep_recent_n_tool_results=3, tool_result_placeholder="Done",
 *                             keep_tools=[], gt_token?}
 *   remove_tool_call_params  {keep_recent_n_tool_calls=3, keep_tools=[], gt_token?}
 *   middle_out               {token_reduce_to}
 *   token_limit              {limit_tokens}
 *
 * They are always applied in this order; two of one kind are applied in the order given. They work
 * on results and calls in the order of the view. They do not change what a repair made, or messages
 * behind the pin, and never split a pair. The placeholder of a result that has a ref names it:
 * "Done [full output: ctx_...]".
 */
#ifndef VIEW_STRATEGIES_H
#define VIEW_STRATEGIES_H

#include "view/work.h"

/* What `auto` keeps within when no budget is given: half of the smallest contexts in use. */
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
        struct str placeholder; /* text */
        struct str *keep_tools; /* names, text */
        size_t keep_tool_count;
        uint64_t gt_token; /* 0: not given */
        uint64_t tokens;   /* of middle_out and token_limit */
};

/*
 * Reads a JSON array of {"type","params"?}; sorted as they will be applied. STENO_EPROTO: it is
 * no JSON or no array of objects. STENO_EINVAL: an unknown type, or a parameter that is missing
 * or out of range; the message names it.
 */
int strategies_parse(struct str json, struct arena *arena, struct strategy **list, size_t *count,
    struct steno_error *err);

/* Is there one of this kind? */
bool strategies_have(const struct strategy *list, size_t count, enum strategy_kind kind);

/* Applies them. The list must live until they are reported. */
int strategies_apply(
    struct work *w, const struct strategy *list, size_t count, struct steno_error *err);

/*
 * Does nothing if the history fits in `tokens`. Otherwise it removes old results, then old
 * parameters, then, if `limit`, whole messages; each step only if the one before was not enough.
 */
int strategies_auto(struct work *w, uint64_t tokens, bool limit, struct steno_error *err);

/* Adds to w->report what each strategy did to the messages that are left, and how many messages it
 * dropped. Call it once, when nothing else will be dropped; budget_apply does where it trims. */
void strategies_report(struct work *w);

#endif
