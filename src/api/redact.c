/* redact.c - see redact.h */
#include "api/redact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/record.h"
#include "model/event.h"

#define WINDOW ((size_t)4 * 1024 * 1024)
#define HOLD ((size_t)64 * 1024) /* longer secrets may be cut in two where a window ends */
#define CRC_END 18               /* bytes of a line from its `,"crc"` on */
#define WHOLE_MAX ((uint64_t)256 * 1024 * 1024) /* JSON up to here is masked string by string */

/* One file on its way. */
struct moving {
        struct redact *r;
        struct backend_conv *conv;
        struct buf window;
        struct sha256 sha;
        uint64_t masked;
        int rc;
        /* hashes of what has other bytes now: old and new, one behind the other */
        struct buf hashes;
};

static const char NO_HASH[] = "0000000000000000000000000000000000000000000000000000000000000000";

int redact_open(
    struct redact *r, struct steno_store *store, const char *rules, struct steno_error *err)
{
        *r = (struct redact){.store = store, .err = err};
        buf_init(&r->places, 0);
        return secrets_open(rules, &r->rules, err);
}

void redact_close(struct redact *r)
{
        backend_incoming_close(r->in);
        r->in = NULL;
        secrets_close(r->rules);
        buf_release(&r->places);
}

static void note_place(
    struct redact *r, struct backend_conv *conv, const char *file, uint64_t seq, uint64_t count)
{
        r->count += count;
        if (!count || r->place_count++ >= REDACT_PLACES_MAX)
                return;
        struct jsonw w = r->places.n ? jsonw_behind(&r->places) : jsonw_to(&r->places);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "conversation", backend_conv_id(conv));
        if (seq)
                jsonw_field_u64(&w, "seq", seq);
        else
                jsonw_field_cstr(&w, "file", file);
        jsonw_field_u64(&w, "count", count);
        jsonw_object_end(&w);
}

void redact_report(const struct redact *r, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        const char *name;
        uint64_t n;
        jsonw_object(&w);
        jsonw_field_u64(&w, "count", r->count);
        jsonw_key(&w, "rules");
        jsonw_object(&w);
        for (size_t i = 0; (name = secrets_rule(r->rules, i, &n)); i++)
                if (n)
                        jsonw_field_u64(&w, name, n);
        jsonw_object_end(&w);
        jsonw_key(&w, "places");
        jsonw_array(&w);
        if (r->places.n)
                jsonw_raw(&w, buf_str(&r->places));
        jsonw_array_end(&w);
        jsonw_object_end(&w);
}

/* ---- bytes ---- */

static int write_out(struct moving *m, const char *p, size_t n)
{
        hash_sha256_update(&m->sha, p, n);
        m->rc = n ? backend_incoming_write(m->r->in, p, n, m->r->err) : 0;
        return m->rc;
}

/* Masks the window and lets go of what is final. */
static int pass_on(struct moving *m, bool more)
{
        size_t safe = m->window.n;
        int found =
            secrets_mask_text(m->r->rules, m->window.p, m->window.n, more, &safe, m->r->err);
        if (found < 0) {
                m->rc = found;
                return 1;
        }
        m->masked += (uint64_t)found;
        size_t most = m->window.n > HOLD ? m->window.n - HOLD : 0;
        size_t n = !more ? m->window.n : safe < most ? safe : most;
        if (more && n == 0 && m->window.n >= WINDOW) /* one that is longer than any secret */
                n = most;
        if (n && write_out(m, m->window.p, n))
                return 1;
        buf_drop_front(&m->window, n);
        return 0;
}

static int take_text(void *ctx, const void *p, size_t n)
{
        struct moving *m = ctx;
        buf_put(&m->window, p, n);
        if (m->window.failed) {
                m->rc = error_nomem(m->r->err);
                return 1;
        }
        return m->window.n >= WINDOW ? pass_on(m, true) : 0;
}

