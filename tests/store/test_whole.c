/*
 * test_whole.c - what is done to whole conversations, on every kind of store: forks, purges,
 * bundles from each kind to each, words, seals; and what belongs to the store. The same tests run
 * on files, and on PostgreSQL by tests/store/postgres.test; none asks which it has.
 */
#include "api/api_store.h"
#include "base/buf.h"
#include "fixture.h"
#include "steno_copy.h"
#include "steno_disk.h"
#include "support/patience.h"

/* ---- help ---- */

#define USER(id, text) "{\"id\":\"" id "\",\"role\":\"user\",\"content\":\"" text "\"}"
#define CALL(id)                                                                                   \
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id                   \
        "\",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]}"

static int take(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

static void view(struct steno_conv *conv, struct buf *out)
{
        struct steno_view_options opt = {.size = sizeof opt, .format = "openai"};
        buf_clear(out);
        OK(steno_view(conv, &opt, take, out, NULL, &err));
        assert_non_null(buf_cstr(out));
}

/* An output of `lines` lines that answers a call. */
static void store_output(struct fixture *f, const char *call, int lines, char ref[64])
{
        struct steno_output_options opt = {
            .size = sizeof opt, .tool = "t", .call_id = call, .terminal = true};
        struct steno_output *o = NULL;
        struct buf all;
        char *json = NULL;
        buf_init(&all, 0);
        for (int i = 0; i < lines; i++)
                buf_printf(&all, "%s says line %d\n", call, i);
        OK(steno_output_begin(f->conv, &opt, &o, &err));
        OK(steno_output_write(o, all.p, all.n, &err));
        OK(steno_output_finish(o, NULL, &json, &err));
        if (ref)
                snprintf(ref, 64, "%s", steno_output_ref(o));
        steno_free(json);
        steno_output_free(o);
        buf_release(&all);
}

/* Everything that a conversation can have: batches, keys, odd ids, amendments, large values,
 * outputs, a run. */
static void fill(struct fixture *f)
{
        struct steno_append_options key = {.size = sizeof key, .idempotency_key = "key \"1\""};
        struct steno_run *run = NULL;
        struct buf large;
        fixture_append(f, "[" USER("a", "apple") "," USER("b/\\u00e9\\\"", "banana") "]");
        OK(steno_append(f->conv, USER("k", "kiwi"), strlen(USER("k", "kiwi")), &key, NULL, &err));
        fixture_append(f, CALL("call1"));
        store_output(f, "call1", 3000, NULL);
        buf_init(&large, 0);
        buf_puts(&large, "{\"id\":\"big\",\"role\":\"user\",\"content\":\"");
        for (int i = 0; i < 30000; i++)
                buf_printf(&large, "word%d ", i);
        buf_puts(&large, "\"}");
        OK(steno_append(f->conv, large.p, large.n, NULL, NULL, &err));
        buf_release(&large);
        OK(steno_amend(f->conv, "delete", "a", NULL, 0, NULL, NULL, &err));
        static const char NEW[] = "{\"role\":\"user\",\"content\":\"cherry\"}";
        OK(steno_amend(f->conv, "supersede", "k", NEW, sizeof NEW - 1, NULL, NULL, &err));
        OK(steno_run_begin(f->conv, "run one", "chat", &run, &err));
        static const char SAID[] = "{\"text\":\"melon\"}", END[] = "{\"reason\":\"stop\"}";
        OK(steno_run_event(run, "text_delta", SAID, sizeof SAID - 1, STENO_FULL, NULL, &err));
        OK(steno_run_event(run, "run_finished", END, sizeof END - 1, STENO_FULL, NULL, &err));
        steno_run_close(run);
}

static void export_all(struct steno_store *store, struct buf *out)
{
        buf_clear(out);
        OK(steno_export(store, NULL, NULL, 0, NULL, take, out, NULL, &err));
}

struct reading {
        const struct buf *from;
        size_t at;
};

static long give(void *ctx, void *p, size_t n)
{
        struct reading *r = ctx;
        size_t left = r->from->n - r->at;
        n = n < left ? n : left;
        memcpy(p, r->from->p + r->at, n);
        r->at += n;
        return (long)n;
}

static int import_all(struct steno_store *store, const struct buf *bundle,
    const struct steno_import_options *opt, struct steno_error *err)
{
        struct reading r = {bundle, 0};
        return steno_import_bundle(store, opt, give, &r, NULL, err);
}

static int stop_at_finding(void *ctx, const char *json)
{
        (void)ctx;
        fail_msg("%s", json);
        return 1;
}

static void check(struct steno_store *store)
{
        assert_int_equal(steno_check(store, NULL, stop_at_finding, NULL, NULL), 0);
}

/* Adds what one page has to *n; `cursor`: where the next one begins, "" after the last. */
static int page(struct steno_store *store, struct steno_search_options *opt, char cursor[128],
    int *n, struct steno_error *why)
{
        char *json = NULL;
        int rc = steno_search(store, opt, &json, why);
        if (rc)
                return rc;
        for (const char *p = json; (p = strstr(p, "\"seq\":")); p++)
                ++*n;
        const char *next = strstr(json, "\"next_cursor\":\"");
        if (!next || sscanf(next + 15, "%127[^\"]", cursor) != 1)
                cursor[0] = '\0';
        steno_free(json);
        opt->cursor = cursor;
        return 0;
}

/* How many places; -1: fails. A page with an expression ends early when it takes long. */
static int places(struct steno_store *store, const char *query)
{
        struct steno_search_options opt = {
            .size = sizeof opt, .query = query, .catch_up_ms = PATIENCE_MS, .limit = 200};
        struct steno_error why = {0};
        char cursor[128];
        int n = 0;
        do {
                if (page(store, &opt, cursor, &n, &why)) {
                        print_message("# %s: %s\n", query, why.msg);
                        return -1;
                }
        } while (cursor[0]);
        return n;
}

/* ---- forks ---- */

static void a_fork_has_the_history_and_its_outputs(void **state)
{
        struct fixture *f = *state;
        struct steno_fork_options opt = {.size = sizeof opt, .id = "fork"};
        struct steno_conv *fork = NULL;
        struct buf of_origin, of_fork;
        char *meta = NULL;
        buf_init(&of_origin, 0);
        buf_init(&of_fork, 0);
        fill(f);
        OK(steno_fork(f->conv, &opt, &fork, &err));
        view(f->conv, &of_origin);
        view(fork, &of_fork);
        assert_string_equal(buf_cstr(&of_origin), buf_cstr(&of_fork));
        OK(steno_conv_meta(fork, &meta, &err));
        assert_non_null(strstr(meta, "\"origin\":{\"project\":\"default\",\"conversation\":\"c\""));
        steno_free(meta);
        /* Each is independent of the other. */
        OK(steno_append(
            fork, USER("z", "zucchini"), strlen(USER("z", "zucchini")), NULL, NULL, &err));
        view(f->conv, &of_fork);
        assert_string_equal(buf_cstr(&of_origin), buf_cstr(&of_fork));
        steno_conv_close(fork);
        assert_int_equal(steno_fork(f->conv, &opt, &fork, NULL), STENO_ECONFLICT);
        check(f->store);
        buf_release(&of_origin);
        buf_release(&of_fork);
}

static void a_fork_is_cut_where_it_was_asked_for(void **state)
{
        struct fixture *f = *state;
        struct steno_conv *fork = NULL;
        struct steno_error why = {0};
        uint64_t seq = 0;
        fixture_append(f, USER("a", "1"));
        fixture_append(f, "[" USER("b", "2") "," USER("c", "3") "]");
        fixture_append(f, USER("d", "4"));
        struct steno_fork_options opt = {.size = sizeof opt, .id = "f1", .at_seq = 3};
        OK(steno_fork(f->conv, &opt, &fork, &err));
        OK(steno_conv_last_seq(fork, &seq, &err));
        assert_int_equal(seq, 3);
        steno_conv_close(fork);
        opt = (struct steno_fork_options){.size = sizeof opt, .id = "f2", .at_seq = 2};
        assert_int_equal(steno_fork(f->conv, &opt, &fork, &why), STENO_ECONFLICT);
        assert_non_null(strstr(why.msg, "inside the batch"));
        opt = (struct steno_fork_options){.size = sizeof opt, .id = "f2", .before = "b"};
        OK(steno_fork(f->conv, &opt, &fork, &err));
        OK(steno_conv_last_seq(fork, &seq, &err));
        assert_int_equal(seq, 1);
        steno_conv_close(fork);
}

/* ---- purges ---- */

static void a_purge_takes_the_bytes_and_leaves_the_numbers(void **state)
{
        struct fixture *f = *state, other = *f;
        char *report = NULL, ref[64];
        struct buf before, after, raw;
        struct steno_error why = {0};
        uint64_t last = 0, now = 0;
        buf_init(&before, 0);
        buf_init(&after, 0);
        buf_init(&raw, 0);
        fill(f);
        fixture_append(f, CALL("call2"));
        store_output(f, "call2", 3000, ref);
        fixture_open(&other);
        OK(steno_context_raw(other.conv, ref, 0, 100, take, &raw, &err));
        fixture_append(f, USER("p", "pomegranate"));
        fixture_append(f, USER("last", "the end"));
        assert_int_equal(places(f->store, "pomegranate"), 1);
        OK(steno_amend(f->conv, "delete", "big", NULL, 0, NULL, NULL, &err));
        OK(steno_amend(f->conv, "delete", "p", NULL, 0, NULL, NULL, &err));
        view(f->conv, &before);
        OK(steno_conv_last_seq(f->conv, &last, &err));
        OK(steno_purge(f->store, NULL, "c", &report, &err));
        assert_non_null(strstr(report, "\"messages\":4")); /* a, k, big and p */
        steno_free(report);
        view(f->conv, &after);
        assert_string_equal(buf_cstr(&before), buf_cstr(&after));
        view(other.conv, &after);
        assert_string_equal(buf_cstr(&before), buf_cstr(&after));
        export_all(f->store, &raw);
        OK(steno_conv_last_seq(other.conv, &now, &err));
        assert_int_equal(now, last);
        /* Ids and keys are known as before, and the next message gets the next number. */
        assert_int_equal(steno_append(other.conv, USER("a", "other"), strlen(USER("a", "other")),
                             NULL, NULL, &why),
            STENO_ECONFLICT);
        OK(steno_append(other.conv, USER("n", "new"), strlen(USER("n", "new")), NULL, NULL, &err));
        OK(steno_conv_last_seq(f->conv, &now, &err));
        assert_int_equal(now, last + 1);
        OK(steno_purge(f->store, NULL, "c", &report, &err));
        assert_non_null(strstr(report, "\"messages\":0"));
        steno_free(report);
        fixture_close(&other);
        check(f->store);
        buf_release(&before);
        buf_release(&after);
        buf_release(&raw);
}

/* ---- bundles ---- */

/* From this kind to files and back: the bytes are the same each time. */
static void a_bundle_is_the_same_bytes_whatever_keeps_it(void **state)
{
        struct fixture *f = *state;
        struct scratch place;
        struct steno_store *files = NULL, *again = NULL;
        struct buf first, second;
        char url[512];
        buf_init(&first, 0);
        buf_init(&second, 0);
        fill(f);
        assert_int_equal(scratch_make(&place), 0);
        OK(steno_open(place.path, NULL, &files, &err));
        for (int purged = 0; purged < 2; purged++) {
                if (purged) {
                        OK(steno_purge(f->store, NULL, "c", NULL, &err));
                        OK(steno_remove(files, NULL, "c", NULL, &err));
                }
                export_all(f->store, &first);
                OK(import_all(files, &first, NULL, &err));
                export_all(files, &second);
                assert_int_equal(first.n, second.n);
                assert_memory_equal(first.p, second.p, first.n);
                check(files);
        }
        steno_close(files);
        scratch_remove(&place);
        assert_int_equal(scratch_make(&place), 0);
        OK(steno_open(scratch_store(&place, url), NULL, &again, &err));
        OK(import_all(again, &second, NULL, &err));
        export_all(again, &second);
        assert_int_equal(first.n, second.n);
        assert_memory_equal(first.p, second.p, first.n);
        check(again);
        steno_close(again);
        scratch_remove(&place);
        buf_release(&first);
        buf_release(&second);
}

static void what_is_there_decides_what_becomes_of_an_import(void **state)
{
        struct fixture *f = *state;
        struct steno_import_options opt = {.size = sizeof opt};
        struct steno_conv *conv = NULL;
        struct buf bundle;
        uint64_t seq = 0;
        buf_init(&bundle, 0);
        fixture_append(f, USER("a", "1"));
        export_all(f->store, &bundle);
        OK(import_all(f->store, &bundle, &opt, &err)); /* the same is left alone */
        fixture_append(f, USER("b", "2"));
        OK(import_all(f->store, &bundle, &opt, &err)); /* and one that was continued, too */
        OK(steno_conv_last_seq(f->conv, &seq, &err));
        assert_int_equal(seq, 2);
        opt.on_conflict = STENO_CONFLICT_REPLACE;
        OK(import_all(f->store, &bundle, &opt, &err));
        OK(steno_conv_open(f->store, NULL, "c", &conv, &err));
        OK(steno_conv_last_seq(conv, &seq, &err));
        assert_int_equal(seq, 1);
        steno_conv_close(conv);
        opt = (struct steno_import_options){.size = sizeof opt, .project = "elsewhere"};
        OK(import_all(f->store, &bundle, &opt, &err));
        OK(steno_conv_open(f->store, "elsewhere", "c", &conv, &err));
        steno_conv_close(conv);
        bundle.p[bundle.n / 2] ^= 1; /* and a damaged one changes nothing */
        opt.project = "third";
        assert_int_not_equal(import_all(f->store, &bundle, &opt, NULL), 0);
        assert_int_equal(steno_conv_open(f->store, "third", "c", &conv, NULL), STENO_ENOTFOUND);
        buf_release(&bundle);
}

/* ---- words ---- */

static void words_are_found_where_they_are(void **state)
{
        struct fixture *f = *state;
        static const struct {
                const char *query;
                int places;
        } ASKED[] = {{"banana", 1}, {"BANANA", 1}, {"ban*", 1}, {"\"banana apple\"", 0},
            {"apple", 0}, {"kiwi", 0}, {"cherry", 1}, {"word7 word8", 1}, {"word29999", 1},
            {"\"says line 17\" in:output", 1}, {"role:user banana", 1}, {"role:tool banana", 0},
            {"conversation:c banana", 1}, {"conversation:d banana", 0}, {"/b.n.na/", 1},
            {"banana -cherry", 1}, {"it's", 0}, {"a\\'b", 0}, {"after:2000-01-01 banana", 1},
            {"before:2000-01-01 banana", 0}};
        fill(f);
        for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++) {
                int n = places(f->store, ASKED[i].query);
                if (n != ASKED[i].places)
                        fail_msg("%s: %d places", ASKED[i].query, n);
        }
        fixture_append(f, USER("new", "dragonfruit it's"));
        assert_int_equal(places(f->store, "dragonfruit"), 1);
        assert_int_equal(places(f->store, "it's"), 1);
        OK(steno_purge(f->store, NULL, "c", NULL, &err));
        assert_int_equal(places(f->store, "banana"), 1);
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        assert_int_equal(places(f->store, "banana"), 0);
        OK(steno_trash_restore(f->store, NULL, "c", NULL, &err));
        assert_int_equal(places(f->store, "banana"), 1);
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        OK(steno_trash_empty(f->store, 0, NULL, &err));
        assert_int_equal(places(f->store, "banana"), 0);
}

