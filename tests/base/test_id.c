/* Ids, file names for ids, times, and the real env. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/limits.h"

#define ULID 27

static int64_t stopped_now(const struct env *self)
{
        (void)self;
        return INT64_C(4000000000000);
}

static int64_t earlier_now(const struct env *self)
{
        (void)self;
        return INT64_C(1000);
}

/* All ones: every increment is the largest one, and the 80 bits overflow at once. */
static void ones(const struct env *self, void *p, size_t n)
{
        (void)self;
        memset(p, 0xff, n);
}

static void ids_are_a_prefix_and_26_digits(void **state)
{
        char id[64];

        (void)state;
        memset(id, 'x', sizeof(id));
        id_make(env_real(), "msg_", id);
        assert_int_equal(strlen(id), 4 + 26);
        assert_memory_equal(id, "msg_", 4);
        assert_int_equal(strspn(id + 4, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"), 26);
        assert_true(id[4] <= '7');
}

static void ids_hold_the_time(void **state)
{
        const char *digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        int64_t ms = 0;
        char id[ULID];

        (void)state;
        int64_t before = env_real()->now(env_real());
        id_make(env_real(), "", id);
        for (int i = 0; i < 10; i++)
                ms = ms * 32 + (strchr(digits, id[i]) - digits);
        assert_true(ms >= before && ms <= before + 1000);
}

static void ids_grow_within_a_millisecond_and_when_the_clock_goes_back(void **state)
{
        struct env env = *env_real();
        char a[ULID];
        char b[ULID];

        (void)state;
        env.now = stopped_now;
        id_make(&env, "", a);
        for (int i = 0; i < 20000; i++) {
                if (i == 10000)
                        env.now = earlier_now;
                id_make(&env, "", b);
                assert_true(strcmp(a, b) < 0);
                memcpy(a, b, sizeof(a));
        }
}

static void ids_grow_when_their_random_part_overflows(void **state)
{
        struct env env = *env_real();
        char a[ULID];
        char b[ULID];

        (void)state;
        env.now = stopped_now;
        env.random = ones;
        id_make(&env, "", a);
        for (int i = 0; i < 100; i++) {
                id_make(&env, "", b);
                assert_true(strcmp(a, b) < 0);
                memcpy(a, b, sizeof(a));
        }
}

#define THREADS 4
#define EACH 5000

static void *make_many(void *ctx)
{
        char(*ids)[ULID] = ctx;

        for (int i = 0; i < EACH; i++)
                id_make(env_real(), "", ids[i]);
        return NULL;
}

static int compare(const void *a, const void *b)
{
        return strcmp(a, b);
}

static void threads_never_share_an_id(void **state)
{
        char(*ids)[ULID] = calloc(THREADS * EACH, ULID);
        pthread_t thread[THREADS];

        (void)state;
        for (int t = 0; t < THREADS; t++)
                assert_int_equal(pthread_create(&thread[t], NULL, make_many, ids + t * EACH), 0);
        for (int t = 0; t < THREADS; t++)
                pthread_join(thread[t], NULL);
        for (int i = 1; i < THREADS * EACH; i++)
                assert_true(i % EACH == 0 || strcmp(ids[i - 1], ids[i]) < 0);
        qsort(ids, THREADS * EACH, ULID, compare);
        for (int i = 1; i < THREADS * EACH; i++)
                assert_string_not_equal(ids[i - 1], ids[i]);
        free(ids);
}

static void a_forked_child_makes_other_ids(void **state)
{
        struct env env = *env_real();
        char mine[ULID];
        char theirs[ULID];
        int pipe_[2];

        (void)state;
        env.now = stopped_now;
        id_make(&env, "", mine);
        assert_int_equal(pipe(pipe_), 0);
        if (fork() == 0) {
                id_make(&env, "", theirs);
                _exit(write(pipe_[1], theirs, ULID) != ULID);
        }
        id_make(&env, "", mine);
        assert_int_equal(read(pipe_[0], theirs, ULID), ULID);
        assert_string_not_equal(mine, theirs);
        wait(NULL);
        close(pipe_[0]);
        close(pipe_[1]);
}

static void plain_ids_are_their_own_file_names(void **state)
{
        char out[PLAIN_NAME_MAX + 1];
        char long_id[66];

        (void)state;
        assert_int_equal(id_file_name(STR("Az-09_"), out), 0);
        assert_string_equal(out, "Az-09_");
        memset(long_id, 'a', sizeof(long_id));
        assert_int_equal(id_file_name(str_span(long_id, 64), out), 0);
        assert_int_equal(strlen(out), 64);
        assert_int_equal(id_file_name(str_span(long_id, 65), out), 0);
        assert_int_equal(strlen(out), 33);
        assert_int_equal(out[0], '~');
}

static void other_ids_become_a_hash(void **state)
{
        const char *odd[] = {"", ".", "..", "a/b", "~x", "a.b", "\xc3\xa9", "a b", "a\n"};
        char out[PLAIN_NAME_MAX + 1];

        (void)state;
        for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
                assert_false(id_is_plain(str_of(odd[i])));
                assert_int_equal(id_file_name(str_of(odd[i]), out), 0);
                assert_int_equal(strlen(out), 33);
                assert_int_equal(strspn(out + 1, "0123456789abcdef"), 32);
        }
        assert_int_equal(id_file_name(STR(""), out), 0);
        assert_string_equal(out, "~e3b0c44298fc1c149afbf4c8996fb924");
}

static void legal_ids_are_text_without_control_characters(void **state)
{
        (void)state;
        assert_true(id_is_legal(STR("a/b \xc3\xa9"), 256));
        assert_true(id_is_legal(STR("\xc2\xa0"), 256));
        assert_true(id_is_legal(STR("abcd"), 4));
        assert_false(id_is_legal(STR("abcde"), 4));
        assert_false(id_is_legal(STR(""), 4));
        assert_false(id_is_legal(STR("a\0b"), 256));
        assert_false(id_is_legal(STR("a\n"), 256));
        assert_false(id_is_legal(STR("\x7f"), 256));
        assert_false(id_is_legal(STR("\xc2\x9b"), 256));
        assert_false(id_is_legal(STR("\xff"), 256));
        assert_false(id_is_legal(STR("a\xc2"), 256));
}

static void times_are_written_as_iso_8601(void **state)
{
        char out[TIME_TEXT];

        (void)state;
        time_format(0, out);
        assert_string_equal(out, "1970-01-01T00:00:00.000Z");
        time_format(INT64_C(1794716400007), out);
        assert_string_equal(out, "2026-11-15T04:20:00.007Z");
        time_format(-1, out);
        assert_string_equal(out, "1969-12-31T23:59:59.999Z");
        time_format(INT64_C(951782400000), out);
        assert_string_equal(out, "2000-02-29T00:00:00.000Z");
        time_format(INT64_MAX, out);
        assert_string_equal(out, "9999-12-31T23:59:59.999Z");
        time_format(INT64_MIN, out);
        assert_string_equal(out, "0000-01-01T00:00:00.000Z");
}

static void every_day_survives_the_round_trip(void **state)
{
        char out[TIME_TEXT];
        int64_t back;

        (void)state;
        for (int64_t day = -719528; day < 2932896; day += 17) {
                int64_t ms = day * INT64_C(86400000) + (day & 0xffffff);
                time_format(ms, out);
                assert_true(time_parse(out, strlen(out), &back));
                assert_true(back == ms);
        }
}

static void times_are_read_with_zone_offset_or_neither(void **state)
{
        const struct {
                const char *text;
                int64_t ms;
        } good[] = {
            {"2026-11-15T04:20:00.007Z", INT64_C(1794716400007)},
            {"2026-11-15T04:20:00.007", INT64_C(1794716400007)},
            {"2026-11-15 04:20:00.007999Z", INT64_C(1794716400007)},
            {"2026-11-15t05:20:00.007+01:00", INT64_C(1794716400007)},
            {"2026-11-14T22:50:00,007-0530", INT64_C(1794716400007)},
            {"2026-11-15T05:20:00+01", INT64_C(1794716400000)},
            {"2026-11-15T04:20Z", INT64_C(1794716400000)},
            {"1970-01-01", 0},
            {"1969-12-31T23:59:60Z", 0},
        };
        const char *bad[] = {"", "2026", "2026-11", "2026-13-01", "2026-02-29", "2026-11-15T",
            "2026-11-15T24:00Z", "2026-11-15T04:20:00.Z", "2026-11-15T04:20:00Zx",
            "2026-11-15T04:20:00+1", "2026-11-15T04:20:00+01:", "2026-1-15", " 2026-11-15",
            "2026-11-15T04:20:61Z", "-026-11-15", "2026-11-00", "2026-11-15T04:20:00+24:00"};
        int64_t ms;

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
                assert_true(time_parse(good[i].text, strlen(good[i].text), &ms));
                assert_true(ms == good[i].ms);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                ms = 5;
                if (time_parse(bad[i], strlen(bad[i]), &ms))
                        fail_msg("took %s for a time", bad[i]);
                assert_true(ms == 5);
        }
}

