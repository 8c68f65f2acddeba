/*
 * carry.c - see carry.h.
 *
 * A message that fits a log line is carried as it is, and nothing here costs it more than a look
 * at its size.
 */
#include "api/carry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "api/carry_calls.h"
#include "api/spill.h"

/* What a log line may hold of a message; the rest of LINE_MAX_BYTES is its header. */
#define MESSAGE_INLINE_MAX (LINE_MAX_BYTES - 128 * KIB)
/* What a part takes in the record's header: a place, a size and a sha256. */
#define PART_ENTRY 100
/* Below this nothing is worth a file. */
#define TOKEN_WORTH 256

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

/* ---- tool outputs ---- */

bool carry_output_text(const struct json *j, json_ref msg, struct buf *out, bool *lossy)
{
        json_ref content = json_get(j, msg, "content");
        if (json_type(j, content) == JSON_STRING)
                return json_string(j, content, out, lossy);
        if (json_type(j, content) != JSON_ARRAY)
                return false;
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p)) {
                json_ref type = json_get(j, p, "type");
                if (type != JSON_NONE && !json_is(j, type, "text"))
                        return false;
                if (!json_string(j, json_get(j, p, "text"), out, lossy))
                        return false;
        }
        return true;
}

static struct str member_text(
    const struct json *j, json_ref msg, const char *key, struct arena *arena)
{
        struct buf b;
        buf_init(&b, 0);
        json_string(j, json_get(j, msg, key), &b, NULL);
        struct str s = b.n ? arena_dup(arena, buf_str(&b)) : (struct str){0};
        buf_release(&b);
        return s;
}

/* The name of the tool in a message's call of this id. */
static struct str name_of_call(
    const struct json *j, json_ref msg, struct str call, struct arena *arena)
{
        json_ref calls = json_get(j, msg, "tool_calls");
        for (json_ref c = json_child(j, calls); c != JSON_NONE; c = json_next(j, calls, c)) {
                if (!json_is_str(j, json_get(j, c, "id"), call))
                        continue;
                struct str name = member_text(j, json_get(j, c, "function"), "name", arena);
                return name.n ? name : member_text(j, c, "name", arena);
        }
        return (struct str){0};
}

struct caller {
        struct str call;
        struct arena *arena; /* of the name */
        struct arena scratch;
        struct str name;
};

static int look_for_call(void *ctx, const struct files_record *r)
{
        struct caller *c = ctx;
        struct about about;
        struct json j;
        bool calls = false;
        arena_reset(&c->scratch);
        if (r->damaged || about_read(r->rec.x, &c->scratch, &about, NULL))
                return 0;
        for (size_t i = 0; i < about.call_count; i++)
                calls = calls || str_eq(about.calls[i], c->call);
        json_init(&j);
        if (calls && json_parse(&j, r->rec.m.p, r->rec.m.n, NULL, NULL) == 0)
                c->name = name_of_call(&j, 0, c->call, c->arena);
        json_release(&j);
        return 0;
}

/* Who was called, for a result that does not say: from the batch it came in, else the log. */
static struct str find_caller(struct steno_conv *conv, const struct json *j, json_ref msg,
    struct str call, struct arena *arena)
{
        struct caller c = {.call = call, .arena = arena};
        if (!call.n)
                return c.name;
        arena_init(&c.scratch);
        files_read_last(conv->files, PAIRING_WINDOW, look_for_call, &c, NULL);
        arena_release(&c.scratch);
        bool batch = json_type(j, 0) == JSON_ARRAY;
        for (json_ref m = batch ? json_child(j, 0) : JSON_NONE; m != JSON_NONE && m < msg;
             m = json_next(j, 0, m)) {
                struct str name = name_of_call(j, m, call, arena);
                if (name.n)
                        c.name = name;
        }
        return c.name;
}

/* Puts the stub and the ref into the message. */
static int put_stub(const struct json *j, json_ref msg, struct str stub,
    const struct artifact_info *info, struct str path, struct buf *out, struct steno_error *err)
{
        struct json_edits edits;
        struct buf text, member;
        buf_init(&text, 0);
        buf_init(&member, 0);
        json_edits_init(&edits);
        json_put_string(&text, stub);
        json_edit_replace(&edits, j, json_get(j, msg, "content"), buf_str(&text));
        buf_puts(&member, "\"ref\":");
        struct jsonw w = jsonw_to(&member);
        spill_put_ref(&w, info);
        if (path.n) {
                jsonw_field_str(&w, "fullOutputPath", path);
        }
        if (json_get(j, msg, "ref") == JSON_NONE)
                json_edit_add_member(&edits, j, msg, buf_str(&member));
        int rc =
            text.failed || member.failed ? STENO_ENOMEM : json_edits_apply(&edits, j, msg, out);
        json_edits_release(&edits);
        buf_release(&text);
        buf_release(&member);
        return rc ? error_nomem(err) : 0;
}