static void many_places_come_page_by_page(void **state)
{
        struct fixture *f = *state;
        struct steno_search_options opt = {
            .size = sizeof opt, .query = "berry", .catch_up_ms = PATIENCE_MS, .limit = 100};
        struct buf b;
        char cursor[128];
        int n = 0, pages = 0;
        buf_init(&b, 0);
        for (int i = 0; i < 450; i++)
                buf_printf(&b, "%c{\"role\":\"user\",\"content\":\"berry %d\"}", i ? ',' : '[', i);
        buf_putc(&b, ']');
        OK(steno_append(f->conv, b.p, b.n, NULL, NULL, &err));
        do {
                OK(page(f->store, &opt, cursor, &n, &err));
        } while (cursor[0] && ++pages < 9);
        assert_int_equal(n, 450);
        buf_release(&b);
}

/* ---- seals ---- */

static int count_finding(void *ctx, const char *json)
{
        if (!strstr(json, "\"note\":true"))
                buf_printf(ctx, "%s\n", json);
        return 0;
}

static void verify(struct steno_store *store, const char *wanted)
{
        struct buf found;
        buf_init(&found, 0);
        OK(steno_verify(store, NULL, count_finding, &found, NULL, &err) < 0);
        const char *text = buf_cstr(&found);
        if (wanted ? !strstr(text, wanted) : *text)
                fail_msg("wanted %s: %s", wanted ? wanted : "nothing", text);
        buf_release(&found);
}

