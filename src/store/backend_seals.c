/*
 * backend_seals.c - the calls of backend_seals.h, each through the table of its handle: seals and
 * their log.
 */
#include "store/backend_call.h"

int backend_seal(struct backend_conv *conv, const struct note_key *key, struct seal_result *out,
    struct steno_error *err)
{
        return BACKEND_CALL(conv, seal, key, out, err);
}

enum seal_standing backend_seal_standing(struct backend_conv *conv)
{
        return conv->ops->seal_standing(conv);
}

uint64_t backend_seal_size(struct backend_conv *conv)
{
        return conv->ops->seal_size(conv);
}

int backend_seal_notes(struct backend_conv *conv, char **text, size_t *n, struct steno_error *err)
{
        return BACKEND_CALL(conv, seal_notes, text, n, err);
}

int backend_seal_prove(
    struct backend_conv *conv, uint64_t seq, struct buf *out, struct steno_error *err)
{
        return BACKEND_CALL(conv, seal_prove, seq, out, err);
}

int backend_seal_name(struct backend_conv *conv, char out[SEAL_CONV], struct steno_error *err)
{
        return BACKEND_CALL(conv, seal_name, out, err);
}

bool backend_seal_has_log(struct backend_store *store)
{
        return store->ops->seal_has_log(store);
}

int backend_seal_log_read(
    struct backend_store *store, struct seal_log *out, struct steno_error *err)
{
        return BACKEND_CALL(store, seal_log_read, out, err);
}

void backend_seal_log_call(struct backend_store *store, const char *conv, struct buf *out)
{
        if (store)
                store->ops->seal_log_call(store, conv, out);
}

int backend_seal_log_sign(
    struct backend_store *store, const struct note_key *key, struct steno_error *err)
{
        return BACKEND_CALL(store, seal_log_sign, key, err);
}

int backend_seal_verify(
    struct backend_conv *conv, const char *name, struct seal_check *check, struct steno_error *err)
{
        return BACKEND_CALL(conv, seal_verify, name, check, err);
}

bool backend_seal_is_known(struct backend_conv *conv, const char *name, const struct seal_log *log)
{
        return conv->ops->seal_is_known(conv, name, log);
}

int backend_seal_verify_log(
    struct backend_store *store, struct seal_check *check, struct steno_error *err)
{
        return BACKEND_CALL(store, seal_verify_log, check, err);
}
