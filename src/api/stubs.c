/*
 * stubs.c - large results of messages that are on their way to a model, and are not stored.
 *
 * The same texts leave a message here as when it is stored (carry_outs.h), and the same stub takes
 * their place, but for the names of tool and call: one text has one stub, wherever it stands. The
 * texts stay in memory, where the context tools read them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/optstruct.h"
#include "api/api_store.h"
#include "api/carry.h"
#include "api/carry_outs.h"
#include "api/context.h"
#include "format/format.h"
#include "output/excerpt.h"
#include "output/outline.h"
#include "output/policy.h"
#include "output/stub.h"

#define OUTLINE_TEXT_MAX (8 * MIB)
#define OUTLINE_BYTES 1024

struct stub_text {
        struct buf text;
        struct artifact_info info;
        struct buf token; /* the stub as a JSON string */
};

struct steno_stubs {
        struct context_shelf shelf;
        struct stub_text *list;
        size_t count;
        size_t cap;
};

/* One reading of a list. */
struct reading {
        struct steno_stubs *stubs;
        struct policy policy;
        bool context_tools;
        const char *messages; /* offsets are from here */
        struct carry_message msg;
        steno_stub_fn each;
        void *ctx;
        struct steno_error *err;
};

/* ---- one text ---- */

static int build_stub(
    struct reading *r, struct stub_text *t, struct excerpt *e, struct steno_error *err)
{
        struct buf outline, stub;
        bool is_json = t->text.n <= OUTLINE_TEXT_MAX && json_valid(t->text.p, t->text.n, NULL);
        buf_init(&outline, 0);
        buf_init(&stub, 0);
        if (is_json)
                outline_put(&outline, buf_str(&t->text), OUTLINE_BYTES);
        struct stub_meta meta = {.ref = str_of(t->info.id),
            .kind = is_json ? STUB_JSON : STUB_TEXT,
            .tools = r->context_tools ? STUB_HAS_ALL : 0,
            .outline = buf_str(&outline)};
        snprintf(
            t->info.mime, sizeof t->info.mime, "%s", is_json ? "application/json" : "text/plain");
        int rc = stub_build(e, &meta, &stub, err);
        if (rc == 0) {
                json_put_string(&t->token, buf_str(&stub));
                rc = buf_check(&t->token, err);
        }
        buf_release(&outline);
        buf_release(&stub);
        return rc;
}

static int describe_text(struct reading *r, struct stub_text *t, struct steno_error *err)
{
        struct excerpt_figures f;
        struct excerpt *e = excerpt_new(NULL);
        if (!e || hash_sha256_hex(t->text.p, t->text.n, t->info.sha256)) {
                excerpt_free(e);
                return error_nomem(err);
        }
        excerpt_feed(e, t->text.p, t->text.n);
        excerpt_finish(e);
        excerpt_figures(e, &f);
        context_name_bytes(t->info.sha256, t->info.id);
        snprintf(t->info.kind, sizeof t->info.kind, "tool");
        t->info.state = ARTIFACT_CLOSED;
        t->info.utf8 = f.utf8;
        t->info.size = t->text.n;
        t->info.lines = f.lines;
        int rc = build_stub(r, t, e, err);
        excerpt_free(e);
        return rc;
}

static struct stub_text *find_text(struct steno_stubs *s, struct str ref)
{
        for (size_t i = 0; i < s->count; i++)
                if (str_is(ref, s->list[i].info.id))
                        return &s->list[i];
        return NULL;
}

static void release_text(struct stub_text *t)
{
        buf_release(&t->text);
        buf_release(&t->token);
}

/* Keeps a text, once. Its place in the list, or negative. */
static int keep_text(struct reading *r, struct str text, size_t *at)
{
        struct steno_stubs *s = r->stubs;
        if (!grow_room(s->list, s->count, s->cap))
                return error_nomem(r->err);
        struct stub_text t = {0};
        buf_init(&t.text, 0);
        buf_init(&t.token, 0);
        buf_put_str(&t.text, text);
        int rc = buf_check(&t.text, r->err);
        if (rc == 0)
                rc = describe_text(r, &t, r->err);
        struct stub_text *old = rc == 0 ? find_text(s, str_of(t.info.id)) : NULL;
        if (rc || old) {
                release_text(&t);
                *at = old ? (size_t)(old - s->list) : 0;
                return rc;
        }
        *at = s->count;
        s->list[s->count++] = t;
        return 0;
}