static int take_whole(void *ctx, const void *p, size_t n)
{
        struct moving *m = ctx;
        buf_put(&m->window, p, n);
        if (m->window.failed)
                m->rc = error_nomem(m->r->err);
        return m->rc;
}

/* ---- files ---- */

static int begin_file(struct moving *m, const char *name)
{
        int rc = backend_incoming_file(m->r->in, name, m->r->err);
        if (rc == 0 && hash_sha256_init(&m->sha))
                rc = error_nomem(m->r->err);
        buf_clear(&m->window);
        m->masked = 0;
        m->rc = 0;
        return rc;
}

static int end_file(struct moving *m, int rc, char hex[SHA256_HEX])
{
        unsigned char sum[SHA256_SIZE];
        hash_sha256_finish(&m->sha, sum);
        hash_hex(sum, sizeof sum, hex);
        rc = m->rc ? m->rc : rc;
        return rc ? rc : backend_incoming_file_end(m->r->in, m->r->err);
}

/* Hands the bytes of a file to `sink`. Where that stops, it has said why in m->r->err. */
static int send_file(struct moving *m, struct backend_bundle *b, size_t i, steno_sink sink)
{
        struct steno_error why = {0};
        int rc = backend_bundle_send(b, i, sink, m, &why);
        if (rc && !m->rc && m->r->err)
                *m->r->err = why;
        return m->rc ? m->rc : rc;
}

static bool ends_with(const char *name, const char *end)
{
        size_t n = strlen(name), k = strlen(end);
        return n >= k && strcmp(name + n - k, end) == 0;
}

/* JSON that fits into memory, string by string; 0: it is none. */
static int mask_document(struct moving *m, bool token)
{
        struct json j;
        int rc;
        if (token)
                return secrets_mask_token(m->r->rules, m->window.p, m->window.n, m->r->err);
        json_init(&j);
        rc = json_parse(&j, m->window.p, m->window.n, NULL, NULL);
        rc = rc == 0 ? secrets_mask_json(m->r->rules, &j, 0, m->window.p, NULL, m->r->err)
             : rc == STENO_ENOMEM
                 ? error_nomem(m->r->err)
                 : secrets_mask_text(m->r->rules, m->window.p, m->window.n, false, NULL, m->r->err);
        json_release(&j);
        return rc;
}

static int note_hash(struct moving *m, const char *old, const char *new)
{
        buf_put(&m->hashes, old, SHA256_HEX - 1);
        buf_put(&m->hashes, new, SHA256_HEX - 1);
        return m->hashes.failed ? error_nomem(m->r->err) : 0;
}

/* A large token, which is named by its bytes. */
static int move_part(struct moving *m, struct backend_bundle *b, size_t i)
{
        const struct bundle_entry *e = &backend_bundle_view(b)->entries[i];
        char hex[SHA256_HEX], name[200];
        buf_clear(&m->window);
        m->rc = 0;
        int rc = send_file(m, b, i, take_whole);
        int found = rc ? rc : mask_document(m, true);
        if (found < 0)
                return found;
        if (hash_sha256_hex(m->window.p ? m->window.p : "", m->window.n, hex))
                return error_nomem(m->r->err);
        snprintf(name, sizeof name, "artifacts/parts/%s", hex);
        rc = backend_incoming_file(m->r->in, name, m->r->err);
        if (rc == 0 && m->window.n)
                rc = backend_incoming_write(m->r->in, m->window.p, m->window.n, m->r->err);
        if (rc == 0)
                rc = backend_incoming_file_end(m->r->in, m->r->err);
        note_place(m->r, m->conv, e->name, 0, (uint64_t)found);
        return rc || !found ? rc : note_hash(m, e->sha256, hex);
}

