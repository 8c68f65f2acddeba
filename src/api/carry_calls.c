/* carry_calls.c - see carry_calls.h */
#include "api/carry_calls.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "output/legacy_carrier.h"
#include "api/spill.h"

/* ---- the calls of a message ---- */

/* What becomes of one call: 1 when `out` got its new JSON, 0 when it stays, or a code. */
typedef int (*change_fn)(void *ctx, const struct json *call, struct buf *out);

/* Copies a text with its calls changed. 1: something was. */
static int change_text(struct str text, change_fn change, void *ctx, struct buf *out)
{
        size_t at = 0, done = 0, start;
        struct str call;
        struct json j;
        struct buf made;
        int rc = 0, changed = 0;
        json_init(&j);
        buf_init(&made, 0);
        while (rc >= 0 && legacy_next(text, &at, &start, &call)) {
                buf_clear(&made);
                rc = json_parse(&j, call.p, call.n, NULL, NULL);
                if (rc == 0)
                        rc = change(ctx, &j, &made);
                if (rc != 1)
                        continue;
                changed = 1;
                buf_put(out, text.p + done, start - done);
                if (made.failed || !legacy_put_call(out, buf_str(&made)))
                        rc = STENO_ENOMEM;
                done = at;
        }
        buf_put(out, text.p + done, text.n - done);
        json_release(&j);
        buf_release(&made);
        return rc < 0 ? rc : changed;
}

/* The texts of a message: its content, or the text parts of it. */
static json_ref next_text(const struct json *j, json_ref msg, json_ref *part)
{
        json_ref content = json_get(j, msg, "content");
        if (json_type(j, content) == JSON_STRING) {
                json_ref only = *part == JSON_NONE ? content : JSON_NONE;
                *part = content;
                return only;
        }
        if (json_type(j, content) != JSON_ARRAY)
                return JSON_NONE;
        *part = *part == JSON_NONE ? json_child(j, content) : json_next(j, content, *part);
        for (; *part != JSON_NONE; *part = json_next(j, content, *part)) {
                json_ref text = json_get(j, *part, "text");
                if (json_type(j, text) == JSON_STRING)
                        return text;
        }
        return JSON_NONE;
}

/* Changes the calls in all texts of a message: each text that changed becomes a swap. */
static int change_message(const struct json *j, json_ref msg, change_fn change, void *ctx,
    struct arena *arena, struct carry_swaps *swaps)
{
        int rc = 0;
        json_ref part = JSON_NONE, t;
        while (rc >= 0 && (t = next_text(j, msg, &part)) != JSON_NONE) {
                struct buf text, made, token;
                buf_init(&text, 0);
                buf_init(&made, 0);
                buf_init(&token, 0);
                if (!json_string(j, t, &text, NULL) || text.failed)
                        rc = STENO_ENOMEM;
                else
                        rc = change_text(buf_str(&text), change, ctx, &made);
                if (rc == 1) {
                        json_put_string(&token, buf_str(&made));
                        struct carry_swap w = {.span = json_raw(j, t)};
                        w.with = token.failed ? (struct str){0} : arena_dup(arena, buf_str(&token));
                        if (made.failed || !w.with.p || !carry_swaps_add(swaps, arena, &w))
                                rc = STENO_ENOMEM;
                }
                buf_release(&text);
                buf_release(&made);
                buf_release(&token);
        }
        return rc < 0 ? rc : 0;
}

/* ---- in ---- */

/* The response as the bytes of an output; false when it is none that may be taken out. */
static bool response_text(const struct json *call, struct buf *out, bool *value)
{
        struct buf name;
        json_ref r = json_get(call, 0, "response");
        enum json_type type = json_type(call, r);
        buf_init(&name, 0);
        json_string(call, json_get(call, 0, "name"), &name, NULL);
        bool own = name.n && buf_cstr(&name) && steno_is_context_tool(name.p);
        buf_release(&name);
        *value = type == JSON_OBJECT || type == JSON_ARRAY;
        if (*value)
                buf_put_str(out, json_raw(call, r));
        else if (type != JSON_STRING || !json_string(call, r, out, NULL))
                return false;
        return !own;
}

