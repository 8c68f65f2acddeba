/*
 * api_append.c - from JSON that a caller sent to a batch that the store takes.
 */
#include "api/carry.h"
#include "api/append_ids.h"
#include "api/api_append.h"
#include "api/api_run.h"
#include "api/receipt.h"
#include "api/api_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "format/format.h"

struct append_work {
        struct steno_conv *conv;
        const struct format *format;
        uint32_t flags;
        struct str message_id; /* the caller's for a message that has none */
        struct str via;        /* where a model's reply came from */
        uint64_t of, after;    /* what the caller knows of its place */
        struct str deletes;    /* the message that the batch deletes */
        size_t count;          /* of messages */
        struct carry_options carry;
        struct json j;
        struct arena arena;
        struct backend_batch batch;
        struct append_ids *ids; /* NULL until something comes without an id */
        bool guessed; /* a call was looked for in the log, so no other append may come in between */
        bool anew;    /* of a recording append: what is there already is stored again */
        bool *made;   /* of each message: artifacts were made for it */
        char *text;   /* the caller's JSON on one line, when it was not */
};

static int work_init(struct append_work *w, struct steno_conv *conv,
    const struct steno_append_options *opt, struct steno_error *err)
{
        const char *format = OPTION(opt, struct steno_append_options, format, NULL);
        const char *key = OPTION(opt, struct steno_append_options, idempotency_key, NULL);
        *w = (struct append_work){.conv = conv};
        json_init(&w->j);
        arena_init(&w->arena);
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        w->flags = OPTION(opt, struct steno_append_options, flags, 0);
        if (w->flags & ~(uint32_t)(STENO_RECORD | STENO_EXPECT_SEQ | STENO_KEEP_OUTPUTS |
                                   STENO_DECIDED | STENO_RECOVERED | STENO_ANEW))
                return error_set(err, STENO_EINVAL, "append has no flag 0x%x", w->flags);
        w->format = format_find(format ? format : "openai");
        if (!w->format)
                return format_unknown(format, err);
        w->batch.record = w->flags & STENO_RECORD;
        w->batch.expect = w->flags & STENO_EXPECT_SEQ;
        w->batch.expected_seq = OPTION(opt, struct steno_append_options, expected_seq, 0);
        w->batch.durability = OPTION(opt, struct steno_append_options, durability, STENO_FULL);
        w->batch.key = str_of(key);
        w->message_id = str_of(OPTION(opt, struct steno_append_options, message_id, NULL));
        w->via = str_of(OPTION(opt, struct steno_append_options, via, NULL));
        w->of = OPTION(opt, struct steno_append_options, of_seq, 0);
        w->after = OPTION(opt, struct steno_append_options, after_seq, 0);
        w->deletes = str_of(OPTION(opt, struct steno_append_options, deletes, NULL));
        w->count = 1;
        const struct steno_run *run = OPTION(opt, struct steno_append_options, run, NULL);
        rc = run ? api_run_claim(run, conv, &w->batch.claim, err) : 0;
        if (rc)
                return rc;
        if (w->batch.durability != STENO_FULL && w->batch.durability != STENO_PROCESS)
                return error_set(
                    err, STENO_EINVAL, "there is no durability %d", w->batch.durability);
        if (key && !id_is_legal(w->batch.key, ID_MAX))
                return error_set(err, STENO_EINVAL,
                    "an idempotency key is 1 to %d bytes of UTF-8 without control characters",
                    ID_MAX);
        w->carry.decided = w->flags & STENO_DECIDED;
        w->carry.keep_output = w->flags & STENO_KEEP_OUTPUTS;
        rc = carry_policy(conv->store, NULL, 0, 0, &w->carry.usual, err);
        return rc ? rc
                  : carry_policy(conv->store,
                        OPTION(opt, struct steno_append_options, profile, NULL),
                        OPTION(opt, struct steno_append_options, max_inline_chars, 0),
                        OPTION(opt, struct steno_append_options, max_inline_bytes, 0),
                        &w->carry.policy, err);
}

