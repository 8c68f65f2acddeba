/*
 * import_target.c - one conversation that an import fills.
 *
 * For each item it is asked whether the log has its id. If not, it is new. If so, a hash of the
 * entry (about.source) tells whether it is the same; another one is a new version, which supersedes
 * the first under an id that is made of both, so that reading both again changes nothing.
 *
 * Asking the log costs a look into a file; a Bloom filter of fixed size answers for nearly all that
 * are not there.
 */
#include "api/importing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/title.h"
#include "format/format.h"

#define BLOOM_BITS ((size_t)1 << 26) /* 8 MiB: 64 bits an entry for a million of them */
/* Bits of an entry. Each wrong "maybe" costs a walk over what the log has gained of late, so there
 * have to be few of them: with this, about three in a million entries. */
#define BLOOM_EACH 6
#define BLOOM_FROM (256 * KIB) /* sources that are smaller ask the log */
#define PENDING_BYTES (4 * MIB)
#define SOURCE_HEX 17
#define TITLE_CHARS 80

/* ---- ids ---- */

/* "imp_" and 26 digits of base 32: 130 bits of a SHA-256. */
static int make_id(
    const char *tool, struct str session, uint64_t ordinal, struct str entry, char out[32])
{
        static const char DIGITS[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        unsigned char sum[SHA256_SIZE];
        struct sha256 s;
        char number[24];
        if (hash_sha256_init(&s))
                return STENO_ENOMEM;
        int n = snprintf(number, sizeof number, "%llu", (unsigned long long)ordinal);
        hash_sha256_update(&s, tool, strlen(tool) + 1);
        hash_sha256_update(&s, session.p, session.n);
        hash_sha256_update(&s, "", 1);
        hash_sha256_update(&s, number, (size_t)n + 1);
        hash_sha256_update(&s, entry.p, entry.n);
        hash_sha256_finish(&s, sum);
        memcpy(out, "imp_", 4);
        for (unsigned i = 0; i < 26; i++) {
                unsigned bit = i * 5, byte = bit / 8;
                unsigned pair = (unsigned)sum[byte] << 8 | sum[byte + 1];
                out[4 + i] = DIGITS[pair >> (11 - bit % 8) & 31];
        }
        out[30] = '\0';
        return 0;
}

/* The bits of a hash are in one line of the processor's cache, because the table is larger than the
 * cache: that line, and the words of it in turn. */
static uint64_t *bloom_line(const struct import_target *t, uint64_t hash)
{
        return t->bloom + (hash & (t->bloom_bits - 1)) / 512 * 8;
}

static uint64_t bloom_mix(uint64_t hash)
{
        return (hash ^ hash >> 32) * 0x9E3779B97F4A7C15u;
}

static void bloom_add(struct import_target *t, uint64_t hash)
{
        if (!t->bloom)
                return;
        uint64_t *line = bloom_line(t, hash), mix = bloom_mix(hash);
        for (unsigned i = 0; i < BLOOM_EACH; i++, mix >>= 9)
                line[mix >> 10 & 7] |= UINT64_C(1) << (mix >> 13 & 63);
}

/* Fetches what bloom_has() will look at, while the caller does something else. */
static void bloom_fetch(const struct import_target *t, uint64_t hash)
{
        if (t->bloom)
                __builtin_prefetch(bloom_line(t, hash));
}

static bool bloom_has(const struct import_target *t, uint64_t hash)
{
        bool all = true;
        if (!t->bloom)
                return true;
        uint64_t *line = bloom_line(t, hash), mix = bloom_mix(hash);
        for (unsigned i = 0; i < BLOOM_EACH; i++, mix >>= 9)
                all = all && line[mix >> 10 & 7] >> (mix >> 13 & 63) & 1;
        return all;
}

static int note_id(void *ctx, const struct backend_record *r)
{
        struct import_target *t = ctx;
        if (r->damaged)
                return 0;
        if (!memchr(r->rec.id.p, '\\', r->rec.id.n)) {
                bloom_add(t, hash_64(r->rec.id.p, r->rec.id.n));
                return 0;
        }
        struct buf id;
        buf_init(&id, 0);
        json_unescape(r->rec.id, &id, NULL);
        bloom_add(t, hash_64(id.p, id.n));
        int rc = id.failed;
        buf_release(&id);
        return rc;
}

static int fill_bloom(struct import_target *t, uint64_t expected)
{
        if (expected < BLOOM_FROM)
                return 0;
        t->bloom_bits = BLOOM_BITS;
        while (t->bloom_bits > 1024 && t->bloom_bits / 2 > expected)
                t->bloom_bits /= 2;
        t->bloom = calloc(t->bloom_bits / 64, sizeof *t->bloom);
        if (!t->bloom)
                return error_nomem(t->run->err);
        return t->conv ? backend_read(t->conv->backend, 0, note_id, t, t->run->err) : 0;
}

/* ---- looking ---- */

struct found {
        bool there;
        bool same;
        uint64_t seq;
        size_t calls;
        struct str source;
        struct arena *arena;
};

static int look(void *ctx, const struct backend_record *r)
{
        struct found *f = ctx;
        struct about about;
        f->there = true;
        f->seq = r->rec.seq;
        if (about_read(r->rec.x, f->arena, &about, NULL) == STENO_ENOMEM)
                return STENO_ENOMEM;
        f->calls = about.call_count;
        f->same = str_eq(about.source, f->source);
        return 0;
}

static int look_in_log(struct import_target *t, struct str id, struct found *f)
{
        struct arena arena;
        if (!t->conv)
                return 0;
        arena_init(&arena);
        f->arena = &arena;
        struct steno_error why = {0};
        int rc = backend_read_id(t->conv->backend, id, look, f, &why);
        arena_release(&arena);
        if (rc == STENO_ENOTFOUND)
                return 0;
        if (rc && t->run->err)
                *t->run->err = why;
        return rc;
}

static bool is_pending(const struct import_target *t, struct str id, uint64_t hash)
{
        for (size_t i = 0; i < t->pending_count; i++)
                if (t->pending_hash[i] == hash && str_eq(t->pending[i].id, id))
                        return true;
        return false;
}

/* ---- storing ---- */

static int create(struct import_target *t, struct str at)
{
        char now[TIME_TEXT];
        struct buf meta;
        struct backend_conv *backend;
        struct steno_store *store = t->run->store;
        struct str project;
        int rc = api_store_project(t->run->project, &project, t->run->err);
        if (rc)
                return rc;
        buf_init(&meta, META_MAX);
        struct jsonw w = jsonw_to(&meta);
        time_format(store->env->now(store->env), now);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", t->id);
        jsonw_field_str(&w, "project", project);
        jsonw_field_str(&w, "createdAt", at.n ? at : str_of(now));
        jsonw_object_end(&w);
        buf_putc(&meta, '\n');
        rc = buf_check(&meta, t->run->err);
        if (rc == 0)
                rc = backend_conv_create(
                    store->backend, project, str_of(t->id), buf_str(&meta), &backend, t->run->err);
        if (rc == 0)
                rc = api_conv_wrap(store, backend, &t->conv, t->run->err);
        buf_release(&meta);
        return rc;
}

/* What its format does not take is kept as it stands. */
static int keep_as_other(struct import_target *t, struct append_item *item)
{
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "system");
        jsonw_field_cstr(&w, "content", "");
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_field_raw(&w, "entry", item->json);
        jsonw_object_end(&w);
        item->format = "openai";
        item->json = arena_dup(&t->pending_arena, buf_str(&b));
        int rc = b.failed || !item->json.p ? error_nomem(t->run->err) : 0;
        buf_release(&b);
        t->run->counts.other++;
        return rc;
}

