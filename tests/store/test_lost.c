/*
 * What had a receipt and is missing or cannot be read is reported, and its seqs are not given out
 * again. None of it is taken for torn.
 */
#include "world.h"

struct seqs {
        char text[400]; /* kind and seq of every record: "g1 g2 d3 " */
        size_t n;
};

static int note_seq(void *ctx, const struct steno_record *r)
{
        struct seqs *s = ctx;
        int n = snprintf(s->text + s->n, sizeof s->text - s->n, "%c%llu ",
            strcmp(steno_record_kind(r), "damaged") == 0 ? 'd' : 'g',
            (unsigned long long)steno_record_seq(r));
        s->n += (size_t)n;
        return 0;
}

static void reads_as(struct world *w, const char *want)
{
        struct seqs s = {.n = 0};
        assert_int_equal(steno_read(w->play.open[0], 0, 0, note_seq, &s, NULL), 0);
        assert_string_equal(s.text, want);
}

static uint64_t append_one(struct world *w)
{
        static const char one[] = "{\"role\":\"user\",\"content\":\"more\"}";
        struct steno_receipt *r = NULL;
        struct steno_error err = {0};
        if (steno_append(w->play.open[0], one, sizeof one - 1, NULL, &r, &err))
                fail_msg("%s", err.msg);
        uint64_t seq = steno_receipt_first_seq(r);
        steno_receipt_free(r);
        return seq;
}

static void enter_again(struct world *w)
{
        assert_int_equal(play_open(&w->play), 0);
        assert_int_equal(play_reopen(&w->play, 0), 0);
}

/* Three records and a batch of three, closed; returns the log. */
static char *six_records(struct world *w, size_t *n)
{
        for (int i = 0; i < 3; i++)
                assert_int_equal(play_append(&w->play, 0, 1, STENO_FULL, 0), 0);
        assert_int_equal(play_append(&w->play, 0, 3, STENO_FULL, 0), 0);
        play_close(&w->play);
        return slurp(w->log, n);
}

/* The same file with other bytes: its index still belongs to it. */
static void overwrite(const char *path, const char *p, size_t n)
{
        int fd = open(path, O_WRONLY | O_TRUNC);
        assert_int_equal(write(fd, p, n), (ssize_t)n);
        close(fd);
}

/* The first `good` of `count` records, and damage for the rest. */
static void say(char *to, int good, int count)
{
        int at = 0;
        for (int i = 1; i <= good; i++)
                at += sprintf(to + at, "g%d ", i);
        if (good < count)
                sprintf(to + at, "d%d ", good + 1);
}

static void cut_off_records_keep_their_seqs(void **state)
{
        struct world *w = *state;
        size_t n, ids_size;
        char *whole = six_records(w, &n);
        char *ids = slurp(w->ids, &ids_size);
        uint64_t step = seed_rounds(20) == 20 ? 1 : 7;
        for (size_t cut = 0; cut < n; cut += step) {
                char before[40], after[48];
                int kept = 0;
                for (size_t i = 0; i < cut; i++)
                        kept += whole[i] == '\n';
                say(before, kept, 6);
                /* A record that only lacks its line feed gets it back. */
                say(after, kept + (whole[cut] == '\n'), 6);
                strcat(after, "g7 ");
                overwrite(w->log, whole, cut);
                overwrite(w->ids, ids, ids_size);
                enter_again(w);
                reads_as(w, before);
                uint64_t last;
                assert_int_equal(steno_conv_last_seq(w->play.open[0], &last, NULL), 0);
                assert_int_equal(last, 6);
                assert_int_equal(append_one(w), 7);
                reads_as(w, after);
                play_close(&w->play);
                enter_again(w);
                reads_as(w, after);
                assert_int_equal(append_one(w), 8);
                play_close(&w->play);
                /* Nothing was moved, nothing was taken for torn. */
                size_t m;
                char *now = slurp(w->log, &m);
                assert_true(m > cut);
                assert_memory_equal(now, whole, cut);
                assert_int_equal(quarantined(w, NULL, NULL), 0);
                free(now);
        }
        /* Someone puts back what was missing. */
        overwrite(w->log, whole, 0);
        overwrite(w->ids, ids, ids_size);
        enter_again(w);
        reads_as(w, "d1 ");
        assert_int_equal(steno_purge(w->play.store, NULL, "conv-0", NULL, NULL), 0);
        play_close(&w->play);
        overwrite(w->log, whole, n);
        enter_again(w);
        reads_as(w, "g1 g2 g3 g4 g5 g6 ");
        assert_int_equal(append_one(w), 7);
        assert_int_equal(quarantined(w, NULL, NULL), 0);
        free(whole);
        free(ids);
}

