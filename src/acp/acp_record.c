/*
 * acp_record.c - a session: messages, entries that are not messages, appends. See acp_record.h
 */
#include "acp/acp_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"

#define TITLE_CUT 80
#define TOLD_MAX 256        /* messages that may be sent again as a whole */
#define STORED_MAX 10000000 /* appends of one journal; a larger number is not ours */

/* ---- opening ---- */

static int note_stored(void *ctx, const struct steno_record *record)
{
        struct acp_record *r = ctx;
        const char *key = steno_record_key(record);
        size_t n = strlen(r->journal);
        char *end;
        if (strncmp(key, r->journal, n) != 0 || key[n] != '/')
                return 0;
        unsigned long at = strtoul(key + n + 1, &end, 10);
        if (*end || at >= STORED_MAX)
                return 0;
        if (at >= r->stored_count) {
                uint64_t *more = realloc(r->stored, (at + 1) * sizeof *more);
                if (!more)
                        return STENO_ENOMEM;
                memset(more + r->stored_count, 0, (at + 1 - r->stored_count) * sizeof *more);
                r->stored = more;
                r->stored_count = at + 1;
        }
        r->stored[at] = steno_record_seq(record);
        return 0;
}

static int create(
    struct acp_record *r, const struct acp_record_options *opt, struct steno_error *err)
{
        struct buf meta;
        buf_init(&meta, META_MAX);
        struct jsonw w = jsonw_to(&meta);
        jsonw_object(&w);
        jsonw_key(&w, "acp");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "agent", opt->agent);
        if (opt->cwd)
                jsonw_field_cstr(&w, "cwd", opt->cwd);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        const char *json = buf_cstr(&meta);
        int rc = json ? steno_conv_create(
                            opt->store, opt->project, opt->conversation, json, &r->conv, err)
                      : error_nomem(err);
        if (rc == STENO_ECONFLICT) {
                /* The conversation may exist already, from before a kill, or because the MCP server
                 * of the session made it. */
                rc = steno_conv_open(opt->store, opt->project, opt->conversation, &r->conv, err);
                if (rc == 0)
                        steno_conv_set_meta(r->conv, json, NULL);
        }
        buf_release(&meta);
        return rc;
}

static int fork_from(
    struct acp_record *r, const struct acp_record_options *opt, struct steno_error *err)
{
        struct steno_conv *from = NULL;
        struct steno_fork_options fork = {.size = sizeof fork, .id = opt->conversation};
        int rc = steno_conv_open(opt->store, opt->project, opt->known, &from, err);
        if (rc == 0)
                rc = steno_fork(from, &fork, &r->conv, err);
        steno_conv_close(from);
        return rc == 0 ? 0 : create(r, opt, err); /* better without its past than not at all */
}

static bool has_title(struct steno_conv *conv)
{
        char *meta = NULL;
        struct json j;
        json_init(&j);
        bool has = steno_conv_meta(conv, &meta, NULL) == 0 &&
                   json_parse(&j, meta, strlen(meta), NULL, NULL) == 0 &&
                   json_inner(&j, json_get(&j, 0, "title")).n > 0;
        json_release(&j);
        steno_free(meta);
        return has;
}

static int open_conversation(
    struct acp_record *r, const struct acp_record_options *opt, struct steno_error *err)
{
        int rc;
        if (opt->known && strcmp(opt->known, opt->conversation) != 0)
                rc = fork_from(r, opt, err);
        else if (opt->known)
                rc = steno_conv_open(opt->store, opt->project, opt->conversation, &r->conv, err);
        else
                rc = create(r, opt, err);
        if (rc == STENO_ENOTFOUND) /* the conversation was removed meanwhile */
                rc = create(r, opt, err);
        if (rc == 0 && opt->again)
                rc = steno_read(r->conv, 0, 0, note_stored, r, err);
        if (rc == 0)
                r->titled = has_title(r->conv);
        return rc;
}

int acp_record_open(
    const struct acp_record_options *opt, struct acp_record **out, struct steno_error *err)
{
        struct acp_record *r = calloc(1, sizeof *r);
        if (!r)
                return error_nomem(err);
        r->journal = opt->journal;
        r->open = ACP_SAID_OTHER;
        r->replayed_end = &r->replayed;
        buf_init(&r->text, MESSAGE_MAX);
        buf_init(&r->thought, MESSAGE_MAX);
        buf_init(&r->blocks, MESSAGE_MAX);
        r->conversation = strdup(opt->conversation);
        int rc = r->conversation ? open_conversation(r, opt, err) : error_nomem(err);
        if (rc == 0)
                *out = r;
        else
                acp_record_close(r);
        return rc;
}

