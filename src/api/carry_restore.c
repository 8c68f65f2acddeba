/*
 * carry_restore.c - restores lost files of a message from the message, when it is sent again.
 *
 * The append has compared it with what was stored, so its tokens and outputs are those that left
 * it: a part is known by its name, an output by the hash in the manifest. In a tool message, the
 * output is the whole text. This text counts even if file and manifest agree on something else,
 * because a repair may have made the line of the manifest from a damaged file. But a file whose
 * hash the record names is the one that was written then. It stays as it is, even if this version
 * would write the same output otherwise.
 */
#include "api/carry.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/text.h"
#include "output/lines.h"
#include "api/carry_calls.h"
#include "api/carry_outs.h"

/* ---- the record ---- */

struct stored {
        struct arena arena;
        struct about about;
        struct str m;
        int rc;
        struct steno_error *err;
};

static int take_about(void *ctx, const struct backend_record *r)
{
        struct stored *s = ctx;
        if (r->damaged)
                return 1;
        struct str x = arena_dup(&s->arena, r->rec.x);
        s->m = arena_dup(&s->arena, r->rec.m);
        s->rc = x.p && s->m.p ? about_read(x, &s->arena, &s->about, s->err) : error_nomem(s->err);
        return 1;
}

/* ---- parts ---- */

/* The token that the part was made of: the value of this size with this hash. */
static int find_token(const struct json *j, json_ref msg, const struct about_part *p,
    struct str *token, struct steno_error *err)
{
        char hex[SHA256_HEX];
        for (json_ref r = msg; r < j->nodes[msg].next; r++) {
                struct str raw = json_raw(j, r);
                if (raw.n != p->size)
                        continue;
                if (hash_sha256_hex(raw.p, raw.n, hex))
                        return error_nomem(err);
                if (str_is(p->name, hex)) {
                        *token = raw;
                        return 0;
                }
        }
        return error_set(
            err, STENO_ECORRUPT, "it is stored, but part %.16s... of it is lost", p->name.p);
}

static int restore_parts(struct steno_conv *conv, const struct json *j, json_ref msg,
    const struct about *about, struct steno_error *err)
{
        char name[PART_NAME];
        struct str token;
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < about_part_slots(about); i++) {
                struct about_part p = about_part_at(about, i);
                if (!p.name.n ||
                    backend_part_get(conv->backend, p.name, p.size, NULL, NULL, NULL) == 0)
                        continue;
                rc = find_token(j, msg, &p, &token, err);
                if (rc == 0)
                        rc = backend_part_put(conv->backend, token, name, err);
        }
        return rc;
}

/* ---- outputs ---- */

struct offering {
        struct steno_conv *conv;
        struct artifact_info *info;
        struct str want; /* the name that its file should have */
        bool whole;      /* its file is as the manifest says */
        bool taken;
        struct steno_error *err;
};

static int write_again(struct offering *o, struct str text)
{
        const struct artifact_info *info = o->info;
        struct backend_artifact *a = NULL;
        bool utf8 = text_is_utf8(text.p, text.n);
        bool is_json = strcmp(info->mime, "application/json") == 0;
        struct artifact_end end = {.suffix = strcmp(info->kind, "terminal") == 0 ? ".log"
                                             : is_json                           ? ".json"
                                             : utf8                              ? ".txt"
                                                                                 : ".bin",
            .mime = info->mime,
            .lines = lines_count(text.p, text.n),
            .utf8 = utf8};
        int rc = backend_artifact_begin_again(o->conv->backend, info, o->want, &a, o->err);
        if (rc)
                return rc;
        rc = backend_artifact_write(a, text.p, text.n, o->err);
        if (rc == 0)
                rc = backend_artifact_close(a, &end, NULL, o->err);
        backend_artifact_free(a);
        o->taken = rc == 0;
        return rc;
}

/* The file is whole by what the manifest says: is that what was sent? */
static int take_if_other(struct offering *o, struct str text)
{
        char hex[SHA256_HEX];
        if (hash_sha256_hex(text.p, text.n, hex))
                return error_nomem(o->err);
        o->taken = strcmp(hex, o->info->sha256) == 0;
        return o->taken ? 0 : write_again(o, text);
}

static int take_if_same(void *ctx, struct str text)
{
        struct offering *o = ctx;
        char hex[SHA256_HEX];
        if (o->whole)
                return take_if_other(o, text);
        if (text.n != o->info->size || o->taken)
                return 0;
        if (hash_sha256_hex(text.p, text.n, hex))
                return error_nomem(o->err);
        if (o->info->sha256[0])
                return strcmp(hex, o->info->sha256) == 0 ? write_again(o, text) : 0;
        /* Its file may be whole, and only the line of it lost. */
        memcpy(o->info->sha256, hex, sizeof hex);
        int rc = backend_artifact_relist(o->conv->backend, o->info, o->want, &o->taken, o->err);
        return rc || o->taken ? rc : write_again(o, text);
}

static int offer_result(void *ctx, const struct part *result, size_t index, struct str text)
{
        (void)result;
        (void)index;
        return take_if_same(ctx, text);
}

/* The texts of an array joined as they are, which is how outputs were written before a record could
 * name several of them (`outs`). False: the content is not an array of texts. */