static void the_real_world_has_a_clock_chance_and_a_boot(void **state)
{
        const struct env *env = env_real();
        unsigned char a[300] = {0};
        unsigned char b[300] = {0};
        char boot[40];
        char again[40];

        (void)state;
        assert_ptr_equal(env->fs, fs_real());
        assert_true(env->now(env) > INT64_C(1700000000000));
        env->random(env, a, sizeof(a));
        env->random(env, b, sizeof(b));
        assert_memory_not_equal(a, b, sizeof(a));
        env->boot(env, boot);
        env->boot(env, again);
        assert_true(strlen(boot) > 6);
        assert_string_equal(boot, again);
}

static void file_names_are_known_by_their_looks(void **state)
{
        const char *ids[] = {"a", "default", "A_b-9", "a b", "é", "../x", ""};
        const char *bad[] = {"", ".", "..", "../x", "a.b", "a b", "~", "~1", "a/b", "~../../x",
            "~0123456789abcdef0123456789abcdeg/", "Thumbs.db"};
        char name[PLAIN_NAME_MAX + 1];

        (void)state;
        for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
                assert_int_equal(id_file_name(str_of(ids[i]), name), 0);
                assert_true(id_is_file_name(str_of(name)));
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                if (id_is_file_name(str_of(bad[i])))
                        fail_msg("took %s for a file name", bad[i]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(ids_are_a_prefix_and_26_digits),
            cmocka_unit_test(ids_hold_the_time),
            cmocka_unit_test(threads_never_share_an_id),
            cmocka_unit_test(ids_grow_within_a_millisecond_and_when_the_clock_goes_back),
            cmocka_unit_test(ids_grow_when_their_random_part_overflows),
            cmocka_unit_test(a_forked_child_makes_other_ids),
            cmocka_unit_test(plain_ids_are_their_own_file_names),
            cmocka_unit_test(other_ids_become_a_hash),
            cmocka_unit_test(file_names_are_known_by_their_looks),
            cmocka_unit_test(legal_ids_are_text_without_control_characters),
            cmocka_unit_test(times_are_written_as_iso_8601),
            cmocka_unit_test(every_day_survives_the_round_trip),
            cmocka_unit_test(times_are_read_with_zone_offset_or_neither),
            cmocka_unit_test(the_real_world_has_a_clock_chance_and_a_boot),
        };

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