static void cut_off_under_a_writer(void **state)
{
        struct world *w = *state;
        for (int i = 0; i < 5; i++)
                assert_int_equal(
                    play_append(&w->play, 0, 1, i < 3 ? STENO_FULL : STENO_PROCESS, 0), 0);
        size_t n;
        char *whole = slurp(w->log, &n);
        char *second = memchr(whole, '\n', n);
        assert_int_equal(truncate(w->log, second + 1 - whole), 0);
        assert_int_equal(append_one(w), 6);
        reads_as(w, "g1 d2 g6 ");
        free(whole);
}

static void zeros_at_the_end_are_damage(void **state)
{
        struct world *w = *state;
        size_t n;
        char *whole = six_records(w, &n);
        char *sixth = memrchr(whole, '\n', n - 1);
        /* Over the end of the fifth record, its line feed and all of the sixth. */
        size_t from = (size_t)(sixth - whole) - 20;
        memset(whole + from, 0, n - from);
        overwrite(w->log, whole, n);
        enter_again(w);
        reads_as(w, "g1 g2 g3 g4 d5 ");
        assert_int_equal(append_one(w), 7);
        reads_as(w, "g1 g2 g3 g4 d5 g7 ");
        /* The same where records already follow the mark. */
        play_close(&w->play);
        free(whole);
        whole = slurp(w->log, &n);
        for (size_t at = n - 1; at > n - 4; at--) {
                size_t ids_size;
                char *ids = slurp(w->ids, &ids_size);
                enter_again(w);
                assert_int_equal(append_one(w), 8);
                play_close(&w->play);
                int fd = open(w->log, O_WRONLY);
                assert_int_equal(pwrite(fd, "#", 1, (off_t)at), 1);
                close(fd);
                overwrite(w->ids, ids, ids_size);
                enter_again(w);
                reads_as(w, "g1 g2 g3 g4 d5 g8 ");
                assert_int_equal(append_one(w), 9);
                play_close(&w->play);
                unlink(w->ids);
                enter_again(w);
                reads_as(w, "g1 g2 g3 g4 d5 g8 g9 ");
                play_close(&w->play);
                overwrite(w->log, whole, n);
                spill(w->ids, ids, ids_size);
                free(ids);
        }
        assert_int_equal(quarantined(w, NULL, NULL), 0);
        free(whole);
}

static void a_longer_line_at_the_mark_costs_nothing(void **state)
{
        struct world *w = *state;
        size_t n;
        char *whole = six_records(w, &n);
        char *longer = malloc(n + 4);
        memcpy(longer, "   ", 3); /* everything moves */
        memcpy(longer + 3, whole, n);
        overwrite(w->log, longer, n + 3);
        enter_again(w);
        reads_as(w, "d0 g1 g2 g3 g4 g5 g6 ");
        assert_int_equal(append_one(w), 7);
        play_close(&w->play);
        unlink(w->ids);
        enter_again(w);
        reads_as(w, "d0 g1 g2 g3 g4 g5 g6 g7 ");
        assert_int_equal(quarantined(w, NULL, NULL), 0);
        free(whole);
        free(longer);
}

static void a_copied_line_is_no_record(void **state)
{
        struct world *w = *state;
        size_t n, got;
        char *whole = six_records(w, &n), *bytes = NULL;
        size_t first = (size_t)((char *)memchr(whole, '\n', n) - whole) + 1;
        for (int index = 1; index >= 0; index--) {
                if (index == 0)
                        unlink(w->ids);
                overwrite(w->log, whole, n);
                int fd = open(w->log, O_WRONLY | O_APPEND);
                assert_int_equal(write(fd, whole, first), (ssize_t)first);
                close(fd);
                enter_again(w);
                assert_int_equal(append_one(w), 7);
                reads_as(w, "g1 g2 g3 g4 g5 g6 g7 ");
                assert_int_equal(quarantined(w, &bytes, &got), 1);
                assert_int_equal(got, first);
                free(bytes);
                play_close(&w->play);
        }
        free(whole);
}

static void a_missing_log_is_not_an_empty_one(void **state)
{
        struct world *w = *state;
        static const char one[] = "{\"role\":\"user\",\"content\":\"more\"}";
        struct steno_error err = {0};
        struct seqs s = {.n = 0};
        size_t n;
        free(six_records(w, &n));
        unlink(w->log);
        enter_again(w);
        reads_as(w, "d1 ");
        assert_int_equal(append_one(w), 7);
        reads_as(w, "d1 g7 ");
        play_close(&w->play);
        unlink(w->log);
        unlink(w->ids);
        enter_again(w);
        for (int twice = 0; twice < 2; twice++) {
                assert_int_equal(
                    steno_read(w->play.open[0], 0, 0, note_seq, &s, &err), STENO_ECORRUPT);
                assert_non_null(strstr(err.msg, "is missing"));
                assert_int_equal(
                    steno_append(w->play.open[0], one, sizeof one - 1, NULL, NULL, NULL),
                    STENO_ECORRUPT);
        }
        char *list;
        assert_int_equal(steno_list(w->play.store, NULL, NULL, &list, NULL), 0);
        assert_non_null(strstr(list, "conv-0"));
        steno_free(list);
}