/* Removes the artifacts that were made for a batch which was not stored. */
static void undo_files(struct append_work *w)
{
        for (size_t i = 0; w->made && i < w->count; i++) {
                if (w->made[i])
                        carry_undo(w->conv, &w->batch.entries[i].about);
                w->made[i] = false;
        }
}

/* `stored` is false when the batch was refused or had been stored before: then the artifacts that
 * were made for it are removed. */
static void work_release(struct append_work *w, bool stored)
{
        if (!stored)
                undo_files(w);
        append_ids_free(w->ids);
        json_release(&w->j);
        arena_release(&w->arena);
        free(w->text);
}

/* Parses the JSON. Text that is on several lines is first copied onto one line. */
static int work_parse(struct append_work *w, const char *json, size_t n, struct steno_error *err)
{
        if (n > JSON_SIZE_MAX)
                return error_set(err, STENO_ELIMIT, "a batch of %zu bytes is too large", n);
        if (!memchr(json, '\n', n) && !memchr(json, '\r', n))
                return json_parse(&w->j, json, n, NULL, err);
        w->text = malloc(n);
        if (!w->text)
                return error_nomem(err);
        memcpy(w->text, json, n);
        int rc = json_parse(&w->j, w->text, n, NULL, err);
        if (rc == 0)
                json_single_line(w->text, n);
        return rc;
}

static struct str make_id(struct append_work *w)
{
        char *made = arena_alloc(&w->arena, 40);
        if (!made)
                return (struct str){0};
        id_make(w->conv->store->env, "msg_", made);
        return str_of(made);
}

/* The id of a message: its own, or one that is made. */
static int take_id(struct append_work *w, struct backend_entry *e, struct steno_error *err)
{
        if (e->about.id.n) {
                if (!id_is_legal(e->about.id, ID_MAX))
                        return error_set(err, STENO_EPROTO,
                            "id must be 1 to %d bytes of UTF-8 without control characters", ID_MAX);
                e->id = e->about.id;
                return 0;
        }
        if (w->message_id.n) {
                if (w->count != 1)
                        return error_set(err, STENO_EINVAL, "message_id is for one message");
                if (!id_is_legal(w->message_id, ID_MAX))
                        return error_set(err, STENO_EINVAL,
                            "message_id must be 1 to %d bytes of UTF-8 without control characters",
                            ID_MAX);
                e->id = w->message_id;
                return 0;
        }
        e->id = make_id(w);
        e->made_id = true;
        return e->id.p ? 0 : error_nomem(err);
}

/* ---- ids ---- */

/* What is looked for: a record with the id of the message that comes now. */
struct used {
        struct str raw; /* the message */
        struct arena *arena;
        bool there;
        bool same;
        int rc;
};

static int look_at_used(void *ctx, const struct backend_record *r)
{
        struct used *u = ctx;
        struct about about;
        char hex[SHA256_HEX];
        u->there = true;
        u->rc = about_read(r->rec.x, u->arena, &about, NULL);
        if (u->rc == 0 && about.sha.n && hash_sha256_hex(u->raw.p, u->raw.n, hex))
                u->rc = STENO_ENOMEM;
        u->same = u->rc == 0 && !about.kind.n &&
                  (about.sha.n ? str_is(about.sha, hex) : str_eq(r->rec.m, u->raw));
        return 0;
}

static bool is_in_batch(const struct append_work *w, const struct backend_entry *e)
{
        for (const struct backend_entry *b = w->batch.entries; b < e; b++)
                if (str_eq(b->id, e->id))
                        return true;
        return false;
}

/* A message that is stored already needs no files: the store compares the new one with it as it
 * came. Clients of a recording append reuse ids. In that case, a different message with a used id
 * gets a new id, and so does a repeated message whose batch as a whole was not stored. */
