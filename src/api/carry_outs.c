/* carry_outs.c - see carry_outs.h */
#include "api/carry_outs.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "api/spill.h"
#include "format/format.h"
#include "model/token.h"

/* An array keeps its blocks while they are this few, and this small without their texts. */
#define PIECES_MAX 64
#define SKELETON_MAX INLINE_BYTES_FLOOR

/* ---- swaps ---- */

bool carry_swaps_add(struct carry_swaps *s, struct arena *arena, const struct carry_swap *swap)
{
        if (s->count == s->cap) {
                size_t cap = s->cap ? s->cap * 2 : 8;
                struct carry_swap *to = arena_alloc(arena, cap * sizeof *to);
                if (!to)
                        return false;
                if (s->count)
                        memcpy(to, s->list, s->count * sizeof *to);
                s->list = to;
                s->cap = cap;
        }
        s->list[s->count++] = *swap;
        return true;
}

static int by_place(const void *a, const void *b)
{
        const struct carry_swap *x = a, *y = b;
        return (x->span.p > y->span.p) - (x->span.p < y->span.p);
}

int carry_swaps_apply(struct carry_swaps *s, struct str raw, struct arena *arena,
    struct about *about, struct buf *out, struct steno_error *err)
{
        const char *from = raw.p;
        size_t n = 0;
        struct about_out *outs = arena_zalloc(arena, (s->count + 1) * sizeof *outs);
        if (!outs)
                return error_nomem(err);
        if (s->count)
                qsort(s->list, s->count, sizeof *s->list, by_place);
        for (size_t i = 0; i < s->count; i++) {
                const struct carry_swap *w = &s->list[i];
                buf_put(out, from, (size_t)(w->span.p - from));
                if (!w->silent) {
                        outs[n] = w->out;
                        outs[n].at = out->n;
                        outs[n++].len = w->with.n;
                }
                buf_put_str(out, w->with);
                from = w->span.p + w->span.n;
        }
        buf_put(out, from, (size_t)(raw.p + raw.n - from));
        about->outs = outs;
        about->out_count = n;
        return buf_check(out, err);
}

/* ---- texts ---- */

static bool is_inside(struct str inner, struct str outer)
{
        return inner.p >= outer.p && inner.p + inner.n <= outer.p + outer.n;
}

static bool is_media(const struct part *p)
{
        return p->kind == PART_IMAGE || p->kind == PART_AUDIO || p->kind == PART_FILE;
}

/* The string token of a block's text, quotes included. */
static struct str token_of(const struct part *block)
{
        return str_span(block->text.p - 1, block->text.n + 2);
}

/* The line that a block begins with, behind the first. */
static void put_border(struct buf *out, const struct part *block, size_t n)
{
        if (out->n && out->p[out->n - 1] != '\n')
                buf_putc(out, '\n');
        buf_printf(out, "--- part %zu", n + 1);
        if (is_media(block)) {
                buf_puts(out, block->kind == PART_IMAGE   ? ": image"
                              : block->kind == PART_AUDIO ? ": audio"
                                                          : ": file");
                if (block->media.mime.n) {
                        buf_puts(out, ", ");
                        json_unescape(block->media.mime, out, NULL);
                }
                if (block->media.data.n)
                        buf_printf(out, ", %zu characters of base64", block->media.data.n);
        }
        buf_puts(out, " ---\n");
}

/* Appends the text of block `n` with its border; false: it has none. */
static bool put_block(struct buf *out, const struct part *block, size_t n)
{
        if (n || is_media(block))
                put_border(out, block, n);
        if (is_media(block))
                return false;
        if (block->kind == PART_TEXT && block->text.p)
                json_unescape(block->text, out, NULL);
        else
                buf_put_str(out, block->raw);
        return true;
}

bool carry_outs_text(const struct part *result, struct str raw, struct buf *out)
{
        bool text = false;
        if (!result->output_raw.p || !is_inside(result->output_raw, raw))
                return false;
        switch (result->output_kind) {
        case OUTPUT_TEXT:
                json_unescape(result->output, out, NULL);
                return true;
        case OUTPUT_DATA:
                buf_put_str(out, result->output_raw);
                return true;
        case OUTPUT_PARTS:
                for (size_t i = 0; i < result->child_count; i++)
                        text |= put_block(out, &result->children[i], i);
                return text;
        default:
                return false;
        }
}