static int move_output(struct moving *m, struct backend_bundle *b, size_t i)
{
        const struct bundle_entry *e = &backend_bundle_view(b)->entries[i];
        bool whole = e->size <= WHOLE_MAX && ends_with(e->name, ".json");
        char hex[SHA256_HEX];
        int rc = begin_file(m, e->name);
        if (rc)
                return rc;
        rc = send_file(m, b, i, whole ? take_whole : take_text);
        if (rc == 0 && whole) {
                int found = mask_document(m, false);
                m->masked = found > 0 ? (uint64_t)found : 0;
                rc = found < 0 ? found : write_out(m, m->window.p ? m->window.p : "", m->window.n);
        } else if (rc == 0) {
                rc = pass_on(m, false);
        }
        rc = end_file(m, rc, hex);
        if (rc || !m->masked)
                return rc;
        note_place(m->r, m->conv, e->name, 0, m->masked);
        return note_hash(m, e->sha256, hex);
}

/* ---- records ---- */

static bool is_hex(const char *p)
{
        for (size_t i = 0; i < SHA256_HEX - 1; i++)
                if (!strchr("0123456789abcdef", p[i]) || !p[i])
                        return false;
        return true;
}

/* Old hashes of what has other bytes now. True: there was one. */
static bool swap_hashes(struct moving *m, char *p, size_t n)
{
        bool any = false;
        const size_t len = SHA256_HEX - 1;
        if (!m->hashes.n || n < len + 2)
                return false;
        for (char *at = p; (at = memchr(at, '"', (size_t)(p + n - at)));) {
                at++;
                if ((size_t)(p + n - at) <= len || at[len] != '"' || !is_hex(at))
                        continue;
                for (size_t i = 0; i < m->hashes.n; i += 2 * len)
                        if (memcmp(m->hashes.p + i, at, len) == 0) {
                                memcpy(at, m->hashes.p + i + len, len);
                                any = true;
                                break;
                        }
        }
        return any;
}

/* The hash of the message as it came would confirm a guess. */
static void blank_hash(char *x, size_t n)
{
        static const char SHA[] = "\"sha\":\"", SOURCE[] = "\"source\":\"";
        char *at = memmem(x, n, SHA, sizeof SHA - 1);
        if (at && (size_t)(x + n - at) > sizeof SHA - 1 + SHA256_HEX && is_hex(at + sizeof SHA - 1))
                memcpy(at + sizeof SHA - 1, NO_HASH, SHA256_HEX - 1);
        at = memmem(x, n, SOURCE, sizeof SOURCE - 1);
        if (at && (size_t)(x + n - at) > sizeof SOURCE - 1 + 17)
                memcpy(at + sizeof SOURCE - 1, NO_HASH, 16);
}

/* Names that lead from one record or file to another; they are not words. */
static bool is_link(struct str key)
{
        static const char *const NAMES[] = {"id", "tool_call_id", "call_id", "tool_use_id",
            "toolCallId", "callID", "role", "type", "ref", "signature", "thoughtSignature",
            "encrypted_content", "sha256"};
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                if (str_is(key, NAMES[i]))
                        return true;
        return false;
}

/* Records and the lines of the list of outputs end with their checksum. */
static void sum_line(char *line, size_t n)
{
        char sum[9];
        if (n < CRC_END || memcmp(line + n - CRC_END, ",\"crc\":\"", 8) != 0)
                return;
        snprintf(sum, sizeof sum, "%08x", hash_crc32c(0, line, n - CRC_END));
        memcpy(line + n - 10, sum, 8);
}

/* One line of the log in the window, without its line feed. */
static int move_record(struct moving *m, char *line, size_t n, struct buf *out)
{
        struct record rec;
        struct json j;
        if (!record_read(str_span(line, n), &rec))
                return error_set(m->r->err, STENO_ECORRUPT, "a record cannot be read");
        char *x = line + (rec.x.p - line), *msg = line + (rec.m.p - line);
        bool swapped = swap_hashes(m, x, rec.x.n);
        swapped |= swap_hashes(m, msg, rec.m.n);
        json_init(&j);
        int rc = json_parse(&j, msg, rec.m.n, NULL, m->r->err);
        int found = rc ? rc : secrets_mask_json(m->r->rules, &j, 0, msg, is_link, m->r->err);
        json_release(&j);
        if (found < 0)
                return found;
        if (found || swapped)
                blank_hash(x, rec.x.n);
        note_place(m->r, m->conv, "messages.jsonl", rec.seq, (uint64_t)found);
        sum_line(line, n);
        buf_put(out, line, n);
        buf_putc(out, '\n');
        return out->failed ? error_nomem(m->r->err) : 0;
}

