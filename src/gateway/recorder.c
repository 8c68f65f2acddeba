/*
 * recorder.c - see recorder.h
 */
#include "gateway/recorder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/wait.h"
#include "gateway/elements.h"
#include "gateway/lineage.h"
#include "gateway/naming.h"
#include "gateway/wire.h"

#define TITLE_CUT 80
#define BATCH_COUNT 256
#define RAW_MAX (32 * MIB)      /* of an answer that is kept as it came, in one record */
#define RAW_TEXT_MAX (56 * MIB) /* as a JSON string, with room for the rest of a message */
#define BATCH_BYTES (256 * KIB)
#define ERROR_WORDS (4 * KIB) /* of an error's body that are in its message */

struct task {
        struct task *next;
        struct exchange *x;
        struct recorder_fate fate;
};

/* Requests that were passed on and could not be recorded, until a conversation of the same owner
 * says so. */
struct gap {
        struct gap *next;
        char *owner;
        unsigned count;
        char since[TIME_TEXT];
};

struct recorder {
        struct steno_store *store;
        struct exchanges *all;
        struct lineage *lineage;
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t work;
        struct task *first;
        struct task **end;
        bool closing;
        uint64_t recorded;
        uint64_t failed;
        struct gap *gaps; /* the thread's own */
};

/* One exchange while it is being stored. */
struct job {
        struct recorder *r;
        const struct recorder_fate *fate;
        const char *exchange;
        struct exchange_parts parts;
        struct json head;    /* of the request, gateway.c's */
        struct json answer;  /* the head of the answer */
        struct json request; /* the body */
        struct buf list_text;
        struct json list; /* its messages */
        struct elements_link *links;
        size_t count;
        const struct wire *wire;
        struct wire_answer reply;
        char *project, *group, *named, *owner;
        char system[ELEMENTS_CHAIN];
        struct lineage_who who;
        struct lineage_place place;
        struct lineage_place behind; /* what the request says that it goes on behind */
        char base[ELEMENTS_CHAIN];   /* and the history up to there; "": it says nothing */
        struct steno_conv *conv;
        const char *conv_id;
        char chain[ELEMENTS_CHAIN]; /* as far as it is stored */
        bool replied;
        uint64_t last_seq;
        unsigned appended;
        bool told; /* the reply was stored as the model said it, not as the client saw it */
        bool gap_told;
        bool encoded;      /* the answer, which could not be read */
        bool other_choice; /* the client goes on with another choice than the first */
        bool stream;       /* the answer is one */
        bool is_short;     /* it has fewer bytes than it said */
};

/* ---- reading it ---- */

static int64_t status_of(const struct job *k)
{
        int64_t status = 0;
        json_i64(&k->answer, json_get(&k->answer, 0, "status"), &status);
        return status;
}

static char *member(const struct json *j, json_ref obj, const char *key)
{
        char *z = json_dup_string(j, json_get(j, obj, key));
        return z ? z : strdup("");
}

static bool find_item(void *ctx, struct str id, char digest[ELEMENTS_CHAIN])
{
        struct job *k = ctx;
        return lineage_find_id(k->r->lineage, k->owner, id, digest, NULL, NULL);
}

/* The session: as a header names it, else as the body does. */
static int name_group(struct job *k, struct steno_error *err)
{
        struct buf name;
        buf_init(&name, 4 * KIB);
        if (naming_is_side(&k->list) && strncmp(k->group, "side/", 5) != 0)
                buf_puts(&name, "side/");
        buf_puts(&name, k->group);
        if (!k->group[0])
                naming_put_session(&k->request, &name);
        char *z = buf_take(&name, NULL);
        buf_release(&name);
        if (!z)
                return error_nomem(err);
        free(k->group);
        k->group = z;
        return 0;
}

/* The name under which the endpoint's own conversation is known here. */
static bool name_conversation(const struct job *k, struct buf *out)
{
        struct str id = naming_conversation(&k->request);
        buf_puts(out, "conversation/");
        buf_put_str(out, id);
        return id.n && !out->failed;
}

/* Does the request name an answer or a conversation that was recorded here? Then its messages are
 * what is new, and behind an answer that was continued already they are a fork. */
static void find_behind(struct job *k)
{
        struct lineage_place p = {.kind = LINEAGE_CONTINUE};
        struct str previous = naming_previous(&k->request);
        struct lineage *l = k->r->lineage;
        struct buf name;
        buf_init(&name, 4 * KIB);
        if (previous.n && lineage_find_id(l, k->owner, previous, k->base, p.conv, &p.seq)) {
                if (!lineage_is_tip(l, p.conv, k->base))
                        p.kind = LINEAGE_FORK;
                k->behind = p;
        } else if (name_conversation(k, &name) &&
                   lineage_find_id(l, k->owner, buf_str(&name), k->base, p.conv, &p.seq)) {
                k->behind = p;
        }
        buf_release(&name);
}

static int read_request(struct job *k, struct steno_error *err)
{
        int rc = json_parse(&k->head, k->parts.head.p, k->parts.head.n, NULL, err);
        if (rc)
                return rc;
        char *wire = member(&k->head, 0, "wire");
        k->wire = wire_named(wire);
        free(wire);
        if (!k->wire)
                return 0; /* passed on, and not understood */
        k->project = member(&k->head, 0, "project");
        k->group = member(&k->head, 0, "group");
        k->named = member(&k->head, 0, "conversation");
        k->owner = member(&k->head, 0, "owner");
        if (!k->project || !k->group || !k->named || !k->owner)
                return error_nomem(err);
        struct steno_error why = {0};
        rc = json_parse(&k->request, k->parts.body.p, k->parts.body.n, NULL, &why);
        if (rc)
                return error_set(err, rc, "the request is not JSON that can be read: %s", why.msg);
        rc = wire_messages(k->wire, &k->request, &k->list_text);
        if (rc == 0)
                rc = json_parse(&k->list, k->list_text.p, k->list_text.n, NULL, err);
        if (rc == 0)
                rc = name_group(k, err);
        if (rc)
                return rc;
        find_behind(k);
        k->count = json_count(&k->list, 0);
        json_ref beside = k->wire->system ? json_get(&k->request, 0, k->wire->system) : JSON_NONE;
        k->links = elements_of(
            k->wire, &k->list, json_raw(&k->request, beside), k->base, find_item, k, k->system);
        k->who = (struct lineage_who){k->owner, k->group, k->system};
        return k->links ? 0 : error_nomem(err);
}