/* ---- a result ---- */

static int replace(struct reading *r, struct str span, struct str with)
{
        return r->each(r->ctx, (size_t)(span.p - r->messages), span.n, with.p, with.n);
}

/* The string token of a block's text, quotes included. */
static struct str token_of(const struct part *block)
{
        return str_span(block->text.p - 1, block->text.n + 2);
}

static bool is_text(const struct part *block, struct str outer)
{
        return block->kind == PART_TEXT && block->text.p && block->text.p > outer.p &&
               block->text.p + block->text.n < outer.p + outer.n;
}

static bool is_media(const struct part *block)
{
        return block->kind == PART_IMAGE || block->kind == PART_AUDIO || block->kind == PART_FILE;
}

/* An array whose first text is the stub and that keeps its images and files. No block may be left
 * with an empty text, because providers refuse it. */
static int replace_blocks(struct reading *r, const struct part *result, struct str token)
{
        struct buf b;
        bool said = false;
        buf_init(&b, 0);
        for (size_t i = 0; i < result->child_count; i++) {
                const struct part *c = &result->children[i];
                if (is_text(c, result->output_raw) && !said) {
                        struct str t = token_of(c);
                        buf_putc(&b, b.n ? ',' : '[');
                        buf_put(&b, c->raw.p, (size_t)(t.p - c->raw.p));
                        buf_put_str(&b, token);
                        buf_put(&b, t.p + t.n, (size_t)(c->raw.p + c->raw.n - t.p - t.n));
                        said = true;
                } else if (is_media(c) && c->raw.p) {
                        buf_putc(&b, b.n ? ',' : '[');
                        buf_put_str(&b, c->raw);
                }
        }
        buf_putc(&b, ']');
        int rc = buf_check(&b, r->err);
        if (rc == 0)
                rc = replace(r, result->output_raw, said ? buf_str(&b) : token);
        buf_release(&b);
        return rc;
}

static int replace_object(struct reading *r, struct str span, struct str token)
{
        struct buf b;
        buf_init(&b, 0);
        buf_puts(&b, "{\"output\":");
        buf_put_str(&b, token);
        buf_putc(&b, '}');
        int rc = buf_check(&b, r->err);
        if (rc == 0)
                rc = replace(r, span, buf_str(&b));
        buf_release(&b);
        return rc;
}

static int replace_output(struct reading *r, const struct part *result, struct str token)
{
        size_t texts = 0, media = 0;
        const struct part *first = NULL;
        if (result->output_object)
                return replace_object(r, result->output_raw, token);
        if (result->output_kind != OUTPUT_PARTS)
                return replace(r, result->output_raw, token);
        for (size_t i = 0; i < result->child_count; i++) {
                const struct part *c = &result->children[i];
                bool text = is_text(c, result->output_raw);
                first = first || !text ? first : c;
                texts += text;
                media += is_media(c);
        }
        if (texts == 1 && texts + media == result->child_count)
                return replace(r, token_of(first), token);
        return media ? replace_blocks(r, result, token) : replace(r, result->output_raw, token);
}

static bool is_context_result(const struct part *result)
{
        char name[24];
        snprintf(name, sizeof name, "%.*s", (int)(result->name.n < 23 ? result->name.n : 23),
            result->name.n ? result->name.p : "");
        return steno_is_context_tool(name);
}

static int look_at_result(void *ctx, const struct part *result, size_t index, struct str text)
{
        struct reading *r = ctx;
        size_t at = 0;
        (void)index;
        if (!policy_is_large(&r->policy, text) || is_context_result(result))
                return 0;
        int rc = keep_text(r, text, &at);
        return rc ? rc : replace_output(r, result, buf_str(&r->stubs->list[at].token));
}