static bool join_texts(const struct carry_message *msg, struct buf *out)
{
        const struct json *j = msg->j;
        json_ref content = json_get(j, msg->at, "content");
        if (json_type(j, content) != JSON_ARRAY)
                return false;
        for (json_ref p = json_child(j, content); p != JSON_NONE; p = json_next(j, content, p))
                if (!json_string(j, json_get(j, p, "text"), out, NULL))
                        return false;
        return !out->failed;
}

static int offer_texts(
    struct offering *o, const struct carry_message *msg, const struct about *about, bool old)
{
        int rc = 0;
        struct buf joined;
        buf_init(&joined, 0);
        bool array = old && join_texts(msg, &joined);
        if (array)
                rc = take_if_same(o, buf_str(&joined));
        buf_release(&joined);
        if (array)
                return rc;
        if (str_is(about->role, "assistant"))
                rc = carry_calls_texts(msg->j, msg->at, take_if_same, o, o->err);
        return rc ? rc : carry_outs_each(msg, offer_result, o, o->err);
}

/* Is the output all that the message says? Then the text counts whatever the manifest says. */
static bool is_all(const struct about *about)
{
        return str_is(about->role, "tool") && about->ref.n && !about->ref_count;
}

/* Are the bytes that the manifest names those that the record was stored with? */
static bool is_as_written(const struct about *about, const struct artifact_info *info)
{
        return str_is(about->ref_sha, info->sha256);
}

/* A ref that the message came with is to bytes that it never had. */
static bool is_own_ref(const struct json *j, json_ref msg, struct str ref)
{
        return json_is_str(j, json_get(j, json_get(j, msg, "ref"), "id"), ref);
}

/* The name that the file of an output should have, and what was said of it when it was whole. */
static int describe_lost(const struct stored *s, size_t slot, struct artifact_info *info,
    struct str *want, struct steno_error *err)
{
        struct str ref = about_ref_at(&s->about, slot);
        const struct about_out *o = about_out_at(&s->about, slot);
        int rc = 0;
        if (o)
                backend_said_take(o, info);
        else
                rc = backend_said_read(s->m, ref, info, err);
        snprintf(info->kind, sizeof info->kind, "tool");
        *want = o && o->call.n ? o->call : s->about.answer_count ? s->about.answers[0] : ref;
        return rc;
}

static int restore_ref(struct steno_conv *conv, const struct carry_message *msg,
    const struct stored *s, size_t slot, struct steno_error *err)
{
        struct artifact_info info;
        struct str ref = about_ref_at(&s->about, slot);
        struct offering o = {.conv = conv, .info = &info, .err = err};
        if (!ref.n || is_own_ref(msg->j, msg->at, ref))
                return 0;
        int rc = backend_artifact_find(conv->backend, ref, &info, err);
        if (rc && rc != STENO_ENOTFOUND)
                return rc;
        if (rc == 0 && (info.state == ARTIFACT_DELETED || info.live))
                return 0;
        o.whole = rc == 0 && info.state == ARTIFACT_CLOSED &&
                  backend_artifact_verify(conv->backend, &info, NULL) == 0;
        if (o.whole && (!is_all(&s->about) || is_as_written(&s->about, &info)))
                return 0;
        if (rc == 0 && info.state == ARTIFACT_CLOSED) {
                const char *dot = strrchr(info.name, '.');
                o.want = str_span(info.name, dot ? (size_t)(dot - info.name) : strlen(info.name));
        } else {
                rc = describe_lost(s, slot, &info, &o.want, err);
                if (rc)
                        return rc;
        }
        rc = offer_texts(&o, msg, &s->about, !about_out_at(&s->about, slot));
        return rc || o.taken || o.whole
                   ? rc
                   : error_set(err, STENO_ECORRUPT, "it is stored, but its output %.*s is lost",
                         (int)ref.n, ref.p);
}

struct restoring {
        struct steno_conv *conv;
        const struct carry_message *msg;
        const struct stored *stored;
        struct steno_error *err;
};

static int restore_all(void *ctx)
{
        struct restoring *r = ctx;
        const struct about *about = &r->stored->about;
        int rc = restore_parts(r->conv, r->msg->j, r->msg->at, about, r->err);
        for (size_t i = 0; rc == 0 && i < about_ref_slots(about); i++)
                rc = restore_ref(r->conv, r->msg, r->stored, i, r->err);
        return rc;
}

int carry_restore(
    struct steno_conv *conv, const struct carry_message *msg, uint64_t seq, struct steno_error *err)
{
        struct stored s = {.err = err};
        struct restoring r = {conv, msg, &s, err};
        if (json_raw(msg->j, msg->at).n <= INLINE_BYTES_FLOOR)
                return 0;
        arena_init(&s.arena);
        int rc = backend_read(conv->backend, seq - 1, take_about, &s, err);
        rc = rc < 0 ? rc : s.rc;
        /* Without a hash of the message nothing has left it. */
        if (rc == 0 && s.about.sha.n)
                rc = backend_conv_exclusively(conv->backend, restore_all, &r, err);
        arena_release(&s.arena);
        return rc;
}