struct taking {
        struct steno_conv *conv;
        const struct carry_message *msg;
        const struct carry_options *opt;
        struct carried *to;
        struct str *refs;
        struct str *sums; /* of their bytes */
        size_t count;
        size_t cap;
        bool exact; /* carry_calls_out would give back what was there */
        struct steno_error *err;
};

static bool add_ref(struct taking *t, const struct artifact_info *info)
{
        struct arena *arena = t->to->arena;
        if (t->count == t->cap) {
                size_t cap = t->cap ? t->cap * 2 : 8;
                struct str *refs = arena_alloc(arena, cap * sizeof *refs);
                struct str *sums = arena_alloc(arena, cap * sizeof *sums);
                if (!refs || !sums)
                        return false;
                if (t->count) {
                        memcpy(refs, t->refs, t->count * sizeof *refs);
                        memcpy(sums, t->sums, t->count * sizeof *sums);
                }
                t->refs = refs;
                t->sums = sums;
                t->cap = cap;
        }
        t->sums[t->count] = arena_dup(arena, str_of(info->sha256));
        t->refs[t->count] = arena_dup(arena, str_of(info->id));
        bool kept = t->sums[t->count].p && t->refs[t->count].p;
        t->count++;
        return kept;
}

static struct str text_of(struct taking *t, const struct json *call, const char *key)
{
        struct buf b;
        buf_init(&b, 0);
        json_string(call, json_get(call, 0, key), &b, NULL);
        struct str s = b.n ? arena_dup(t->to->arena, buf_str(&b)) : (struct str){0};
        buf_release(&b);
        return s;
}

/* The call with the stub for its response, and the ref. */
static int put_call(const struct json *call, struct str stub, const struct artifact_info *info,
    bool value, struct buf *out)
{
        struct json_edits edits;
        struct buf text, member;
        json_edits_init(&edits);
        buf_init(&text, 0);
        buf_init(&member, 0);
        json_put_string(&text, stub);
        json_edit_replace(&edits, call, json_get(call, 0, "response"), buf_str(&text));
        buf_puts(&member, "\"ref\":");
        struct jsonw w = jsonw_to(&member);
        spill_put_ref(&w, info);
        if (value && member.n) {
                member.n--;
                buf_puts(&member, ",\"value\":true}");
        }
        json_edit_add_member(&edits, call, 0, buf_str(&member));
        int rc = text.failed || member.failed || json_edits_apply(&edits, call, 0, out);
        json_edits_release(&edits);
        buf_release(&text);
        buf_release(&member);
        return rc ? STENO_ENOMEM : 1;
}

/* The call with its response as carry_calls_out will put it back. */
static bool comes_back(const struct json *call, struct str text, bool value)
{
        struct buf token, again, tagged;
        struct json_edits edits;
        struct str raw = json_raw(call, 0);
        json_edits_init(&edits);
        buf_init(&token, 0);
        buf_init(&again, 0);
        buf_init(&tagged, 0);
        if (value)
                buf_put_str(&token, text);
        else
                json_put_string(&token, text);
        json_edit_replace(&edits, call, json_get(call, 0, "response"), buf_str(&token));
        bool same = !token.failed && json_edits_apply(&edits, call, 0, &again) == 0 &&
                    legacy_put_call(&tagged, buf_str(&again)) && !tagged.failed;
        /* Between the tags stands what stood there before. */
        static const size_t OPEN = sizeof "<function_call>" - 1, CLOSE = OPEN + 1;
        same =
            same && tagged.n == raw.n + OPEN + CLOSE && memcmp(tagged.p + OPEN, raw.p, raw.n) == 0;
        json_edits_release(&edits);
        buf_release(&token);
        buf_release(&again);
        buf_release(&tagged);
        return same;
}