void acp_record_close(struct acp_record *r)
{
        if (!r)
                return;
        while (r->calls) {
                struct acp_call *next = r->calls->next;
                acp_call_free(r->calls);
                r->calls = next;
        }
        while (r->terminals) {
                struct acp_terminal *next = r->terminals->next;
                acp_terminal_free(r->terminals);
                r->terminals = next;
        }
        while (r->replayed) {
                struct acp_item *next = r->replayed->next;
                acp_item_free(r->replayed);
                r->replayed = next;
        }
        acp_index_release(&r->calls_by_id);
        acp_index_release(&r->terminals_by_id);
        acp_index_release(&r->terminals_by_call);
        acp_members_free(r->told);
        steno_conv_close(r->conv);
        buf_release(&r->text);
        buf_release(&r->thought);
        buf_release(&r->blocks);
        free(r->conversation);
        free(r->stored);
        free(r->open_id);
        free(r->prompt);
        free(r);
}

/* ---- appending ---- */

void acp_record_fail(struct acp_record *r, int rc, const struct steno_error *err)
{
        bool refused =
            rc == STENO_EPROTO || rc == STENO_EINVAL || rc == STENO_ELIMIT || rc == STENO_ECONFLICT;
        if (!r->failed && !r->refused)
                r->why = *err;
        if (refused)
                r->refused = true;
        else if (!r->failed)
                r->failed = rc;
}

bool acp_record_is_stored(struct acp_record *r, uint64_t *seq)
{
        if (r->appended >= r->stored_count || !r->stored[r->appended])
                return false;
        *seq = r->stored[r->appended++];
        return true;
}

void acp_record_append(struct acp_record *r, struct str message, uint64_t of_seq, bool decided,
    bool sync, uint64_t *seq)
{
        struct steno_error err = {0};
        struct steno_receipt *receipt = NULL;
        char key[80];
        uint64_t there = 0;
        if (r->failed)
                return;
        if (acp_record_is_stored(r, &there)) {
                if (seq)
                        *seq = there;
                return;
        }
        snprintf(key, sizeof key, "%s/%zu", r->journal, r->appended++);
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD | (decided ? STENO_DECIDED : 0u),
            .durability = sync ? STENO_FULL : STENO_PROCESS,
            .idempotency_key = key,
            .of_seq = of_seq};
        int rc = steno_append(r->conv, message.p, message.n, &opt, &receipt, &err);
        if (rc)
                acp_record_fail(
                    r, error_prefix(&err, rc, "conversation %s", r->conversation), &err);
        else if (seq)
                *seq = steno_receipt_first_seq(receipt);
        steno_receipt_free(receipt);
}

/* ---- items ---- */

struct acp_item *acp_item_new(enum acp_said kind)
{
        struct acp_item *item = calloc(1, sizeof *item);
        if (!item)
                return NULL;
        item->kind = kind;
        buf_init(&item->json, 2 * MESSAGE_MAX);
        buf_init(&item->text, MESSAGE_MAX);
        return item;
}

void acp_item_free(struct acp_item *item)
{
        if (!item)
                return;
        acp_call_free(item->call);
        buf_release(&item->json);
        buf_release(&item->text);
        free(item->calls);
        free(item);
}

static void store(struct acp_record *r, struct acp_item *item)
{
        struct steno_error err = {0};
        uint64_t seq = 0;
        int rc = buf_check(&item->json, &err);
        if (rc) {
                acp_record_fail(r, rc, &err);
        } else if (item->call) {
                acp_call_store_result(r, item->call);
        } else {
                acp_record_append(r, buf_str(&item->json), 0, false, false, &seq);
                for (size_t i = 0; i < item->call_count; i++)
                        item->calls[i]->seq = seq;
        }
        acp_item_free(item);
}

void acp_record_emit(struct acp_record *r, struct acp_item *item)
{
        struct steno_error err = {0};
        if (!item) {
                acp_record_fail(r, error_nomem(&err), &err);
        } else if (r->replaying) {
                *r->replayed_end = item;
                r->replayed_end = &item->next;
        } else {
                item->next = NULL;
                store(r, item);
        }
}