/* A large output becomes an artifact; `out` is then the message with its stub. */
static int materialize(struct steno_conv *conv, const struct json *j, json_ref msg, struct str text,
    const struct carry_options *opt, struct arena *arena, struct about *about, struct buf *out,
    struct steno_error *err)
{
        struct spill_options so = {.policy = opt->policy,
            .tool = member_text(j, msg, "toolName", arena),
            .server = member_text(j, msg, "serverName", arena),
            .call = about->answer_count ? about->answers[0] : (struct str){0},
            .message_id = opt->message_id,
            .context_tools = true};
        struct spill *spill;
        struct buf stub, path;
        struct artifact_info info;
        struct spill_exit exit = {0};
        bool materialized = false;
        if (!so.tool.n)
                so.tool = member_text(j, msg, "name", arena);
        if (!so.tool.n)
                so.tool = find_caller(conv, j, msg, so.call, arena);
        if (!so.tool.n)
                so.tool = STR("tool");
        exit.has_code = json_i64(j, json_get(j, msg, "exitCode"), &exit.code);
        int rc = spill_new(conv, &so, &spill, err);
        if (rc)
                return rc;
        buf_init(&stub, 0);
        buf_init(&path, 4 * KIB);
        rc = spill_write(spill, text.p, text.n, err);
        if (rc == 0)
                rc = spill_finish(spill, &exit, &stub, &materialized, &info, err);
        if (rc == 0 && materialized) {
                if (opt->policy.profile == POLICY_RUNTIME_STORE)
                        spill_put_path(&path, steno_conv_id(conv), opt->message_id);
                rc = put_stub(j, msg, buf_str(&stub), &info, buf_str(&path), out, err);
                about->ref = arena_dup(arena, str_of(info.id));
                about->ref_sha = arena_dup(arena, str_of(info.sha256));
                about->own_fields = true;
                if (rc == 0 && (!about->ref.p || !about->ref_sha.p))
                        rc = error_nomem(err);
        }
        if (rc && spill_ref(spill))
                artifact_undo(conv->files, spill_ref(spill));
        spill_free(spill);
        buf_release(&stub);
        buf_release(&path);
        return rc;
}

static bool is_context_answer(const struct json *j, json_ref msg, struct arena *arena)
{
        struct str name = member_text(j, msg, "toolName", arena);
        if (!name.n)
                name = member_text(j, msg, "name", arena);
        return name.n && steno_is_context_tool(name.p);
}

/* ---- large tokens ---- */

/* One bit for each node that is a key: only values can be given back in place of "". */
static unsigned char *mark_keys(const struct json *j, json_ref msg)
{
        unsigned char *keys = calloc((j->nodes[msg].next - msg) / 8 + 1, 1);
        for (json_ref r = msg; keys && r < j->nodes[msg].next; r++) {
                if (json_type(j, r) != JSON_OBJECT)
                        continue;
                for (json_ref k = json_child(j, r); k != JSON_NONE; k = json_next_key(j, r, k))
                        keys[(k - msg) / 8] |= (unsigned char)(1u << (k - msg) % 8);
        }
        return keys;
}

/* Chooses what leaves the line: string values of more than `over` bytes. */
static size_t choose_strings(
    const struct json *j, json_ref msg, const unsigned char *keys, size_t over, json_ref *cuts)
{
        size_t n = 0;
        for (json_ref r = msg + 1; r < j->nodes[msg].next; r++) {
                bool key = keys[(r - msg) / 8] >> (r - msg) % 8 & 1;
                if (!key && json_type(j, r) == JSON_STRING && json_raw(j, r).n > over)
                        cuts[n++] = r;
        }
        return n;
}