static void open_with_key(struct fixture *f, const char *key)
{
        struct steno_open_options opt = {.size = sizeof opt, .seal_key = key};
        char url[512];
        fixture_close(f);
        OK(steno_open(scratch_store(&f->scratch, url), &opt, &f->store, &err));
        OK(steno_conv_open(f->store, NULL, "c", &f->conv, &err));
}

static void what_was_sealed_is_proved_and_verified(void **state)
{
        struct fixture *f = *state;
        char *key = NULL, *public_key = NULL, *json = NULL;
        struct steno_error why = {0};
        fill(f);
        OK(steno_key_new("k", &key, &err));
        OK(steno_key_public(key, &public_key, &err));
        open_with_key(f, key);
        OK(steno_seal(f->store, NULL, NULL, NULL, NULL, NULL, &err));
        verify(f->store, NULL);
        OK(steno_prove(f->conv, 2, &json, &err));
        OK(steno_prove_check(json, strlen(json), public_key, &err));
        json[strlen(json) / 2] ^= 1;
        assert_int_equal(steno_prove_check(json, strlen(json), public_key, &why), STENO_ECORRUPT);
        steno_free(json);
        fixture_append(f, USER("late", "not sealed yet"));
        verify(f->store, NULL);
        assert_int_equal(steno_prove(f->conv, 10, &json, NULL), STENO_ENOTFOUND);
        /* The log of seals notes a purge, and the next seal covers it. */
        OK(steno_purge(f->store, NULL, "c", NULL, &err));
        verify(f->store, NULL);
        OK(steno_seal(f->store, NULL, "c", NULL, NULL, NULL, &err));
        verify(f->store, NULL);
        /* It also notes a conversation that is removed for good; one that only seems to be gone is
         * reported. */
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        verify(f->store, NULL);
        OK(steno_trash_empty(f->store, 0, NULL, &err));
        verify(f->store, NULL);
        steno_free(key);
        steno_free(public_key);
        steno_conv_close(f->conv);
        OK(steno_conv_create(f->store, NULL, "c", NULL, &f->conv, &err));
}