static int look_for_id(struct append_work *w, struct backend_entry *e, struct str raw, bool *there,
    struct steno_error *err)
{
        struct used u = {.raw = raw, .arena = &w->arena};
        if (!e->about.id.n || (raw.n <= INLINE_BYTES_FLOOR && !w->batch.record))
                return 0;
        int rc = backend_read_id(w->conv->backend, e->id, look_at_used, &u, err);
        if (rc && rc != STENO_ENOTFOUND)
                return rc;
        if (u.rc == STENO_ENOMEM)
                return error_nomem(err);
        *there = u.there;
        bool again = w->anew && (u.there || is_in_batch(w, e));
        if (!again && (!u.there || u.same || !w->batch.record))
                return 0;
        *there = false;
        e->about.own_id = e->about.id;
        e->id = make_id(w);
        e->made_id = true;
        return e->id.p ? 0 : error_nomem(err);
}

static struct carry_message message_at(
    const struct append_work *w, json_ref msg, const struct backend_entry *e)
{
        return (struct carry_message){.format = w->format, .j = &w->j, .at = msg, .id = e->id};
}

/* The messages of the batch before this one count as the log does. */
static int begin_ids(struct append_work *w, const struct backend_entry *e, struct steno_error *err)
{
        bool array = json_type(&w->j, 0) == JSON_ARRAY;
        json_ref msg = array ? json_child(&w->j, 0) : 0;
        int rc = 0;
        w->ids = append_ids_new(w->conv, err);
        if (!w->ids)
                return err->code ? err->code : STENO_ENOMEM;
        if (!w->batch.expect) {
                w->guessed = true;
                w->batch.expect = true;
                w->batch.expected_seq = append_ids_next(w->ids) - 1;
        }
        for (struct backend_entry *b = w->batch.entries; rc == 0 && b < e; b++) {
                struct carry_message before = message_at(w, msg, b);
                rc = append_ids_follow(w->ids, &before, &b->about, err);
                msg = json_next(&w->j, 0, msg);
        }
        return rc;
}

/* A result that says neither its call nor its tool, where no call is open. */
static bool has_nothing_to_answer(const struct about *a)
{
        for (size_t i = 0; i < a->answer_count; i++)
                if (!a->answers[i].n)
                        return true;
        return false;
}

/* What came without an id gets one. */
static int give_ids(
    struct append_work *w, json_ref msg, struct backend_entry *e, struct steno_error *err)
{
        struct steno_error why = {0};
        int rc = 0;
        if (e->about.no_answer_id && !w->ids)
                rc = begin_ids(w, e, &why);
        struct carry_message message = message_at(w, msg, e);
        if (rc == 0 && e->about.no_id)
                rc = append_ids_give(w->conv, w->ids, &message, &w->arena, &e->about, &why);
        if (rc == 0 && e->about.lacks && !w->batch.record && has_nothing_to_answer(&e->about))
                rc = error_set(
                    &why, STENO_EPROTO, "%s is missing, and no call is open", e->about.lacks);
        if (rc == 0 && w->ids)
                rc = append_ids_follow(w->ids, &message, &e->about, &why);
        if (rc && err)
                *err = why;
        return rc;
}

static int carry(
    struct append_work *w, json_ref msg, struct backend_entry *e, struct steno_error *err)
{
        struct carry_message message = message_at(w, msg, e);
        struct carried to = {.arena = &w->arena, .about = &e->about};
        int rc = carry_in(w->conv, &message, &w->carry, &to, err);
        e->m = to.m;
        w->made[e - w->batch.entries] = to.made;
        return rc;
}

/* The message as a view would copy it, with the large tokens that are not in the log line. */
static struct str shown(const struct backend_entry *e, struct str raw)
{
        const struct about *a = &e->about;
        return a->part_count && !a->ref.n && !a->ref_count && !a->out_count ? raw : e->m;
}

