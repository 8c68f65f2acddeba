/*
 * tool_call.c - one call, as the tool that executes it uses it (tool.h). The loop and tests set the
 * table of functions.
 */

#include "tool/tool.h"

int tool_call_write(struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err)
{
        return call->ops->write(call, p, n, err);
}

int tool_call_puts(struct steno_tool_call *call, const char *z, struct steno_error *err)
{
        return call->ops->write(call, z, strlen(z), err);
}

int tool_call_step(struct steno_tool_call *call, const char *text, uint64_t done, uint64_t total,
    struct steno_error *err)
{
        return call->ops->step(call, text, done, total, err);
}

bool tool_call_stopped(const struct steno_tool_call *call)
{
        return steno_stop_requested(call->stop) || tool_call_left_ms(call) == 0;
}

int tool_call_left_ms(const struct steno_tool_call *call)
{
        if (call->deadline == 0)
                return -1;
        int64_t left = call->deadline - time_monotonic_ms();
        if (left <= 0)
                return 0;
        return left > INT32_MAX ? INT32_MAX : (int)left;
}

const char *steno_tool_call_id(const struct steno_tool_call *call)
{
        return call->id;
}

const char *steno_tool_call_args(const struct steno_tool_call *call, size_t *n)
{
        if (n)
                *n = call->args.n;
        return call->args.p;
}

int steno_tool_call_write(
    struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err)
{
        return tool_call_write(call, p, n, err);
}

int steno_tool_call_step(struct steno_tool_call *call, const char *text, uint64_t done,
    uint64_t total, struct steno_error *err)
{
        return tool_call_step(call, text, done, total, err);
}

bool steno_tool_call_stopped(const struct steno_tool_call *call)
{
        return tool_call_stopped(call);
}
