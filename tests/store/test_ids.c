/*
 * test_ids.c - ids.idx may lose or change any of its bytes: an id is still stored once and found.
 */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "store/files/ids.h"
#include "support/seed.h"

#define IDS CONV_FOLDER "ids.idx"
#define LOG CONV_FOLDER "messages.jsonl"
#define FEW 60
#define MANY 5000

static char file[1 << 20];

static const char *message(int i)
{
        static char json[100];
        snprintf(json, sizeof json, "{\"id\":\"m%d\",\"role\":\"user\",\"content\":\"%d\"}", i, i);
        return json;
}

static void fill(struct fixture *f, int count)
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        for (int i = 0; i < count; i++)
                OK(steno_append(f->conv, message(i), strlen(message(i)), &opt, NULL, &err));
}

static int stop(void *ctx, const struct steno_record *r)
{
        *(uint64_t *)ctx = steno_record_seq(r);
        return 0;
}

static void is_found(struct fixture *f, int i)
{
        char id[20];
        uint64_t seq = 0;
        snprintf(id, sizeof id, "m%d", i);
        OK(steno_read_id(f->conv, id, stop, &seq, &err));
        assert_int_equal(seq, i + 1);
}

static void is_replayed(struct fixture *f, int i)
{
        struct steno_receipt *r;
        OK(steno_append(f->conv, message(i), strlen(message(i)), NULL, &r, &err));
        assert_true(steno_receipt_replayed(r));
        assert_int_equal(steno_receipt_first_seq(r), i + 1);
        steno_receipt_free(r);
}

/* Writes a damaged copy of the index in place of the present one. */
static void damage(struct fixture *f, const char *p, size_t n)
{
        fixture_close(f);
        fixture_spit(f, IDS, p, n);
        fixture_open(f);
}

static void zeros(void **state)
{
        struct fixture *f = *state;
        static char bad[sizeof file];
        fill(f, FEW);
        fixture_close(f);
        size_t n = fixture_slurp(f, IDS, file, sizeof file);
        fixture_open(f);
        for (size_t at = 96; at < n; at += 64) {
                memcpy(bad, file, n);
                memset(bad + at, 0, n - at < 512 ? n - at : 512);
                damage(f, bad, n);
                for (int i = 0; i < FEW; i++)
                        is_found(f, i);
                for (int i = 0; i < FEW; i++)
                        is_replayed(f, i);
        }
        memset(file + 96, 0, n - 96);
        damage(f, file, n);
        for (int i = 0; i < FEW; i++)
                is_replayed(f, i);
}

static void anything(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        static char bad[sizeof file];
        fill(f, FEW);
        fixture_close(f);
        size_t n = fixture_slurp(f, IDS, file, sizeof file);
        fixture_open(f);
        for (int round = 0; round < seed_rounds(200); round++) {
                memcpy(bad, file, n);
                size_t from = 96 + seed_below(&seed, n - 96), to = 96 + seed_below(&seed, n - 96);
                if (round % 2 && from < to)
                        memmove(bad + from, bad + to, n - to); /* its contents, elsewhere */
                else
                        bad[from] = (char)seed_below(&seed, 256);
                damage(f, bad, n);
                int i = (int)seed_below(&seed, FEW);
                is_found(f, i);
                is_replayed(f, i);
        }
}

/* Damage is also found where entries are added and where the table grows. */
static void while_it_grows(void **state)
{
        struct fixture *f = *state;
        /* A sanitizer checks the same code each time. */
        const int step = getenv("STENO_TEST_SANITIZER") ? 7 : 1;
        for (int at = 256; at < 1 << 16; at = at * 2 + 256) {
                fixture_close(f);
                scratch_remove(&f->scratch);
                assert_int_equal(scratch_make(&f->scratch), 0);
                fixture_open(f);
                fill(f, MANY / 8);
                fixture_close(f);
                size_t n = fixture_slurp(f, IDS, file, sizeof file);
                assert_true(n > 256);
                memset(file + (size_t)at % n, 0, n - (size_t)at % n);
                fixture_spit(f, IDS, file, n);
                fixture_open(f);
                fill(f, MANY);
                for (int i = 0; i < MANY; i += 97)
                        is_found(f, i);
                for (int i = 0; i < MANY; i += step)
                        is_replayed(f, i);
        }
}

/* ---- the table itself ---- */

#define ENTRIES 60000

struct looking {
        uint64_t at;
        int found;
};

static int is_it(void *ctx, uint64_t at)
{
        struct looking *l = ctx;
        l->found += l->at == at;
        return 0;
}

/* Entries crowd the last buckets of a region that is written at once, and of the table, from where
 * the rest goes to the next ones; the table grows several times, each time in pieces at the end. */