static int read_answer(struct job *k, struct steno_error *err)
{
        if (k->parts.answer_head.n == 0)
                return 0;
        int rc = json_parse(&k->answer, k->parts.answer_head.p, k->parts.answer_head.n, NULL, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? error_nomem(err) : 0; /* torn: as if none came */
        k->stream = wire_is_stream(
            k->parts.answer_body, json_bool(&k->answer, json_get(&k->answer, 0, "stream"), false));
        uint64_t length = 0;
        k->is_short = json_u64(&k->answer, json_get(&k->answer, 0, "length"), &length) &&
                      k->parts.answer_body.n < length;
        k->encoded = json_bool(&k->answer, json_get(&k->answer, 0, "encoded"), false);
        if (k->encoded) {
                buf_puts(&k->reply.problem, "the answer came encoded and was not read");
                return 0;
        }
        if (status_of(k) / 100 != 2) {
                size_t n = k->parts.answer_body.n;
                if (n > ERROR_WORDS)
                        n = ERROR_WORDS;
                n = text_utf8_prefix(k->parts.answer_body.p, n);
                buf_printf(&k->reply.problem, "HTTP %lld: %.*s", (long long)status_of(k), (int)n,
                    n ? k->parts.answer_body.p : "");
                return 0;
        }
        rc = k->wire->read_answer(k->parts.answer_body, k->stream, &k->reply);
        return rc ? error_set(err, rc, "%s", steno_code_name(rc)) : 0;
}

/* Did the endpoint break off before the client could know that it had all? */
static bool is_broken_off(const struct job *k)
{
        if (k->stream && k->reply.ended)
                return false;
        return (k->fate->cut && !k->fate->killed) || k->is_short;
}

static bool is_whole(const struct job *k)
{
        return k->reply.complete && status_of(k) / 100 == 2 && !is_broken_off(k);
}

/* ---- the conversation ---- */

/* The first text of a message. */
static void put_first_text(const struct json *j, json_ref m, struct buf *out)
{
        json_ref content = json_get(j, m, "content");
        if (content == JSON_NONE)
                content = json_get(j, m, "parts");
        if (!json_string(j, content, out, NULL))
                for (json_ref p = json_child(j, content); p != JSON_NONE && out->n == 0;
                     p = json_next(j, content, p))
                        json_string(j, json_get(j, p, "text"), out, NULL);
}

/* What the person asked: the last words of the user in the first request. Agents put the
 * surroundings before them. */
static void put_title(const struct job *k, struct jsonw *w)
{
        const struct json *j = &k->list;
        struct buf text;
        json_ref last = JSON_NONE;
        buf_init(&text, MESSAGE_MAX);
        for (json_ref m = json_child(j, 0); m != JSON_NONE; m = json_next(j, 0, m))
                if (json_is(j, json_get(j, m, "role"), "user"))
                        last = m;
        if (last != JSON_NONE)
                put_first_text(j, last, &text);
        struct str s = str_trim(buf_str(&text));
        const char *line = s.n ? memchr(s.p, '\n', s.n) : NULL;
        if (line)
                s.n = (size_t)(line - s.p);
        if (s.n > TITLE_CUT)
                s.n = text_utf8_prefix(s.p, TITLE_CUT);
        if (s.n && !text.failed)
                jsonw_field_str(w, "title", s);
        buf_release(&text);
}

static void put_meta(const struct job *k, struct buf *out, bool title)
{
        char *upstream = member(&k->head, 0, "upstream"), *parent = member(&k->head, 0, "parent");
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        if (title)
                put_title(k, &w);
        jsonw_key(&w, "gateway");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "upstream", upstream);
        jsonw_field_cstr(&w, "wire", k->wire->name);
        if (k->group[0])
                jsonw_field_cstr(&w, "group", k->group);
        if (parent && parent[0])
                jsonw_field_cstr(&w, "parent", parent);
        if (k->place.compacted_from[0])
                jsonw_field_cstr(&w, "compactedFrom", k->place.compacted_from);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        free(upstream);
        free(parent);
}

/* The id follows from the exchange, so that a second try finds what the first one made. */
static void make_id(const struct job *k, char out[64])
{
        snprintf(out, 64, "conv_%s", k->exchange + strlen("ex_"));
}

static int create_conv(struct job *k, const char *id, struct steno_error *err)
{
        struct buf meta;
        buf_init(&meta, 64 * KIB);
        put_meta(k, &meta, true);
        const char *json = buf_cstr(&meta);
        int rc = json ? steno_conv_create(k->r->store, k->project, id, json, &k->conv, err)
                      : error_nomem(err);
        if (rc == STENO_ECONFLICT)
                rc = steno_conv_open(k->r->store, k->project, id, &k->conv, err);
        else if (rc == 0 && k->named[0]) /* one of this name may have been there, and was removed */
                rc = lineage_forget(k->r->lineage, k->owner, id, err);
        buf_release(&meta);
        return rc;
}

static int fork_conv(struct job *k, const char *id, struct steno_error *err)
{
        struct steno_conv *from = NULL;
        struct steno_fork_options opt = {.size = sizeof opt, .at_seq = k->place.seq, .id = id};
        int rc = steno_conv_open(k->r->store, k->project, k->place.conv, &from, err);
        if (rc == STENO_ENOTFOUND)
                return rc;
        if (rc == 0)
                rc = steno_fork(from, &opt, &k->conv, err);
        steno_conv_close(from);
        if (rc == STENO_ECONFLICT)
                rc = steno_conv_open(k->r->store, k->project, id, &k->conv, err);
        if (rc == 0) { /* it may belong to another session than what it was made of */
                struct buf meta;
                buf_init(&meta, 64 * KIB);
                put_meta(k, &meta, false);
                const char *json = buf_cstr(&meta);
                rc = json ? steno_conv_set_meta(k->conv, json, err) : error_nomem(err);
                buf_release(&meta);
        }
        return rc;
}

static int open_conv(struct job *k, struct steno_error *err)
{
        char id[64];
        int rc;
        make_id(k, id);
        if (k->place.kind == LINEAGE_FORK) {
                rc = fork_conv(k, id, err);
        } else if (k->place.kind != LINEAGE_NEW) {
                rc = steno_conv_open(k->r->store, k->project, k->place.conv, &k->conv, err);
        } else {
                rc = create_conv(k, k->named[0] ? k->named : id, err);
        }
        if (rc == STENO_ENOTFOUND) { /* it was removed meanwhile: made again, or one of its own */
                k->place = (struct lineage_place){.kind = LINEAGE_NEW};
                rc = create_conv(k, k->named[0] ? k->named : id, err);
        }
        k->conv_id = k->conv ? steno_conv_id(k->conv) : NULL;
        return rc;
}

/* ---- appending ---- */