/* Another file in place of the log, as mv and restored backups leave it. */
static void replace(struct world *w, const char *p, size_t n)
{
        char beside[640];
        snprintf(beside, sizeof beside, "%s.copy", w->log);
        spill(beside, p, n);
        assert_int_equal(rename(beside, w->log), 0);
}

static void an_older_copy_gives_no_seq_out_again(void **state)
{
        struct world *w = *state;
        size_t n;
        char *whole = six_records(w, &n);
        char *second = memchr(whole, '\n', n);
        size_t two = (size_t)((char *)memchr(second + 1, '\n', n) + 1 - whole);
        replace(w, whole, two);
        enter_again(w);
        reads_as(w, "g1 g2 d3 ");
        assert_int_equal(append_one(w), 7);
        reads_as(w, "g1 g2 d3 g7 ");
        /* While a handle is open that has seen more than the index knows. */
        assert_int_equal(append_one(w), 8);
        replace(w, whole, two);
        assert_int_equal(append_one(w), 9);
        reads_as(w, "g1 g2 d3 g9 ");
        assert_int_equal(quarantined(w, NULL, NULL), 0);
        free(whole);
}

static int pass(void *ctx, const char *json)
{
        (void)ctx;
        (void)json;
        return 0;
}

static int findings(struct world *w, bool repair)
{
        struct steno_check_options opt = {.size = sizeof opt, .repair = repair};
        return steno_check(w->play.store, &opt, pass, NULL, NULL);
}

static void bytes_without_a_seq_get_none(void **state)
{
        struct world *w = *state;
        size_t n;
        char *whole = six_records(w, &n);
        /* A line feed is lost, and a byte is added at the end: all of this is before the mark. */
        char *second = (char *)memchr(whole, '\n', n) + 1;
        char *feed = memchr(second, '\n', n);
        memmove(feed, feed + 1, (size_t)(whole + n - feed - 1));
        whole[n - 1] = 'x';
        overwrite(w->log, whole, n);
        enter_again(w);
        reads_as(w, "g1 d2 g3 g4 g5 g6 ");
        assert_true(findings(w, true) > 0);
        assert_int_equal(findings(w, false), 1); /* record 2 is lost */
        reads_as(w, "g1 d2 g3 g4 g5 g6 ");
        assert_int_equal(append_one(w), 7);
        reads_as(w, "g1 d2 g3 g4 g5 g6 g7 ");
        free(whole);
}

static void a_line_that_stands_too_early_costs_itself(void **state)
{
        struct world *w = *state;
        size_t n;
        char *whole = six_records(w, &n);
        /* 1 2 3 4 5 6 become 1 5 2 3 4 6. */
        char *line[7] = {whole};
        for (int i = 1; i < 7; i++)
                line[i] = (char *)memchr(line[i - 1], '\n', n) + 1;
        char *mixed = malloc(n), *to = mixed;
        static const int order[] = {1, 5, 2, 3, 4, 6};
        for (int i = 0; i < 6; i++) {
                size_t size = (size_t)(line[order[i]] - line[order[i] - 1]);
                memcpy(to, line[order[i] - 1], size);
                to += size;
        }
        overwrite(w->log, mixed, n);
        enter_again(w);
        reads_as(w, "g1 d0 g2 g3 g4 d5 g6 ");
        free(whole);
        free(mixed);
}

static void a_span_that_begins_inside_a_line_takes_all_of_it(void **state)
{
        struct world *w = *state;
        size_t n;
        char *whole = six_records(w, &n);
        /* Bytes are missing in the first record of the last batch, and nobody knows what was
         * synced. */
        char *at = whole;
        for (int i = 0; i < 3; i++)
                at = (char *)memchr(at, '\n', n) + 1;
        memmove(at + 20, at + 25, (size_t)(whole + n - at - 25));
        overwrite(w->log, whole, n - 5);
        unlink(w->ids);
        enter_again(w);
        reads_as(w, "g1 g2 g3 ");
        assert_int_equal(append_one(w), 4);
        reads_as(w, "g1 g2 g3 g4 ");
        free(whole);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, world_make, world_drop)

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        const struct CMUnitTest tests[] = {
            T(an_older_copy_gives_no_seq_out_again),
            T(bytes_without_a_seq_get_none),
            T(a_line_that_stands_too_early_costs_itself),
            T(a_span_that_begins_inside_a_line_takes_all_of_it),
            T(cut_off_records_keep_their_seqs),
            T(cut_off_under_a_writer),
            T(zeros_at_the_end_are_damage),
            T(a_longer_line_at_the_mark_costs_nothing),
            T(a_copied_line_is_no_record),
            T(a_missing_log_is_not_an_empty_one),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