static int take_message(
    struct append_work *w, json_ref msg, struct backend_entry *e, struct steno_error *err)
{
        struct str raw = json_raw(&w->j, msg);
        bool there = false;
        if (json_type(&w->j, msg) != JSON_OBJECT)
                return error_set(err, STENO_EPROTO, "a message must be an object");
        if (raw.n > MESSAGE_MAX)
                return error_set(
                    err, STENO_ELIMIT, "%zu bytes; a message has at most %zu", raw.n, MESSAGE_MAX);
        int rc = format_measure(&w->j, msg, err);
        if (rc == 0)
                rc = format_describe(w->format, &w->j, msg, &w->arena, &e->about, err);
        if (rc)
                return rc;
        if (str_is(e->about.role, "assistant"))
                e->about.via = w->via;
        if (e->about.answer_count && !e->about.call_count)
                e->about.of = w->of;
        rc = take_id(w, e, err);
        if (rc == 0)
                rc = give_ids(w, msg, e, err);
        if (rc)
                return rc;
        e->about.after = w->after;
        e->about.recovered = w->flags & STENO_RECOVERED;
        e->fmt = str_of(w->format->name);
        e->m = raw;
        rc = look_for_id(w, e, raw, &there, err);
        if (rc == 0 && !there)
                rc = carry(w, msg, e, err);
        if (rc == 0)
                rc = carry_learn_ref(w->conv, &w->arena, &e->about, err);
        if (rc == 0 && w->format->ready && w->format->ready(shown(e, raw)))
                e->about.plain = FORMAT_READY_RULE;
        return rc;
}

/* The record behind the messages that deletes another one. */
static int take_deletion(struct append_work *w, struct backend_entry *e, struct steno_error *err)
{
        e->id = make_id(w);
        e->made_id = true;
        e->fmt = str_of(w->format->name);
        e->m = STR("null");
        e->about.kind = STR("delete");
        e->about.target = e->named = w->deletes;
        return e->id.p ? 0 : error_nomem(err);
}

/* The messages of the parsed text, one entry each. */
static int take_messages(struct append_work *w, struct steno_error *err)
{
        const struct json *j = &w->j;
        bool array = json_type(j, 0) == JSON_ARRAY;
        size_t count = array ? json_count(j, 0) : 1;
        if (count == 0)
                return error_set(err, STENO_EPROTO, "the batch is empty");
        if (count > BATCH_MAX)
                return error_set(
                    err, STENO_ELIMIT, "%zu messages; a batch has at most %d", count, BATCH_MAX);
        w->count = count;
        w->batch.entries = arena_zalloc(&w->arena, (count + 1) * sizeof *w->batch.entries);
        w->made = arena_zalloc(&w->arena, count * sizeof *w->made);
        if (!w->batch.entries || !w->made)
                return error_nomem(err);
        json_ref msg = array ? json_child(j, 0) : 0;
        for (size_t i = 0; i < count; i++) {
                int rc = take_message(w, msg, &w->batch.entries[i], err);
                if (rc)
                        return rc == STENO_ENOMEM ? rc
                                                  : error_prefix(err, rc, "message %zu", i + 1);
                w->batch.count = i + 1;
                msg = array ? json_next(j, 0, msg) : JSON_NONE;
        }
        return w->deletes.n ? take_deletion(w, &w->batch.entries[w->batch.count++], err) : 0;
}

/* A message that was stored already is acknowledged when the files that belong to it are whole
 * again. */
static int restore_files(struct append_work *w, uint64_t first_seq, struct steno_error *err)
{
        const struct json *j = &w->j;
        bool array = j->count && json_type(j, 0) == JSON_ARRAY;
        json_ref msg = array ? json_child(j, 0) : 0;
        int rc = 0;
        undo_files(w);
        for (size_t i = 0; rc == 0 && j->count && i < w->count; i++) {
                struct carry_message message = {.format = w->format, .j = j, .at = msg};
                rc = carry_restore(w->conv, &message, first_seq + i, err);
                if (rc && rc != STENO_ENOMEM)
                        rc = error_prefix(err, rc, "message %zu", i + 1);
                msg = array ? json_next(j, 0, msg) : JSON_NONE;
        }
        return rc;
}

/* The ids of calls that were made when the batch was stored for the first time. */
struct recalled {
        struct append_work *w;
        struct steno_receipt *receipt;
        uint64_t first_seq;
};

