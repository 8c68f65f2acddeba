/* probe.c - see probe.h */
#include "support/probe.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "support/probe_state.h"

#define SLOTS_MAX 256

const struct steno_backend *probe_below;

static atomic_ulong counts[SLOTS_MAX];
static atomic_ulong could_fail;
static unsigned long fail_at;
static const char *failed;
static _Thread_local size_t depth;
static _Thread_local size_t at_work;

void probe_watch(const struct steno_backend *below)
{
        probe_below = below;
        for (size_t i = 0; i < SLOTS_MAX; i++)
                atomic_store(&counts[i], 0);
        probe_fail_at(0);
}

unsigned long probe_calls(size_t slot)
{
        return atomic_load(&counts[slot]);
}

void probe_fail_at(unsigned long n)
{
        fail_at = n;
        failed = NULL;
        atomic_store(&could_fail, 0);
}

unsigned long probe_could_fail(void)
{
        return atomic_load(&could_fail);
}

const char *probe_failed(void)
{
        return failed;
}

bool probe_is_inside(void)
{
        return depth > 0;
}

void probe_enter(size_t slot)
{
        atomic_fetch_add(&counts[slot], 1);
        at_work = slot;
        depth++;
}

void probe_leave(void)
{
        depth--;
}

bool probe_fails(struct steno_error *err)
{
        if (atomic_fetch_add(&could_fail, 1) + 1 != fail_at)
                return false;
        failed = probe_names[at_work];
        error_set(err, STENO_EIO, "this call of %s was planted to fail", failed);
        return true;
}
