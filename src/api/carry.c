/*
 * carry.c - see carry.h: the way in.
 *
 * A message that fits in a log line is stored unchanged, and costs only a check of its size.
 */
#include "api/carry.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "api/carry_calls.h"
#include "api/carry_outs.h"

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

static int set_sha(
    struct str raw, struct arena *arena, struct about *about, struct steno_error *err)
{
        char hex[SHA256_HEX];
        if (hash_sha256_hex(raw.p, raw.n, hex))
                return error_nomem(err);
        about->sha = arena_dup(arena, str_of(hex));
        return about->sha.p ? 0 : error_nomem(err);
}

void carry_undo(struct steno_conv *conv, const struct about *about)
{
        for (size_t i = 0; i < about_ref_slots(about); i++) {
                struct str ref = about_ref_at(about, i);
                if (ref.n)
                        backend_artifact_undo(conv->backend, ref.p);
        }
}

/* Artifacts of a message that is not stored, before about names them. */
static void undo_swaps(struct steno_conv *conv, const struct carry_swaps *swaps)
{
        for (size_t i = 0; i < swaps->count; i++)
                if (swaps->list[i].out.ref.n)
                        backend_artifact_undo(conv->backend, swaps->list[i].out.ref.p);
}

/* The message as it is so far: first what came, then one that is shorter. */
struct stage {
        struct json j;
        struct buf text;
};

static int parse_stage(struct stage *s, struct carry_message *msg, struct steno_error *err)
{
        int rc = json_parse(&s->j, s->text.p, s->text.n, NULL, err);
        msg->j = &s->j;
        msg->at = 0;
        return rc;
}

/* Results become stubs, then responses in the assistant's text. */
static int take_outputs(struct steno_conv *conv, struct carry_message *msg,
    const struct carry_options *opt, struct carried *to, struct stage *stages,
    struct steno_error *err)
{
        struct carry_swaps swaps = {0};
        struct str raw = json_raw(msg->j, msg->at);
        int rc = 0;
        if (str_is(to->about->role, "assistant") && !opt->decided)
                rc = carry_calls_in(conv, msg, opt, to, &swaps, err);
        if (rc == 0 && to->about->answer_count)
                rc = carry_outs_take(conv, msg, opt, to, &swaps, err);
        if (rc == 0 && swaps.count) {
                rc = carry_swaps_apply(&swaps, raw, to->arena, to->about, &stages[0].text, err);
                if (rc == 0)
                        rc = parse_stage(&stages[0], msg, err);
        }
        if (rc)
                undo_swaps(conv, &swaps);
        to->made = rc == 0 && swaps.count;
        return rc;
}

static int carry_large(struct steno_conv *conv, struct carry_message *msg,
    const struct carry_options *opt, struct carried *to, struct steno_error *err)
{
        struct stage stages[2];
        struct carry_message now = *msg;
        for (size_t i = 0; i < 2; i++) {
                json_init(&stages[i].j);
                buf_init(&stages[i].text, 0);
        }
        int rc = take_outputs(conv, &now, opt, to, stages, err);
        bool cut = rc == 0 && carry_parts_needed(now.j, now.at);
        if (cut)
                rc = carry_parts_cut(conv, now.j, now.at, to, &stages[1].text, err);
        const struct buf *text = cut ? &stages[1].text : &stages[0].text;
        if (rc == 0 && text->n) {
                to->m = arena_dup(to->arena, buf_str(text));
                rc = to->m.p ? 0 : error_nomem(err);
        }
        if (rc && to->made) {
                carry_undo(conv, to->about);
                to->made = false;
        }
        for (size_t i = 0; i < 2; i++) {
                json_release(&stages[i].j);
                buf_release(&stages[i].text);
        }
        return rc;
}

int carry_in(struct steno_conv *conv, const struct carry_message *msg,
    const struct carry_options *opt, struct carried *to, struct steno_error *err)
{
        struct str raw = json_raw(msg->j, msg->at);
        struct carry_message copy = *msg;
        to->m = raw;
        to->made = false;
        if (raw.n <= INLINE_BYTES_FLOOR)
                return 0;
        int rc = carry_large(conv, &copy, opt, to, err);
        if (rc == 0 && to->m.p != raw.p) {
                to->about->keep_output = opt->keep_output;
                rc = set_sha(raw, to->arena, to->about, err);
        }
        return rc;
}

int carry_learn_ref(
    struct steno_conv *conv, struct arena *arena, struct about *about, struct steno_error *err)
{
        struct artifact_info info;
        if (!about->ref.n || about->ref_sha.n || !str_is(about->role, "tool"))
                return 0;
        int rc = backend_artifact_find(conv->backend, about->ref, &info, NULL);
        if (rc == STENO_ENOMEM)
                return error_nomem(err);
        if (rc || info.state != ARTIFACT_CLOSED)
                return 0; /* The record keeps the ref as it came; reading it reports what is wrong.
                           */
        about->ref_sha = arena_dup(arena, str_of(info.sha256));
        return about->ref_sha.p ? 0 : error_nomem(err);
}