/* Stores some items; those that are refused are kept as others, and those that have to come alone
 * do. */
static int store(struct import_target *t, struct append_item *items, size_t count)
{
        while (count) {
                struct steno_error why = {0};
                size_t bad = 0;
                bool alone = false;
                int rc = api_append_items(t->conv, items, count, &bad, &alone, &why);
                if (rc == 0)
                        return 0;
                if (alone) {
                        rc = bad ? store(t, items, bad) : 0;
                        if (rc == 0)
                                rc = store(t, items + bad, 1);
                        if (rc)
                                return rc;
                        items += bad + 1;
                        count -= bad + 1;
                        continue;
                }
                bool refused = (rc == STENO_EPROTO || rc == STENO_ELIMIT) && bad < count &&
                               strcmp(items[bad].format, "openai") != 0;
                if (!refused) {
                        if (t->run->err)
                                *t->run->err = why;
                        return rc;
                }
                rc = keep_as_other(t, &items[bad]);
                if (rc)
                        return rc;
        }
        return 0;
}

int import_target_flush(struct import_target *t)
{
        int rc = 0;
        if (!t->pending_count)
                return 0;
        if (!t->conv) {
                rc = create(t, t->pending[0].at);
                t->state = 'n';
        } else if (!t->state) {
                t->state = 'g';
        }
        if (rc == 0)
                rc = store(t, t->pending, t->pending_count);
        if (rc == 0 && t->compared) {
                /* What is new is now the end of what is there. */
                rc = steno_conv_last_seq(t->conv, &t->before.seq, t->run->err);
                t->matched = t->before.seq;
        }
        t->pending_count = t->pending_bytes = 0;
        arena_reset(&t->pending_arena);
        return rc;
}

