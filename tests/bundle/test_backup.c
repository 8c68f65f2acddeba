/*
 * test_backup.c - backups of a store while others write: a backup has everything that was
 * acknowledged before it, every ref has its bytes, and the next backup copies what changed.
 */
#include "bundle/history.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "store/files/backup_stamp.h"
#include "store/play.h"

#define WRITERS 8

struct writer {
        struct fixture *f;
        int number;
        bool stop; /* atomic, as the next one: it waits while backups are looked at, else the
                      logs grow as long as that takes, and each look takes longer */
        bool wait;
        uint64_t acked; /* the last seq that has a receipt; atomic */
        uint64_t kept;  /* messages that nobody deletes, likewise */
        struct seed seed;
        pthread_t thread;
        char id[16];
};

static void say(struct steno_conv *conv, struct writer *w, uint64_t n)
{
        char json[100];
        struct steno_receipt *r = NULL;
        struct steno_append_options opt = {
            .size = sizeof opt, .durability = seed_below(&w->seed, 4) ? STENO_FULL : STENO_PROCESS};
        int len = snprintf(json, sizeof json,
            "{\"id\":\"k%llu\",\"role\":\"user\",\"content\":\"kept %llu\"}", (unsigned long long)n,
            (unsigned long long)n);
        OK(steno_append(conv, json, (size_t)len, &opt, &r, &err));
        steno_receipt_free(r);
        __atomic_store_n(&w->kept, n, __ATOMIC_SEQ_CST);
}

/* Something large that is deleted again, and sometimes its purge. */
static void come_and_go(struct steno_conv *conv, struct writer *w, uint64_t n)
{
        struct history h = {.conv = conv, .seed = &w->seed, .calls = (int)n * 10};
        struct steno_receipt *r = NULL;
        history_say(&h);
        history_call(&h);
        for (int i = 0; i < h.id_count; i++) {
                steno_amend(conv, "delete", h.ids[i], NULL, 0, NULL, &r, NULL);
                steno_receipt_free(r);
                r = NULL;
        }
        if (seed_below(&w->seed, 3) == 0)
                OK(steno_purge(w->f->store, NULL, w->id, NULL, &err));
}

static void run_a_while(struct steno_conv *conv, uint64_t n)
{
        struct steno_run *run;
        char id[32];
        snprintf(id, sizeof id, "run_%s_%llu", steno_conv_id(conv), (unsigned long long)n);
        OK(steno_run_begin(conv, id, "chat", &run, &err));
        OK(steno_run_event(run, "text", "{\"a\":1}", 7, STENO_FULL, NULL, &err));
        if (n % 2)
                OK(steno_run_event(
                    run, "run_finished", "{\"reason\":\"done\"}", 17, STENO_FULL, NULL, &err));
        steno_run_close(run);
}

static void *write_on(void *ctx)
{
        struct writer *w = ctx;
        struct steno_conv *conv;
        OK(steno_conv_open(w->f->store, NULL, w->id, &conv, &err));
        for (uint64_t n = w->kept + 1; !__atomic_load_n(&w->stop, __ATOMIC_SEQ_CST); n++) {
                say(conv, w, n);
                if (n % 16 == 0)
                        come_and_go(conv, w, n);
                if (n % 64 == 0)
                        run_a_while(conv, n);
                do {
                        usleep(1000);
                } while (__atomic_load_n(&w->wait, __ATOMIC_SEQ_CST));
        }
        steno_conv_close(conv);
        return NULL;
}

struct counting {
        uint64_t next;
};

/* Messages that nobody deletes are in the backup in order, without a gap. */
static int count_kept(void *ctx, const struct steno_record *r)
{
        struct counting *c = ctx;
        char want[24];
        snprintf(want, sizeof want, "k%llu", (unsigned long long)c->next);
        assert_string_not_equal(steno_record_kind(r), "damaged");
        c->next += strcmp(steno_record_id(r), want) == 0;
        return 0;
}

static void judge(const char *path, const uint64_t *before)
{
        struct steno_open_options opt = {.size = sizeof opt, .flags = STENO_OPEN_EXISTING};
        struct steno_store *store;
        OK(steno_open(path, &opt, &store, &err));
        history_check(store);
        for (int i = 0; i < WRITERS; i++) {
                struct steno_conv *conv;
                struct counting c = {.next = 1};
                char id[16];
                snprintf(id, sizeof id, "w%d", i);
                OK(steno_conv_open(store, NULL, id, &conv, &err));
                OK(steno_read(conv, 0, 0, count_kept, &c, &err));
                if (c.next <= before[i])
                        fail_msg("%s: %llu of %llu acknowledged messages", id,
                            (unsigned long long)c.next - 1, (unsigned long long)before[i]);
                struct buf view;
                buf_init(&view, 0);
                history_view(conv, &view); /* every ref reads */
                buf_release(&view);
                steno_conv_close(conv);
        }
        steno_close(store);
}