static void a_seal_goes_with_its_bundle(void **state)
{
        struct fixture *f = *state;
        struct scratch place;
        struct steno_store *files = NULL, *again = NULL;
        struct buf bundle;
        char *key = NULL, *json = NULL, url[512];
        buf_init(&bundle, 0);
        fill(f);
        OK(steno_key_new("k", &key, &err));
        open_with_key(f, key);
        OK(steno_seal(f->store, NULL, NULL, NULL, NULL, NULL, &err));
        export_all(f->store, &bundle);
        struct steno_open_options opt = {.size = sizeof opt, .seal_key = key};
        assert_int_equal(scratch_make(&place), 0);
        OK(steno_open(place.path, &opt, &files, &err));
        OK(import_all(files, &bundle, NULL, &err));
        verify(files, NULL);
        OK(steno_seal(files, NULL, NULL, NULL, NULL, NULL, &err));
        export_all(files, &bundle);
        steno_close(files);
        scratch_remove(&place);
        assert_int_equal(scratch_make(&place), 0);
        OK(steno_open(scratch_store(&place, url), &opt, &again, &err));
        OK(import_all(again, &bundle, NULL, &err));
        verify(again, NULL);
        struct steno_conv *conv;
        OK(steno_conv_open(again, NULL, "c", &conv, &err));
        OK(steno_prove(conv, 1, &json, &err));
        steno_free(json);
        steno_conv_close(conv);
        steno_close(again);
        scratch_remove(&place);
        steno_free(key);
        buf_release(&bundle);
}