/* `format` NULL: Steno's own. The key makes a second try find what the first one stored. */
static int append(struct job *k, struct str json, const char *format, bool sync,
    char id[LINEAGE_CONV], struct steno_error *err)
{
        char key[80];
        struct steno_receipt *receipt = NULL;
        snprintf(key, sizeof key, "%s/%u", k->exchange, k->appended++);
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD | STENO_ANEW,
            .durability = sync ? STENO_FULL : STENO_PROCESS,
            .format = format,
            .idempotency_key = key};
        int rc = steno_append(k->conv, json.p, json.n, &opt, &receipt, err);
        if (rc == 0) {
                k->last_seq = steno_receipt_last_seq(receipt);
                if (id)
                        snprintf(id, LINEAGE_CONV, "%s", steno_receipt_id(receipt, 0));
        }
        steno_receipt_free(receipt);
        return rc;
}

static int note_node(struct job *k, bool tip, bool open, struct steno_error *err)
{
        struct lineage_node node = {.conv = k->conv_id,
            .seq = k->last_seq,
            .chain = k->chain,
            .replied = k->replied,
            .tip = tip,
            .open = open};
        return k->chain[0] ? lineage_add(k->r->lineage, &k->who, &node, err) : 0;
}

static bool changes_every_time(struct str key, const struct wire *w)
{
        static const char *const names[] = {"stream", "stream_options", "metadata",
            "client_metadata", "user", "prompt_cache_key", "previous_response_id", "conversation",
            "thread", "include"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (str_is(key, names[i]))
                        return true;
        return str_is(key, w->list);
}

/* Prompt, tools and parameters: what stands beside the messages. */
static void put_beside(const struct job *k, struct jsonw *w)
{
        const struct json *j = &k->request;
        for (json_ref key = json_child(j, 0); key != JSON_NONE; key = json_next_key(j, 0, key))
                if (!changes_every_time(json_inner(j, key), k->wire))
                        jsonw_copy_member(w, j, key);
}

/* Instructions that are messages, where they are not stored as such. */
static void put_instructions(const struct job *k, struct jsonw *w)
{
        if (k->place.kind != LINEAGE_NEW && k->count && k->links[0].system) {
                size_t i = 0;
                jsonw_key(w, "instructionMessages");
                jsonw_array(w);
                for (json_ref m = json_child(&k->list, 0); m != JSON_NONE && k->links[i].system;
                     m = json_next(&k->list, 0, m), i++)
                        jsonw_raw(w, json_raw(&k->list, m));
                jsonw_array_end(w);
        }
}

static int store_beside(struct job *k, struct steno_error *err)
{
        struct buf beside, message;
        char digest[SHA256_HEX];
        bool changed = false;
        buf_init(&beside, 0);
        buf_init(&message, 0);
        struct jsonw w = jsonw_to(&beside);
        put_beside(k, &w);
        bool any = beside.n > 0;
        size_t n = beside.n;
        buf_puts(&beside, k->system);
        int rc = buf_check(&beside, err);
        if (rc == 0 && hash_sha256_hex(beside.p, beside.n, digest) != 0)
                rc = error_nomem(err);
        beside.n = n;
        if (rc == 0)
                rc = lineage_changed(k->r->lineage, k->conv_id, digest, &changed, err);
        if (rc == 0 && changed && any) {
                struct jsonw m = jsonw_to(&message);
                jsonw_object(&m);
                jsonw_field_cstr(&m, "role", "system");
                jsonw_field_cstr(&m, "content", "");
                jsonw_field_cstr(&m, "partType", "request");
                jsonw_field_bool(&m, "includeInContext", false);
                jsonw_key(&m, "request");
                jsonw_object(&m);
                put_beside(k, &m);
                put_instructions(k, &m);
                jsonw_object_end(&m);
                jsonw_object_end(&m);
                rc = buf_check(&message, err);
                if (rc == 0)
                        rc = append(k, buf_str(&message), NULL, false, NULL, err);
        }
        buf_release(&beside);
        buf_release(&message);
        return rc;
}

/* Messages of a request that are stored together: a long history is a few appends. */
struct batch {
        struct buf text; /* with commas between */
        size_t from;     /* the first of them in the request */
        size_t count;
};

/* Appends them, and notes where each stands. */
static int flush_batch(struct job *k, struct batch *b, struct steno_error *err)
{
        struct buf list;
        if (b->count == 0)
                return 0;
        buf_init(&list, 0);
        if (b->count > 1)
                buf_putc(&list, '[');
        buf_put_str(&list, buf_str(&b->text));
        if (b->count > 1)
                buf_putc(&list, ']');
        int rc = buf_check(&list, err);
        if (rc == 0)
                rc = append(k, buf_str(&list), k->wire->format, false, NULL, err);
        uint64_t last = k->last_seq;
        for (size_t i = 0; i < b->count && rc == 0; i++) {
                const struct elements_link *link = &k->links[b->from + i];
                memcpy(k->chain, link->chain, sizeof k->chain);
                k->last_seq = last - (b->count - 1 - i);
                if (b->from + i + 1 < k->count && !link->system)
                        rc = note_node(k, false, false, err);
        }
        k->last_seq = last;
        buf_release(&list);
        buf_clear(&b->text);
        b->from += b->count;
        b->count = 0;
        return rc;
}

/* The messages of the request that are new. */
static int store_request(struct job *k, struct steno_error *err)
{
        const struct json *j = &k->list;
        struct batch b = {.from = k->place.from};
        size_t i = 0;
        int rc = 0;
        buf_init(&b.text, 0);
        if (k->place.from)
                memcpy(k->chain, k->links[k->place.from - 1].chain, sizeof k->chain);
        for (json_ref m = json_child(j, 0); m != JSON_NONE && rc == 0; m = json_next(j, 0, m)) {
                if (i++ < k->place.from)
                        continue;
                if (b.count)
                        buf_putc(&b.text, ',');
                buf_put_str(&b.text, json_raw(j, m));
                b.count++;
                if (b.count == BATCH_COUNT || b.text.n >= BATCH_BYTES)
                        rc = flush_batch(k, &b, err);
        }
        if (rc == 0)
                rc = flush_batch(k, &b, err);
        buf_release(&b.text);
        return rc;
}

/* ---- the reply ---- */

static int remember_ids(struct job *k, const struct json *j, json_ref m, struct steno_error *err)
{
        char digest[ELEMENTS_CHAIN];
        struct str id = json_inner(j, json_get(j, m, "id"));
        int rc = elements_digest(k->wire, j, m, digest);
        if (rc)
                return error_nomem(err);
        elements_continue(k->chain, digest);
        if (id.n && strcmp(k->wire->name, "responses") == 0)
                rc = lineage_add_id(
                    k->r->lineage, k->owner, id, digest, k->conv_id, k->last_seq, err);
        return rc;
}

/* The name under which a reply is known that its own exchange has told of. */
static void name_told(const char *chain, char out[ELEMENTS_CHAIN + 8])
{
        snprintf(out, ELEMENTS_CHAIN + 8, "told/%s", chain);
}

/* The reply is stored: by its id, and as one that was told by its own exchange. */
static int note_reply(struct job *k, struct steno_error *err)
{
        char name[ELEMENTS_CHAIN + 8];
        int rc = 0;
        name_told(k->chain, name);
        if (k->reply.id.n)
                rc = lineage_add_id(k->r->lineage, k->owner, buf_str(&k->reply.id), k->chain,
                    k->conv_id, k->last_seq, err);
        if (rc == 0 && k->chain[0])
                rc = lineage_add_id(
                    k->r->lineage, k->owner, str_of(name), k->chain, k->conv_id, k->last_seq, err);
        struct buf theirs;
        buf_init(&theirs, 4 * KIB);
        if (rc == 0 && name_conversation(k, &theirs))
                rc = lineage_add_id(k->r->lineage, k->owner, buf_str(&theirs), k->chain, k->conv_id,
                    k->last_seq, err);
        buf_release(&theirs);
        return rc;
}

/* ---- rounds that the client did not see ---- */

static int append_each(struct job *k, const struct json *j, json_ref list, bool sync,
    char id[LINEAGE_CONV], struct steno_error *err)
{
        int rc = 0;
        for (json_ref m = json_child(j, list); m != JSON_NONE && rc == 0; m = json_next(j, list, m))
                rc = append(k, json_raw(j, m), k->wire->format, sync, id, err);
        return rc;
}

/* Results that the client's next message begins with are one here. */
static int append_lead(struct job *k, struct str lead, struct steno_error *err)
{
        struct buf b;
        bool gemini = strcmp(k->wire->name, "gemini") == 0;
        buf_init(&b, MESSAGE_MAX);
        buf_printf(&b, "{\"role\":\"user\",\"%s\":", gemini ? "parts" : "content");
        buf_put_str(&b, lead);
        buf_putc(&b, '}');
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = append(k, buf_str(&b), k->wire->format, true, NULL, err);
        buf_release(&b);
        return rc;
}

static int store_round(
    struct job *k, const struct json *j, char id[LINEAGE_CONV], struct steno_error *err)
{
        bool final = json_bool(j, json_get(j, 0, "final"), false);
        json_ref lead = json_get(j, 0, "lead");
        int rc = append_each(k, j, json_get(j, 0, "messages"), final, id, err);
        if (rc == 0 && lead != JSON_NONE)
                rc = append_lead(k, json_raw(j, lead), err);
        k->told = k->told || final;
        return rc;
}

/* What the model was told and said in rounds that the gateway answered itself (rounds.h). They are
 * no part of the history that the client sends, so they have no nodes. */
static int store_rounds(struct job *k, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct str rest = buf_str(&k->parts.notes);
        struct json j;
        int rc = 0;
        json_init(&j);
        while (rest.n && rc == 0) {
                const char *end = memchr(rest.p, '\n', rest.n);
                if (!end)
                        break; /* torn: it had not been sent */
                size_t n = (size_t)(end - rest.p);
                if (json_parse(&j, rest.p, n, NULL, NULL) == 0)
                        rc = store_round(k, &j, id, err);
                rest = str_span(end + 1, rest.n - n - 1);
        }
        json_release(&j);
        return rc;
}

/* A message of the answer that the store does not take, kept as it came. */
static int store_refused(struct job *k, struct str message, const char *why, char id[LINEAGE_CONV],
    struct steno_error *err)
{
        struct buf b;
        buf_init(&b, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_field_cstr(&w, "content", "");
        jsonw_field_cstr(&w, "partType", "error");
        jsonw_key(&w, "error");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "code", "UNREADABLE");
        jsonw_field_cstr(&w, "message", why);
        jsonw_object_end(&w);
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_field_str(&w, "raw", message);
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = append(k, buf_str(&b), NULL, true, id, err);
        buf_release(&b);
        return rc;
}

static int store_message(
    struct job *k, struct str message, bool sync, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct steno_error why = {0};
        int rc = append(k, message, k->wire->format, sync, id, &why);
        if (rc == STENO_EINVAL || rc == STENO_EPROTO || rc == STENO_ELIMIT)
                return store_refused(k, message, why.msg, id, err);
        if (rc)
                *err = why;
        return rc;
}

/* Appends the messages of the answer; the last one's id is left in `id`. */
static int store_reply(struct job *k, bool whole, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = k->reply.messages.n
                     ? json_parse(&j, k->reply.messages.p, k->reply.messages.n, NULL, err)
                     : 0;
        size_t i = 0, n = k->reply.messages.n && rc == 0 ? json_count(&j, 0) : 0;
        for (json_ref m = n ? json_child(&j, 0) : JSON_NONE; m != JSON_NONE && rc == 0;
             m = json_next(&j, 0, m)) {
                bool last = ++i == n;
                if (!k->told)
                        rc = store_message(k, json_raw(&j, m), last && whole, id, err);
                if (rc == 0)
                        rc = remember_ids(k, &j, m, err);
                k->replied = true;
                if (rc == 0)
                        rc = note_node(k, last, false, err);
        }
        if (rc == 0)
                rc = note_reply(k, err);
        json_release(&j);
        return rc;
}

/* ---- an answer as it came ---- */

/* Bytes of an answer from `from` on, as many as one record takes: as text where they are UTF-8. */
static size_t put_bytes(struct jsonw *w, struct str body, size_t from, bool text)
{
        struct str piece = str_span(body.p + from, body.n - from);
        struct buf b;
        if (piece.n > RAW_MAX)
                piece.n = text ? text_utf8_prefix(piece.p, RAW_MAX) : RAW_MAX;
        buf_init(&b, RAW_TEXT_MAX);
        if (text)
                json_put_string(&b, piece);
        if (text && !b.failed) {
                jsonw_field_raw(w, "raw", buf_str(&b));
        } else {
                buf_release(&b);
                buf_init(&b, RAW_TEXT_MAX);
                base64_put(&b, piece.p, piece.n);
                jsonw_field_str(w, "base64", buf_str(&b));
        }
        if (b.failed)
                w->b->failed = b.failed;
        buf_release(&b);
        return from + piece.n;
}

static bool is_text(struct str s)
{
        return s.n == 0 || text_utf8_prefix(s.p, s.n) == s.n;
}

/* The bytes of an answer that another record could not hold, from `from` on. */
static int store_bytes(struct job *k, size_t from, struct steno_error *err)
{
        struct str body = k->parts.answer_body;
        bool text = is_text(body);
        int rc = 0;
        while (from < body.n && rc == 0) {
                struct buf b;
                char words[100];
                buf_init(&b, MESSAGE_MAX);
                struct jsonw w = jsonw_to(&b);
                snprintf(words, sizeof words, "The answer as it came, from byte %zu on.", from);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "role", "system");
                jsonw_field_cstr(&w, "content", words);
                jsonw_field_cstr(&w, "partType", "answer");
                jsonw_field_bool(&w, "includeInContext", false);
                jsonw_field_u64(&w, "from", from);
                from = put_bytes(&w, body, from, text);
                jsonw_object_end(&w);
                rc = buf_check(&b, err);
                if (rc == 0)
                        rc = append(k, buf_str(&b), NULL, true, NULL, err);
                buf_release(&b);
        }
        return rc;
}