int carry_outs_each(
    const struct carry_message *msg, carry_text_fn each, void *ctx, struct steno_error *err)
{
        struct arena arena;
        struct message m;
        struct buf text;
        arena_init(&arena);
        buf_init(&text, 0);
        int rc = format_read_message(msg->format, msg->j, msg->at, 1, &arena, &m, err);
        for (size_t i = 0, n = 0; rc == 0 && i < m.count; i++) {
                if (m.parts[i].kind != PART_RESULT)
                        continue;
                buf_clear(&text);
                if (carry_outs_text(&m.parts[i], json_raw(msg->j, msg->at), &text))
                        rc = text.failed ? error_nomem(err)
                                         : each(ctx, &m.parts[i], n, buf_str(&text));
                n++;
        }
        buf_release(&text);
        arena_release(&arena);
        return rc;
}

/* ---- who was called ---- */

struct caller {
        struct str call;
        struct arena *arena; /* of the names */
        struct arena scratch;
        struct str name;
        struct str server;
};

/* The call that a message makes under this id. `index` is its place where it is known. */
static void look_at_message(
    struct caller *c, const struct format *format, const struct json *j, json_ref msg, size_t index)
{
        struct message m;
        size_t n = 0;
        if (format_read_message(format, j, msg, 1, &c->scratch, &m, NULL))
                return;
        for (size_t i = 0; i < m.count; i++) {
                const struct part *p = &m.parts[i];
                if (p->kind != PART_CALL)
                        continue;
                bool own = str_eq(token_decode(p->id, &c->scratch, NULL), c->call);
                if (!own && n++ != index)
                        continue;
                c->name = arena_dup(c->arena, token_decode(p->name, &c->scratch, NULL));
                c->server = arena_dup(c->arena, token_decode(p->server, &c->scratch, NULL));
                return;
        }
}

static int look_at_record(void *ctx, const struct backend_record *r)
{
        struct caller *c = ctx;
        struct about about;
        struct json j;
        arena_reset(&c->scratch);
        if (r->damaged || about_read(r->rec.x, &c->scratch, &about, NULL))
                return 0;
        for (size_t i = 0; i < about.call_count; i++) {
                if (!str_eq(about.calls[i], c->call))
                        continue;
                const struct format *format = format_named(r->rec.fmt);
                json_init(&j);
                if (format && json_parse(&j, r->rec.m.p, r->rec.m.n, NULL, NULL) == 0)
                        look_at_message(c, format, &j, 0, i);
                json_release(&j);
                break;
        }
        return 0;
}

/* The tool that a call named: the newest of its id, in the batch or in the log. */
static void find_caller(struct steno_conv *conv, const struct carry_message *msg, struct caller *c)
{
        const struct json *j = msg->j;
        bool batch = json_type(j, 0) == JSON_ARRAY;
        if (!c->call.n)
                return;
        arena_init(&c->scratch);
        for (json_ref m = batch ? json_child(j, 0) : JSON_NONE; m != JSON_NONE && m < msg->at;
             m = json_next(j, 0, m))
                look_at_message(c, msg->format, j, m, SIZE_MAX);
        if (!c->name.n)
                backend_read_last(conv->backend, PAIRING_WINDOW, look_at_record, c, NULL);
        arena_release(&c->scratch);
}

/* ---- taking out ---- */

struct taking {
        struct steno_conv *conv;
        const struct carry_message *msg;
        const struct carry_options *opt;
        struct carried *to;
        struct carry_swaps *swaps;
        size_t outputs; /* taken so far, for the path of the runtime-store profile */
        struct steno_error *err;
};

static struct str text_of(struct taking *t, struct str string)
{
        struct arena *arena = t->to->arena;
        return arena_dup(arena, token_decode(string, arena, NULL));
}

/* Who made the output. False: a context tool, whose answers have caps of their own. */
static bool name_output(
    struct taking *t, const struct part *result, size_t index, struct spill_options *so)
{
        struct about *about = t->to->about;
        struct caller c = {.arena = t->to->arena};
        so->call = index < about->answer_count ? about->answers[index] : (struct str){0};
        so->tool = result->name.n ? text_of(t, result->name) : (struct str){0};
        so->server = result->server.n ? text_of(t, result->server) : (struct str){0};
        c.call = so->call;
        if (!so->tool.n) {
                find_caller(t->conv, t->msg, &c);
                so->tool = c.name;
                so->server = so->server.n ? so->server : c.server;
        }
        if (!so->tool.n)
                so->tool = STR("tool");
        return !steno_is_context_tool(so->tool.p);
}

