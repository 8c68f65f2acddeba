/*
 * fake_call.h - a call of a tool without a loop around it: its output and its steps are kept.
 */
#ifndef TESTS_LOOP_FAKE_CALL_H
#define TESTS_LOOP_FAKE_CALL_H

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "support/patience.h"
#include "tool/tool.h"

struct fake_call {
        struct steno_tool_call call; /* first, so that the callbacks find the rest */
        struct steno_stop *stop;
        struct buf text;
        _Atomic bool wrote; /* something is in `text` */
        struct buf steps;   /* "text done/total;" each */
        struct tool_result result;
        struct steno_error err;
};

static int fake_write(
    struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err)
{
        (void)err;
        struct fake_call *f = (struct fake_call *)call;
        buf_put(&f->text, p, n);
        f->wrote = true;
        return 0;
}

static int fake_step(struct steno_tool_call *call, const char *text, uint64_t done, uint64_t total,
    struct steno_error *err)
{
        (void)err;
        buf_printf(&((struct fake_call *)call)->steps, "%s %llu/%llu;", text ? text : "-",
            (unsigned long long)done, (unsigned long long)total);
        return 0;
}

static const char *fake_ref(struct steno_tool_call *call)
{
        (void)call;
        return NULL;
}

static const struct tool_call_ops fake_ops = {fake_write, fake_step, fake_ref};

static inline void fake_init(struct fake_call *f)
{
        memset(f, 0, sizeof(*f));
        steno_stop_new(&f->stop, NULL);
        buf_init(&f->text, 64 * MIB);
        buf_init(&f->steps, MIB);
        buf_init(&f->result.extra, MIB);
        f->call.id = "call_1";
        f->call.run_id = "run_1";
        f->call.ops = &fake_ops;
        f->call.stop = f->stop;
        f->call.deadline = time_monotonic_ms() + FOREVER_MS;
}

/* Calls a tool by its offered name; returns what the tool returned. */
static inline int fake_run(
    struct fake_call *f, const struct steno_tools *set, const char *name, const char *args)
{
        const struct tool *t = toolset_find(set, str_of(name));

        if (!t)
                return STENO_ENOTFOUND;
        f->call.args = str_of(args);
        return t->call(t, &f->call, &f->result, &f->err);
}

static inline const char *fake_text(struct fake_call *f)
{
        return buf_cstr(&f->text);
}

static inline const char *fake_steps(struct fake_call *f)
{
        return buf_cstr(&f->steps);
}

static inline void fake_release(struct fake_call *f)
{
        steno_stop_free(f->stop);
        buf_release(&f->text);
        buf_release(&f->steps);
        buf_release(&f->result.extra);
}

#endif