/* What the messages do not say of an answer: a message that no model is shown says why, and has the
 * bytes. Its id is left in `id` where the answer has no other message. */
static int store_odd(struct job *k, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct str body = k->parts.answer_body;
        struct buf b;
        size_t stored = 0;
        buf_init(&b, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "system");
        jsonw_field_str(&w, "content",
            k->reply.odd.n ? buf_str(&k->reply.odd) : STR("the answer has no message"));
        jsonw_field_cstr(&w, "partType", "answer");
        jsonw_field_bool(&w, "includeInContext", false);
        if (body.n)
                stored = put_bytes(&w, body, 0, is_text(body));
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = append(k, buf_str(&b), NULL, true, id[0] ? NULL : id, err);
        buf_release(&b);
        return rc ? rc : store_bytes(k, stored, err);
}

/* ---- further choices ---- */

/* The name under which a choice that the client may go on with is known; what stands there is the
 * end of the request. */
static void name_choice(const char *conv, const char *chain, struct buf *out)
{
        buf_printf(out, "choice/%s/%s", chain, conv);
}

/* A client that goes on with this choice is known by the chain behind it. */
static int note_choice(struct job *k, const struct json *j, json_ref choice, const char *asked,
    uint64_t asked_seq, struct steno_error *err)
{
        json_ref message = json_get(j, choice, "message");
        char chain[ELEMENTS_CHAIN], digest[ELEMENTS_CHAIN];
        struct buf name;
        if (message == JSON_NONE)
                message = json_get(j, choice, "content");
        if (elements_digest(k->wire, j, message, digest) != 0)
                return error_nomem(err);
        memcpy(chain, asked, sizeof chain);
        elements_continue(chain, digest);
        if (!digest[0] || strcmp(chain, k->chain) == 0)
                return 0; /* it says the same as the first */
        struct lineage_node node = {
            .conv = k->conv_id, .seq = k->last_seq, .chain = chain, .replied = true, .tip = true};
        int rc = lineage_add(k->r->lineage, &k->who, &node, err);
        buf_init(&name, 4 * KIB);
        name_choice(k->conv_id, chain, &name);
        if (rc == 0)
                rc = lineage_add_id(
                    k->r->lineage, k->owner, buf_str(&name), chain, k->conv_id, asked_seq, err);
        buf_release(&name);
        return rc;
}