/* The stub as it stands in the message. */
static struct str stub_token(struct taking *t, struct str stub, bool object)
{
        struct buf b;
        buf_init(&b, 0);
        if (object)
                buf_puts(&b, "{\"output\":");
        json_put_string(&b, stub);
        if (object)
                buf_putc(&b, '}');
        struct str s = b.failed ? (struct str){0} : arena_dup(t->to->arena, buf_str(&b));
        buf_release(&b);
        return s;
}

/* Keeps the token itself where escaping the bytes again would not give it back. */
static int keep_token(struct taking *t, struct str token, struct str text, struct carry_swap *w)
{
        char name[PART_NAME];
        struct buf again;
        buf_init(&again, 0);
        if (w->out.value)
                buf_put_str(&again, text);
        else
                json_put_string(&again, text);
        bool same = !again.failed && str_eq(buf_str(&again), token);
        int rc = again.failed ? error_nomem(t->err) : 0;
        buf_release(&again);
        if (rc || same)
                return rc;
        rc = backend_part_put(t->conv->backend, token, name, t->err);
        w->out.part = arena_dup(t->to->arena, str_of(name));
        w->out.part_size = token.n;
        return rc ? rc : w->out.part.p ? 0 : error_nomem(t->err);
}

static int swap_value(struct taking *t, struct carry_swap *w, struct str text)
{
        int rc = keep_token(t, w->span, text, w);
        if (rc)
                return rc;
        return w->with.p && carry_swaps_add(t->swaps, t->to->arena, w) ? 0 : error_nomem(t->err);
}

/* Is an array little more than its texts? Then its blocks stay. */
static bool keeps_blocks(const struct part *result)
{
        size_t rest = result->output_raw.n, texts = 0;
        for (size_t i = 0; i < result->child_count; i++) {
                const struct part *c = &result->children[i];
                if (is_media(c)) {
                        size_t bytes = c->media.data.n + c->media.url.n;
                        rest -= bytes < rest ? bytes : rest;
                } else if (c->kind == PART_TEXT && is_inside(c->text, result->output_raw)) {
                        rest -= c->text.n;
                        texts++;
                } else {
                        return false;
                }
        }
        return texts && texts <= PIECES_MAX && rest <= SKELETON_MAX;
}

/* The stub stands in the first text; the others are emptied. */
static int swap_blocks(struct taking *t, const struct part *result, struct str text,
    const struct about_out *out, struct str stub)
{
        struct buf joined;
        int rc = 0;
        bool first = true;
        buf_init(&joined, 0);
        for (size_t i = 0; rc == 0 && i < result->child_count; i++) {
                const struct part *c = &result->children[i];
                if (is_media(c)) {
                        put_block(&joined, c, i);
                        continue;
                }
                if (i)
                        put_border(&joined, c, i);
                size_t from = joined.n;
                json_unescape(c->text, &joined, NULL);
                if (joined.failed) {
                        rc = error_nomem(t->err);
                        break;
                }
                struct carry_swap w = {
                    .span = token_of(c), .with = first ? stub : STR("\"\""), .out = *out};
                w.out.from = from;
                w.out.size = joined.n - from;
                first = false;
                rc = swap_value(t, &w, str_span(text.p + from, joined.n - from));
        }
        buf_release(&joined);
        return rc;
}

static int swap_output(struct taking *t, const struct part *result, struct str text,
    const struct artifact_info *info, struct str call, struct str stub)
{
        struct arena *arena = t->to->arena;
        bool string = result->output_kind == OUTPUT_TEXT;
        struct about_out out = {.ref = arena_dup(arena, str_of(info->id)),
            .ref_sha = arena_dup(arena, str_of(info->sha256)),
            .ref_size = info->size,
            .hint = arena_dup(arena, str_of(info->hint)),
            .call = call};
        if (strcmp(info->mime, "text/plain") != 0)
                out.mime = arena_dup(arena, str_of(info->mime));
        struct str token = stub_token(t, stub, result->output_object);
        if (arena->failed)
                return error_nomem(t->err);
        if (result->output_kind == OUTPUT_PARTS && keeps_blocks(result))
                return swap_blocks(t, result, text, &out, token);
        struct carry_swap w = {.span = result->output_raw, .with = token, .out = out};
        w.out.size = text.n;
        w.out.value = !string;
        return swap_value(t, &w, text);
}