/* ---- the list ---- */

static int read_list(struct reading *r, struct str messages, struct steno_error *err)
{
        struct json j;
        uint64_t least =
            r->policy.max_bytes < r->policy.max_chars ? r->policy.max_bytes : r->policy.max_chars;
        json_init(&j);
        int rc = json_parse(&j, messages.p, messages.n, NULL, err);
        r->msg.j = &j;
        for (json_ref m = rc ? JSON_NONE : json_child(&j, 0); m != JSON_NONE && rc == 0;
             m = json_next(&j, 0, m)) {
                if (json_type(&j, m) != JSON_OBJECT || json_raw(&j, m).n <= least)
                        continue;
                r->msg.at = m;
                rc = carry_outs_each(&r->msg, look_at_result, r, err);
                if (rc == STENO_EPROTO)
                        rc = 0; /* no message of this format: the endpoint may know it */
        }
        json_release(&j);
        return rc;
}

static int open_text(const struct context_shelf *self, struct str ref, struct context_file *out,
    struct steno_error *err)
{
        struct stub_text *t = find_text((struct steno_stubs *)self, ref);
        if (!t)
                return error_set(err, STENO_ENOTFOUND, "there is no output \"%.*s\" here",
                    (int)(ref.n < 60 ? ref.n : 60), ref.n ? ref.p : "");
        *out =
            (struct context_file){.memory = buf_str(&t->text), .size = t->text.n, .info = t->info};
        return 0;
}

static int each_text(const struct context_shelf *self,
    int (*each)(void *ctx, const struct artifact_info *info), void *ctx, struct steno_error *err)
{
        const struct steno_stubs *s = (const struct steno_stubs *)self;
        int rc = 0;
        (void)err;
        for (size_t i = s->count; i > 0 && rc == 0; i--)
                rc = each(ctx, &s->list[i - 1].info);
        return rc;
}

static int no_lines(const struct context_shelf *self, const struct artifact_info *info, char **p,
    size_t *n, struct steno_error *err)
{
        (void)self, (void)info, (void)err;
        *p = NULL;
        *n = 0;
        return 0;
}

int steno_stubs_new(const char *format, const char *messages, size_t n,
    const struct steno_stubs_options *opt, steno_stub_fn each, void *ctx, struct steno_stubs **out,
    struct steno_error *err)
{
        struct reading r = {.each = each, .ctx = ctx, .messages = messages, .err = err};
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        r.msg.format = format_find(format);
        if (!r.msg.format)
                return format_unknown(format, err);
        policy_init(&r.policy, POLICY_DEFAULT, opt ? opt->max_inline_chars : 0,
            opt ? opt->max_inline_bytes : 0);
        r.context_tools = opt && opt->context_tools;
        r.stubs = calloc(1, sizeof *r.stubs);
        if (!r.stubs)
                return error_nomem(err);
        r.stubs->shelf = (struct context_shelf){open_text, each_text, no_lines};
        rc = read_list(&r, str_span(messages, n), err);
        if (rc)
                steno_stubs_free(r.stubs);
        else
                *out = r.stubs;
        return rc;
}

size_t steno_stubs_count(const struct steno_stubs *s)
{
        return s ? s->count : 0;
}

int steno_stubs_call(struct steno_stubs *s, const char *name, const char *args, size_t n,
    char **text, bool *is_error, struct steno_error *err)
{
        return context_call(&s->shelf, name, str_span(args, n), NULL, text, is_error, err);
}

void steno_stubs_free(struct steno_stubs *s)
{
        if (!s)
                return;
        for (size_t i = 0; i < s->count; i++)
                release_text(&s->list[i]);
        free(s->list);
        free(s);
}

void steno_inline_limits(struct steno_store *store, uint64_t *chars, uint64_t *bytes)
{
        struct policy p;
        policy_init(&p, POLICY_DEFAULT, 0, 0);
        carry_policy(store, NULL, 0, 0, &p, NULL);
        *chars = p.max_chars;
        *bytes = p.max_bytes;
}