void acp_put_time(struct jsonw *w, const char *key, int64_t at)
{
        char text[TIME_TEXT];
        time_format(at, text);
        jsonw_field_cstr(w, key, text);
}

void acp_record_entry(struct acp_record *r, struct str words, struct str about)
{
        struct acp_item *item = acp_item_new(ACP_SAID_OTHER);
        if (item) {
                struct jsonw w = jsonw_to(&item->json);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "role", "system");
                jsonw_field_str(&w, "content", words);
                jsonw_field_cstr(&w, "partType", "acp");
                jsonw_field_bool(&w, "includeInContext", false);
                acp_put_time(&w, "createdAt", r->now);
                buf_puts(&item->json, ",\"acp\":{");
                buf_put_str(&item->json, about);
                buf_puts(&item->json, "}}");
        }
        acp_record_emit(r, item);
}

/* ---- content ---- */

void acp_put_bare(struct str text, struct buf *out)
{
        for (size_t i = 0; i < text.n; i++)
                if ((unsigned char)text.p[i] > ' ')
                        buf_putc(out, text.p[i]);
}

static void put_resource_text(const struct json *j, json_ref resource, struct buf *out)
{
        buf_puts(out, "[resource ");
        json_string(j, json_get(j, resource, "uri"), out, NULL);
        buf_puts(out, "]\n");
        json_string(j, json_get(j, resource, "text"), out, NULL);
}

void acp_put_block_text(const struct json *j, json_ref block, struct buf *out, bool *other)
{
        json_ref type = json_get(j, block, "type");
        bool plain = json_is(j, type, "text") && json_count(j, block) == 2;
        if (json_is(j, type, "text")) {
                json_string(j, json_get(j, block, "text"), out, NULL);
        } else if (json_is(j, type, "resource_link")) {
                buf_puts(out, "[");
                json_string(j, json_get(j, block, "name"), out, NULL);
                buf_puts(out, "](");
                json_string(j, json_get(j, block, "uri"), out, NULL);
                buf_puts(out, ")");
        } else if (json_is(j, type, "resource")) {
                put_resource_text(j, json_get(j, block, "resource"), out);
        } else {
                buf_puts(out, "[");
                json_string(j, type, out, NULL);
                buf_puts(out, "]");
        }
        if (other && !plain)
                *other = true;
}

void acp_put_blocks_text(const struct json *j, json_ref blocks, struct buf *out, bool *other)
{
        bool first = true;
        for (json_ref b = json_child(j, blocks); b != JSON_NONE; b = json_next(j, blocks, b)) {
                if (!first)
                        buf_putc(out, '\n');
                first = false;
                acp_put_block_text(j, b, out, other);
        }
}

/* Writes an image as a part that models understand. */
static bool put_image(const struct json *j, json_ref block, struct jsonw *w)
{
        struct str data = json_inner(j, json_get(j, block, "data"));
        struct str mime = json_inner(j, json_get(j, block, "mimeType"));
        if (!json_is(j, json_get(j, block, "type"), "image") || !data.n || !mime.n)
                return false;
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "image_url");
        jsonw_key(w, "image_url");
        jsonw_object(w);
        jsonw_key(w, "url");
        struct buf *b = jsonw_value(w);
        buf_puts(b, "\"data:");
        buf_put_str(b, mime);
        buf_puts(b, ";base64,");
        buf_put_str(b, data);
        buf_puts(b, "\"");
        jsonw_object_end(w);
        jsonw_object_end(w);
        return true;
}

/* Writes the content of a user's message: a text, or parts. True: some blocks contain more than
 * that. */
static bool put_user_content(const struct json *j, json_ref blocks, struct jsonw *w)
{
        bool more = false;
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        jsonw_key(w, "content");
        if (json_count(j, blocks) == 1 &&
            json_is(j, json_get(j, json_at(j, blocks, 0), "type"), "text")) {
                acp_put_blocks_text(j, blocks, &text, &more);
                jsonw_str(w, buf_str(&text));
        } else {
                jsonw_array(w);
                for (json_ref b = json_child(j, blocks); b != JSON_NONE;
                     b = json_next(j, blocks, b)) {
                        if (put_image(j, b, w))
                                continue;
                        buf_clear(&text);
                        acp_put_block_text(j, b, &text, &more);
                        jsonw_object(w);
                        jsonw_field_cstr(w, "type", "text");
                        jsonw_field_str(w, "text", buf_str(&text));
                        jsonw_object_end(w);
                }
                jsonw_array_end(w);
        }
        buf_release(&text);
        return more;
}