/* ---- from one kind to another ---- */

static void wanted(struct steno_store *from, struct steno_store *to, const char *report)
{
        char *got = NULL;
        OK(steno_copy(from, to, NULL, &got, &err));
        if (!strstr(got, report))
                fail_msg("wanted %s: %s", report, got);
        steno_free(got);
}

static int stop_at_once(void *ctx, const char *what, uint64_t done, uint64_t total)
{
        (void)ctx, (void)what, (void)total;
        return done >= 1;
}

/* To files and back; interrupted and done again; continued here, and differently there. */
static void a_store_is_copied_into_another_kind(void **state)
{
        struct fixture *f = *state;
        struct scratch place;
        struct steno_store *files = NULL;
        struct steno_conv *conv = NULL;
        struct buf here, there;
        struct steno_copy_options once = {.size = sizeof once, .progress = stop_at_once};
        buf_init(&here, 0);
        buf_init(&there, 0);
        fill(f);
        OK(steno_conv_create(f->store, "p", "second", NULL, &conv, &err));
        OK(steno_append(conv, USER("a", "1"), strlen(USER("a", "1")), NULL, NULL, &err));
        steno_conv_close(conv);
        assert_int_equal(scratch_make(&place), 0);
        OK(steno_open(place.path, NULL, &files, &err));
        assert_int_equal(steno_copy(f->store, files, &once, NULL, NULL), STENO_EINTERRUPTED);
        wanted(f->store, files, "{\"copied\":1,\"replaced\":0,\"unchanged\":1,\"conflicts\":[]");
        export_all(f->store, &here);
        export_all(files, &there);
        assert_int_equal(here.n, there.n);
        assert_memory_equal(here.p, there.p, here.n);
        wanted(files, f->store, "{\"copied\":0,\"replaced\":0,\"unchanged\":2,");
        fixture_append(f, USER("more", "goes on"));
        wanted(f->store, files, "{\"copied\":0,\"replaced\":1,\"unchanged\":1,");
        fixture_append(f, USER("x", "this way"));
        OK(steno_conv_open(files, NULL, "c", &conv, &err));
        OK(steno_append(
            conv, USER("y", "that way"), strlen(USER("y", "that way")), NULL, NULL, &err));
        steno_conv_close(conv);
        wanted(f->store, files, "\"conflicts\":[{\"project\":\"default\",\"id\":\"c\"}]");
        wanted(files, f->store, "\"conflicts\":[{\"project\":\"default\",\"id\":\"c\"}]");
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        wanted(files, f->store, "{\"copied\":1,\"replaced\":0,\"unchanged\":1,");
        export_all(f->store, &here);
        export_all(files, &there);
        assert_int_equal(here.n, there.n);
        assert_memory_equal(here.p, there.p, here.n);
        check(f->store);
        steno_close(files);
        scratch_remove(&place);
        buf_release(&here);
        buf_release(&there);
}

