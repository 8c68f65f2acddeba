/*
 * carry_out.c - a stored message on its way to a reader, its parts and outputs put back; see
 * carry.h.
 *
 * The parts come first, and about.outs counts bytes of what they make, so that both are one pass
 * over the message: memory does not grow with what is put back. Only calls in an assistant's text,
 * whose responses stand inside of strings, and tool messages of earlier versions, which do not say
 * where their output stood, are held whole.
 */
#include "api/carry.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "api/carry_calls.h"

static int stopped(struct steno_error *err)
{
        return error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
}

static int gather(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

/* ---- parts ---- */

/* Streams [0, m.n) with the parts in their places. */
static int splice_parts(
    const struct carry_out *c, steno_sink sink, void *ctx, struct steno_error *err)
{
        const struct about *about = c->about;
        struct str m = c->m;
        size_t at = 0;
        for (size_t i = 0; i < about->part_count; i++) {
                const struct about_part *p = &about->parts[i];
                if (p->at < at || p->at + 2 > m.n)
                        return error_set(err, STENO_ECORRUPT, "a part lies outside of its message");
                if (p->at > at && sink(ctx, m.p + at, (size_t)p->at - at))
                        return stopped(err);
                int rc = backend_part_get(c->conv->backend, p->name, p->size, sink, ctx, err);
                if (rc)
                        return rc;
                at = (size_t)p->at + 2;
        }
        return at < m.n && sink(ctx, m.p + at, m.n - at) ? stopped(err) : 0;
}

/* ---- outputs ---- */

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

/* An artifact's bytes as a string token. */
static int put_string(struct steno_conv *conv, struct str ref, uint64_t from, uint64_t size,
    struct escaping *e, struct steno_error *err)
{
        int rc = e->sink(e->ctx, "\"", 1) ? stopped(err) : 0;
        buf_init(&e->out, 0);
        e->have = 0;
        if (rc == 0 && (size || !from))
                rc = steno_context_raw(conv, ref.p, from, size, escape, e, err);
        if (rc == 0 && e->sink(e->ctx, "\"", 1))
                rc = stopped(err);
        buf_release(&e->out);
        return rc;
}

/* Can its text be put back? Otherwise (it was deleted, or is not text) the stub stays and says
 * so. */
static bool has_text(struct steno_conv *conv, struct str ref)
{
        struct artifact_info info;
        return backend_artifact_find(conv->backend, ref, &info, NULL) == 0 &&
               info.state == ARTIFACT_CLOSED && info.utf8;
}

/* Takes the message with its parts, and gives it with its outputs. */
struct splicing {
        const struct carry_out *c;
        steno_sink sink;
        void *ctx;
        struct steno_error *err;
        size_t next;   /* of the outs */
        uint64_t at;   /* bytes taken */
        uint64_t made; /* bytes given */
        bool put;      /* the token of `next` was given: what stands there is passed over */
        bool keep;     /* or it cannot be had, and what stands there stays */
        bool kept;     /* that happened to one of them */
        int rc;
};

static int give(void *ctx, const void *p, size_t n)
{
        struct splicing *s = ctx;
        s->made += n;
        return s->sink(s->ctx, p, n);
}

static int put_token(struct splicing *s, const struct about_out *o)
{
        struct steno_conv *conv = s->c->conv;
        struct escaping e = {.sink = give, .ctx = s};
        if (o->part_size)
                return backend_part_get(conv->backend, o->part, o->part_size, give, s, s->err);
        if (!o->ref.n)
                return 0;
        if (o->value)
                return steno_context_raw(conv, o->ref.p, o->from, o->size, give, s, s->err);
        /* The call takes a length of 0 for all of it. */
        if (!o->size)
                return give(s, "\"\"", 2) ? stopped(s->err) : 0;
        return put_string(conv, o->ref, o->from, o->size, &e, s->err);
}

/* How many of `n` bytes can be passed on before the next output; the output itself is written
 * here. */
static size_t step(struct splicing *s, size_t n)
{
        const struct about *a = s->c->about;
        if (s->next == a->out_count)
                return n;
        const struct about_out *o = &a->outs[s->next];
        if (s->at < o->at)
                return o->at - s->at < n ? (size_t)(o->at - s->at) : n;
        if (!s->put && !s->keep) {
                if (s->c->places)
                        s->c->places[s->next] = s->made;
                s->keep = !s->c->full ||
                          (!o->part_size && (o->ref.n ? !has_text(s->c->conv, o->ref) : s->kept));
                s->kept |= s->keep;
                s->put = !s->keep;
                if (s->put)
                        s->rc = put_token(s, o);
        }
        uint64_t left = o->at + o->len - s->at;
        return left < n ? (size_t)left : n;
}

static int splice(void *ctx, const void *p, size_t n)
{
        struct splicing *s = ctx;
        const struct about *a = s->c->about;
        const char *from = p;
        while (n) {
                size_t k = step(s, n);
                if (s->rc)
                        return 1;
                if (!s->put && k && give(s, from, k)) {
                        s->rc = stopped(s->err);
                        return 1;
                }
                s->at += k;
                from += k;
                n -= k;
                if ((s->put || s->keep) && s->at == a->outs[s->next].at + a->outs[s->next].len) {
                        s->next++;
                        s->put = s->keep = false;
                }
        }
        return 0;
}

/* *kept: an output could not be put back. */
static int splice_outs(
    const struct carry_out *c, steno_sink sink, void *ctx, bool *kept, struct steno_error *err)
{
        struct splicing s = {.c = c, .sink = sink, .ctx = ctx, .err = err};
        int rc = splice_parts(c, splice, &s, err);
        if (kept)
                *kept = s.kept;
        if (s.rc)
                return s.rc;
        if (rc == 0 && s.next < c->about->out_count)
                rc = error_set(err, STENO_ECORRUPT, "an output lies outside of its message");
        return rc;
}

/* ---- records of earlier versions, and calls in text ---- */

/* Where the members begin that were added to a tool message: they are its last. */
static size_t find_added(const struct json *j, struct str m)
{
        size_t end = m.n, last = m.n;
        bool ref = false;
        for (json_ref k = json_child(j, 0); k != JSON_NONE; k = json_next_key(j, 0, k)) {
                struct str v = json_raw(j, json_value(j, k));
                bool own = json_is(j, k, "ref") || (ref && json_is(j, k, "fullOutputPath"));
                if (json_is(j, k, "ref"))
                        end = last;
                else if (!own)
                        end = m.n;
                ref = own;
                last = (size_t)(v.p + v.n - m.p);
        }
        return end;
}

/* The message with the artifact's text in the place of its stub; `bare`: and without its ref. */
static int splice_output(const struct carry_out *c, struct str m, bool bare, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        if (!has_text(c->conv, c->about->ref))
                return sink(ctx, m.p, m.n) ? stopped(err) : 0;
        int rc = json_parse(&j, m.p, m.n, NULL, err);
        struct str token = rc ? (struct str){0} : json_raw(&j, json_get(&j, 0, "content"));
        size_t end = rc || !bare ? m.n : find_added(&j, m);
        json_release(&j);
        if (rc)
                return rc;
        if (!token.n)
                return sink(ctx, m.p, m.n) ? stopped(err) : 0;
        size_t before = (size_t)(token.p - m.p);
        struct escaping e = {.sink = sink, .ctx = ctx};
        if (sink(ctx, m.p, before))
                return stopped(err);
        rc = put_string(c->conv, c->about->ref, 0, 0, &e, err);
        size_t behind = before + token.n;
        if (rc == 0 && end > behind && sink(ctx, m.p + behind, end - behind))
                rc = stopped(err);
        if (rc == 0 && end < m.n && sink(ctx, "}", 1))
                rc = stopped(err);
        return rc;
}

/* Has the message responses in its text that no entry of outs puts back? */
static bool has_text_calls(const struct about *a)
{
        if (!a->ref.n || !str_is(a->role, "assistant"))
                return false;
        for (size_t i = 0; i < a->out_count; i++)
                if (str_eq(a->outs[i].ref, a->ref))
                        return false;
        return true;
}

static bool has_old_output(const struct about *a)
{
        return a->ref.n && !a->out_count && !str_is(a->role, "assistant");
}

bool carry_is_plain(const struct about *about, bool full)
{
        return about->part_count == 0 && !(full && (about->ref.n || about->out_count));
}

static int out(const struct carry_out *c, bool bare, steno_sink sink, void *ctx, bool *kept,
    struct steno_error *err)
{
        bool calls = c->full && has_text_calls(c->about);
        bool old = c->full && has_old_output(c->about);
        struct buf text, whole;
        if (!calls && !old)
                return splice_outs(c, sink, ctx, kept, err);
        buf_init(&text, 0);
        buf_init(&whole, 0);
        int rc = splice_outs(c, gather, &text, kept, err);
        if (rc == 0)
                rc = buf_check(&text, err);
        if (rc == 0 && calls)
                rc = carry_calls_out(c->conv, buf_str(&text), &whole, err);
        if (rc == 0 && calls && sink(ctx, whole.p, whole.n))
                rc = stopped(err);
        if (rc == 0 && old)
                rc = splice_output(c, buf_str(&text), bare, sink, ctx, err);
        buf_release(&text);
        buf_release(&whole);
        return rc;
}

int carry_out(const struct carry_out *c, steno_sink sink, void *ctx, struct steno_error *err)
{
        if (carry_is_plain(c->about, c->full) && !c->places)
                return sink(ctx, c->m.p, c->m.n) ? stopped(err) : 0;
        return out(c, false, sink, ctx, NULL, err);
}

static int hash(void *ctx, const void *p, size_t n)
{
        hash_sha256_update(ctx, p, n);
        return 0;
}

int carry_original(
    const struct carry_out *c, steno_sink sink, void *ctx, bool *rendering, struct steno_error *err)
{
        const struct about *a = c->about;
        struct carry_out whole = {.conv = c->conv, .m = c->m, .about = a, .full = true};
        struct sha256 sum;
        unsigned char bytes[SHA256_SIZE];
        char hex[SHA256_HEX];
        bool bare = a->sha.n > 0;
        *rendering = false;
        /* Parts are held against their own hashes: with nothing else there is nothing to doubt. */
        if (a->sha.n && (a->ref.n || a->out_count)) {
                if (hash_sha256_init(&sum))
                        return error_nomem(err);
                int rc = out(&whole, bare, hash, &sum, NULL, err);
                hash_sha256_finish(&sum, bytes);
                hash_hex(bytes, sizeof bytes, hex);
                if (rc)
                        return rc;
                *rendering = !str_is(a->sha, hex);
        }
        return sink ? out(&whole, bare, sink, ctx, NULL, err) : 0;
}