/* The title is the first line of the first prompt. */
static void set_title(struct acp_record *r, struct str text)
{
        struct buf patch;
        struct str s = str_trim(text);
        const char *nl = s.n ? memchr(s.p, '\n', s.n) : NULL;
        if (nl)
                s.n = (size_t)(nl - s.p);
        if (s.n > TITLE_CUT)
                s.n = text_floor(s.p, s.n, TITLE_CUT);
        if (!s.n)
                return;
        buf_init(&patch, 64 * KIB);
        struct jsonw w = jsonw_to(&patch);
        jsonw_object(&w);
        jsonw_field_str(&w, "title", s);
        jsonw_object_end(&w);
        const char *json = buf_cstr(&patch);
        if (json && !r->failed)
                steno_conv_set_meta(r->conv, json, NULL);
        r->titled = true;
        buf_release(&patch);
}

void acp_record_prompt(struct acp_record *r, const struct json *j, json_ref prompt)
{
        struct buf bare;
        acp_record_flush(r);
        struct acp_item *item = acp_item_new(ACP_SAID_USER);
        buf_init(&bare, MESSAGE_MAX);
        if (item) {
                struct jsonw w = jsonw_to(&item->json);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "role", "user");
                bool more = put_user_content(j, prompt, &w);
                acp_put_time(&w, "createdAt", r->now);
                if (more) {
                        jsonw_key(&w, "acp");
                        jsonw_object(&w);
                        jsonw_field_copy(&w, "prompt", j, prompt);
                        jsonw_object_end(&w);
                }
                jsonw_object_end(&w);
                acp_put_blocks_text(j, prompt, &item->text, NULL);
                acp_put_bare(buf_str(&item->text), &bare);
                if (!r->titled)
                        set_title(r, buf_str(&item->text));
        }
        free(r->prompt);
        r->prompt = buf_take(&bare, NULL);
        acp_record_emit(r, item);
        buf_release(&bare);
}

/* ---- the message that is arriving ---- */

/* Is it an echo? Some agents repeat the user's prompt. */
static bool is_echo(const struct acp_record *r)
{
        struct buf bare;
        buf_init(&bare, MESSAGE_MAX);
        acp_put_bare(buf_str(&r->text), &bare);
        bool echo = !r->replaying && r->prompt && bare.n && !bare.failed &&
                    memmem(r->prompt, strlen(r->prompt), bare.p, bare.n) != NULL;
        buf_release(&bare);
        return echo;
}

static void put_calls(struct acp_record *r, struct jsonw *w, struct acp_item *item)
{
        jsonw_key(w, "tool_calls");
        jsonw_array(w);
        for (struct acp_call *c = r->unwritten; c; c = c->next) {
                acp_call_put(c, w);
                c->written = true;
                item->calls[item->call_count++] = c;
        }
        r->unwritten = NULL;
        r->unwritten_count = 0;
        jsonw_array_end(w);
}

/* Writes what the message alone cannot express. */
static void put_beside(struct acp_record *r, const struct acp_item *item, struct jsonw *w)
{
        if (!r->open_id && !r->blocks.n && !item->call_count)
                return;
        jsonw_key(w, "acp");
        jsonw_object(w);
        if (r->open_id)
                jsonw_field_cstr(w, "messageId", r->open_id);
        if (r->blocks.n) {
                struct buf *b = (jsonw_key(w, "content"), jsonw_value(w));
                buf_putc(b, '[');
                buf_put_str(b, buf_str(&r->blocks));
                buf_putc(b, ']');
        }
        if (item->call_count) {
                struct buf *b = (jsonw_key(w, "calls"), jsonw_value(w));
                buf_putc(b, '[');
                for (size_t i = 0; i < item->call_count; i++) {
                        buf_puts(b, i ? "," : "");
                        acp_call_put_about(item->calls[i], false, (struct str){0}, b);
                }
                buf_putc(b, ']');
        }
        jsonw_object_end(w);
}