/* A tool message of this format says its ref itself, as it always has. */
static int add_ref(
    struct taking *t, const struct part *result, const struct artifact_info *info, struct str path)
{
        struct about *about = t->to->about;
        struct str raw = json_raw(t->msg->j, t->msg->at);
        struct buf b;
        if (!(t->msg->format->flags & FORMAT_REF_MEMBER) || !str_is(about->role, "tool") ||
            result->output_kind != OUTPUT_TEXT ||
            json_get(t->msg->j, t->msg->at, "ref") != JSON_NONE)
                return 0;
        buf_init(&b, 0);
        struct jsonw w = jsonw_behind(&b);
        jsonw_key(&w, "ref");
        spill_put_ref(&w, info);
        if (path.n)
                jsonw_field_str(&w, "fullOutputPath", path);
        struct carry_swap swap = {.span = {raw.p + raw.n - 1, 0},
            .with = b.failed ? (struct str){0} : arena_dup(t->to->arena, buf_str(&b))};
        buf_release(&b);
        about->ref = arena_dup(t->to->arena, str_of(info->id));
        about->ref_sha = arena_dup(t->to->arena, str_of(info->sha256));
        about->own_fields = true;
        bool right = swap.with.p && about->ref.p && about->ref_sha.p &&
                     carry_swaps_add(t->swaps, t->to->arena, &swap);
        return right ? 0 : error_nomem(t->err);
}

static bool number_of(struct str raw, int64_t *out)
{
        char digits[24];
        char *end;
        if (!raw.n || raw.n >= sizeof digits)
                return false;
        memcpy(digits, raw.p, raw.n);
        digits[raw.n] = '\0';
        *out = strtoll(digits, &end, 10);
        return *end == '\0';
}

/* Makes the artifact of a text and swaps it for its stub. */
static int take_out(
    struct taking *t, const struct part *result, struct str text, struct spill_options *so)
{
        struct spill *spill = NULL;
        struct artifact_info info;
        struct spill_exit exit = {0};
        struct buf stub, path;
        bool materialized = false;
        buf_init(&stub, 0);
        buf_init(&path, 4 * KIB);
        so->policy = t->opt->policy;
        so->message_id = t->msg->id;
        so->output = ++t->outputs;
        so->context_tools = true;
        exit.has_code = number_of(result->exit_code, &exit.code);
        int rc = spill_new(t->conv, so, &spill, t->err);
        if (rc == 0)
                rc = spill_write(spill, text.p, text.n, t->err);
        if (rc == 0)
                rc = spill_finish(spill, &exit, &stub, &materialized, &info, t->err);
        if (rc == 0 && materialized)
                rc = swap_output(t, result, text, &info, so->call, buf_str(&stub));
        if (rc == 0 && materialized && policy_names_path(&so->policy))
                spill_put_path(&path, steno_conv_id(t->conv), so->message_id, so->output);
        if (rc == 0 && materialized)
                rc = add_ref(t, result, &info, buf_str(&path));
        if (rc && spill && spill_ref(spill))
                backend_artifact_undo(t->conv->backend, spill_ref(spill));
        spill_free(spill);
        buf_release(&stub);
        buf_release(&path);
        return rc;
}

static int look_at_result(void *ctx, const struct part *result, size_t index, struct str text)
{
        struct taking *t = ctx;
        struct spill_options so = {0};
        bool over = !t->opt->decided && policy_is_large(&t->opt->policy, text);
        bool usual = policy_is_large(&t->opt->usual, text);
        if ((!over && !usual) || !name_output(t, result, index, &so))
                return t->to->arena->failed ? error_nomem(t->err) : 0;
        if (over)
                return take_out(t, result, text, &so);
        t->to->about->inlined = true;
        return 0;
}

int carry_outs_take(struct steno_conv *conv, const struct carry_message *msg,
    const struct carry_options *opt, struct carried *to, struct carry_swaps *swaps,
    struct steno_error *err)
{
        struct taking t = {
            .conv = conv, .msg = msg, .opt = opt, .to = to, .swaps = swaps, .err = err};
        return carry_outs_each(msg, look_at_result, &t, err);
}