static int recall_record(void *ctx, const struct backend_record *r)
{
        struct recalled *c = ctx;
        struct about about;
        size_t i = (size_t)(r->rec.seq - c->first_seq);
        if (r->damaged || i >= c->w->batch.count)
                return r->damaged ? 0 : 1;
        if (c->w->batch.entries[i].about.no_id &&
            about_read(r->rec.x, &c->w->arena, &about, NULL) == 0)
                receipt_note_calls(c->receipt, i, &about);
        return 0;
}

static int recall_calls(
    struct append_work *w, struct steno_receipt *r, uint64_t first_seq, struct steno_error *err)
{
        struct recalled c = {.w = w, .receipt = r, .first_seq = first_seq};
        receipt_forget_calls(r);
        bool made = false;
        for (size_t i = 0; i < w->batch.count; i++)
                made |= w->batch.entries[i].about.no_id;
        if (!made)
                return 0;
        int rc = backend_read(w->conv->backend, first_seq - 1, recall_record, &c, err);
        return rc > 0 ? 0 : rc;
}

static int work_commit(
    struct append_work *w, struct steno_receipt **receipt, bool *kept, struct steno_error *err)
{
        const char *id = steno_conv_id(w->conv);
        struct backend_receipt stored = {0};
        struct steno_receipt *r = NULL;
        int rc = receipt ? receipt_new(id, &w->batch, &r, err) : 0;
        if (rc == 0)
                rc = backend_append(w->conv->backend, &w->batch, &stored, err);
        *kept = (rc == 0 && !stored.replayed) || rc == STENO_EINDOUBT;
        if (rc == 0 && stored.replayed)
                rc = restore_files(w, stored.first_seq, err);
        if (rc == 0 && stored.replayed && receipt)
                rc = recall_calls(w, r, stored.first_seq, err);
        if (rc == 0 && receipt)
                rc = receipt_fill(r, id, &stored, err);
        if (rc == 0 && receipt)
                *receipt = r;
        else
                steno_receipt_free(r);
        backend_receipt_release(&stored, w->batch.count);
        return rc;
}

/* How often an append searches the log for its calls again because others have appended
 * meanwhile. */
#define GUESSES 16

struct attempt {
        bool again; /* try once more */
        bool anew;  /* and store again what is there already */
};

static int append_once(struct steno_conv *conv, const char *json, size_t n,
    const struct steno_append_options *opt, struct steno_receipt **receipt, struct attempt *try,
    struct steno_error *err)
{
        struct append_work w;
        bool kept = false;
        int rc = work_init(&w, conv, opt, err);
        w.anew = try->anew || (w.flags & STENO_ANEW);
        if (rc == 0)
                rc = work_parse(&w, json, n, err);
        if (rc == 0)
                rc = take_messages(&w, err);
        if (rc == 0)
                rc = work_commit(&w, receipt, &kept, err);
        bool conflict = rc == STENO_ECONFLICT;
        /* With STENO_ANEW: the id was free when it was looked up, and another writer has taken it
         * since. */
        bool anew = w.anew && !(w.flags & STENO_ANEW);
        try->again = conflict && (w.guessed || (w.batch.record && !anew && !w.batch.expect));
        try->anew = try->anew || (conflict && w.batch.record && !w.guessed);
        work_release(&w, kept);
        return rc;
}

int steno_append(struct steno_conv *conv, const char *json, size_t n,
    const struct steno_append_options *opt, struct steno_receipt **receipt, struct steno_error *err)
{
        struct attempt try = {.again = true};
        int rc = 0;
        for (int i = 0; try.again && i < GUESSES; i++)
                rc = append_once(conv, json, n, opt, receipt, &try, err);
        return rc;
}

/* ---- amendments ---- */