static size_t choose_members(const struct json *j, json_ref msg, json_ref *cuts)
{
        size_t n = 0;
        for (json_ref k = json_child(j, msg); k != JSON_NONE; k = json_next_key(j, msg, k))
                if (json_raw(j, json_value(j, k)).n > TOKEN_WORTH)
                        cuts[n++] = json_value(j, k);
        return n;
}

/* What is left of the line, and the names of what left it, must fit. */
static bool fits(const struct json *j, json_ref msg, const json_ref *cuts, size_t n)
{
        size_t size = json_raw(j, msg).n;
        for (size_t i = 0; i < n; i++)
                size -= json_raw(j, cuts[i]).n - 2;
        return size + n * PART_ENTRY <= MESSAGE_INLINE_MAX;
}

/* Writes the message with `""` for each cut and stores the tokens. */
static int cut_tokens(struct steno_conv *conv, const struct json *j, json_ref msg,
    const json_ref *cuts, size_t n, struct arena *arena, struct about *about, struct buf *out,
    struct steno_error *err)
{
        struct str raw = json_raw(j, msg);
        const char *from = raw.p;
        about->parts = arena_zalloc(arena, n * sizeof *about->parts);
        if (n && !about->parts)
                return error_nomem(err);
        for (size_t i = 0; i < n; i++) {
                struct str token = json_raw(j, cuts[i]);
                char name[PART_NAME];
                int rc = part_put(conv->files, token, name, err);
                if (rc)
                        return rc;
                buf_put(out, from, (size_t)(token.p - from));
                about->parts[i] = (struct about_part){
                    .at = out->n, .size = token.n, .name = arena_dup(arena, str_of(name))};
                buf_puts(out, "\"\"");
                from = token.p + token.n;
        }
        buf_put(out, from, (size_t)(raw.p + raw.n - from));
        about->part_count = n;
        return arena->failed ? error_nomem(err) : buf_check(out, err);
}

/*
 * Strings over TOKEN_INLINE_MAX leave the line. Where many smaller tokens still make it too long,
 * shorter strings follow, then whole members, then the whole message. Cuts are in order.
 */
static int shorten(struct steno_conv *conv, const struct json *j, json_ref msg, struct arena *arena,
    struct about *about, struct buf *out, struct steno_error *err)
{
        size_t nodes = j->nodes[msg].next - msg;
        json_ref *cuts = malloc((nodes + 1) * sizeof *cuts);
        unsigned char *keys = mark_keys(j, msg);
        size_t n = 0;
        bool fit = false;
        int rc = cuts && keys ? 0 : error_nomem(err);
        for (size_t over = TOKEN_INLINE_MAX; rc == 0 && !fit && over >= TOKEN_WORTH; over /= 4) {
                n = choose_strings(j, msg, keys, over, cuts);
                fit = fits(j, msg, cuts, n);
        }
        if (rc == 0 && !fit) {
                n = choose_members(j, msg, cuts);
                fit = fits(j, msg, cuts, n);
        }
        if (rc == 0 && !fit) {
                cuts[0] = msg;
                n = 1;
        }
        if (rc == 0)
                rc = cut_tokens(conv, j, msg, cuts, n, arena, about, out, err);
        free(cuts);
        free(keys);
        return rc;
}

/* ---- in ---- */