/* A message that no model is shown, beside the reply. */
static int store_choice(
    struct job *k, const struct json *j, json_ref choice, struct steno_error *err)
{
        json_ref message = json_get(j, choice, "message");
        struct buf b, text;
        buf_init(&b, MESSAGE_MAX);
        buf_init(&text, MESSAGE_MAX);
        put_first_text(j, message == JSON_NONE ? json_get(j, choice, "content") : message, &text);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_field_str(&w, "content", buf_str(&text));
        jsonw_field_cstr(&w, "partType", "choice");
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_field_copy(&w, "choice", j, choice);
        jsonw_object_end(&w);
        int rc = text.failed ? error_nomem(err) : buf_check(&b, err);
        if (rc == 0)
                rc = append(k, buf_str(&b), NULL, true, NULL, err);
        buf_release(&b);
        buf_release(&text);
        return rc;
}

/* The choices behind the first. `asked` is the history up to the end of the request. */
static int store_choices(
    struct job *k, const char *asked, uint64_t asked_seq, struct steno_error *err)
{
        struct buf list;
        struct json j;
        if (k->reply.other_count == 0)
                return 0;
        buf_init(&list, 0);
        json_init(&j);
        buf_putc(&list, '[');
        buf_put_str(&list, buf_str(&k->reply.others));
        buf_putc(&list, ']');
        int rc = buf_check(&list, err);
        if (rc == 0)
                rc = json_parse(&j, list.p, list.n, NULL, err);
        for (json_ref c = rc ? JSON_NONE : json_child(&j, 0); c != JSON_NONE && rc == 0;
             c = json_next(&j, 0, c)) {
                rc = store_choice(k, &j, c, err);
                if (rc == 0)
                        rc = note_choice(k, &j, c, asked, asked_seq, err);
        }
        json_release(&j);
        buf_release(&list);
        return rc;
}

/* ---- failures ---- */

/* The code of an answer that did not become a reply. */
static const char *code_of(const struct job *k)
{
        int64_t status = status_of(k);
        if (k->encoded)
                return "ENCODED";
        if (status == 0)
                return "UPSTREAM_UNREACHABLE";
        if (status / 100 != 2)
                return "UPSTREAM_ERROR";
        bool all = !k->fate->cut && !is_broken_off(k) && !k->stream;
        return all ? "UNREADABLE" : "INCOMPLETE";
}

/* Why it did not: the endpoint's words, then what is wrong with it, then what ended it. */
static struct str words_of(const struct job *k)
{
        if (k->reply.problem.n)
                return buf_str(&k->reply.problem);
        if (k->reply.odd.n && !is_broken_off(k))
                return buf_str(&k->reply.odd);
        if (is_broken_off(k) && status_of(k))
                return STR("the endpoint broke off the answer before its end");
        if (k->fate->why[0])
                return str_of(k->fate->why);
        return STR("the answer ended before it was complete");
}

/* Are there bytes of the answer that the message about its failure does not have? */
static bool lacks_bytes(const struct job *k)
{
        struct str body = k->parts.answer_body;
        if (status_of(k) && status_of(k) / 100 != 2 && !k->encoded)
                return body.n > ERROR_WORDS || !is_text(body);
        return body.n > 0;
}

