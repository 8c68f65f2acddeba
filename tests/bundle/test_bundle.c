/*
 * test_bundle.c - bundles of random histories: an import gives what was exported.
 */
#include "bundle/history.h"

#include "store/play.h"

struct giving {
        const struct buf *from;
        size_t at;
        size_t most; /* at once */
};

static long give(void *ctx, void *p, size_t n)
{
        struct giving *g = ctx;
        size_t left = g->from->n - g->at;
        n = n < left ? n : left;
        n = n < g->most ? n : g->most;
        if (n)
                memcpy(p, g->from->p + g->at, n);
        g->at += n;
        return (long)n;
}

static void export_all(struct steno_store *store, struct buf *out)
{
        buf_clear(out);
        OK(steno_export(store, NULL, NULL, 0, NULL, history_take, out, NULL, &err));
}

static void import(struct steno_store *store, const struct buf *bundle, size_t most)
{
        struct giving g = {.from = bundle, .most = most};
        OK(steno_import_bundle(store, NULL, give, &g, NULL, &err));
}

static void random_histories_come_back(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        struct buf first, second, before, after;
        buf_init(&first, 0);
        buf_init(&second, 0);
        buf_init(&before, 0);
        buf_init(&after, 0);
        for (int round = 0; round < seed_rounds(200); round++) {
                struct scratch other;
                struct steno_store *store;
                struct steno_conv *conv;
                char id[24];
                snprintf(id, sizeof id, "h%d", round);
                steno_conv_close(f->conv);
                OK(steno_conv_create(f->store, NULL, id, NULL, &f->conv, &err));
                struct history h = {.conv = f->conv, .seed = &seed};
                for (int i = 0; i < 15; i++)
                        history_step(&h);
                if (round % 2)
                        OK(steno_purge(f->store, NULL, id, NULL, &err));
                history_view(f->conv, &before);
                export_all(f->store, &first);
                export_all(f->store, &second);
                assert_true(first.n == second.n && memcmp(first.p, second.p, first.n) == 0);
                assert_int_equal(scratch_make(&other), 0);
                OK(steno_open(other.path, NULL, &store, &err));
                import(store, &first, 1 + seed_below(&seed, 5000));
                history_check(store);
                export_all(store, &second);
                assert_true(first.n == second.n && memcmp(first.p, second.p, first.n) == 0);
                OK(steno_conv_open(store, NULL, id, &conv, &err));
                history_view(conv, &after);
                assert_string_equal(buf_cstr(&before), buf_cstr(&after));
                /* It is a conversation like others: it can be written to, and purged. */
                OK(steno_append(
                    conv, "{\"role\":\"user\",\"content\":\"more\"}", 32, NULL, NULL, &err));
                OK(steno_purge(store, NULL, id, NULL, &err));
                history_check(store);
                steno_conv_close(conv);
                steno_close(store);
                scratch_remove(&other);
        }
        buf_release(&first);
        buf_release(&second);
        buf_release(&before);
        buf_release(&after);
}

static int stop_at_once(void *ctx, const void *p, size_t n)
{
        (void)ctx, (void)p, (void)n;
        return 1;
}

static long broken_source(void *ctx, void *p, size_t n)
{
        (void)ctx, (void)p, (void)n;
        return -5;
}

static void calls_say_what_is_wrong_with_them(void **state)
{
        struct fixture *f = *state;
        struct steno_export_options flags = {.size = sizeof flags, .flags = 64};
        struct steno_import_options wrong = {.size = sizeof wrong, .flags = 64};
        const char *ids[] = {"none"};
        fixture_append(f, "{\"role\":\"user\",\"content\":\"1\"}");
        assert_int_equal(steno_export(f->store, NULL, ids, 1, NULL, stop_at_once, NULL, NULL, NULL),
            STENO_ENOTFOUND);
        assert_int_equal(
            steno_export(f->store, NULL, NULL, 0, NULL, stop_at_once, NULL, NULL, NULL),
            STENO_EINTERRUPTED);
        assert_int_equal(
            steno_export(f->store, NULL, NULL, 0, &flags, stop_at_once, NULL, NULL, NULL),
            STENO_EINVAL);
        assert_int_equal(steno_export_as(f->conv, "pdf", stop_at_once, NULL, NULL), STENO_EINVAL);
        assert_int_equal(
            steno_export_as(f->conv, "html", stop_at_once, NULL, NULL), STENO_EINTERRUPTED);
        assert_int_equal(
            steno_import_bundle(f->store, &wrong, broken_source, NULL, NULL, NULL), STENO_EINVAL);
        assert_int_equal(
            steno_import_bundle(f->store, NULL, broken_source, NULL, NULL, NULL), STENO_EIO);
}

static void a_run_comes_along_and_a_live_one_is_dead_there(void **state)
{
        struct fixture *f = *state;
        struct scratch other;
        struct steno_store *store;
        struct steno_run *run;
        struct buf bundle;
        char *info = NULL;
        buf_init(&bundle, 0);
        OK(steno_run_begin(f->conv, "run_1", "chat", &run, &err));
        OK(steno_run_event(run, "text", "{\"a\":1}", 7, STENO_FULL, NULL, &err));
        export_all(f->store, &bundle);
        assert_int_equal(scratch_make(&other), 0);
        OK(steno_open(other.path, NULL, &store, &err));
        import(store, &bundle, 1000);
        OK(steno_run_info(store, NULL, "run_1", &info, &err));
        assert_non_null(strstr(info, "\"dead\""));
        steno_free(info);
        OK(steno_run_info(f->store, NULL, "run_1", &info, &err));
        assert_non_null(strstr(info, "\"running\""));
        steno_free(info);
        steno_run_close(run);
        steno_close(store);
        scratch_remove(&other);
        buf_release(&bundle);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
            TEST(random_histories_come_back),
            TEST(calls_say_what_is_wrong_with_them),
            TEST(a_run_comes_along_and_a_live_one_is_dead_there),
        };
        return cmocka_run_group_tests_name("bundles", tests, NULL, NULL);
}