static bool has_large_string(const struct json *j, json_ref msg)
{
        for (json_ref r = msg; r < j->nodes[msg].next; r++)
                if (json_type(j, r) == JSON_STRING && j->nodes[r].len > TOKEN_INLINE_MAX)
                        return true;
        return false;
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

static int seen(void *ctx, const struct files_record *r)
{
        (void)r;
        *(bool *)ctx = true;
        return 0;
}

void carry_undo(struct steno_conv *conv, const struct about *about)
{
        if (about->ref.n)
                artifact_undo(conv->files, about->ref.p);
        for (size_t i = 0; i < about->ref_count; i++)
                artifact_undo(conv->files, about->refs[i].p);
}

/* Large outputs and tokens leave `j`'s message; `text` is scratch that lives in the arena. */
static int carry_large(struct steno_conv *conv, const struct json *j, json_ref msg,
    const struct carry_options *opt, struct str output, bool calls, struct arena *arena,
    struct about *about, struct str *m, struct steno_error *err)
{
        struct buf stubbed, cut;
        struct json again;
        buf_init(&stubbed, 0);
        buf_init(&cut, 0);
        json_init(&again);
        int rc = 0;
        if (output.n)
                rc = materialize(conv, j, msg, output, opt, arena, about, &stubbed, err);
        else if (calls)
                rc = carry_calls_in(conv, j, msg, opt, arena, about, &stubbed, err);
        if (rc == 0 && stubbed.n) {
                rc = json_parse(&again, stubbed.p, stubbed.n, NULL, err);
                j = &again;
                msg = 0;
        }
        if (rc == 0 && (has_large_string(j, msg) || json_raw(j, msg).n > MESSAGE_INLINE_MAX))
                rc = shorten(conv, j, msg, arena, about, &cut, err);
        if (rc == 0) {
                struct str result = cut.n ? buf_str(&cut) : stubbed.n ? buf_str(&stubbed) : *m;
                if (result.p != m->p) {
                        *m = arena_dup(arena, result);
                        if (!m->p)
                                rc = error_nomem(err);
                }
        }
        if (rc && stubbed.n)
                carry_undo(conv, about);
        json_release(&again);
        buf_release(&stubbed);
        buf_release(&cut);
        return rc;
}

int carry_in(struct steno_conv *conv, const struct json *j, json_ref msg,
    const struct carry_options *opt, struct arena *arena, struct about *about, struct str *m,
    bool *made, struct steno_error *err)
{
        struct str raw = json_raw(j, msg);
        struct buf text;
        bool lossy = false;
        int calls = 0;
        *m = raw;
        *made = false;
        about->keep_output = false;
        if (raw.n <= INLINE_BYTES_FLOOR)
                return 0;
        bool tool = str_is(about->role, "tool") && opt->materialize;
        buf_init(&text, 0);
        bool output = tool && carry_output_text(j, msg, &text, &lossy) && !lossy &&
                      policy_is_large(&opt->policy, buf_str(&text)) &&
                      !is_context_answer(j, msg, arena);
        int rc = buf_check(&text, err);
        if (rc == 0 && str_is(about->role, "assistant") && opt->materialize)
                calls = carry_calls_large(j, msg, &opt->policy, err);
        if (calls < 0)
                rc = calls;
        if (rc == 0 &&
            (output || calls || has_large_string(j, msg) || raw.n > MESSAGE_INLINE_MAX)) {
                bool there = false;
                about->keep_output = opt->keep_output;
                rc = set_sha(raw, arena, about, err);
                /* A message that is there already needs no files: the store will compare. */
                if (rc == 0 && about->id.n) {
                        rc = files_read_id(conv->files, about->id, seen, &there, err);
                        rc = rc == STENO_ENOTFOUND ? 0 : rc;
                }
                if (rc == 0 && !there)
                        rc = carry_large(conv, j, msg, opt,
                            output ? buf_str(&text) : (struct str){0}, calls, arena, about, m, err);
                *made = rc == 0 && (output || calls) && !there;
        }
        buf_release(&text);
        return rc;
}

int carry_learn_ref(
    struct steno_conv *conv, struct arena *arena, struct about *about, struct steno_error *err)
{
        struct artifact_info info;
        if (!about->ref.n || about->ref_sha.n || !str_is(about->role, "tool"))
                return 0;
        int rc = artifact_find(conv->files, about->ref, &info, NULL);
        if (rc == STENO_ENOMEM)
                return error_nomem(err);
        if (rc || info.state != ARTIFACT_CLOSED)
                return 0; /* it is what it is; who reads it is told */
        about->ref_sha = arena_dup(arena, str_of(info.sha256));
        return about->ref_sha.p ? 0 : error_nomem(err);
}

/* ---- out ---- */

bool carry_is_plain(const struct about *about, bool full)
{
        return about->part_count == 0 && !(full && about->ref.n);
}

static int stopped(struct steno_error *err)
{
        return error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
}

/* Streams [0, m.n) with the parts in their places. */
static int splice_parts(struct steno_conv *conv, struct str m, const struct about *about,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        size_t at = 0;
        for (size_t i = 0; i < about->part_count; i++) {
                const struct about_part *p = &about->parts[i];
                if (p->at < at || p->at + 2 > m.n)
                        return error_set(err, STENO_ECORRUPT, "a part lies outside of its message");
                if (p->at > at && sink(ctx, m.p + at, (size_t)p->at - at))
                        return stopped(err);
                int rc = part_get(conv->files, p->name, p->size, sink, ctx, err);
                if (rc)
                        return rc;
                at = (size_t)p->at + 2;
        }
        return at < m.n && sink(ctx, m.p + at, m.n - at) ? stopped(err) : 0;
}

struct escaping {
        steno_sink sink;
        void *ctx;
        struct buf out;
        char rest[4]; /* a character that was cut by the block's end */
        size_t have;
};

/* Escapes an artifact's bytes on their way into a string token. Only whole characters pass. */
static int escape(void *ctx, const void *p, size_t n)
{
        struct escaping *e = ctx;
        struct buf in;
        buf_init(&in, 0);
        buf_put(&in, e->rest, e->have);
        buf_put(&in, p, n);
        size_t whole = in.n;
        size_t back = 0;
        while (back < 3 && back < in.n && ((unsigned char)in.p[in.n - 1 - back] & 0xC0) == 0x80)
                back++;
        if (back < in.n) {
                unsigned char lead = (unsigned char)in.p[in.n - 1 - back];
                size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
                if (need > back + 1)
                        whole = in.n - 1 - back;
        }
        buf_clear(&e->out);
        json_put_escaped(&e->out, str_span(in.p, whole));
        e->have = in.n - whole;
        if (e->have)
                memcpy(e->rest, in.p + whole, e->have);
        int rc = in.failed || e->out.failed || e->sink(e->ctx, e->out.p, e->out.n);
        buf_release(&in);
        return rc;
}

/* The message with the artifact's text in the place of its stub. */
static int splice_output(struct steno_conv *conv, struct str m, const struct about *about,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        struct json j;
        struct artifact_info info;
        json_init(&j);
        int rc = artifact_find(conv->files, about->ref, &info, NULL);
        /* Gone, or no text: the stub says what there was. */
        if (rc || info.state != ARTIFACT_CLOSED || !info.utf8)
                return sink(ctx, m.p, m.n) ? stopped(err) : 0;
        rc = json_parse(&j, m.p, m.n, NULL, err);
        struct str token = rc ? (struct str){0} : json_raw(&j, json_get(&j, 0, "content"));
        json_release(&j);
        if (rc)
                return rc;
        if (!token.n)
                return sink(ctx, m.p, m.n) ? stopped(err) : 0;
        size_t before = (size_t)(token.p - m.p);
        struct escaping e = {.sink = sink, .ctx = ctx};
        buf_init(&e.out, 0);
        if (sink(ctx, m.p, before) || sink(ctx, "\"", 1))
                rc = stopped(err);
        if (rc == 0)
                rc = steno_context_raw(conv, about->ref.p, 0, 0, escape, &e, err);
        if (rc == 0 && (sink(ctx, "\"", 1) || sink(ctx, token.p + token.n, m.n - before - token.n)))
                rc = stopped(err);
        buf_release(&e.out);
        return rc;
}

struct gathering {
        struct buf b;
};

static int gather(void *ctx, const void *p, size_t n)
{
        struct gathering *g = ctx;
        buf_put(&g->b, p, n);
        return g->b.failed;
}

/* Calls as text: the whole message is held, because responses stand inside of strings. */
static int calls_out(struct steno_conv *conv, struct str m, const struct about *about,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        struct gathering g;
        struct buf whole;
        buf_init(&g.b, 0);
        buf_init(&whole, 0);
        int rc = splice_parts(conv, m, about, gather, &g, err);
        if (rc == 0)
                rc = carry_calls_out(conv, buf_str(&g.b), &whole, err);
        if (rc == 0 && sink(ctx, whole.p, whole.n))
                rc = stopped(err);
        buf_release(&g.b);
        buf_release(&whole);
        return rc;
}

int carry_out(struct steno_conv *conv, struct str m, const struct about *about, bool full,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        bool output = full && about->ref.n;
        if (output && str_is(about->role, "assistant"))
                return calls_out(conv, m, about, sink, ctx, err);
        if (!output)
                return about->part_count ? splice_parts(conv, m, about, sink, ctx, err)
                                         : (sink(ctx, m.p, m.n) ? stopped(err) : 0);
        if (!about->part_count)
                return splice_output(conv, m, about, sink, ctx, err);
        struct gathering g;
        buf_init(&g.b, 0);
        int rc = splice_parts(conv, m, about, gather, &g, err);
        if (rc == 0)
                rc = splice_output(conv, buf_str(&g.b), about, sink, ctx, err);
        buf_release(&g.b);
        return rc;
}