static int store_failure(struct job *k, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct str body = k->parts.answer_body;
        struct buf b;
        size_t stored = body.n;
        buf_init(&b, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_field_str(&w, "content", buf_str(&k->reply.text));
        jsonw_field_cstr(&w, "partType", "error");
        jsonw_key(&w, "error");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "code", code_of(k));
        if (status_of(k))
                jsonw_field_i64(&w, "status", status_of(k));
        jsonw_field_str(&w, "message", words_of(k));
        jsonw_object_end(&w);
        /* What was put together of it; whole items of a stream are messages already. */
        if (k->reply.count && k->reply.messages.n < MIB &&
            !(k->stream && strcmp(k->wire->name, "responses") == 0))
                jsonw_field_raw(&w, "reply", buf_str(&k->reply.messages));
        if (lacks_bytes(k)) /* where there is much text, the bytes have records of their own */
                stored = k->reply.text.n > MIB ? 0 : put_bytes(&w, body, 0, is_text(body));
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = append(k, buf_str(&b), NULL, true, id, err);
        buf_release(&b);
        return rc ? rc : store_bytes(k, stored, err);
}

/* What the endpoint said about the reply, as metadata of its last message. */
static int store_facts(struct job *k, const char *id, bool whole, struct steno_error *err)
{
        struct buf b;
        char key[64];
        buf_init(&b, 256 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "gateway");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "exchange", k->exchange);
        if (k->reply.model.n)
                jsonw_field_str(&w, "model", buf_str(&k->reply.model));
        if (k->reply.id.n)
                jsonw_field_str(&w, "response", buf_str(&k->reply.id));
        if (k->reply.finish[0])
                jsonw_field_cstr(&w, "finish", k->reply.finish);
        if (k->reply.usage.n)
                jsonw_field_raw(&w, "usage", buf_str(&k->reply.usage));
        if (k->reply.other_count)
                jsonw_field_u64(&w, "choices", k->reply.other_count + (k->reply.count > 0));
        if (!whole)
                jsonw_field_bool(&w, "incomplete", true);
        if (k->fate->gone)
                jsonw_field_u64(&w, "delivered", k->fate->delivered);
        jsonw_field_copy(&w, "startedAt", &k->head, json_get(&k->head, 0, "at"));
        if (status_of(k)) {
                jsonw_field_i64(&w, "status", status_of(k));
                jsonw_field_copy(&w, "answeredAt", &k->answer, json_get(&k->answer, 0, "at"));
        }
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        snprintf(key, sizeof key, "%s/facts", k->exchange);
        struct steno_append_options opt = {
            .size = sizeof opt, .durability = STENO_PROCESS, .idempotency_key = key};
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = steno_amend(k->conv, "meta", id, b.p, b.n, &opt, NULL, err);
        buf_release(&b);
        return rc;
}

/* ---- another attempt ---- */

struct superseded {
        struct buf ids; /* NUL-terminated, one after the other */
        bool replies;   /* only what is a reply, not what stands beside it */
};

/* Is it something about an answer that no model is shown? */
static bool is_beside(const struct steno_record *r)
{
        char *text = NULL;
        size_t n = 0;
        struct json j;
        json_init(&j);
        bool is = steno_record_message(r, &text, &n, NULL) == 0 &&
                  json_parse(&j, text, n, NULL, NULL) == 0 &&
                  (json_is(&j, json_get(&j, 0, "partType"), "choice") ||
                      json_is(&j, json_get(&j, 0, "partType"), "answer"));
        json_release(&j);
        steno_free(text);
        return is;
}

static int collect_id(void *ctx, const struct steno_record *r)
{
        struct superseded *s = ctx;
        if (strcmp(steno_record_kind(r), "message") == 0 && !(s->replies && is_beside(r))) {
                buf_puts(&s->ids, steno_record_id(r));
                buf_putc(&s->ids, '\0');
        }
        return 0;
}

/* What an earlier attempt left of a reply stays in the record and leaves the views. */
static int supersede(struct job *k, struct steno_error *err)
{
        struct superseded s = {.replies = k->other_choice};
        if (k->place.kind != LINEAGE_AGAIN)
                return 0;
        buf_init(&s.ids, 0);
        int rc = steno_read(k->conv, k->place.seq, 0, collect_id, &s, err);
        for (size_t at = 0; at < s.ids.n && rc == 0; at += strlen(s.ids.p + at) + 1) {
                rc = steno_amend(k->conv, "delete", s.ids.p + at, NULL, 0, NULL, NULL, err);
                if (rc == STENO_ENOTFOUND)
                        rc = 0; /* deleted by an earlier try */
        }
        buf_release(&s.ids);
        return rc ? rc : lineage_set_open(k->r->lineage, k->place.node, false, err);
}

/* ---- all of it ---- */

/* Does the request go on with another choice than the one that the conversation has as its reply?
 * Then that one leaves the views, or stays where it is when the conversation went on with it, and
 * the request brings the other. */
static void find_choice(struct job *k)
{
        struct lineage_place *p = &k->place;
        char digest[ELEMENTS_CHAIN], conv[LINEAGE_CONV];
        uint64_t seq = 0;
        struct buf name;
        size_t at = p->from;
        if ((p->kind != LINEAGE_CONTINUE && p->kind != LINEAGE_FORK) || at == 0)
                return;
        const char *chain = k->links[at - 1].chain;
        buf_init(&name, 4 * KIB);
        name_choice(p->conv, chain, &name);
        if (lineage_find_id(k->r->lineage, k->owner, buf_str(&name), digest, conv, &seq)) {
                while (at > 0 && strcmp(k->links[at - 1].chain, chain) == 0)
                        at--;
                p->from = at;
                p->seq = seq;
                k->other_choice = p->kind == LINEAGE_CONTINUE;
                if (k->other_choice)
                        p->kind = LINEAGE_AGAIN;
        }
        buf_release(&name);
}

static int find_place(struct job *k, struct steno_error *err)
{
        const char *only = k->named[0] ? k->named : NULL;
        int rc = lineage_find(k->r->lineage, &k->who, only, k->links, k->count, &k->place, err);
        if (rc == 0)
                find_choice(k);
        /* What was not seen before goes on where the request says. */
        if (rc == 0 && k->base[0] && k->place.kind == LINEAGE_NEW)
                k->place = k->behind;
        if (rc == 0 && only && k->place.kind == LINEAGE_FORK)
                k->place.kind = LINEAGE_CONTINUE; /* it was named: no other one is made */
        return rc;
}

