/*
 * backend_runs.c - the calls of backend_runs.h, each through the table of its handle: runs, their
 * journals and their mail.
 */
#include "store/backend_call.h"

int backend_run_claim(
    struct backend_conv *conv, struct str id, struct backend_claim **out, struct steno_error *err)
{
        return BACKEND_CALL(conv, run_claim, id, out, err);
}

void backend_run_claim_release(struct backend_claim *claim, bool finished)
{
        if (claim)
                claim->ops->run_claim_release(claim, finished);
}

int backend_run_claim_check(struct backend_claim *claim, struct steno_error *err)
{
        return claim ? claim->ops->run_claim_check(claim, err) : 0;
}

void backend_run_claim_listen(struct backend_claim *claim, run_mail_fn fn, void *ctx)
{
        if (claim)
                claim->ops->run_claim_listen(claim, fn, ctx);
}

int backend_run_mail_send(struct backend_conv *conv, struct str line, struct steno_error *err)
{
        return BACKEND_CALL(conv, run_mail_send, line, err);
}

int backend_watch(struct backend_store *store, struct str project, struct backend_watcher **out,
    struct steno_error *err)
{
        return BACKEND_CALL(store, watch, project, out, err);
}

void backend_watch_end(struct backend_watcher *w)
{
        if (w)
                w->ops->watch_end(w);
}

bool backend_watched(struct backend_store *store, struct str project)
{
        return store->ops->watched(store, project);
}

int backend_aside(struct backend_conv *conv, const char *name, struct backend_store **out,
    const struct env **env, struct steno_error *err)
{
        return conv->ops->aside ? conv->ops->aside(conv, name, out, env, err)
                                : backend_lacks(err, conv->ops, "way to complete a run in memory");
}

int backend_run_last(struct backend_conv *conv, char name[PLAIN_NAME_MAX + 1], enum run_life *out,
    struct steno_error *err)
{
        return BACKEND_CALL(conv, run_last, name, out, err);
}

bool backend_run_is_dead(struct backend_conv *conv, const char *name)
{
        return conv->ops->run_is_dead(conv, name);
}

void backend_run_settle(struct backend_conv *conv, const char *name)
{
        if (conv)
                conv->ops->run_settle(conv, name);
}

void backend_run_settle_all(struct backend_conv *conv)
{
        if (conv)
                conv->ops->run_settle_all(conv);
}

int backend_run_fence(struct backend_conv *conv, const char *name, struct steno_error *err)
{
        return BACKEND_CALL(conv, run_fence, name, err);
}

int backend_run_create(struct backend_conv *conv, struct str id, struct str mode,
    struct backend_run **out, struct steno_error *err)
{
        return BACKEND_CALL(conv, run_create, id, mode, out, err);
}

int backend_run_take_over(
    struct backend_conv *conv, const char *name, struct backend_run **out, struct steno_error *err)
{
        return BACKEND_CALL(conv, run_take_over, name, out, err);
}

void backend_run_close(struct backend_run *run)
{
        if (run)
                run->ops->run_close(run);
}

int backend_run_write(struct backend_run *run, struct str type, struct str data, bool sync,
    uint64_t *seq, struct steno_error *err)
{
        return BACKEND_CALL(run, run_write, type, data, sync, seq, err);
}

int backend_run_read(struct backend_conv *conv, const char *name, uint64_t after, run_event_fn each,
    void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(conv, run_read, name, after, each, ctx, err);
}

int backend_run_wait(struct backend_conv *conv, const char *name, uint64_t after, int timeout_ms,
    struct steno_error *err)
{
        return BACKEND_CALL(conv, run_wait, name, after, timeout_ms, err);
}

int backend_run_look(
    struct backend_conv *conv, const char *name, struct run_state *out, struct steno_error *err)
{
        return BACKEND_CALL(conv, run_look, name, out, err);
}

int backend_run_each(struct backend_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
    struct steno_error *err)
{
        return BACKEND_CALL(conv, run_each, each, ctx, err);
}

int backend_run_find(struct backend_store *store, struct str project, const char *name,
    struct backend_conv **out, struct steno_error *err)
{
        return BACKEND_CALL(store, run_find, project, name, out, err);
}