static uint64_t number(const char *json, const char *key)
{
        struct json j;
        uint64_t n = UINT64_MAX;
        json_init(&j);
        assert_int_equal(json_parse(&j, json, strlen(json), NULL, NULL), 0);
        assert_true(json_u64(&j, json_get(&j, 0, key), &n));
        json_release(&j);
        return n;
}

static void let_wait(struct writer *writers, bool wait)
{
        for (int i = 0; i < WRITERS; i++)
                __atomic_store_n(&writers[i].wait, wait, __ATOMIC_SEQ_CST);
}

static void backups_of_a_busy_store(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        static struct writer writers[WRITERS];
        struct scratch to;
        uint64_t before[WRITERS];
        assert_int_equal(scratch_make(&to), 0);
        for (int i = 0; i < WRITERS; i++) {
                struct steno_conv *conv;
                struct writer *w = &writers[i];
                *w = (struct writer){.f = f, .number = i, .seed = {seed_next(&seed)}};
                snprintf(w->id, sizeof w->id, "w%d", i);
                OK(steno_conv_create(f->store, NULL, w->id, NULL, &conv, &err));
                steno_conv_close(conv);
                assert_int_equal(pthread_create(&w->thread, NULL, write_on, w), 0);
        }
        for (int round = 0; round < seed_rounds(200); round++) {
                struct scratch again;
                for (int i = 0; i < WRITERS; i++) {
                        /* At least one more message, so that the rounds differ. */
                        uint64_t was = __atomic_load_n(&writers[i].kept, __ATOMIC_SEQ_CST);
                        while (__atomic_load_n(&writers[i].kept, __ATOMIC_SEQ_CST) == was)
                                usleep(100);
                        before[i] = __atomic_load_n(&writers[i].kept, __ATOMIC_SEQ_CST);
                }
                OK(steno_backup(f->store, to.path, NULL, NULL, NULL, &err));
                let_wait(writers, true);
                judge(to.path, before);
                if (round % 5 == 0) {
                        assert_int_equal(scratch_make(&again), 0);
                        OK(steno_restore(to.path, again.path, NULL, &err));
                        judge(again.path, before);
                        scratch_remove(&again);
                }
                let_wait(writers, false);
        }
        for (int i = 0; i < WRITERS; i++)
                __atomic_store_n(&writers[i].stop, true, __ATOMIC_SEQ_CST);
        for (int i = 0; i < WRITERS; i++)
                pthread_join(writers[i].thread, NULL);
        scratch_remove(&to);
}

static uint64_t backup(struct fixture *f, const struct scratch *to, const char *key)
{
        char *report = NULL;
        OK(steno_backup(f->store, to->path, NULL, NULL, &report, &err));
        uint64_t n = number(report, key);
        steno_free(report);
        return n;
}

/* ---- what did not change ---- */

#define CONV "projects/default/conversations/c"

/* What changed a moment ago is always copied again. From here on, only later changes are. */
static void grow_old(void)
{
        usleep(150000);
}

static void shell(const char *format, const char *a, const char *b)
{
        char command[1400];
        snprintf(command, sizeof command, format, a, b);
        if (system(command))
                fail_msg("%s", command);
}

/* Its note is written again when a conversation is copied. */
static void note_of(const struct scratch *to, char note[600])
{
        char path[400];
        snprintf(path, sizeof path, "%s/" CONV "/.backup", to->path);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        size_t n = fread(note, 1, 599, f);
        note[n] = '\0';
        fclose(f);
}

static void assert_equal_copy(struct fixture *f, const struct scratch *to)
{
        shell("diff -r -x '.*' -x 'ids.idx*' -x manifest.jsonl '%s/projects' '%s/projects' >&2",
            f->scratch.path, to->path);
        struct steno_open_options opt = {.size = sizeof opt, .flags = STENO_OPEN_EXISTING};
        struct steno_store *store;
        OK(steno_open(to->path, &opt, &store, &err));
        history_check(store);
        steno_close(store);
}

