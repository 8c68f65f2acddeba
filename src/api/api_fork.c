/*
 * api_fork.c - a new conversation with the history of another up to some record.
 */
#include "api/api_store.h"

#include "base/error.h"

static int note_seq(void *ctx, const struct backend_record *r)
{
        *(uint64_t *)ctx = r->rec.seq;
        return 0;
}

static int seq_of(struct steno_conv *conv, const char *id, uint64_t *seq, struct steno_error *err)
{
        return backend_read_id(conv->backend, str_of(id), note_seq, seq, err);
}

/* Which record is the last one. */
static int find_cut(struct steno_conv *conv, const struct steno_fork_options *opt,
    struct fork_request *q, struct steno_error *err)
{
        const char *at = OPTION(opt, struct steno_fork_options, at, NULL);
        const char *before = OPTION(opt, struct steno_fork_options, before, NULL);
        q->seq = OPTION(opt, struct steno_fork_options, at_seq, 0);
        if ((q->seq != 0) + (at != NULL) + (before != NULL) > 1)
                return error_set(err, STENO_EINVAL, "give only one of at_seq, at and before");
        q->to_end = !q->seq && !at && !before;
        if (!at && !before)
                return 0;
        int rc = seq_of(conv, at ? at : before, &q->seq, err);
        q->seq -= rc == 0 && before;
        return rc;
}

int steno_fork(struct steno_conv *conv, const struct steno_fork_options *opt,
    struct steno_conv **out, struct steno_error *err)
{
        struct steno_store *store = conv->store;
        char made[48];
        struct fork_request q = {0};
        struct backend_conv *backend;
        uint32_t flags = OPTION(opt, struct steno_fork_options, flags, 0);
        const char *id = OPTION(opt, struct steno_fork_options, id, NULL);
        const char *project = OPTION(opt, struct steno_fork_options, project, NULL);
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        if (flags & ~(uint32_t)STENO_FORK_WHOLE_BATCH)
                return error_set(err, STENO_EINVAL, "fork has no flag 0x%x", flags);
        if (!id) {
                id_make(store->env, "conv_", made);
                id = made;
        }
        q.id = str_of(id);
        q.whole_batch = flags & STENO_FORK_WHOLE_BATCH;
        rc = api_conv_check_id(q.id, err);
        if (rc == 0)
                rc = api_store_project(
                    project ? project : backend_conv_project(conv->backend), &q.project, err);
        if (rc == 0)
                rc = find_cut(conv, opt, &q, err);
        if (rc == 0)
                rc = backend_fork(conv->backend, &q, &backend, NULL, err);
        return rc ? rc : api_conv_wrap(store, backend, out, err);
}