static void crowded(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        static uint64_t hashes[ENTRIES];
        int dir = open(f->scratch.path, O_RDONLY | O_DIRECTORY);
        assert_true(dir >= 0);
        for (int round = 0; round < seed_rounds(40); round++) {
                struct ids ids;
                unlink(fixture_path(f, "ids.idx"));
                ids_open(&ids, env_real(), 1, dir, 1);
                ids.large_groups = round % 2 == 0;
                /* The first: neighbours that are written together and do not all fit. */
                int crowd = round ? (int)seed_below(&seed, 4) : 1;
                int together = round ? 1 + (int)seed_below(&seed, 9000) : 2000;
                for (int i = 0; i < ENTRIES; i++) {
                        hashes[i] = seed_next(&seed);
                        if (crowd && seed_below(&seed, 40) == 0) /* 63, 1023, 16383 */
                                hashes[i] |= crowd == 1 ? 63 : crowd == 2 ? 1023 : 16383;
                        assert_true(ids_add(&ids, hashes[i], (uint64_t)i));
                        if (i % together == 0)
                                ids_flush(&ids);
                }
                assert_true(ids_cover(&ids, 0, ENTRIES));
                ids_flush(&ids);
                assert_true(ids.buckets > 4096);
                ids_close(&ids);
                ids_open(&ids, env_real(), 1, dir, 1);
                assert_int_equal(ids_covered(&ids), ENTRIES);
                assert_int_equal(ids.count, ENTRIES);
                for (int i = 0; i < ENTRIES; i += 1 + (int)seed_below(&seed, 5)) {
                        struct looking l = {.at = (uint64_t)i};
                        assert_int_equal(ids_lookup(&ids, hashes[i], is_it, &l), 0);
                        assert_int_equal(l.found, 1);
                }
                ids_close(&ids);
        }
        close(dir);
}

/* While many wait, and after each of them. */
static void found_while_they_wait(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        static uint64_t hashes[ENTRIES];
        struct ids ids;
        int dir = open(f->scratch.path, O_RDONLY | O_DIRECTORY);
        assert_true(dir >= 0);
        ids_open(&ids, env_real(), 1, dir, 1);
        for (int i = 0; i < ENTRIES; i++) {
                ids.large_groups = i / 10000 % 2 == 0;
                hashes[i] = seed_next(&seed);
                assert_true(ids_add(&ids, hashes[i], (uint64_t)i));
                if (seed_below(&seed, 500))
                        continue;
                uint64_t k = seed_below(&seed, (uint64_t)i + 1);
                struct looking l = {.at = k};
                assert_int_equal(ids_lookup(&ids, hashes[k], is_it, &l), 0);
                assert_int_equal(l.found, 1);
                assert_true(ids.pending_count <= IDS_PENDING_MAX);
        }
        ids_close(&ids);
        close(dir);
}

/* The log lost its end: the index covers more than the log has. */
static void a_shorter_log(void **state)
{
        struct fixture *f = *state;
        struct stat st;
        fill(f, FEW);
        fixture_close(f);
        size_t n = fixture_slurp(f, IDS, file, sizeof file);
        memset(file + 96, 0, n - 96);
        fixture_spit(f, IDS, file, n);
        assert_int_equal(stat(fixture_path(f, LOG), &st), 0);
        assert_int_equal(truncate(fixture_path(f, LOG), st.st_size - 1), 0);
        fixture_open(f);
        for (int i = 0; i < FEW - 1; i++)
                is_found(f, i);
        for (int i = 0; i < FEW - 1; i++)
                is_replayed(f, i);
}

/* The log is whole and covers as many bytes, but is not the log of this index (I4). */
static void of_another_log(void **state)
{
        struct fixture *f = *state;
        struct steno_conv *other;
        fill(f, FEW);
        OK(steno_conv_create(f->store, NULL, "d", NULL, &other, &err));
        for (int i = 0; i < FEW; i++) {
                char json[100];
                struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
                snprintf(json, sizeof json, "%s", message(i));
                json[7] = 'n';
                OK(steno_append(other, json, strlen(json), &opt, NULL, &err));
        }
        steno_conv_close(other);
        fixture_close(f);
        size_t n = fixture_slurp(f, "projects/default/conversations/d/ids.idx", file, sizeof file);
        fixture_spit(f, IDS, file, n);
        fixture_open(f);
        for (int i = 0; i < FEW; i++)
                is_found(f, i);
        for (int i = 0; i < FEW; i++)
                is_replayed(f, i);
}

/* A folder is in its place: it is moved aside. */
static void a_folder(void **state)
{
        struct fixture *f = *state;
        struct steno_check_options opt = {.size = sizeof opt};
        for (int repair = 0; repair < 2; repair++) {
                fill(f, FEW);
                fixture_close(f);
                assert_int_equal(unlink(fixture_path(f, IDS)), 0);
                assert_int_equal(mkdir(fixture_path(f, IDS), 0700), 0);
                fixture_spit(f, IDS "/kept", repair ? "b-bytes" : "a-bytes", 7);
                fixture_open(f);
                opt.repair = false;
                assert_int_equal(steno_check(f->store, &opt, NULL, NULL, NULL), 1);
                opt.repair = true;
                if (repair)
                        assert_int_equal(steno_check(f->store, &opt, NULL, NULL, NULL), 1);
                for (int i = 0; i < FEW; i++)
                        is_replayed(f, i);
                assert_int_equal(steno_check(f->store, &opt, NULL, NULL, NULL), 0);
        }
        assert_true(fixture_holds(f, "a-bytes"));
        assert_true(fixture_holds(f, "b-bytes"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(zeros, fixture_setup, fixture_teardown),
            cmocka_unit_test_setup_teardown(anything, fixture_setup, fixture_teardown),
            cmocka_unit_test_setup_teardown(while_it_grows, fixture_setup, fixture_teardown),
            cmocka_unit_test_setup_teardown(crowded, fixture_setup, fixture_teardown),
            cmocka_unit_test_setup_teardown(found_while_they_wait, fixture_setup, fixture_teardown),
            cmocka_unit_test_setup_teardown(a_shorter_log, fixture_setup, fixture_teardown),
            cmocka_unit_test_setup_teardown(of_another_log, fixture_setup, fixture_teardown),
            cmocka_unit_test_setup_teardown(a_folder, fixture_setup, fixture_teardown),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