static void fill_and_back_up(struct fixture *f, const struct scratch *to)
{
        struct seed seed = seed_start();
        struct history h = {.conv = f->conv, .seed = &seed};
        for (int i = 0; i < 20; i++)
                history_step(&h);
        run_a_while(f->conv, 1);
        OK(steno_conv_set_meta(f->conv, "{\"title\":\"first\"}", &err));
        grow_old();
        backup(f, to, "copied");
}

static void what_did_not_change_is_left_alone(void **state)
{
        struct fixture *f = *state;
        struct scratch to;
        char before[600], after[600];
        assert_int_equal(scratch_make(&to), 0);
        fill_and_back_up(f, &to);
        note_of(&to, before);
        uint64_t records = backup(f, &to, "records");
        note_of(&to, after);
        assert_string_equal(before, after);
        assert_true(records > 20);
        fixture_append(f, "{\"role\":\"user\",\"content\":\"one more\"}");
        assert_int_equal(backup(f, &to, "records"), records + 1);
        assert_equal_copy(f, &to);
        scratch_remove(&to);
}

/* Each command changes something, with equal length or the old time. $1 is the store, $2 the
 * backup. */
static void every_change_is_noticed(void **state)
{
#define IN "set -e; A='%s/" CONV "'; B='%s/" CONV "'; "
        static const char *const CHANGES[] = {
            IN "M=\"$A\"/meta.json; touch -r \"$M\" \"$A\"/.old; printf F | dd of=\"$M\" bs=1 "
               "seek=$(grep -bo first \"$M\" | cut -d: -f1) conv=notrunc status=none; "
               "touch -r \"$A\"/.old \"$M\"; rm \"$A\"/.old",
            IN "M=\"$A\"/meta.json; sed s/First/fir5t/ \"$M\" > \"$A\"/.new; "
               "touch -r \"$M\" \"$A\"/.new; mv \"$A\"/.new \"$M\"",
            IN "M=\"$A\"/meta.json; touch -d 2001-01-01 \"$A\"/.older; "
               "sed s/fir5t/older/ \"$M\" > \"$A\"/.older; cp -p \"$A\"/.older \"$M\"; "
               "rm \"$A\"/.older",
            IN "for J in \"$A\"/runs/*.jsonl; do cp -p \"$J\" \"$A\"/.j; rm \"$J\"; "
               "cp -p \"$A\"/.j \"$J\"; done; rm \"$A\"/.j",
            IN "truncate -s -1 \"$B\"/messages.jsonl",
            IN "rm \"$B\"/messages.jsonl",
            IN "sed -i s/older/other/ \"$B\"/meta.json",
            IN "rm -r \"$B\"/runs",
            IN "for O in \"$B\"/artifacts/tool/*; do truncate -s 3 \"$O\"; done",
            IN "rm -r \"$B\"/artifacts",
            IN "echo x > \"$B\"/artifacts/tool/stray",
            IN "echo '{' > \"$B\"/.backup",
        };
        struct fixture *f = *state;
        struct scratch to;
        char before[600], after[600];
        assert_int_equal(scratch_make(&to), 0);
        fill_and_back_up(f, &to);
        for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++) {
                grow_old();
                backup(f, &to, "copied");
                note_of(&to, before);
                shell(CHANGES[i], f->scratch.path, to.path);
                backup(f, &to, "copied");
                note_of(&to, after);
                if (strcmp(before, after) == 0)
                        fail_msg("not noticed: %s", CHANGES[i]);
                assert_equal_copy(f, &to);
        }
        scratch_remove(&to);
}

static void what_was_moved_and_came_back_is_right(void **state)
{
        struct fixture *f = *state;
        struct scratch to;
        struct steno_conv *conv;
        char *name = NULL;
        assert_int_equal(scratch_make(&to), 0);
        fill_and_back_up(f, &to);
        OK(steno_remove(f->store, NULL, "c", &name, &err));
        OK(steno_conv_create(f->store, NULL, "c", NULL, &conv, &err));
        fixture_append(&(struct fixture){.conv = conv}, "{\"role\":\"user\",\"content\":\"new\"}");
        steno_conv_close(conv);
        grow_old();
        for (int i = 0; i < 2; i++) {
                assert_int_equal(backup(f, &to, "trashed"), 1);
                assert_equal_copy(f, &to); /* with nothing of the one that had its id */
        }
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        OK(steno_trash_restore(f->store, NULL, name, NULL, &err));
        assert_int_equal(backup(f, &to, "trashed"), 1);
        assert_equal_copy(f, &to);
        steno_free(name);
        scratch_remove(&to);
}