static int add_pending(struct import_target *t, const struct append_item *item, uint64_t hash)
{
        struct append_item *to = &t->pending[t->pending_count];
        struct arena *a = &t->pending_arena;
        *to = *item;
        to->json = arena_dup(a, item->json);
        to->id = arena_dup(a, item->id);
        to->at = arena_dup(a, item->at);
        to->source = arena_dup(a, item->source);
        if (a->failed)
                return error_nomem(t->run->err);
        json_single_line((char *)(uintptr_t)to->json.p, to->json.n);
        t->pending_hash[t->pending_count++] = hash;
        t->pending_bytes += item->json.n;
        bloom_add(t, hash);
        return t->pending_count == IMPORT_PENDING_MAX || t->pending_bytes >= PENDING_BYTES
                   ? import_target_flush(t)
                   : 0;
}

/* ---- forks ---- */

static char *fork_name(const struct import_target *t, unsigned number)
{
        char *name = NULL;
        return asprintf(&name, "%s-%.190s-r%u", t->tool, t->session, number) < 0 ? NULL : name;
}

/* The source was rewritten behind `matched`: what follows goes into a fork. */
static int fork_here(struct import_target *t)
{
        struct steno_fork_options opt = {.size = sizeof opt, .at_seq = t->matched};
        struct steno_conv *fork = NULL;
        struct buf patch;
        char *name = NULL;
        int rc = 0;
        do {
                free(name);
                name = fork_name(t, ++t->forks + 1);
                opt.id = name;
                if (!name)
                        return error_nomem(t->run->err);
                rc = t->matched ? steno_fork(t->conv, &opt, &fork, t->run->err)
                                : steno_conv_create(t->run->store, t->run->project, name, NULL,
                                      &fork, t->run->err);
        } while (rc == STENO_ECONFLICT && t->forks < 10000);
        if (rc) {
                free(name);
                return rc;
        }
        buf_init(&patch, 0);
        struct jsonw w = jsonw_to(&patch);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "importedNext", name);
        jsonw_object_end(&w);
        const char *text = buf_cstr(&patch);
        rc = text ? steno_conv_set_meta(t->conv, text, t->run->err) : error_nomem(t->run->err);
        buf_release(&patch);
        steno_conv_close(t->conv);
        t->conv = fork;
        free(t->id);
        t->id = name;
        if (!t->matched) { /* it has nothing of the other, the title neither */
                free(t->title);
                t->title = NULL;
                t->titled = false;
        }
        t->compared = false;
        t->state = 'f';
        t->run->counts.forks++;
        return rc;
}

/* ---- items ---- */