static int put_tokens(void *ctx, struct str old, struct buf *out, struct steno_error *e)
{
        (void)ctx, (void)old, (void)e;
        buf_puts(out, "{\"tokens\":[{\"id\":\"t\",\"project\":\"tokens-only\"}]}");
        return 0;
}

/* In a project with conversations, and in one that only a token knows. */
static void disks_are_copied_too(void **state)
{
        static const char BYTES[] = "one\0two\xff";
        static const char *const PROJECTS[] = {"default", "p", "tokens-only"};
        struct fixture *f = *state;
        struct scratch place;
        struct steno_store *files = NULL;
        struct steno_conv *conv = NULL;
        char *bytes = NULL, *json = NULL;
        size_t n = 0;
        OK(steno_conv_create(f->store, "p", "c", NULL, &conv, &err));
        steno_conv_close(conv);
        OK(backend_document_change(
            f->store->backend, "tokens.json", 1 << 20, 1000, put_tokens, NULL, &err));
        for (size_t i = 0; i < 3; i++) {
                OK(steno_disk_create(f->store, PROJECTS[i], "d", NULL, &err));
                OK(steno_disk_put(f->store, PROJECTS[i], "d", "/a/b.bin", "x/y",
                    "{\"k\":12345678901234567890}", BYTES, sizeof BYTES, NULL, &err));
                OK(steno_disk_put(
                    f->store, PROJECTS[i], "d", "/empty", NULL, NULL, "", 0, NULL, &err));
        }
        assert_int_equal(scratch_make(&place), 0);
        OK(steno_open(place.path, NULL, &files, &err));
        wanted(f->store, files, "\"files\":6,");
        wanted(f->store, files, "\"files\":0,");
        for (size_t i = 0; i < 3; i++) {
                OK(steno_disk_read(files, PROJECTS[i], "d", "/a/b.bin", &bytes, &n, &err));
                assert_int_equal(n, sizeof BYTES);
                assert_memory_equal(bytes, BYTES, n);
                steno_free(bytes);
                OK(steno_disk_file(files, PROJECTS[i], "d", "/a/b.bin", &json, &err));
                assert_non_null(strstr(json, "\"meta\":{\"k\":12345678901234567890}"));
                assert_non_null(strstr(json, "\"mime\":\"x/y\""));
                steno_free(json);
                OK(steno_disk_read(files, PROJECTS[i], "d", "/empty", &bytes, &n, &err));
                assert_int_equal(n, 0);
                steno_free(bytes);
        }
        steno_close(files);
        scratch_remove(&place);
}