/* A folder for large tokens, and no list of outputs although the copy has one. */
static void a_list_of_outputs_goes_with_them(void **state)
{
        struct fixture *f = *state;
        struct scratch to;
        struct steno_conv *conv;
        static char large[300100];
        char path[400];
        assert_int_equal(scratch_make(&to), 0);
        fill_and_back_up(f, &to);
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        OK(steno_conv_create(f->store, NULL, "c", NULL, &conv, &err));
        int n = snprintf(large, sizeof large, "{\"role\":\"user\",\"content\":\"");
        memset(large + n, 'x', 300000);
        memcpy(large + n + 300000, "\"}", 3);
        OK(steno_append(conv, large, (size_t)n + 300002, NULL, NULL, &err));
        steno_conv_close(conv);
        assert_int_equal(access(fixture_path(f, CONV "/artifacts/parts"), F_OK), 0);
        backup(f, &to, "copied");
        assert_equal_copy(f, &to);
        snprintf(path, sizeof path, "%s/" CONV "/artifacts/manifest.jsonl", to.path);
        assert_int_equal(access(path, F_OK) == 0,
            access(fixture_path(f, CONV "/artifacts/manifest.jsonl"), F_OK) == 0);
        scratch_remove(&to);
}

static int stop_at_once(void *ctx, const char *what, uint64_t done, uint64_t all)
{
        (void)ctx, (void)what, (void)done, (void)all;
        return 1;
}

static void a_backup_that_was_stopped_is_made_again(void **state)
{
        struct fixture *f = *state;
        struct scratch to, into;
        assert_int_equal(scratch_make(&to), 0);
        assert_int_equal(scratch_make(&into), 0);
        fill_and_back_up(f, &to);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(steno_backup(f->store, to.path, stop_at_once, NULL, NULL, NULL),
                    STENO_EINTERRUPTED);
                assert_int_equal(steno_restore(to.path, into.path, NULL, NULL), STENO_ECORRUPT);
                fixture_append(f, "{\"role\":\"user\",\"content\":\"one more\"}");
                backup(f, &to, "copied");
                assert_equal_copy(f, &to);
                grow_old();
        }
        scratch_remove(&to);
        scratch_remove(&into);
}

static struct timespec later_by(struct timespec t, int ms)
{
        int64_t ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + (int64_t)ms * 1000000;
        return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = ns % 1000000000};
}

/* Also when the clock was set back: then the times of all files are in the future. */
static void a_young_file_has_no_stamp(void **state)
{
        struct fixture *f = *state;
        char stamp[SHA256_HEX], again[SHA256_HEX];
        struct stat log;
        fixture_append(f, "{\"role\":\"user\",\"content\":\"hello\"}");
        assert_int_equal(stat(fixture_path(f, CONV "/messages.jsonl"), &log), 0);
        int dir = open(fixture_path(f, CONV), O_RDONLY | O_DIRECTORY);
        assert_true(dir >= 0);
        struct timespec at[] = {later_by(log.st_ctim, -3600000), log.st_ctim,
            later_by(log.st_ctim, 20), later_by(log.st_ctim, 5000)};
        for (int i = 0; i < 3; i++)
                assert_int_equal(backup_stamp(fs_real(), dir, &at[i], stamp), 1);
        assert_int_equal(backup_stamp(fs_real(), dir, &at[3], stamp), 0);
        assert_int_equal(backup_stamp(fs_real(), dir, NULL, again), 0);
        assert_string_equal(stamp, again);
        close(dir);
}

static void the_second_backup_copies_what_changed(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        struct scratch to;
        struct history h = {.conv = f->conv, .seed = &seed};
        assert_int_equal(scratch_make(&to), 0);
        for (int i = 0; i < 60; i++)
                history_step(&h);
        uint64_t first = backup(f, &to, "copied");
        assert_true(first > 50000);
        assert_int_equal(backup(f, &to, "copied"), 0);
        fixture_append(f, "{\"role\":\"user\",\"content\":\"one more\"}");
        uint64_t second = backup(f, &to, "copied");
        assert_true(second > 0 && second < 400);
        scratch_remove(&to);
}