/* Another version of what is there. */
static int take_version(struct import_target *t, struct append_item *item)
{
        char version[32];
        struct found f = {.source = item->source};
        if (make_id("version", item->id, 0, item->source, version))
                return error_nomem(t->run->err);
        int rc = import_target_flush(t);
        if (rc == 0 && bloom_has(t, hash_64(version, strlen(version))))
                rc = look_in_log(t, str_of(version), &f);
        if (rc || f.there)
                return rc;
        item->target = item->id;
        item->id = str_of(version);
        bloom_add(t, hash_64(version, strlen(version)));
        if (!t->state)
                t->state = 'g';
        size_t bad;
        bool alone = false;
        struct steno_error why = {0};
        char *line = strndup(item->json.p, item->json.n);
        if (!line)
                return error_nomem(t->run->err);
        json_single_line(line, item->json.n);
        item->json.p = line;
        rc = api_append_items(t->conv, item, 1, &bad, &alone, &why);
        free(line);
        if (rc == 0) {
                t->run->counts.replaced++;
                return t->compared ? steno_conv_last_seq(t->conv, &t->before.seq, t->run->err) : 0;
        }
        if (rc == STENO_ENOTFOUND || rc == STENO_EPROTO) { /* somebody has deleted it here */
                t->run->counts.skipped++;
                return 0;
        }
        if (t->run->err)
                *t->run->err = why;
        return rc;
}

static void count(struct import_target *t, const struct foreign_item *item)
{
        struct import_counts *c = &t->run->counts;
        c->calls += item->calls;
        c->results += item->results;
        c->other += item->other;
        c->messages += !item->other && !item->beside && !(item->results && !item->calls);
}

/* The first thing that a person said is a title for who has none. */
static void guess_title(struct import_target *t, const struct foreign_item *item)
{
        struct json j;
        struct buf text;
        if (t->title || item->other || item->results ||
            !memmem(item->json.p, item->json.n, "user", 4))
                return;
        json_init(&j);
        buf_init(&text, 0);
        if (json_parse(&j, item->json.p, item->json.n, NULL, NULL) == 0 &&
            json_is(&j, json_get(&j, 0, "role"), "user")) {
                json_ref content = json_get(&j, 0, "content");
                if (content == JSON_NONE)
                        content = json_get(&j, 0, "parts");
                if (json_type(&j, content) == JSON_ARRAY)
                        content = json_get(&j, json_child(&j, content), "text");
                json_string(&j, content, &text, NULL);
        }
        size_t n = 0, chars = 0;
        while (n < text.n && chars < TITLE_CHARS && text.p[n] != '\n') {
                if (text.p[n] == '\0')
                        text.p[n] = ' ';
                n++;
                while (n < text.n && ((unsigned char)text.p[n] & 0xC0) == 0x80)
                        n++;
                chars++;
        }
        if (n && text.p[0] != '<')
                t->title = strndup(text.p, n);
        json_release(&j);
        buf_release(&text);
}

/*
 * A recording cannot say which of our outputs is its own: such a record would refer to nothing, or
 * to an output that another message has, and a check would report a loss. The message goes without
 * the member, with all of it as its entry.
 */
static int without_ref(
    const struct foreign_item *item, struct buf *out, struct str *json, struct steno_error *err)
{
        static const char *const names[] = {"ref", NULL};
        struct json_edits edits;
        struct json j;
        int rc = 0;
        if (item->other || !memmem(item->json.p, item->json.n, "\"ref\"", 5))
                return 0;
        json_init(&j);
        json_edits_init(&edits);
        if (json_parse(&j, item->json.p, item->json.n, NULL, NULL) == 0 &&
            json_get(&j, 0, "ref") != JSON_NONE) {
                json_edit_remove_members(&edits, &j, 0, names);
                rc = json_edits_apply(&edits, &j, 0, out);
                if (rc == 0 && out->n > 2 && json_get(&j, 0, "entry") == JSON_NONE) {
                        out->n--; /* its brace */
                        buf_puts(out, ",\"entry\":");
                        buf_put_str(out, item->json);
                        buf_putc(out, '}');
                }
                rc = rc || out->failed ? error_nomem(err) : 0;
                *json = buf_str(out);
        }
        json_edits_release(&edits);
        json_release(&j);
        return rc;
}