static int take_out(void *ctx, const struct json *call, struct buf *out)
{
        struct taking *t = ctx;
        struct artifact_info info;
        struct spill_exit exit = {0};
        struct spill *spill = NULL;
        struct buf text, stub;
        bool value, materialized = false;
        int rc = 0;
        buf_init(&text, 0);
        buf_init(&stub, 0);
        if (json_get(call, 0, "ref") != JSON_NONE || !response_text(call, &text, &value) ||
            !policy_is_large(&t->opt->policy, buf_str(&text)))
                goto out;
        struct spill_options so = {.policy = t->opt->policy,
            .tool = text_of(t, call, "name"),
            .call = text_of(t, call, "id"),
            .message_id = t->msg->id,
            .output = t->count + 1,
            .context_tools = true};
        if (!so.tool.n)
                so.tool = STR("tool");
        if (!so.call.n)
                so.call = so.tool;
        rc = text.failed ? error_nomem(t->err) : spill_new(t->conv, &so, &spill, t->err);
        if (rc == 0)
                rc = spill_write(spill, text.p, text.n, t->err);
        if (rc == 0)
                rc = spill_finish(spill, &exit, &stub, &materialized, &info, t->err);
        if (rc == 0 && materialized) {
                t->exact = t->exact && comes_back(call, buf_str(&text), value);
                rc = put_call(call, buf_str(&stub), &info, value, out);
                rc = rc == 1 && add_ref(t, &info) ? 1 : error_nomem(t->err);
        }
        if (rc < 0 && spill && spill_ref(spill))
                backend_artifact_undo(t->conv->backend, spill_ref(spill));
out:
        spill_free(spill);
        buf_release(&text);
        buf_release(&stub);
        return rc;
}

/* Is the token what writing its text anew would give? */
static bool is_canonical(struct str token)
{
        struct buf text, again;
        bool lossy = false;
        buf_init(&text, 0);
        buf_init(&again, 0);
        json_unescape(str_span(token.p + 1, token.n - 2), &text, &lossy);
        json_put_string(&again, buf_str(&text));
        bool same = !lossy && !text.failed && !again.failed && str_eq(buf_str(&again), token);
        buf_release(&text);
        buf_release(&again);
        return same;
}

/* Where the calls cannot be put back to the byte, the texts that hold them are kept as they were.
 */
static int keep_texts(struct taking *t, struct carry_swaps *swaps)
{
        char name[PART_NAME];
        bool exact = t->exact;
        for (size_t i = 0; exact && i < swaps->count; i++)
                exact = is_canonical(swaps->list[i].span);
        for (size_t i = 0; i < swaps->count; i++) {
                struct carry_swap *w = &swaps->list[i];
                w->silent = exact;
                if (exact)
                        continue;
                int rc = backend_part_put(t->conv->backend, w->span, name, t->err);
                if (rc)
                        return rc;
                w->out.ref = t->refs[0];
                w->out.part = arena_dup(t->to->arena, str_of(name));
                w->out.part_size = w->span.n;
        }
        return t->to->arena->failed ? error_nomem(t->err) : 0;
}

int carry_calls_in(struct steno_conv *conv, const struct carry_message *msg,
    const struct carry_options *opt, struct carried *to, struct carry_swaps *swaps,
    struct steno_error *err)
{
        struct taking t = {
            .conv = conv, .msg = msg, .opt = opt, .to = to, .exact = true, .err = err};
        struct about *about = to->about;
        struct str raw = json_raw(msg->j, msg->at);
        if (!memmem(raw.p, raw.n, "function_call", 13))
                return 0;
        int rc = change_message(msg->j, msg->at, take_out, &t, to->arena, swaps);
        if (rc == 0 && swaps->count)
                rc = keep_texts(&t, swaps);
        if (rc < 0) {
                for (size_t i = 0; i < t.count; i++)
                        backend_artifact_undo(conv->backend, t.refs[i].p);
                swaps->count = 0;
                return rc == STENO_ENOMEM ? error_nomem(err) : rc;
        }
        if (t.count) {
                about->ref = t.refs[0];
                about->ref_sha = t.sums[0];
                about->refs = t.refs + 1;
                about->ref_shas = t.sums + 1;
                about->ref_count = t.count - 1;
        }
        return 0;
}