static void what_was_purged_and_removed_leaves_the_backup(void **state)
{
        struct fixture *f = *state;
        struct scratch to;
        struct steno_conv *conv;
        struct steno_receipt *r = NULL;
        char command[800];
        assert_int_equal(scratch_make(&to), 0);
        fixture_append(f, "{\"id\":\"m\",\"role\":\"user\",\"content\":\"secret-word\"}");
        OK(steno_conv_create(f->store, NULL, "gone", NULL, &conv, &err));
        OK(steno_append(
            conv, "{\"role\":\"user\",\"content\":\"other-word\"}", 38, NULL, NULL, &err));
        steno_conv_close(conv);
        grow_old();
        assert_int_equal(backup(f, &to, "conversations"), 2);
        OK(steno_amend(f->conv, "delete", "m", NULL, 0, NULL, &r, &err));
        steno_receipt_free(r);
        OK(steno_purge(f->store, NULL, "c", NULL, &err));
        OK(steno_remove(f->store, NULL, "gone", NULL, &err));
        assert_int_equal(backup(f, &to, "trashed"), 1);
        snprintf(command, sizeof command, "grep -rq secret-word '%s'", to.path);
        assert_int_not_equal(system(command), 0);
        grow_old();
        assert_int_equal(backup(f, &to, "trashed"), 1);
        OK(steno_trash_empty(f->store, 0, &(uint64_t){0}, &err));
        assert_int_equal(backup(f, &to, "trashed"), 0);
        snprintf(command, sizeof command, "grep -rq other-word '%s'", to.path);
        assert_int_not_equal(system(command), 0);
        scratch_remove(&to);
}

static void an_output_under_an_old_name_is_copied(void **state)
{
        struct fixture *f = *state;
        struct scratch to;
        struct steno_open_options opt = {.size = sizeof opt, .flags = STENO_OPEN_EXISTING};
        struct steno_store *store;
        static char text[2][20200];
        assert_int_equal(scratch_make(&to), 0);
        for (int i = 0; i < 2; i++) {
                struct steno_receipt *r = NULL;
                char id[16];
                fixture_append(f,
                    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":"
                    "\"call_0\",\"type\":\"function\",\"function\":{\"name\":\"ls\","
                    "\"arguments\":\"{}\"}}]}");
                snprintf(id, sizeof id, "t%d", i);
                int n = snprintf(text[i], sizeof text[i],
                    "{\"id\":\"%s\",\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"content\":\"",
                    id);
                memset(text[i] + n, 'a' + i, 20000);
                memcpy(text[i] + n + 20000, "\"}", 3);
                fixture_append(f, text[i]);
                grow_old();
                backup(f, &to, "copied");
                OK(steno_open(to.path, &opt, &store, &err));
                history_check(store);
                steno_close(store);
                OK(steno_amend(f->conv, "delete", id, NULL, 0, NULL, &r, &err));
                steno_receipt_free(r);
                OK(steno_purge(f->store, NULL, "c", NULL, &err));
        }
        scratch_remove(&to);
}

static void folders_that_are_no_backup_are_refused(void **state)
{
        struct fixture *f = *state;
        struct scratch to, into;
        char path[300];
        assert_int_equal(scratch_make(&to), 0);
        assert_int_equal(scratch_make(&into), 0);
        assert_int_equal(
            steno_backup(f->store, f->scratch.path, NULL, NULL, NULL, NULL), STENO_ECONFLICT);
        assert_int_equal(steno_restore(to.path, into.path, NULL, NULL), STENO_EPROTO);
        backup(f, &to, "copied");
        snprintf(path, sizeof path, "%s/complete.json", to.path);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(steno_restore(to.path, into.path, NULL, NULL), STENO_ECORRUPT);
        backup(f, &to, "copied");
        assert_int_equal(steno_restore(to.path, f->scratch.path, NULL, NULL), STENO_ECONFLICT);
        OK(steno_restore(to.path, into.path, NULL, &err));
        scratch_remove(&to);
        scratch_remove(&into);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
            TEST(backups_of_a_busy_store),
            TEST(the_second_backup_copies_what_changed),
            TEST(what_did_not_change_is_left_alone),
            TEST(every_change_is_noticed),
            TEST(what_was_moved_and_came_back_is_right),
            TEST(a_list_of_outputs_goes_with_them),
            TEST(a_backup_that_was_stopped_is_made_again),
            TEST(a_young_file_has_no_stamp),
            TEST(what_was_purged_and_removed_leaves_the_backup),
            TEST(an_output_under_an_old_name_is_copied),
            TEST(folders_that_are_no_backup_are_refused),
        };
        return cmocka_run_group_tests_name("backups", tests, NULL, NULL);
}