static int take(struct import_target *t, const struct foreign_item *item, struct str json)
{
        char made[32], source[SOURCE_HEX], at[TIME_TEXT];
        struct str entry = item->entry.n ? item->entry : item->json;
        struct append_item a = {.format = item->format, .json = json, .id = item->id};
        struct found f = {0};
        int64_t ms;
        uint64_t ordinal = item->beside ? 0 : t->entries++;
        if (!a.id.n || !id_is_legal(a.id, ID_MAX)) {
                if (make_id(t->tool, str_of(t->session), ordinal, entry, made))
                        return error_nomem(t->run->err);
                a.id = str_of(made);
        }
        uint64_t hash = hash_64(a.id.p, a.id.n);
        bloom_fetch(t, hash);
        snprintf(source, sizeof source, "%016llx", (unsigned long long)hash_64(entry.p, entry.n));
        a.source = f.source = str_of(source);
        if (item->at.n && time_parse(item->at.p, item->at.n, &ms)) {
                time_format(ms, at);
                a.at = str_of(at);
        }
        bool known = bloom_has(t, hash); /* what waits is in the filter, too */
        int rc = known && is_pending(t, a.id, hash) ? import_target_flush(t) : 0;
        if (rc == 0 && known)
                rc = look_in_log(t, a.id, &f);
        if (rc)
                return rc;
        if (f.there) {
                t->matched = f.seq > t->matched ? f.seq : t->matched;
                if (f.same || item->weak)
                        return 0;
                uint64_t replaced = t->run->counts.replaced;
                rc = take_version(t, &a);
                if (replaced != t->run->counts.replaced && item->calls > f.calls)
                        t->run->counts.calls += item->calls - f.calls;
                return rc;
        }
        if (!item->beside && t->compared && t->conv && !t->pending_count &&
            t->matched < t->before.seq) {
                rc = fork_here(t);
                if (rc)
                        return rc;
        }
        count(t, item);
        guess_title(t, item);
        return add_pending(t, &a, hash);
}

int import_target_take(struct import_target *t, const struct foreign_item *item)
{
        struct str json = item->json;
        struct buf other;
        buf_init(&other, 2 * MESSAGE_MAX + KIB);
        int rc = without_ref(item, &other, &json, t->run->err);
        if (rc == 0)
                rc = take(t, item, json);
        buf_release(&other);
        return rc;
}

/* ---- opening and closing ---- */

/* Reads what earlier imports remembered; *next is the fork to go on in, or NULL. */
static int recall(struct import_target *t, char **next)
{
        struct json j;
        char *meta = NULL;
        *next = NULL;
        int rc = steno_conv_meta(t->conv, &meta, t->run->err);
        if (rc)
                return rc;
        json_init(&j);
        if (json_parse(&j, meta, strlen(meta), NULL, NULL) == 0) {
                json_ref import = json_get(&j, 0, "import");
                struct str sha = json_inner(&j, json_get(&j, import, "sha256"));
                t->has_before = json_type(&j, import) == JSON_OBJECT;
                json_u64(&j, json_get(&j, import, "bytes"), &t->before.bytes);
                json_u64(&j, json_get(&j, import, "entries"), &t->before.entries);
                json_u64(&j, json_get(&j, import, "seq"), &t->before.seq);
                snprintf(t->before.sha256, sizeof t->before.sha256, "%.*s",
                    (int)(sha.n < 64 ? sha.n : 64), sha.p ? sha.p : "");
                t->title = title_dup(&j, 0);
                t->titled = t->title != NULL;
                *next = json_dup_string(&j, json_get(&j, 0, "importedNext"));
        }
        json_release(&j);
        steno_free(meta);
        return 0;
}

static int open_last_fork(struct import_target *t)
{
        char *next = NULL;
        int rc = 0;
        for (unsigned i = 0; i < 10000; i++) {
                struct steno_error why = {0};
                struct steno_conv *conv = NULL;
                rc = steno_conv_open(
                    t->run->store, t->run->project, next ? next : t->id, &conv, &why);
                if (rc == STENO_ENOTFOUND) {
                        rc = 0;
                        break;
                }
                if (rc) {
                        if (t->run->err)
                                *t->run->err = why;
                        break;
                }
                steno_conv_close(t->conv);
                t->conv = conv;
                if (next) {
                        free(t->id);
                        t->id = next;
                        t->forks++;
                }
                t->before = (struct import_memory){0};
                free(t->title);
                t->title = NULL;
                rc = recall(t, &next);
                if (rc || !next)
                        return rc;
        }
        free(next);
        return rc;
}