static struct acp_item *make_message(struct acp_record *r, size_t calls)
{
        bool user = r->open == ACP_SAID_USER;
        struct acp_item *item = acp_item_new(user ? ACP_SAID_USER : ACP_SAID_ASSISTANT);
        if (!item || (calls && !(item->calls = calloc(calls, sizeof *item->calls)))) {
                acp_item_free(item);
                return NULL;
        }
        struct jsonw w = jsonw_to(&item->json);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", user ? "user" : "assistant");
        if (r->text.n || !calls)
                jsonw_field_str(&w, "content", buf_str(&r->text));
        else
                jsonw_field_null(&w, "content");
        if (r->thought.n)
                jsonw_field_str(&w, "reasoning_content", buf_str(&r->thought));
        if (calls)
                put_calls(r, &w, item);
        acp_put_time(&w, "createdAt", r->open == ACP_SAID_OTHER ? r->now : r->open_at);
        put_beside(r, item, &w);
        jsonw_object_end(&w);
        buf_put_str(&item->text, buf_str(&r->text));
        return item;
}

/* Remembers the text that was recorded under a messageId. */
static void note_told(struct acp_record *r)
{
        struct buf bare;
        struct acp_member *m = r->open_id ? calloc(1, sizeof *m) : NULL;
        size_t n = 0;
        if (!m)
                return;
        buf_init(&bare, 2 * MESSAGE_MAX);
        acp_put_bare(buf_str(&r->text), &bare);
        acp_put_bare(buf_str(&r->thought), &bare);
        m->key = r->open_id;
        r->open_id = NULL;
        m->json = buf_take(&bare, NULL);
        m->next = r->told;
        r->told = m;
        for (struct acp_member **at = &r->told; *at; at = &(*at)->next)
                if (++n == TOLD_MAX) {
                        acp_members_free((*at)->next);
                        (*at)->next = NULL;
                        break;
                }
        buf_release(&bare);
}

static void clear_open(struct acp_record *r)
{
        note_told(r);
        r->open = ACP_SAID_OTHER;
        free(r->open_id);
        r->open_id = NULL;
        buf_clear(&r->text);
        buf_clear(&r->thought);
        buf_clear(&r->blocks);
}

void acp_record_flush(struct acp_record *r)
{
        if (r->open == ACP_SAID_USER) {
                if (!is_echo(r))
                        acp_record_emit(r, make_message(r, 0));
                clear_open(r);
        }
        if (r->open == ACP_SAID_ASSISTANT || r->unwritten)
                acp_record_emit(r, make_message(r, r->unwritten_count));
        clear_open(r);
}

/* Begins a piece of a message. If it does not belong to the open message, it begins a new
 * message. */
static void begin(struct acp_record *r, enum acp_said kind, const struct json *j, json_ref update)
{
        char *id = json_dup_string(j, json_get(j, update, "messageId"));
        /* Thoughts belong to the message behind them, though some agents give them another
         * messageId. */
        bool thoughts = kind == ACP_SAID_ASSISTANT && r->open == kind && r->text.n == 0;
        bool other = id && r->open_id && strcmp(id, r->open_id) != 0 && !thoughts;
        if (r->unwritten || (r->open != ACP_SAID_OTHER && (r->open != kind || other)))
                acp_record_flush(r);
        if (r->open == ACP_SAID_OTHER)
                r->open_at = r->now;
        r->open = kind;
        if (id) {
                free(r->open_id);
                r->open_id = id;
        }
}

static void keep_block(struct acp_record *r, const struct json *j, json_ref block)
{
        if (block == JSON_NONE)
                return;
        if (r->blocks.n)
                buf_putc(&r->blocks, ',');
        buf_put_str(&r->blocks, json_raw(j, block));
}

static void take_chunk(
    struct acp_record *r, enum acp_said kind, bool thought, const struct json *j, json_ref update)
{
        bool more = false;
        json_ref content = json_get(j, update, "content");
        if (thought && r->open == ACP_SAID_ASSISTANT && r->text.n)
                acp_record_flush(r);
        begin(r, kind, j, update);
        acp_put_block_text(j, content, thought ? &r->thought : &r->text, &more);
        if (more)
                keep_block(r, j, content);
        json_ref meta = json_get(j, update, "_meta");
        if (json_type(j, meta) == JSON_OBJECT)
                keep_block(r, j, update);
}

static void take_other(struct acp_record *r, const struct json *j, json_ref update);

/* Was this message recorded already? If the agent sends a different text now, that is kept beside
 * it. */
