/* carry_calls.c - see carry_calls.h */
#include "api/carry_calls.h"

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

#define TEXTS_MAX 64

/* Changes the calls in all texts of a message. 1: `out` (may be NULL) has the new message. */
static int change_message(
    const struct json *j, json_ref msg, change_fn change, void *ctx, struct buf *out)
{
        struct json_edits edits;
        struct buf texts[TEXTS_MAX];
        size_t count = 0;
        int rc = 0, changed = 0;
        json_ref part = JSON_NONE, t;
        json_edits_init(&edits);
        while (rc >= 0 && count < TEXTS_MAX && (t = next_text(j, msg, &part)) != JSON_NONE) {
                struct buf text, made;
                bool lossy = false;
                buf_init(&text, 0);
                buf_init(&made, 0);
                buf_init(&texts[count], 0);
                if (!json_string(j, t, &text, &lossy) || text.failed)
                        rc = STENO_ENOMEM;
                else if (!lossy)
                        rc = change_text(buf_str(&text), change, ctx, &made);
                if (rc == 1) {
                        changed = 1;
                        json_put_string(&texts[count], buf_str(&made));
                        json_edit_replace(&edits, j, t, buf_str(&texts[count]));
                        if (made.failed || texts[count].failed)
                                rc = STENO_ENOMEM;
                }
                count++;
                buf_release(&text);
                buf_release(&made);
        }
        if (rc >= 0 && changed && out && json_edits_apply(&edits, j, msg, out))
                rc = STENO_ENOMEM;
        json_edits_release(&edits);
        while (count > 0)
                buf_release(&texts[--count]);
        return rc < 0 ? rc : changed;
}

/* ---- in ---- */

/* The response as the bytes of an output; false when it is none that may be taken out. */
static bool response_text(const struct json *call, struct buf *out, bool *value)
{
        struct buf name;
        bool lossy = false;
        json_ref r = json_get(call, 0, "response");
        enum json_type type = json_type(call, r);
        buf_init(&name, 0);
        json_string(call, json_get(call, 0, "name"), &name, NULL);
        bool own = name.n && buf_cstr(&name) && steno_is_context_tool(name.p);
        buf_release(&name);
        *value = type == JSON_OBJECT || type == JSON_ARRAY;
        if (*value)
                buf_put_str(out, json_raw(call, r));
        else if (type != JSON_STRING || !json_string(call, r, out, &lossy))
                return false;
        return !own && !lossy;
}

static int judge(void *ctx, const struct json *call, struct buf *out)
{
        struct buf text;
        bool value;
        (void)out;
        buf_init(&text, 0);
        int rc = response_text(call, &text, &value) && policy_is_large(ctx, buf_str(&text));
        rc = text.failed ? STENO_ENOMEM : rc ? STENO_EINTERRUPTED : 0; /* one is enough */
        buf_release(&text);
        return rc;
}

int carry_calls_large(
    const struct json *j, json_ref msg, const struct policy *policy, struct steno_error *err)
{
        struct policy copy = *policy;
        struct str raw = json_raw(j, msg);
        if (!memmem(raw.p, raw.n, "function_call", 13))
                return 0;
        int rc = change_message(j, msg, judge, &copy, NULL);
        if (rc == STENO_EINTERRUPTED)
                return 1;
        return rc == STENO_ENOMEM ? error_nomem(err) : rc;
}

struct taking {
        struct steno_conv *conv;
        const struct carry_options *opt;
        struct arena *arena;
        struct str refs[TEXTS_MAX];
        size_t count;
        struct steno_error *err;
};

static struct str text_of(struct taking *t, const struct json *call, const char *key)
{
        struct buf b;
        buf_init(&b, 0);
        json_string(call, json_get(call, 0, key), &b, NULL);
        struct str s = b.n ? arena_dup(t->arena, buf_str(&b)) : (struct str){0};
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
        if (t->count == TEXTS_MAX || json_get(call, 0, "ref") != JSON_NONE ||
            !response_text(call, &text, &value) ||
            !policy_is_large(&t->opt->policy, buf_str(&text)))
                goto out;
        struct spill_options so = {.policy = t->opt->policy,
            .tool = text_of(t, call, "name"),
            .call = text_of(t, call, "id"),
            .message_id = t->opt->message_id,
            .context_tools = true};
        if (!so.tool.n)
                so.tool = STR("tool");
        if (!so.call.n)
                so.call = so.tool;
        /* A path of the older rule names a message: only one of its outputs can have it. */
        if (t->count)
                so.policy.profile = POLICY_DEFAULT;
        rc = text.failed ? error_nomem(t->err) : spill_new(t->conv, &so, &spill, t->err);
        if (rc == 0)
                rc = spill_write(spill, text.p, text.n, t->err);
        if (rc == 0)
                rc = spill_finish(spill, &exit, &stub, &materialized, &info, t->err);
        if (rc == 0 && materialized) {
                rc = put_call(call, buf_str(&stub), &info, value, out);
                t->refs[t->count] = arena_dup(t->arena, str_of(info.id));
                rc = rc == 1 && t->refs[t->count].p ? 1 : error_nomem(t->err);
                t->count += rc == 1;
        }
        if (rc < 0 && spill && spill_ref(spill))
                artifact_undo(t->conv->files, spill_ref(spill));
out:
        spill_free(spill);
        buf_release(&text);
        buf_release(&stub);
        return rc;
}

int carry_calls_in(struct steno_conv *conv, const struct json *j, json_ref msg,
    const struct carry_options *opt, struct arena *arena, struct about *about, struct buf *out,
    struct steno_error *err)
{
        struct taking t = {.conv = conv, .opt = opt, .arena = arena, .err = err};
        int rc = change_message(j, msg, take_out, &t, out);
        struct str *rest = NULL;
        if (rc >= 0 && t.count > 1) {
                rest = arena_alloc(arena, (t.count - 1) * sizeof *rest);
                rc = rest ? rc : STENO_ENOMEM;
        }
        if (rc < 0) {
                for (size_t i = 0; i < t.count; i++)
                        artifact_undo(conv->files, t.refs[i].p);
                return rc == STENO_ENOMEM ? error_nomem(err) : rc;
        }
        about->ref = t.count ? t.refs[0] : about->ref;
        about->refs = rest;
        about->ref_count = t.count > 1 ? t.count - 1 : 0;
        for (size_t i = 1; i < t.count; i++)
                rest[i - 1] = t.refs[i];
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
        int rc = change_message(j, msg, show, &s, NULL);
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
        /* Gone, or no text: the stub says what there was. */
        if (!id.n || json_type(call, response) != JSON_STRING ||
            artifact_find(p->conv->files, buf_str(&id), &info, NULL) ||
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
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, m.p, m.n, NULL, err);
        if (rc == 0) {
                rc = change_message(&j, 0, put_back, &p, out);
                if (rc == 0)
                        buf_put_str(out, m);
                rc = rc == STENO_ENOMEM ? error_nomem(err) : rc < 0 ? rc : buf_check(out, err);
        }
        json_release(&j);
        return rc;
}