static int take_amendment(struct append_work *w, const char *kind, const char *target,
    struct backend_entry *e, bool has_json, struct steno_error *err)
{
        bool message = strcmp(kind, "supersede") == 0;
        int rc = 0;
        if (!message && strcmp(kind, "delete") != 0 && strcmp(kind, "meta") != 0)
                return error_set(err, STENO_EINVAL, "there is no amendment \"%.40s\"", kind);
        if (strcmp(kind, "delete") == 0 ? has_json : !has_json)
                return error_set(err, STENO_EINVAL, "an amendment \"%s\" %s", kind,
                    has_json  ? "takes no JSON"
                    : message ? "needs the message that takes the place"
                              : "needs an object with the metadata");
        if (message) {
                rc = take_message(w, 0, e, err);
        } else {
                if (has_json && json_type(&w->j, 0) != JSON_OBJECT)
                        return error_set(err, STENO_EPROTO, "metadata must be an object");
                e->fmt = str_of(w->format->name);
                e->m = has_json ? json_raw(&w->j, 0) : STR("null");
                rc = take_id(w, e, err);
        }
        e->about.recovered = w->flags & STENO_RECOVERED;
        e->about.kind = str_of(kind);
        e->about.target = e->named = str_of(target);
        return rc;
}

int steno_amend(struct steno_conv *conv, const char *kind, const char *target_id, const char *json,
    size_t n, const struct steno_append_options *opt, struct steno_receipt **receipt,
    struct steno_error *err)
{
        struct append_work w;
        struct backend_entry entry = {0};
        bool made = false;
        bool kept = false;
        int rc = work_init(&w, conv, opt, err);
        w.made = &made;
        w.batch.entries = &entry;
        if (rc == 0 && json)
                rc = work_parse(&w, json, n, err);
        if (rc == 0)
                rc = take_amendment(&w, kind, target_id, &entry, json != NULL, err);
        w.batch.count = 1;
        if (rc == 0)
                rc = work_commit(&w, receipt, &kept, err);
        work_release(&w, kept);
        return rc;
}

/* ---- what was imported ---- */

static int take_item(struct append_work *w, const struct append_item *item, struct backend_entry *e,
    bool *alone, struct steno_error *err)
{
        w->format = format_find(item->format);
        if (!w->format)
                return format_unknown(item->format, err);
        int rc = json_parse(&w->j, item->json.p, item->json.n, NULL, err);
        if (rc)
                return rc;
        struct str raw = json_raw(&w->j, 0);
        if (raw.n > MESSAGE_MAX)
                return error_set(
                    err, STENO_ELIMIT, "%zu bytes; a message has at most %zu", raw.n, MESSAGE_MAX);
        rc = format_describe(w->format, &w->j, 0, &w->arena, &e->about, err);
        if (rc)
                return rc;
        *alone = e->about.no_answer_id && w->count > 1;
        if (*alone)
                return error_set(err, STENO_EPROTO, "the id of a result is missing");
        e->id = item->id;
        e->made_id = true;
        e->at = item->at;
        rc = give_ids(w, 0, e, err);
        if (rc)
                return rc;
        e->fmt = str_of(w->format->name);
        e->m = raw;
        e->about.source = item->source;
        if (item->target.n) {
                e->about.kind = STR("supersede");
                e->about.target = e->named = item->target;
        }
        rc = carry(w, 0, e, err);
        if (rc == 0 && w->format->ready && w->format->ready(shown(e, raw)))
                e->about.plain = FORMAT_READY_RULE;
        return rc;
}

int api_append_items(struct steno_conv *conv, const struct append_item *items, size_t count,
    size_t *bad, bool *alone, struct steno_error *err)
{
        struct steno_append_options opt = {.size = sizeof opt, .flags = STENO_RECORD};
        struct append_work w;
        bool kept = false;
        int rc = work_init(&w, conv, &opt, err);
        w.batch.each = true;
        w.count = count;
        w.batch.entries = arena_zalloc(&w.arena, count * sizeof *w.batch.entries);
        w.made = arena_zalloc(&w.arena, count * sizeof *w.made);
        if (rc == 0 && (!w.batch.entries || !w.made))
                rc = error_nomem(err);
        for (size_t i = 0; rc == 0 && i < count; i++) {
                *bad = i;
                rc = take_item(&w, &items[i], &w.batch.entries[i], alone, err);
                w.batch.count = i + 1;
        }
        if (rc == 0) {
                *bad = count;
                rc = work_commit(&w, NULL, &kept, err);
        }
        if (!w.batch.entries || !w.made)
                w.made = NULL;
        work_release(&w, kept);
        return rc;
}