static bool was_told(struct acp_record *r, const struct json *j, json_ref update, json_ref content)
{
        struct acp_member *m = r->told;
        struct buf text, bare;
        while (m && !json_is(j, json_get(j, update, "messageId"), m->key))
                m = m->next;
        if (!m)
                return false;
        buf_init(&text, MESSAGE_MAX);
        buf_init(&bare, MESSAGE_MAX);
        acp_put_blocks_text(j, content, &text, NULL);
        acp_put_bare(buf_str(&text), &bare);
        if (!m->json || !str_is(buf_str(&bare), m->json))
                take_other(r, j, update);
        buf_release(&text);
        buf_release(&bare);
        return true;
}

/* Takes user_message, agent_message and agent_thought of version 2: a whole message, which may have
 * been sent before. */
static void take_whole(
    struct acp_record *r, enum acp_said kind, bool thought, const struct json *j, json_ref update)
{
        bool more = false;
        struct buf *to = thought ? &r->thought : &r->text;
        json_ref content = json_get(j, update, "content");
        if (json_type(j, content) != JSON_ARRAY)
                return;
        if (was_told(r, j, update, content))
                return;
        begin(r, kind, j, update);
        buf_clear(to);
        buf_clear(&r->blocks);
        acp_put_blocks_text(j, content, to, &more);
        if (more)
                for (json_ref b = json_child(j, content); b != JSON_NONE;
                     b = json_next(j, content, b))
                        keep_block(r, j, b);
}

static void take_other(struct acp_record *r, const struct json *j, json_ref update)
{
        struct buf about, title;
        buf_init(&about, 2 * MESSAGE_MAX);
        buf_puts(&about, "\"method\":\"session/update\",\"update\":");
        buf_put_str(&about, json_raw(j, update));
        buf_init(&title, MESSAGE_MAX);
        json_string(j, json_get(j, update, "sessionUpdate"), &title, NULL);
        acp_record_entry(r, buf_str(&title), buf_str(&about));
        buf_release(&about);
        buf_clear(&title);
        if (json_is(j, json_get(j, update, "sessionUpdate"), "session_info_update") &&
            json_string(j, json_get(j, update, "title"), &title, NULL))
                set_title(r, buf_str(&title));
        if (json_is(j, json_get(j, update, "state"), "idle"))
                acp_record_turn_over(r, json_is(j, json_get(j, update, "stopReason"), "cancelled"));
        buf_release(&title);
}

void acp_record_update(struct acp_record *r, const struct json *j, json_ref update)
{
        json_ref kind = json_get(j, update, "sessionUpdate");
        if (json_is(j, kind, "agent_message_chunk"))
                take_chunk(r, ACP_SAID_ASSISTANT, false, j, update);
        else if (json_is(j, kind, "agent_thought_chunk"))
                take_chunk(r, ACP_SAID_ASSISTANT, true, j, update);
        else if (json_is(j, kind, "user_message_chunk"))
                take_chunk(r, ACP_SAID_USER, false, j, update);
        else if (json_is(j, kind, "agent_message"))
                take_whole(r, ACP_SAID_ASSISTANT, false, j, update);
        else if (json_is(j, kind, "agent_thought"))
                take_whole(r, ACP_SAID_ASSISTANT, true, j, update);
        else if (json_is(j, kind, "user_message"))
                take_whole(r, ACP_SAID_USER, false, j, update);
        else if (json_is(j, kind, "tool_call") || json_is(j, kind, "tool_call_update"))
                acp_call_take(r, j, update);
        else if (json_is(j, kind, "tool_call_content_chunk"))
                acp_call_add_content(r, j, update);
        else if (json_is(j, kind, "terminal_update"))
                acp_terminal_update(r, j, update);
        else if (json_is(j, kind, "terminal_output_chunk"))
                acp_terminal_chunk(r, j, update);
        else
                take_other(r, j, update);
}

void acp_record_turn_over(struct acp_record *r, bool cancelled)
{
        acp_record_flush(r);
        acp_terminals_turn_over(r);
        if (cancelled)
                acp_calls_cancel(r);
        acp_calls_settle(r);
}

void acp_record_finish(struct acp_record *r)
{
        if (r->replaying)
                acp_replay_over(r);
        acp_record_flush(r);
        acp_calls_finish(r);
        acp_terminals_settle(r, true);
}