/* ---- who is connected ---- */

static void who_is_connected_is_known_everywhere(void **state)
{
        struct fixture *f = *state, other = *f;
        struct steno_watcher *one = NULL, *two = NULL;
        fixture_open(&other);
        assert_false(steno_watched(other.store, "default"));
        OK(steno_watch_begin(f->store, "default", &one, &err));
        OK(steno_watch_begin(f->store, "p", &two, &err));
        assert_true(steno_watched(other.store, "default"));
        steno_watch_end(one);
        assert_false(steno_watched(other.store, "default"));
        assert_true(steno_watched(other.store, "p"));
        steno_watch_end(two);
        assert_false(steno_watched(other.store, "p"));
        fixture_close(&other);
}

/* ---- disks ---- */

static void a_disk_keeps_files(void **state)
{
        struct fixture *f = *state;
        char *json = NULL, *bytes = NULL;
        size_t n = 0;
        OK(steno_disk_create(f->store, "p", "d", &json, &err));
        steno_free(json);
        assert_int_equal(steno_disk_create(f->store, "p", "d", &json, NULL), STENO_ECONFLICT);
        OK(steno_disk_put(
            f->store, "p", "d", "/a/b.txt", "text/plain", "{\"k\":1}", "a\0b", 3, &json, &err));
        assert_non_null(strstr(json, "{\"path\":\"/a/b.txt\",\"mime\":\"text/plain\",\"size\":3,"));
        assert_non_null(strstr(json, "\"meta\":{\"k\":1}"));
        steno_free(json);
        OK(steno_disk_put(f->store, "p", "d", "/a/b.txt", NULL, NULL, "other", 5, &json, &err));
        assert_non_null(strstr(json, "\"meta\":{\"k\":1}"));
        assert_non_null(strstr(json, "\"mime\":\"application/octet-stream\""));
        steno_free(json);
        OK(steno_disk_set_meta(f->store, "p", "d", "/a/b.txt", "{}", &json, &err));
        assert_non_null(strstr(json, "\"size\":5"));
        steno_free(json);
        OK(steno_disk_read(f->store, "p", "d", "/a/b.txt", &bytes, &n, &err));
        assert_int_equal(n, 5);
        assert_memory_equal(bytes, "other", 5);
        steno_free(bytes);
        assert_int_equal(
            steno_disk_set_meta(f->store, "p", "d", "/none", "{}", &json, NULL), STENO_ENOTFOUND);
        assert_int_equal(
            steno_disk_read(f->store, "p", "d", "/none", &bytes, &n, NULL), STENO_ENOTFOUND);
        assert_int_equal(
            steno_disk_read(f->store, "p", "none", "/a/b.txt", &bytes, &n, NULL), STENO_ENOTFOUND);
        OK(steno_disk_files(f->store, "p", "d", &json, &err));
        assert_non_null(strstr(json, "/a/b.txt"));
        steno_free(json);
        OK(steno_disk_delete(f->store, "p", "d", "/a/b.txt", &err));
        assert_int_equal(steno_disk_delete(f->store, "p", "d", "/a/b.txt", NULL), STENO_ENOTFOUND);
        OK(steno_disk_list(f->store, "p", &json, &err));
        assert_non_null(strstr(json, "\"id\":\"d\""));
        steno_free(json);
        OK(steno_disk_remove(f->store, "p", "d", &err));
        assert_int_equal(steno_disk_get(f->store, "p", "d", &json, NULL), STENO_ENOTFOUND);
}