/* Whole lines of the window. */
static int move_lines(struct moving *m)
{
        size_t at = 0;
        int rc = 0;
        struct buf out;
        buf_init(&out, 0);
        while (rc == 0 && at < m->window.n) {
                char *feed = memchr(m->window.p + at, '\n', m->window.n - at);
                if (!feed)
                        break;
                rc = move_record(m, m->window.p + at, (size_t)(feed - m->window.p) - at, &out);
                at = (size_t)(feed - m->window.p) + 1;
        }
        if (rc == 0 && out.n)
                rc = write_out(m, out.p, out.n);
        buf_release(&out);
        buf_drop_front(&m->window, at);
        return rc;
}

static int take_lines(void *ctx, const void *p, size_t n)
{
        struct moving *m = ctx;
        if (take_whole(ctx, p, n))
                return 1;
        if (m->window.n < WINDOW / 4)
                return 0;
        m->rc = move_lines(m);
        return m->rc != 0;
}

static int move_log(struct moving *m, struct backend_bundle *b, size_t i)
{
        char hex[SHA256_HEX];
        int rc = begin_file(m, "messages.jsonl");
        if (rc)
                return rc;
        rc = send_file(m, b, i, take_lines);
        if (rc == 0)
                rc = move_lines(m);
        return end_file(m, rc, hex);
}

/* ---- what is small ---- */

static bool is_name(struct str key)
{
        static const char *const NAMES[] = {"id", "uid", "project", "createdAt", "origin", "sha256",
            "kind", "name", "state", "created", "deleted", "mime"};
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                if (str_is(key, NAMES[i]))
                        return true;
        return false;
}

/* meta.json, or the list of outputs, which is lines of JSON. */
static int move_small(struct moving *m, struct backend_bundle *b, size_t i)
{
        const struct bundle_entry *e = &backend_bundle_view(b)->entries[i];
        char hex[SHA256_HEX];
        struct json j;
        int rc = begin_file(m, e->name);
        if (rc)
                return rc;
        rc = send_file(m, b, i, take_whole);
        json_init(&j);
        for (size_t at = 0; rc == 0 && at < m->window.n;) {
                char *line = m->window.p + at;
                char *feed = memchr(line, '\n', m->window.n - at);
                size_t n = feed ? (size_t)(feed - line) : m->window.n - at;
                if (strcmp(e->name, "meta.json") == 0)
                        n = m->window.n - at;
                swap_hashes(m, line, n);
                rc = json_parse(&j, line, n, NULL, NULL) == STENO_ENOMEM ? error_nomem(m->r->err)
                                                                         : 0;
                int found =
                    rc ? rc : secrets_mask_json(m->r->rules, &j, 0, line, is_name, m->r->err);
                rc = found < 0 ? found : 0;
                m->masked += found > 0 ? (uint64_t)found : 0;
                sum_line(line, n);
                at += n + 1;
        }
        json_release(&j);
        if (rc == 0)
                rc = write_out(m, m->window.p ? m->window.p : "", m->window.n);
        rc = end_file(m, rc, hex);
        if (rc == 0)
                note_place(m->r, m->conv, e->name, 0, m->masked);
        return rc;
}

/* Events that say how a run went, and quote nobody. */
static bool is_kept(const struct json *j, json_ref type)
{
        static const enum steno_event KEPT[] = {STENO_EVENT_REQUEST, STENO_EVENT_DISPATCH,
            STENO_EVENT_OUTPUT, STENO_EVENT_RUN_STARTED, STENO_EVENT_RUN_FINISHED};
        for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++)
                if (event_is(json_inner(j, type), KEPT[i]))
                        return true;
        return json_is(j, type, "run");
}