struct showing {
        int (*each)(void *ctx, struct str text);
        void *ctx;
};

static int show(void *ctx, const struct json *call, struct buf *out)
{
        struct showing *s = ctx;
        struct buf text;
        bool value;
        (void)out;
        buf_init(&text, 0);
        int rc = response_text(call, &text, &value) ? s->each(s->ctx, buf_str(&text)) : 0;
        rc = text.failed ? STENO_ENOMEM : rc;
        buf_release(&text);
        return rc < 0 ? rc : 0;
}

int carry_calls_texts(const struct json *j, json_ref msg, int (*each)(void *ctx, struct str text),
    void *ctx, struct steno_error *err)
{
        struct showing s = {each, ctx};
        struct carry_swaps none = {0};
        int rc = change_message(j, msg, show, &s, NULL, &none);
        return rc == STENO_ENOMEM ? error_nomem(err) : rc;
}

/* ---- out ---- */

struct putting {
        struct steno_conv *conv;
        struct steno_error *err;
};

static int gather(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return ((struct buf *)ctx)->failed;
}

static int put_back(void *ctx, const struct json *call, struct buf *out)
{
        static const char *const OWN[] = {"ref", NULL};
        struct putting *p = ctx;
        struct artifact_info info;
        struct json_edits edits;
        struct buf id, text, token;
        json_ref ref = json_get(call, 0, "ref");
        json_ref response = json_get(call, 0, "response");
        int rc = 0;
        json_edits_init(&edits);
        buf_init(&id, 0);
        buf_init(&text, 0);
        buf_init(&token, 0);
        json_string(call, json_get(call, ref, "id"), &id, NULL);
        /* The output was deleted or is not text: the stub stays and says so. */
        if (!id.n || json_type(call, response) != JSON_STRING ||
            backend_artifact_find(p->conv->backend, buf_str(&id), &info, NULL) ||
            info.state != ARTIFACT_CLOSED || !info.utf8)
                goto out;
        rc = steno_context_raw(p->conv, info.id, 0, 0, gather, &text, p->err);
        if (rc == 0) {
                if (json_bool(call, json_get(call, ref, "value"), false))
                        buf_put_str(&token, buf_str(&text));
                else
                        json_put_string(&token, buf_str(&text));
                json_edit_replace(&edits, call, response, buf_str(&token));
                json_edit_remove_members(&edits, call, 0, OWN);
                rc = token.failed || json_edits_apply(&edits, call, 0, out) ? STENO_ENOMEM : 1;
        }
out:
        json_edits_release(&edits);
        buf_release(&id);
        buf_release(&text);
        buf_release(&token);
        return rc;
}

int carry_calls_out(struct steno_conv *conv, struct str m, struct buf *out, struct steno_error *err)
{
        struct putting p = {conv, err};
        struct carry_swaps swaps = {0};
        struct about none = {0};
        struct arena arena;
        struct json j;
        json_init(&j);
        arena_init(&arena);
        int rc = json_parse(&j, m.p, m.n, NULL, err);
        if (rc == 0) {
                rc = change_message(&j, 0, put_back, &p, &arena, &swaps);
                rc = rc == STENO_ENOMEM ? error_nomem(err) : rc;
        }
        if (rc == 0)
                rc = carry_swaps_apply(&swaps, m, &arena, &none, out, err);
        json_release(&j);
        arena_release(&arena);
        return rc;
}
