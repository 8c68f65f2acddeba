/* carry.c - see carry.h */
#include "steno/carry.h"

#include "base/error.h"

int carry_in(struct steno_conv *conv, const struct json *j, json_ref msg,
    const struct carry_options *opt, struct arena *arena, struct about *about, struct str *m,
    struct steno_error *err)
{
        (void)conv;
        (void)opt;
        (void)arena;
        (void)about;
        (void)err;
        *m = json_raw(j, msg);
        return 0;
}

bool carry_is_plain(const struct about *about, bool full)
{
        return about->part_count == 0 && !(full && about->ref.n);
}

int carry_out(struct steno_conv *conv, struct str m, const struct about *about, bool full,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        (void)conv;
        (void)about;
        (void)full;
        return sink(ctx, m.p, m.n) ? error_set(err, STENO_EINTERRUPTED, "stopped by the caller")
                                   : 0;
}

int carry_policy(const struct steno_store *store, const char *profile, uint64_t max_chars,
    uint64_t max_bytes, struct policy *out, struct steno_error *err)
{
        enum policy_profile p;
        struct str name = str_of(profile ? profile : store->settings.profile);
        if (!policy_profile_parse(name, &p))
                return error_set(err, STENO_EINVAL, "there is no profile \"%.40s\"", profile);
        policy_init(out, p, max_chars ? max_chars : store->settings.max_inline_chars,
            max_bytes ? max_bytes : store->settings.max_inline_bytes);
        return 0;
}
