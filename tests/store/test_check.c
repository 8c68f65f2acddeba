/*
 * test_check.c - a check finds each kind of planted damage and nothing else, and a repair loses
 * nothing.
 */
#include "fixture.h"

#include <sys/file.h>
#include <unistd.h>

#include "api/api_store.h"
#include "base/env.h"
#include "base/fs.h"
#include "model/record.h"

struct found {
        char text[16][500];
        int count;
        int lost; /* records that a repair has put tombstones in the place of */
};

static int find(void *ctx, const char *json)
{
        struct found *f = ctx;
        if (strstr(json, " lost: ")) {
                f->lost++;
                return 0;
        }
        if (f->count < 16)
                snprintf(f->text[f->count], sizeof f->text[0], "%s", json);
        f->count++;
        return 0;
}

static struct found check(struct fixture *f, bool repair)
{
        struct found found = {.count = 0};
        struct steno_check_options opt = {.size = sizeof opt, .repair = repair};
        struct steno_error err = {0};
        int n = steno_check(f->store, &opt, find, &found, &err);
        if (n < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(n, found.count + found.lost);
        return found;
}

/* There is exactly one finding, and it contains these words. */
static void finds(struct fixture *f, bool repair, const char *words, const char *more)
{
        struct found found = check(f, repair);
        for (int i = 0; i < found.count && found.count != 1; i++)
                print_message("# %s\n", found.text[i]);
        assert_int_equal(found.count, 1);
        if (!strstr(found.text[0], words) || !strstr(found.text[0], more))
                fail_msg("%s", found.text[0]);
}

static void finds_nothing(struct fixture *f)
{
        struct found found = check(f, false);
        if (found.count)
                fail_msg("%s", found.text[0]);
}

static char log_text[1 << 20];

static size_t load(struct fixture *f, const char *below)
{
        return fixture_slurp(f, below, log_text, sizeof log_text);
}

#define LOG CONV_FOLDER "messages.jsonl"

/* A conversation with something of everything. */
static void fill(struct fixture *f)
{
        struct steno_run *run;
        fixture_append(f, "{\"id\":\"u1\",\"role\":\"user\",\"content\":\"hello there\"}");
        fixture_append(f, "{\"id\":\"a1\",\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
                          "{\"id\":\"k1\",\"type\":\"function\",\"function\":{\"name\":\"t\","
                          "\"arguments\":\"{}\"}},"
                          "{\"id\":\"k2\",\"type\":\"function\",\"function\":{\"name\":\"t\","
                          "\"arguments\":\"{}\"}}]}");
        char *big = malloc(60000);
        assert_non_null(big);
        int n = snprintf(
            big, 60000, "{\"id\":\"t1\",\"role\":\"tool\",\"tool_call_id\":\"k1\",\"content\":\"");
        memset(big + n, 'o', 50000);
        snprintf(big + n + 50000, 100, "\"}");
        fixture_append(f, big);
        n = snprintf(big, 60000, "{\"id\":\"u2\",\"role\":\"user\",\"content\":\"");
        memset(big + n, 'p', 50000);
        snprintf(big + n + 50000, 100, "\"}");
        fixture_append(f, big);
        free(big);
        fixture_append(f, "[{\"id\":\"b1\",\"role\":\"user\",\"content\":\"one\"},"
                          "{\"id\":\"b2\",\"role\":\"user\",\"content\":\"two\"},"
                          "{\"id\":\"b3\",\"role\":\"user\",\"content\":\"three\"}]");
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        for (int i = 0; i < 3; i++)
                OK(steno_run_event(run, "step", "{\"a\":\"bc\"}", 10, STENO_FULL, NULL, &err));
        steno_run_close(run);
}

static void a_sound_store_has_no_findings(void **state)
{
        struct fixture *f = *state;
        finds_nothing(f);
        fill(f);
        finds_nothing(f); /* k2 has no result, which is not damage */
        struct steno_append_options opt = {.size = sizeof opt, .flags = STENO_RECORD};
        const char *orphan = "{\"role\":\"tool\",\"tool_call_id\":\"zz\",\"content\":\"x\"}";
        OK(steno_append(f->conv, orphan, strlen(orphan), &opt, NULL, &err));
        finds_nothing(f); /* marked */
        OK(steno_amend(f->conv, "delete", "a1", NULL, 0, NULL, NULL, &err));
        OK(steno_amend(f->conv, "delete", "u2", NULL, 0, NULL, NULL, &err));
        char *report;
        OK(steno_purge(f->store, NULL, "c", &report, &err));
        steno_free(report);
        finds_nothing(f); /* also the result of a purged call */
}

static void a_flipped_bit_in_the_log_is_found_where_it_is(void **state)
{
        struct fixture *f = *state;
        fill(f);
        size_t n = load(f, LOG);
        *strstr(log_text, "hello there") ^= 1;
        fixture_spit(f, LOG, log_text, n);
        finds(f, false, "\"seq\":1", "cannot be read");
        load(f, LOG);
        assert_non_null(strstr(log_text, "iello there"));
}

static int swallow(void *ctx, const void *p, size_t n)
{
        (void)ctx;
        (void)p;
        (void)n;
        return 0;
}

/* Every record's seq, and 'd' for one that is damaged or lost. */
static int note_kind(void *ctx, const struct steno_record *r)
{
        char *to = ctx;
        bool damaged = strcmp(steno_record_kind(r), "damaged") == 0;
        snprintf(to + strlen(to), 200 - strlen(to), "%s%llu ", damaged ? "d" : "",
            (unsigned long long)steno_record_seq(r));
        return 0;
}

static void reads_as(struct fixture *f, const char *want)
{
        char got[200] = "";
        OK(steno_read(f->conv, 0, 0, note_kind, got, &err));
        assert_string_equal(got, want);
}

static void a_repair_moves_damage_aside_and_keeps_the_seqs(void **state)
{
        struct fixture *f = *state;
        fill(f);
        size_t n = load(f, LOG);
        *strstr(log_text, "hello there") ^= 1;
        *strstr(log_text, "\"two\"") ^= 1; /* in the middle of a batch */
        fixture_spit(f, LOG, log_text, n);
        struct found found = check(f, true);
        assert_int_equal(found.count, 2);
        for (int i = 0; i < 2; i++)
                assert_non_null(strstr(found.text[i], "\"repaired\":true"));
        load(f, LOG);
        assert_null(strstr(log_text, "iello there"));
        assert_true(fixture_holds(f, "iello there"));
        finds_nothing(f);
        reads_as(f, "d1 2 3 4 5 d6 7 ");
        fixture_append(f, "{\"role\":\"user\",\"content\":\"after\"}");
        reads_as(f, "d1 2 3 4 5 d6 7 8 ");
        char *report, *want = "\"damaged\":[1,6]";
        struct steno_view_options opt = {.size = sizeof opt};
        OK(steno_view(f->conv, &opt, swallow, NULL, &report, &err));
        if (!strstr(report, want))
                fail_msg("%s", report);
        steno_free(report);
        /* Without its index, and then once more. */
        fixture_close(f);
        unlink(fixture_path(f, CONV_FOLDER "ids.idx"));
        fixture_open(f);
        reads_as(f, "d1 2 3 4 5 d6 7 8 ");
        assert_int_equal(check(f, true).count, 0);
}

static void a_repair_keeps_what_was_amended(void **state)
{
        struct fixture *f = *state;
        fill(f);
        OK(steno_amend(f->conv, "delete", "b1", NULL, 0, NULL, NULL, &err));
        OK(steno_amend(f->conv, "delete", "b2", NULL, 0, NULL, NULL, &err));
        OK(steno_amend(f->conv, "delete", "b3", NULL, 0, NULL, NULL, &err));
        size_t n = load(f, LOG);
        *strstr(log_text, "\"target\":\"b2\"") ^= 1;
        fixture_spit(f, LOG, log_text, n);
        finds(f, true, "\"seq\":9", "\"repaired\":true");
        finds_nothing(f);
        fixture_close(f);
        fixture_open(f);
        char seqs[200] = "";
        OK(steno_read_amendments(f->conv, note_kind, seqs, &err));
        assert_non_null(strstr(seqs, "8 ")); /* the chain continues before what was lost */
}

static void records_cut_off_become_tombstones(void **state)
{
        struct fixture *f = *state;
        fill(f);
        fixture_close(f);
        fixture_open(f);
        size_t n = load(f, LOG);
        char *b2 = strstr(log_text, "{\"v\":1,\"seq\":6,");
        fixture_spit(f, LOG, log_text, (size_t)(b2 - log_text) + 20);
        assert_true(n > (size_t)(b2 - log_text));
        finds(f, false, "\"seq\":6", "\"repairable\":true");
        finds(f, true, "up to seq 7", "\"repaired\":true");
        finds_nothing(f);
        reads_as(f, "1 2 3 4 5 d6 d7 ");
        fixture_append(f, "{\"role\":\"user\",\"content\":\"after\"}");
        reads_as(f, "1 2 3 4 5 d6 d7 8 ");
}

static void lines_that_stand_twice_go(void **state)
{
        struct fixture *f = *state;
        fill(f);
        size_t n = load(f, LOG);
        size_t first = (size_t)(strchr(log_text, '\n') - log_text) + 1;
        memmove(log_text + 2 * first, log_text + first, n - first);
        memcpy(log_text + first, log_text, first);
        fixture_spit(f, LOG, log_text, n + first);
        finds(f, true, "not in its place", "\"repaired\":true");
        finds_nothing(f);
        reads_as(f, "1 2 3 4 5 6 7 ");
}

static void a_seq_that_is_nonsense_is_left_alone(void **state)
{
        struct fixture *f = *state;
        fill(f);
        size_t n = load(f, LOG);
        struct buf line;
        buf_init(&line, 0);
        struct record rec = {.seq = 5000000000,
            .at = STR("2026-11-15T04:20:00.000Z"),
            .fmt = STR("openai"),
            .batch_count = 1,
            .x = STR("{}"),
            .m = STR("{\"role\":\"user\",\"content\":\"?\"}")};
        record_write(&line, &rec, STR("far"));
        memcpy(log_text + n, line.p, line.n);
        fixture_spit(f, LOG, log_text, n + line.n);
        finds(f, true, "\"seq\":8", "\"repaired\":false");
        assert_int_equal(load(f, LOG), n + line.n);
        buf_release(&line);
}

static void a_missing_log_begins_anew_only_by_a_repair(void **state)
{
        struct fixture *f = *state;
        const char *m = "{\"role\":\"user\",\"content\":\"x\"}";
        fill(f);
        fixture_close(f);
        unlink(fixture_path(f, LOG));
        unlink(fixture_path(f, CONV_FOLDER "ids.idx"));
        fixture_open(f);
        finds(f, false, "is missing", "\"repairable\":true");
        assert_int_equal(steno_append(f->conv, m, strlen(m), NULL, NULL, NULL), STENO_ECORRUPT);
        assert_true(check(f, true).count >= 1);
        finds_nothing(f);
        assert_int_equal(check(f, false).lost, 1);
        fixture_append(f, m);
        reads_as(f, "d1 2 "); /* the mark of a lost record is a record */
}

static void other_line_ends_are_refused_until_a_repair(void **state)
{
        struct fixture *f = *state;
        const char *m = "{\"role\":\"user\",\"content\":\"x\"}";
        char command[700], got[200] = "";
        fill(f);
        fixture_close(f);
        snprintf(command, sizeof command, "sed -i 's/$/\\r/' '%s'", fixture_path(f, LOG));
        assert_int_equal(system(command), 0);
        fixture_open(f);
        /* Its index belongs to the old file, and still knows how far the seqs went. */
        reads_as(f, "d1 ");
        assert_int_equal(steno_append(f->conv, m, strlen(m), NULL, NULL, NULL), STENO_ECORRUPT);
        unlink(fixture_path(f, CONV_FOLDER "ids.idx"));
        assert_int_equal(steno_read(f->conv, 0, 0, note_kind, got, NULL), STENO_ECORRUPT);
        assert_int_equal(steno_append(f->conv, m, strlen(m), NULL, NULL, NULL), STENO_ECORRUPT);
        finds(f, true, "torn", "\"repaired\":true");
        assert_true(fixture_holds(f, "hello there"));
        finds_nothing(f);
        fixture_append(f, m);
        reads_as(f, "1 ");
}

static void a_missing_record_is_found(void **state)
{
        struct fixture *f = *state;
        fill(f);
        size_t n = load(f, LOG);
        char *second = strchr(log_text, '\n') + 1;
        char *third = strchr(second, '\n') + 1;
        memmove(second, third, n - (size_t)(third - log_text));
        fixture_spit(f, LOG, log_text, n - (size_t)(third - second));
        struct found found = check(f, false);
        /* Its result no longer has a call. */
        bool gap = false, orphan = false;
        for (int i = 0; i < found.count; i++) {
                gap =
                    gap || (strstr(found.text[i], "\"seq\":2") && strstr(found.text[i], "missing"));
                orphan = orphan || strstr(found.text[i], "answers no call");
        }
        assert_true(gap && orphan);
        finds(f, true, "\"seq\":2", "\"repaired\":true");
        finds_nothing(f);
        assert_int_equal(check(f, false).lost, 1);
}

static void half_a_batch_in_the_middle_is_found(void **state)
{
        struct fixture *f = *state;
        fill(f);
        fixture_append(f, "{\"id\":\"z\",\"role\":\"user\",\"content\":\"after\"}");
        size_t n = load(f, LOG);
        char *b3 = strstr(log_text, "{\"v\":1,\"seq\":7,");
        char *z = strstr(log_text, "{\"v\":1,\"seq\":8,");
        assert_true(b3 && z);
        memmove(b3, z, n - (size_t)(z - log_text));
        fixture_spit(f, LOG, log_text, n - (size_t)(z - b3));
        finds(f, false, "\"seq\":7", "missing");
}

static void a_torn_tail_is_quarantined_by_a_repair_only(void **state)
{
        struct fixture *f = *state;
        fill(f);
        size_t n = load(f, LOG);
        memcpy(log_text + n, "{\"v\":1,\"seq\":8,\"id\":\"torn words", 31);
        fixture_spit(f, LOG, log_text, n + 31);
        finds(f, false, "torn", "\"repaired\":false");
        assert_int_equal(load(f, LOG), n + 31);
        finds(f, true, "torn", "\"repaired\":true");
        assert_int_equal(load(f, LOG), n);
        assert_true(fixture_holds(f, "torn words"));
        finds_nothing(f);
}

static void a_lost_artifact_and_a_changed_one_are_found(void **state)
{
        struct fixture *f = *state;
        fill(f);
        char command[700];
        snprintf(command, sizeof command,
            "printf X | dd of='%s' bs=1 seek=100 conv=notrunc 2>/dev/null",
            fixture_path(f, CONV_FOLDER "artifacts/tool/k1.txt"));
        assert_int_equal(system(command), 0);
        finds(f, false, "artifact ctx_", "other bytes");
        snprintf(command, sizeof command, "printf X >> '%s'",
            fixture_path(f, CONV_FOLDER "artifacts/tool/k1.txt"));
        assert_int_equal(system(command), 0);
        finds(f, false, "artifact ctx_", "50001 bytes");
        unlink(fixture_path(f, CONV_FOLDER "artifacts/tool/k1.txt"));
        finds(f, true, "artifact ctx_", "cannot be opened");
}

static void a_lost_manifest_leaves_refs_without_artifacts(void **state)
{
        struct fixture *f = *state;
        fill(f);
        fixture_spit(f, CONV_FOLDER "artifacts/manifest.jsonl", "", 0);
        finds(f, false, "\"seq\":3", "it refers to artifact ctx_");
        fixture_spit(f, CONV_FOLDER "artifacts/manifest.jsonl", "garbage\n", 8);
        assert_int_equal(check(f, false).count, 2);
}

static void a_lost_part_and_a_changed_one_are_found(void **state)
{
        struct fixture *f = *state;
        fill(f);
        char command[700];
        snprintf(command, sizeof command,
            "cd '%s' && for p in *; do printf X | dd of=$p bs=1 seek=9 conv=notrunc 2>/dev/null; "
            "done",
            fixture_path(f, CONV_FOLDER "artifacts/parts"));
        assert_int_equal(system(command), 0);
        finds(f, false, "part ", "other bytes");
        snprintf(
            command, sizeof command, "rm '%s'/*", fixture_path(f, CONV_FOLDER "artifacts/parts"));
        assert_int_equal(system(command), 0);
        finds(f, false, "\"seq\":4", "it refers to part");
        /* Looking changes nothing, whatever else is wrong. */
        size_t n = load(f, LOG);
        log_text[n] = '{';
        fixture_spit(f, LOG, log_text, n + 1);
        assert_int_equal(check(f, false).count, 2);
        assert_int_equal(load(f, LOG), n + 1);
        /* A purge that was interrupted has taken it first. */
        OK(steno_amend(f->conv, "delete", "u2", NULL, 0, NULL, NULL, &err));
        finds_nothing(f);
}

static void a_damaged_journal_is_found_and_its_torn_end_repaired(void **state)
{
        struct fixture *f = *state;
        fill(f);
        size_t n = load(f, CONV_FOLDER "runs/r1.jsonl");
        strstr(log_text, "\"seq\":2,")[40] ^= 1;
        fixture_spit(f, CONV_FOLDER "runs/r1.jsonl", log_text, n);
        finds(f, true, "1 line of run r1", "\"repaired\":false");
        strstr(log_text, "\"seq\":2,")[40] ^= 1;
        fixture_spit(f, CONV_FOLDER "runs/r1.jsonl", log_text, n - 5);
        finds(f, false, "run r1 are torn", "\"repaired\":false");
        finds(f, true, "run r1 are torn", "\"repaired\":true");
        finds_nothing(f);
        fixture_spit(f, CONV_FOLDER "runs/r1.jsonl", strchr(log_text, '\n') + 1, 20);
        assert_true(check(f, false).count > 0);
}

static void meta_that_cannot_be_read_is_found(void **state)
{
        struct fixture *f = *state;
        fixture_spit(f, CONV_FOLDER "meta.json", "{\"id\":", 6);
        finds(f, false, "meta.json is not", "");
        fixture_spit(f, CONV_FOLDER "meta.json", "{\"id\":\"d\"}", 10);
        finds(f, false, "not the id of this folder", "");
        fixture_spit(f, CONV_FOLDER "meta.json", "{}", 2);
        finds(f, false, "has no id", "");
        unlink(fixture_path(f, CONV_FOLDER "meta.json"));
        finds(f, true, "meta.json is missing", "");
}

static void an_index_of_ids_that_is_wrong_is_rebuilt(void **state)
{
        struct fixture *f = *state;
        fill(f);
        /* Ids that clients made are looked for, so the index is complete and written. */
        fixture_close(f);
        fixture_open(f);
        fixture_append(f, "{\"id\":\"last\",\"role\":\"user\",\"content\":\"x\"}");
        fixture_close(f);
        fixture_open(f);
        size_t n = load(f, CONV_FOLDER "ids.idx");
        memset(log_text + 96, 0, n - 96);
        fixture_spit(f, CONV_FOLDER "ids.idx", log_text, n);
        finds(f, false, "ids.idx", "\"repaired\":false");
        finds(f, true, "ids.idx", "\"repaired\":true");
        finds_nothing(f);
        struct steno_receipt *r;
        const char *m = "{\"id\":\"u1\",\"role\":\"user\",\"content\":\"hello there\"}";
        OK(steno_append(f->conv, m, strlen(m), NULL, &r, &err));
        assert_true(steno_receipt_replayed(r));
        steno_receipt_free(r);
}

static void the_trash_is_looked_at_too(void **state)
{
        struct fixture *f = *state;
        fill(f);
        char command[900];
        fixture_close(f);
        OK(steno_open(f->scratch.path, NULL, &f->store, &err));
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        finds_nothing(f);
        snprintf(command, sizeof command,
            "sed -i 's/hello there/hellu there/' '%s'/*/messages.jsonl", fixture_path(f, "trash"));
        assert_int_equal(system(command), 0);
        finds(f, false, "\"conversation\":\"c\",\"seq\":1,", "\"trash\":true");
        finds(f, true, "\"repaired\":false", "\"trash\":true");
        /* Where it is restored it is repaired. */
        OK(steno_trash_restore(f->store, NULL, "c", NULL, &err));
        finds(f, true, "\"seq\":1,", "\"repaired\":true");
        OK(steno_conv_open(f->store, NULL, "c", &f->conv, &err));
}

static int count_calls(void *ctx, const char *what, uint64_t done, uint64_t total)
{
        assert_string_equal(what, "check");
        assert_true(done <= total);
        ++*(int *)ctx;
        return 0;
}

static int stop_at_once(void *ctx, const char *what, uint64_t done, uint64_t total)
{
        (void)ctx;
        (void)what;
        (void)done;
        (void)total;
        return 1;
}

static void it_can_be_asked_of_one_conversation_and_stopped(void **state)
{
        struct fixture *f = *state;
        struct steno_conv *other;
        int calls = 0;
        OK(steno_conv_create(f->store, "p2", "other", NULL, &other, &err));
        steno_conv_close(other);
        fixture_spit(f, "projects/p2/conversations/other/meta.json", "", 0);
        struct found found = {.count = 0};
        struct steno_check_options opt = {
            .size = sizeof opt, .progress = count_calls, .progress_ctx = &calls};
        assert_int_equal(steno_check(f->store, &opt, find, &found, NULL), 1);
        assert_int_equal(calls, 3);
        opt.id = "c";
        assert_int_equal(steno_check(f->store, &opt, find, &found, NULL), 0);
        opt.project = "p2";
        assert_int_equal(steno_check(f->store, &opt, find, &found, NULL), STENO_ENOTFOUND);
        opt.id = NULL;
        assert_int_equal(steno_check(f->store, &opt, find, &found, NULL), 1);
        opt.progress = stop_at_once;
        assert_int_equal(steno_check(f->store, &opt, find, &found, NULL), STENO_EINTERRUPTED);
}

static void figures_are_those_of_the_store(void **state)
{
        struct fixture *f = *state;
        char *json;
        fill(f);
        OK(steno_stats(f->store, &json, &err));
        const char *want[] = {"\"conversations\":1,\"messages\":7,", "\"artifacts\":2,",
            "\"trash\":{\"conversations\":0,\"bytes\":0},\"quarantine\":0",
            "\"outputs\":{\"materializations\":1,\"bytesSaved\":4", "\"reads\":{\"list\":0"};
        for (size_t i = 0; i < sizeof want / sizeof *want; i++)
                if (!strstr(json, want[i]))
                        fail_msg("%s is not in %s", want[i], json);
        steno_free(json);
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        OK(steno_stats(f->store, &json, &err));
        assert_non_null(strstr(json, "\"conversations\":0,\"messages\":0,"));
        assert_non_null(strstr(json, "\"trash\":{\"conversations\":1,\"bytes\":1"));
        steno_free(json);
}

/* ---- writers ---- */

/* When a file is opened for the n-th time while nobody holds a lock, somebody else appends to the
 * conversation. */
static struct {
        struct steno_store *store;
        struct steno_conv *conv;
        int left;
        int locked; /* descriptor, -1: none */
} writer;

static int open_while_somebody_writes(
    const struct fs *self, int dir, const char *path, int flags, mode_t mode)
{
        static const char JSON[] = "{\"role\":\"user\",\"content\":\"meanwhile\"}";
        (void)self;
        if (writer.conv && writer.locked < 0 && writer.left-- == 0) {
                char *list = NULL;
                OK(steno_append(writer.conv, JSON, strlen(JSON), NULL, NULL, &err));
                OK(steno_list(writer.store, NULL, NULL, &list, &err)); /* the index has it, too */
                steno_free(list);
        }
        return fs_real()->open(fs_real(), dir, path, flags, mode);
}

static int lock_and_remember(const struct fs *self, int fd, int operation)
{
        (void)self;
        int rc = fs_real()->flock(fs_real(), fd, operation);
        if (rc == 0)
                writer.locked = operation & LOCK_UN ? -1 : fd;
        return rc;
}

static int close_and_remember(const struct fs *self, int fd)
{
        (void)self;
        if (fd == writer.locked)
                writer.locked = -1;
        return fs_real()->close(fs_real(), fd);
}

static void what_is_written_while_a_check_looks_is_no_finding(void **state)
{
        struct fixture *f = *state;
        struct fixture looking = {.scratch = f->scratch};
        struct fs fs = *fs_real();
        struct env env = *env_real();
        fs.open = open_while_somebody_writes;
        fs.flock = lock_and_remember;
        fs.close = close_and_remember;
        env.fs = &fs;
        fixture_append(f, "{\"role\":\"user\",\"content\":\"first\"}");
        int rounds = 0;
        do {
                writer.conv = NULL;
                writer.locked = -1;
                OK(api_store_open_in(&env, f->scratch.path, NULL, &looking.store, &err));
                finds_nothing(&looking);
                writer.store = f->store;
                writer.conv = f->conv;
                writer.left = rounds;
                finds_nothing(&looking);
                steno_close(looking.store);
                rounds++;
        } while (writer.left < 0 && rounds < 300);
        writer.conv = NULL;
        assert_in_range(rounds, 3, 299);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
            T(a_sound_store_has_no_findings),
            T(what_is_written_while_a_check_looks_is_no_finding),
            T(a_flipped_bit_in_the_log_is_found_where_it_is),
            T(a_repair_moves_damage_aside_and_keeps_the_seqs),
            T(a_repair_keeps_what_was_amended),
            T(records_cut_off_become_tombstones),
            T(lines_that_stand_twice_go),
            T(a_seq_that_is_nonsense_is_left_alone),
            T(a_missing_log_begins_anew_only_by_a_repair),
            T(other_line_ends_are_refused_until_a_repair),
            T(a_missing_record_is_found),
            T(half_a_batch_in_the_middle_is_found),
            T(a_torn_tail_is_quarantined_by_a_repair_only),
            T(a_lost_artifact_and_a_changed_one_are_found),
            T(a_lost_manifest_leaves_refs_without_artifacts),
            T(a_lost_part_and_a_changed_one_are_found),
            T(a_damaged_journal_is_found_and_its_torn_end_repaired),
            T(meta_that_cannot_be_read_is_found),
            T(an_index_of_ids_that_is_wrong_is_rebuilt),
            T(the_trash_is_looked_at_too),
            T(it_can_be_asked_of_one_conversation_and_stopped),
            T(figures_are_those_of_the_store),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