static int store_answer(struct job *k, struct steno_error *err)
{
        char id[LINEAGE_CONV] = "";
        bool whole = is_whole(k);
        /* The end of the request: a client that got no whole answer may send it again, and where
         * nothing of an answer was kept it is the end of the conversation so far. */
        bool items = strcmp(k->wire->name, "responses") == 0 && k->stream; /* also of a cut one */
        bool kept = k->reply.count > 0 && (whole || items);
        char asked[ELEMENTS_CHAIN];
        uint64_t asked_seq = k->last_seq;
        memcpy(asked, k->chain, sizeof asked);
        int rc = note_node(k, !kept, !whole || k->fate->gone, err);
        if (rc == 0)
                rc = store_rounds(k, id, err);
        /* Items of a cut answer that belong to an earlier round are stored with it. */
        kept = kept && (k->told || k->parts.notes.n == 0);
        if (rc == 0 && kept)
                rc = store_reply(k, whole, id, err);
        if (rc == 0 && whole)
                rc = store_choices(k, asked, asked_seq, err);
        if (rc == 0 && whole && (k->reply.odd.n || !id[0]))
                rc = store_odd(k, id, err);
        if (rc == 0 && !whole)
                rc = store_failure(k, id, err);
        if (rc == 0 && id[0])
                rc = store_facts(k, id, whole, err);
        return rc;
}

/* ---- exchanges that come late ---- */

/* The history behind the answer. False: there is none. */
static bool chain_of_answer(const struct job *k, char chain[ELEMENTS_CHAIN])
{
        struct json j;
        char digest[ELEMENTS_CHAIN];
        json_init(&j);
        bool good = k->count && is_whole(k) && k->reply.messages.n &&
                    json_parse(&j, k->reply.messages.p, k->reply.messages.n, NULL, NULL) == 0;
        memcpy(chain, k->count ? k->links[k->count - 1].chain : "", k->count ? ELEMENTS_CHAIN : 1);
        for (json_ref m = good ? json_child(&j, 0) : JSON_NONE; m != JSON_NONE && good;
             m = json_next(&j, 0, m)) {
                good = elements_digest(k->wire, &j, m, digest) == 0;
                if (good)
                        elements_continue(chain, digest);
        }
        json_release(&j);
        return good;
}

/* The record in which another exchange brought this reply along. */
struct brought {
        char id[LINEAGE_CONV];
        char at[TIME_TEXT];
};

static int keep_brought(void *ctx, const struct steno_record *r)
{
        struct brought *b = ctx;
        if (strcmp(steno_record_kind(r), "message") == 0) {
                snprintf(b->id, sizeof b->id, "%s", steno_record_id(r));
                snprintf(b->at, sizeof b->at, "%s", steno_record_at(r));
        }
        return 1; /* the first */
}

/*
 * A client goes on as soon as it has read the last event, so its next request may be over, and
 * recorded, before this one is. Then that request has brought this reply with it, since this one
 * began, and what is left to say is whose answer it was. Else it would become a fork that nobody
 * made.
 */
static bool came_late(struct job *k, struct brought *b)
{
        char name[ELEMENTS_CHAIN + 8], digest[ELEMENTS_CHAIN];
        struct lineage_place p = {.kind = LINEAGE_CONTINUE};
        struct str began = json_inner(&k->head, json_get(&k->head, 0, "at"));
        if ((k->place.kind != LINEAGE_FORK && k->place.kind != LINEAGE_NEW) ||
            !chain_of_answer(k, k->chain))
                return false;
        name_told(k->chain, name);
        if (!lineage_find_chain(k->r->lineage, k->owner, k->chain, p.conv, &p.seq) ||
            lineage_find_id(k->r->lineage, k->owner, str_of(name), digest, NULL, NULL) ||
            steno_conv_open(k->r->store, k->project, p.conv, &k->conv, NULL) != 0)
                return false;
        steno_read(k->conv, p.seq - 1, 1, keep_brought, b, NULL);
        /* Times are spelled alike, so their order is that of their letters. */
        bool late = b->id[0] && began.n == strlen(b->at) && memcmp(b->at, began.p, began.n) >= 0;
        if (late) {
                k->place = p;
                k->conv_id = steno_conv_id(k->conv);
                k->last_seq = p.seq;
        } else {
                steno_conv_close(k->conv);
                k->conv = NULL;
        }
        return late;
}

/* ---- gaps ---- */

static struct gap **find_gap(struct recorder *r, const char *owner)
{
        struct gap **g = &r->gaps;
        while (*g && strcmp((*g)->owner, owner) != 0)
                g = &(*g)->next;
        return g;
}

/* An exchange that was in memory alone is lost. */
static void note_gap(const struct job *k)
{
        struct gap **g = k->owner ? find_gap(k->r, k->owner) : NULL;
        if (g && !*g) {
                struct gap *one = calloc(1, sizeof *one);
                struct str at = json_inner(&k->head, json_get(&k->head, 0, "at"));
                char *owner = strdup(k->owner);
                if (!one || !owner) {
                        free(one);
                        free(owner);
                        return;
                }
                one->owner = owner;
                snprintf(one->since, sizeof one->since, "%.*s", (int)at.n, at.n ? at.p : "");
                *g = one;
        }
        if (g)
                (*g)->count++;
}

static void forget_gap(struct gap **g)
{
        struct gap *one = *g;
        *g = one->next;
        free(one->owner);
        free(one);
}

/* A message that no model is shown. */
static int store_gap(struct job *k, struct steno_error *err)
{
        struct gap *gap = *find_gap(k->r, k->owner);
        char words[160];
        struct buf b;
        if (!gap)
                return 0;
        snprintf(words, sizeof words, "%u request%s of this client since %s could not be recorded",
            gap->count, gap->count == 1 ? "" : "s", gap->since);
        buf_init(&b, 4 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "system");
        jsonw_field_cstr(&w, "content", words);
        jsonw_field_cstr(&w, "partType", "gap");
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = append(k, buf_str(&b), NULL, true, NULL, err);
        k->gap_told = rc == 0;
        buf_release(&b);
        return rc;
}

/* ---- one exchange ---- */

static int store(struct job *k, struct steno_error *err)
{
        struct brought brought = {0};
        int rc = find_place(k, err);
        if (rc == 0 && came_late(k, &brought)) {
                rc = store_facts(k, brought.id, true, err);
                return rc ? rc : note_reply(k, err);
        }
        memcpy(k->chain, k->base, sizeof k->chain);
        k->replied = k->base[0] != '\0';
        if (rc == 0)
                rc = open_conv(k, err);
        for (size_t i = 0; rc == 0 && i < k->place.from; i++)
                k->replied = k->replied || k->links[i].assistant;
        k->last_seq = k->place.seq;
        if (rc == 0)
                rc = supersede(k, err);
        if (rc == 0)
                rc = lineage_continued(k->r->lineage, k->conv_id, err);
        if (rc == 0)
                rc = store_gap(k, err);
        if (rc == 0)
                rc = store_beside(k, err);
        if (rc == 0)
                rc = store_request(k, err);
        if (rc == 0)
                rc = store_answer(k, err);
        return rc;
}