/* ---- quotas ---- */

static void a_quota_ends_an_output_and_not_the_history(void **state)
{
        struct fixture *f = *state;
        struct quota quota = {.output = 50000, .conversation = 80000};
        struct backend_conv *conv = f->conv->backend;
        struct backend_artifact *a = NULL;
        struct steno_error why = {0};
        static char bytes[40000];
        memset(bytes, 'x', sizeof bytes);
        backend_set_quota(f->store->backend, &quota, NULL, NULL);
        OK(backend_artifact_begin(conv, "tool", STR("one"), STR(""), &a, &err));
        OK(backend_artifact_write(a, bytes, sizeof bytes, &err));
        assert_int_equal(backend_artifact_write(a, bytes, sizeof bytes, &why), STENO_EQUOTA);
        assert_non_null(strstr(why.msg, "one output"));
        struct artifact_end end = {.suffix = ".txt", .mime = "text/plain", .utf8 = true};
        struct artifact_info info;
        OK(backend_artifact_close(a, &end, &info, &err));
        assert_int_equal(info.size, sizeof bytes);
        backend_artifact_free(a);
        OK(backend_artifact_begin(conv, "tool", STR("two"), STR(""), &a, &err));
        OK(backend_artifact_write(a, bytes, 39000, &err));
        assert_int_equal(backend_artifact_write(a, bytes, 2000, &why), STENO_EQUOTA);
        assert_non_null(strstr(why.msg, "of this conversation"));
        backend_artifact_lift_quota(a);
        OK(backend_artifact_write(a, bytes, 2000, &err));
        OK(backend_artifact_close(a, &end, &info, &err));
        backend_artifact_free(a);
        fixture_append(f, USER("a", "goes on"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
            TEST(a_fork_has_the_history_and_its_outputs),
            TEST(a_fork_is_cut_where_it_was_asked_for),
            TEST(a_purge_takes_the_bytes_and_leaves_the_numbers),
            TEST(a_bundle_is_the_same_bytes_whatever_keeps_it),
            TEST(what_is_there_decides_what_becomes_of_an_import),
            TEST(words_are_found_where_they_are),
            TEST(many_places_come_page_by_page),
            TEST(what_was_sealed_is_proved_and_verified),
            TEST(a_seal_goes_with_its_bundle),
            TEST(a_store_is_copied_into_another_kind),
            TEST(disks_are_copied_too),
            TEST(who_is_connected_is_known_everywhere),
            TEST(a_disk_keeps_files),
            TEST(a_quota_ends_an_output_and_not_the_history),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