int import_target_open(struct import_target *t, struct import_run *run, const char *tool,
    const char *path, const struct foreign_session *s, uint64_t expected)
{
        *t = (struct import_target){.run = run, .tool = tool, .path = path};
        arena_init(&t->pending_arena);
        struct str id = s->id.n ? s->id : foreign_stem(path, strrchr(path, '.'));
        t->session = strndup(id.p, id.n);
        for (char *p = t->session; p && *p; p++)
                if ((unsigned char)*p < ' ' || *p == 127)
                        *p = '_';
        if (!t->session || asprintf(&t->id, "%s-%.200s", tool, t->session) < 0) {
                t->id = NULL;
                return error_nomem(run->err);
        }
        int rc = open_last_fork(t);
        return rc ? rc : fill_bloom(t, expected);
}

static void put_origin(
    struct jsonw *w, const struct import_target *t, const struct foreign_session *s)
{
        char parent[ID_MAX + 1];
        if (!s->parent.n || !s->origin)
                return;
        snprintf(parent, sizeof parent, "%s-%.*s", t->tool,
            (int)(s->parent.n < 200 ? s->parent.n : 200), s->parent.p);
        jsonw_field_cstr(w, "relation", s->origin);
        jsonw_field_cstr(w, "parent", parent);
        if (s->call.n)
                jsonw_field_str(w, "call", s->call);
        if (s->cut)
                jsonw_field_u64(w, "before", s->cut_ordinal);
}

static void put_known(struct jsonw *w, const char *key, struct str s)
{
        if (s.n)
                jsonw_field_str(w, key, s);
}

static int remember(struct import_target *t, const struct foreign_session *s,
    const struct import_memory *memory, uint64_t inode, uint64_t last)
{
        struct buf patch;
        buf_init(&patch, META_MAX);
        struct jsonw w = jsonw_to(&patch);
        struct str title = s->title.n && s->title.n < TITLE_MAX ? s->title : str_of(t->title);
        jsonw_object(&w);
        if (title.n && (!t->titled || s->title.n))
                jsonw_field_str(&w, "title", title);
        jsonw_key(&w, "import");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "tool", t->tool);
        put_known(&w, "version", s->version);
        jsonw_field_cstr(&w, "path", t->path);
        jsonw_field_u64(&w, "inode", inode);
        jsonw_field_u64(&w, "bytes", memory ? memory->bytes : 0);
        jsonw_field_cstr(&w, "sha256", memory ? memory->sha256 : "");
        jsonw_field_u64(&w, "entries", memory ? memory->entries : t->entries);
        jsonw_field_u64(&w, "seq", last);
        put_known(&w, "model", s->model);
        put_known(&w, "cwd", s->cwd);
        put_origin(&w, t, s);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        const char *text = buf_cstr(&patch);
        int rc = text ? steno_conv_set_meta(t->conv, text, t->run->err) : error_nomem(t->run->err);
        buf_release(&patch);
        return rc;
}

static void report(struct import_target *t, uint64_t last)
{
        struct buf *b = &t->run->changed;
        struct jsonw w = b->n ? jsonw_behind(b) : jsonw_to(b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "project", steno_conv_project(t->conv));
        jsonw_field_cstr(&w, "id", t->id);
        jsonw_field_cstr(&w, "tool", t->tool);
        jsonw_field_cstr(&w, "path", t->path);
        jsonw_field_cstr(&w, "state",
            t->state == 'n'   ? "new"
            : t->state == 'f' ? "forked"
                              : "grown");
        jsonw_field_u64(&w, "lastSeq", last);
        jsonw_object_end(&w);
}

int import_target_finish(struct import_target *t, const struct foreign_session *s,
    const struct import_memory *memory, uint64_t inode)
{
        uint64_t last = 0;
        int rc = import_target_flush(t);
        t->run->counts.conversations += t->conv != NULL;
        bool moved = memory && (memory->bytes != t->before.bytes ||
                                   strcmp(memory->sha256, t->before.sha256) != 0);
        if (rc || !t->conv || (!t->state && t->has_before && !moved))
                return rc;
        rc = steno_conv_last_seq(t->conv, &last, t->run->err);
        if (rc == 0)
                rc = remember(t, s, memory, inode, t->state ? last : t->before.seq);
        if (rc == 0 && t->state)
                report(t, last);
        return rc;
}

void import_target_release(struct import_target *t)
{
        steno_conv_close(t->conv);
        free(t->session);
        free(t->id);
        free(t->title);
        free(t->bloom);
        arena_release(&t->pending_arena);
}