static int transact(struct job *k, struct steno_error *err)
{
        char digest[ELEMENTS_CHAIN];
        struct lineage *l = k->r->lineage;
        if (lineage_find_id(l, k->owner, str_of(k->exchange), digest, NULL, NULL))
                return 0; /* all of it was stored, and then the process was killed */
        int rc = lineage_begin(l, err);
        if (rc)
                return rc;
        rc = store(k, err);
        if (rc == 0)
                rc = lineage_add_id(
                    l, k->owner, str_of(k->exchange), "", k->conv_id, k->last_seq, err);
        if (rc == 0)
                rc = lineage_commit(l, err);
        if (rc)
                lineage_rollback(l);
        else if (k->gap_told)
                forget_gap(find_gap(k->r, k->owner));
        return rc;
}

static int record(struct recorder *r, struct exchange *x, const struct recorder_fate *fate,
    bool *understood, bool *torn, struct steno_error *err)
{
        struct job k = {.r = r, .fate = fate, .exchange = exchange_id(x)};
        json_init(&k.head);
        json_init(&k.answer);
        json_init(&k.request);
        json_init(&k.list);
        buf_init(&k.list_text, 0);
        wire_answer_init(&k.reply);
        int rc = exchange_load(x, &k.parts, err);
        *torn = rc == STENO_ECORRUPT;
        if (rc == 0)
                rc = read_request(&k, err);
        if (rc == 0 && k.wire)
                rc = read_answer(&k, err);
        if (rc == 0 && k.wire)
                rc = transact(&k, err);
        if (rc && exchange_in_memory(x))
                note_gap(&k);
        *understood = k.wire != NULL;
        steno_conv_close(k.conv);
        wire_answer_release(&k.reply);
        free(k.links);
        free(k.project);
        free(k.group);
        free(k.named);
        free(k.owner);
        buf_release(&k.list_text);
        json_release(&k.list);
        json_release(&k.request);
        json_release(&k.answer);
        json_release(&k.head);
        exchange_parts_release(&k.parts);
        return rc;
}

/* ---- the thread ---- */

static void work(struct recorder *r, struct task *t)
{
        struct steno_error err = {0};
        bool understood = false, torn = false;
        int rc = record(r, t->x, &t->fate, &understood, &torn, &err);
        bool done = rc == 0 || torn; /* a torn one had not been sent */
        /* What is wrong with it will not be right at the next start. */
        bool never = rc == STENO_ELIMIT || rc == STENO_EPROTO || rc == STENO_EINVAL;
        bool lost = exchange_in_memory(t->x);
        if (!done)
                fprintf(stderr, "steno: the gateway could not record %s: %s; it is %s%s%s\n",
                    exchange_id(t->x), err.msg, lost ? "lost" : "in gateway/",
                    !lost && never ? "kept_" : "", lost ? "" : exchange_id(t->x));
        pthread_mutex_lock(&r->mutex);
        r->recorded += rc == 0 && understood;
        r->failed += !done;
        pthread_mutex_unlock(&r->mutex);
        if (done || lost)
                exchange_remove(t->x);
        else if (never)
                exchange_set_aside(t->x);
        else
                exchange_close(t->x);
        free(t);
}

static void *run(void *arg)
{
        struct recorder *r = arg;
        pthread_mutex_lock(&r->mutex);
        for (;;) {
                while (!r->first && !r->closing)
                        pthread_cond_wait(&r->work, &r->mutex);
                struct task *t = r->first;
                if (!t)
                        break;
                r->first = t->next;
                if (!r->first)
                        r->end = &r->first;
                pthread_mutex_unlock(&r->mutex);
                work(r, t);
                pthread_mutex_lock(&r->mutex);
        }
        pthread_mutex_unlock(&r->mutex);
        return NULL;
}

int recorder_new(struct steno_store *store, struct exchanges *all, const char *path,
    struct recorder **out, struct steno_error *err)
{
        struct recorder *r = calloc(1, sizeof *r);
        if (!r)
                return error_nomem(err);
        r->store = store;
        r->all = all;
        r->end = &r->first;
        pthread_mutex_init(&r->mutex, NULL);
        wait_init(&r->work);
        int rc = lineage_open(path, &r->lineage, err);
        if (rc == 0 && pthread_create(&r->thread, NULL, run, r) != 0)
                rc = error_nomem(err);
        if (rc) {
                lineage_close(r->lineage);
                free(r);
                return rc;
        }
        *out = r;
        return 0;
}

void recorder_free(struct recorder *r, uint64_t *recorded, uint64_t *failed)
{
        if (!r)
                return;
        pthread_mutex_lock(&r->mutex);
        r->closing = true;
        pthread_cond_signal(&r->work);
        pthread_mutex_unlock(&r->mutex);
        pthread_join(r->thread, NULL);
        if (recorded)
                *recorded = r->recorded;
        if (failed)
                *failed = r->failed;
        lineage_close(r->lineage);
        while (r->gaps)
                forget_gap(&r->gaps);
        pthread_mutex_destroy(&r->mutex);
        pthread_cond_destroy(&r->work);
        free(r);
}

void recorder_take(struct recorder *r, struct exchange *x, const struct recorder_fate *fate)
{
        struct task *t = malloc(sizeof *t);
        if (!t) { /* its file stays for the next start */
                exchange_close(x);
                return;
        }
        *t = (struct task){.x = x, .fate = *fate};
        pthread_mutex_lock(&r->mutex);
        *r->end = t;
        r->end = &t->next;
        pthread_cond_signal(&r->work);
        pthread_mutex_unlock(&r->mutex);
}

static int take_up(void *ctx, const char *id)
{
        struct recorder *r = ctx;
        struct exchange *x = NULL;
        if (exchange_open(r->all, id, &x, NULL) != 0)
                return 0; /* another process is at it */
        struct recorder_fate fate = {.cut = true,
            .killed = true,
            .gone = true,
            .why = "the gateway was killed while the answer came"};
        recorder_take(r, x, &fate);
        return 0;
}

int recorder_recover(struct recorder *r, struct steno_error *err)
{
        return exchanges_each(r->all, take_up, r, err);
}