/* One line of a journal, as a purge would leave it. */
static int move_event(struct moving *m, struct str line, struct buf *out)
{
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, line.p, line.n, NULL, NULL);
        struct str data = rc ? STR("") : json_raw(&j, json_get(&j, 0, "data"));
        if (rc == 0 && data.n && !is_kept(&j, json_get(&j, 0, "type"))) {
                size_t from = out->n;
                buf_put(out, line.p, (size_t)(data.p - line.p));
                buf_puts(out, "{\"purged\":true}");
                if (!out->failed)
                        buf_printf(out, ",\"crc\":\"%08x\"}\n",
                            hash_crc32c(0, out->p + from, out->n - from));
        } else if (rc == 0) {
                buf_put_str(out, line);
                buf_putc(out, '\n');
        }
        json_release(&j);
        return rc == STENO_ENOMEM || out->failed ? error_nomem(m->r->err) : 0;
}

static int move_journal(struct moving *m, struct backend_bundle *b, size_t i)
{
        const struct bundle_entry *e = &backend_bundle_view(b)->entries[i];
        char hex[SHA256_HEX];
        struct buf text;
        int rc = begin_file(m, e->name);
        if (rc)
                return rc;
        buf_init(&text, 0);
        rc = send_file(m, b, i, take_whole);
        for (size_t at = 0; rc == 0 && at < m->window.n;) {
                const char *feed = memchr(m->window.p + at, '\n', m->window.n - at);
                size_t n = feed ? (size_t)(feed - m->window.p) - at : m->window.n - at;
                rc = move_event(m, str_span(m->window.p + at, n), &text);
                at += n + 1;
        }
        if (rc == 0 && text.n)
                rc = write_out(m, text.p, text.n);
        buf_release(&text);
        return end_file(m, rc, hex);
}

/* ---- a conversation ---- */

static bool is_bytes(const char *name)
{
        return strncmp(name, "artifacts/", 10) == 0 && strchr(name + 10, '/');
}

/* Outputs and parts first: records have their hashes. */
static int move_all(struct moving *m, struct backend_bundle *b)
{
        const struct bundle_view *v = backend_bundle_view(b);
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < v->count; i++)
                if (is_bytes(v->entries[i].name))
                        rc = strncmp(v->entries[i].name, "artifacts/parts/", 16) == 0
                                 ? move_part(m, b, i)
                                 : move_output(m, b, i);
        for (size_t i = 0; rc == 0 && i < v->count; i++) {
                const char *name = v->entries[i].name;
                if (strcmp(name, "messages.jsonl") == 0)
                        rc = move_log(m, b, i);
                else if (strncmp(name, "runs/", 5) == 0)
                        rc = move_journal(m, b, i);
                else if (!is_bytes(name) && strncmp(name, "seal/", 5) != 0)
                        rc = move_small(m, b, i);
        }
        return rc;
}

int redact_conv(struct redact *r, struct backend_conv *conv, const struct bundle_options *opt,
    struct backend_conv **out)
{
        struct moving m = {.r = r, .conv = conv};
        struct backend_bundle *b = NULL;
        int rc = r->in ? 0 : backend_incoming_open(r->store->backend, &r->in, r->err);
        if (rc == 0)
                rc = backend_bundle_prepare(conv, opt, &b, r->err);
        if (rc)
                return rc;
        buf_init(&m.window, 0);
        buf_init(&m.hashes, 0);
        rc = backend_incoming_begin(r->in, r->number++, r->err);
        if (rc == 0)
                rc = move_all(&m, b);
        backend_bundle_release(b);
        buf_release(&m.window);
        buf_release(&m.hashes);
        if (rc == 0)
                rc = backend_incoming_look(r->in, str_of(backend_conv_project(conv)),
                    str_of(backend_conv_id(conv)), out, r->err);
        return rc;
}
