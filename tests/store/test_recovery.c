/*
 * What a log may look like when it is opened: cut at any byte, NULs behind it, a damaged record in
 * the middle, an index that is missing, foreign or lying. It always opens; what was whole is
 * there; what was torn is in the quarantine.
 */
#include "world.h"

static void cut_anywhere(void **state)
{
        struct world *w = *state;
        off_t ends[6] = {0};
        size_t n, cut, got;
        /* Records end at the first four places; the last two make one batch. */
        for (int i = 0; i < 3; i++) {
                assert_int_equal(play_append(&w->play, 0, 1, STENO_FULL, 0), 0);
                ends[i + 1] = size_of(w->log);
        }
        assert_int_equal(play_append(&w->play, 0, 2, STENO_FULL, 0), 0);
        char *whole = slurp(w->log, &n);
        play_close(&w->play);
        uint64_t step = seed_rounds(20) == 20 ? 1 : 7;
        for (cut = 1; cut < n; cut += step) {
                for (int nuls = 0; nuls < 2; nuls++) {
                        static const char zero[4096];
                        uint64_t keep = 0;
                        while (keep < 3 && (size_t)ends[keep + 1] <= cut)
                                keep++;
                        char *torn = malloc(n + sizeof zero);
                        memcpy(torn, whole, cut);
                        memcpy(torn + cut, zero, sizeof zero);
                        unlink(w->ids);
                        spill(w->log, torn, cut + (nuls ? sizeof zero : 0));
                        struct count c = reopen_and_count(w);
                        assert_int_equal(c.good, keep);
                        assert_int_equal(c.damaged, 0);
                        static const char one[] = "{\"role\":\"user\",\"content\":\"more\"}";
                        assert_int_equal(
                            steno_append(w->play.open[0], one, sizeof one - 1, NULL, NULL, NULL),
                            0);
                        c = reopen_and_count(w);
                        assert_int_equal(c.good, keep + 1);
                        assert_int_equal(c.damaged, 0);
                        char *bytes = NULL;
                        size_t want = cut - (size_t)ends[keep] + (nuls ? sizeof zero : 0);
                        assert_int_equal(quarantined(w, &bytes, &got), want > 0);
                        if (want) {
                                assert_int_equal(got, want);
                                assert_memory_equal(bytes, torn + ends[keep], want);
                        }
                        free(bytes);
                        free(torn);
                }
        }
        free(whole);
}

static void damage_anywhere(void **state)
{
        struct world *w = *state;
        size_t n;
        for (int i = 0; i < 6; i++)
                assert_int_equal(play_append(&w->play, 0, 1 + i % 2, STENO_FULL, 0), 0);
        play_close(&w->play);
        char *whole = slurp(w->log, &n);
        uint64_t step = seed_rounds(20) == 20 ? 1 : 11;
        for (int index = 1; index >= 0; index--) {
                /* Without its index the last batch may be torn, as far as one can know. */
                size_t last = n;
                for (int lines = 0; index == 0 && lines < 3; last--)
                        lines += whole[last - 1] == '\n';
                for (size_t at = 0; at < last; at += step) {
                        char was = whole[at];
                        if (was == '\n')
                                continue;
                        whole[at] = was == '#' ? '+' : '#';
                        int fd = open(w->log, O_WRONLY); /* same inode: the index still counts */
                        assert_int_equal(pwrite(fd, whole, n, 0), (ssize_t)n);
                        close(fd);
                        if (index == 0)
                                unlink(w->ids);
                        struct count c = reopen_and_count(w);
                        whole[at] = was;
                        assert_int_equal(c.damaged, 1);
                        assert_int_equal(c.good, 8);
                        assert_int_equal(quarantined(w, NULL, NULL), 0);
                }
        }
        free(whole);
}

static void damage_at_the_end(void **state)
{
        struct world *w = *state;
        for (int i = 0; i < 4; i++)
                assert_int_equal(play_append(&w->play, 0, 1, STENO_FULL, 0), 0);
        play_close(&w->play);
        int fd = open(w->log, O_WRONLY);
        assert_int_equal(pwrite(fd, "#", 1, size_of(w->log) - 30), 1);
        close(fd);
        /* The mark says that it was synced: damaged, not torn. */
        struct count c = reopen_and_count(w);
        assert_int_equal(c.good, 3);
        assert_int_equal(c.damaged, 1);
        assert_int_equal(play_append(&w->play, 0, 1, STENO_FULL, 0), 0);
        c = reopen_and_count(w);
        assert_int_equal(c.good, 4);
        assert_int_equal(c.damaged, 1);
        uint64_t last;
        assert_int_equal(steno_conv_last_seq(w->play.open[0], &last, NULL), 0);
        assert_int_equal(last, 5);
}

static void lying_index(void **state)
{
        struct world *w = *state;
        struct seed seed = seed_start();
        size_t n, m;
        for (int i = 0; i < 5; i++)
                assert_int_equal(play_append(&w->play, 0, 1, STENO_FULL, 0), 0);
        play_close(&w->play);
        char *log = slurp(w->log, &n);
        char *ids = slurp(w->ids, &m);
        for (int round = 0; round < seed_rounds(400); round++) {
                char *bad = malloc(m + 1);
                memcpy(bad, ids, m);
                size_t len = m;
                if (round % 3 == 0)
                        len = seed_below(&seed, m);
                else
                        for (int k = 0; k < 8; k++)
                                bad[seed_below(&seed, round % 2 ? 96 : m)] =
                                    (char)seed_below(&seed, 256);
                spill(w->ids, bad, len);
                int fd = open(w->log, O_WRONLY | O_TRUNC);
                assert_int_equal(write(fd, log, n), (ssize_t)n);
                close(fd);
                struct count c = reopen_and_count(w);
                assert_int_equal(c.good, 5);
                static const char one[] = "{\"role\":\"user\",\"content\":\"more\"}";
                assert_int_equal(
                    steno_append(w->play.open[0], one, sizeof one - 1, NULL, NULL, NULL), 0);
                c = reopen_and_count(w);
                assert_int_equal(c.good, 6);
                assert_int_equal(c.damaged, 0);
                free(bad);
        }
        free(log);
        free(ids);
}

static void bounded(void **state)
{
        struct world *w = *state;
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        char *batch = malloc(1200 * 1000);
        uint64_t records = 0;
        for (int round = 0; round < 40; round++) {
                size_t at = 0;
                for (int i = 0; i < 500; i++)
                        at += (size_t)sprintf(batch + at,
                            "%c{\"role\":\"user\",\"content\":\"%0500d\"}", i ? ',' : '[', i);
                batch[at++] = ']';
                opt.durability = round == 38 ? STENO_FULL : STENO_PROCESS;
                assert_int_equal(steno_append(w->play.open[0], batch, at, &opt, NULL, NULL), 0);
                records += 500;
        }
        free(batch);
        assert_int_equal(play_append(&w->play, 0, 1, STENO_FULL, 0), 0);
        play_close(&w->play);
        int fd = open(w->log, O_WRONLY | O_APPEND);
        static const char torn[] = "{\"v\":1,\"seq\":";
        assert_int_equal(write(fd, torn, sizeof torn - 1), sizeof torn - 1);
        close(fd);
        unlink(w->ids); /* the worst case: nobody knows what was synced */
        assert_int_equal(play_open(&w->play), 0);
        bytes_read = 0;
        assert_int_equal(play_reopen(&w->play, 0), 0);
        static const char one[] = "{\"role\":\"user\",\"content\":\"more\"}";
        assert_int_equal(steno_append(w->play.open[0], one, sizeof one - 1, NULL, NULL, NULL), 0);
        uint64_t last;
        assert_int_equal(steno_conv_last_seq(w->play.open[0], &last, NULL), 0);
        assert_int_equal(last, records + 2);
        printf("# %llu bytes read to recover a log of %lld\n", (unsigned long long)bytes_read,
            (long long)size_of(w->log));
        assert_true(bytes_read < 1 << 20);
}

/* ---- odd data ---- */

static void odd_files(void **state)
{
        struct world *w = *state;
        char path[700];
        struct steno_conv *c;
        uint64_t last = 7;
        assert_int_equal(play_append(&w->play, 0, 2, STENO_FULL, 0), 0);
        play_close(&w->play);
        snprintf(path, sizeof path, "%s/" FOLDER "/meta.json", w->scratch.path);
        spill(path, "{\"id\":", 6);
        struct count n = reopen_and_count(w);
        assert_int_equal(n.good, 2);
        unlink(path);
        n = reopen_and_count(w);
        assert_int_equal(n.good, 2);
        /* A folder that a person made, without a log or with a log of nothing but noise. */
        snprintf(path, sizeof path, "%s/projects/default/conversations/mine", w->scratch.path);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(steno_conv_open(w->play.store, NULL, "mine", &c, NULL), 0);
        assert_int_equal(steno_conv_last_seq(c, &last, NULL), 0);
        assert_int_equal(last, 0);
        steno_conv_close(c);
        snprintf(path, sizeof path, "%s/projects/default/conversations/mine/messages.jsonl",
            w->scratch.path);
        spill(path, "hello\nworld\n\n{}\n", 16);
        assert_int_equal(steno_conv_open(w->play.store, NULL, "mine", &c, NULL), 0);
        static const char one[] = "{\"role\":\"user\",\"content\":\"more\"}";
        /* It may have been somebody's history: an append must not decide that. */
        assert_int_equal(steno_append(c, one, sizeof one - 1, NULL, NULL, NULL), STENO_ECORRUPT);
        struct steno_check_options opt = {.size = sizeof opt, .id = "mine", .repair = true};
        assert_int_equal(steno_check(w->play.store, &opt, NULL, NULL, NULL) > 0, 1);
        assert_int_equal(steno_append(c, one, sizeof one - 1, NULL, NULL, NULL), 0);
        assert_int_equal(steno_conv_last_seq(c, &last, NULL), 0);
        assert_int_equal(last, 1);
        steno_conv_close(c);
        assert_int_equal(quarantined(w, NULL, NULL) >= 1, 1);
}

static void odd_names(void **state)
{
        struct world *w = *state;
        static const char *const GOOD[] = {"..", "a/b", "\xc3\xa9t\xc3\xa9", "~", ".hidden", "A",
            "a", "con", "with space", "%2e%2e", "\xf0\x9f\x98\x80"};
        static const char *const BAD[] = {"", "a\nb", "\x01", "\xff\xfe", "\xc3"};
        char longest[300];
        struct steno_conv *c;
        memset(longest, 'x', sizeof longest);
        longest[257] = '\0';
        for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
                assert_int_equal(
                    steno_conv_create(w->play.store, NULL, GOOD[i], NULL, &c, NULL), 0);
                assert_string_equal(steno_conv_id(c), GOOD[i]);
                steno_conv_close(c);
        }
        for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
                assert_int_equal(steno_conv_create(w->play.store, NULL, GOOD[i], NULL, &c, NULL),
                    STENO_ECONFLICT);
                assert_int_equal(steno_conv_open(w->play.store, NULL, GOOD[i], &c, NULL), 0);
                assert_string_equal(steno_conv_id(c), GOOD[i]);
                steno_conv_close(c);
        }
        for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
                assert_int_equal(
                    steno_conv_create(w->play.store, NULL, BAD[i], NULL, &c, NULL), STENO_EINVAL);
        assert_int_equal(
            steno_conv_create(w->play.store, NULL, longest, NULL, &c, NULL), STENO_EINVAL);
        longest[256] = '\0';
        assert_int_equal(steno_conv_create(w->play.store, NULL, longest, NULL, &c, NULL), 0);
        steno_conv_close(c);
}

static void future_store(void **state)
{
        struct world *w = *state;
        char path[600];
        struct steno_store *s;
        struct steno_error err = {0};
        play_close(&w->play);
        snprintf(path, sizeof path, "%s/store.json", w->scratch.path);
        spill(path, "{\"version\":2}\n", 14);
        assert_int_equal(
            api_store_open_in(&w->play.env, w->scratch.path, NULL, &s, &err), STENO_EUNSUPPORTED);
        spill(path, "{\"version\":1,", 13);
        assert_int_equal(
            api_store_open_in(&w->play.env, w->scratch.path, NULL, &s, &err), STENO_ECORRUPT);
}

static void bad_input(void **state)
{
        struct world *w = *state;
        static const struct {
                const char *json;
                int rc;
        } CASES[] = {
            {"", STENO_EPROTO},
            {"{", STENO_EPROTO},
            {"[]", STENO_EPROTO},
            {"null", STENO_EPROTO},
            {"[1]", STENO_EPROTO},
            {"{\"role\":\"emperor\",\"content\":\"\"}", STENO_EPROTO},
            {"{\"role\":\"user\",\"content\":\"a\"} x", STENO_EPROTO},
            {"{\"role\":\"user\",\"content\":\"\xff\"}", STENO_EPROTO},
            {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"tool\",\"tool_call_id\":\"x\","
             "\"content\":\"y\"}]",
                STENO_EPROTO},
            {"{\"id\":\"\",\"role\":\"user\",\"content\":\"ok\"}", 1},
            {"{\"id\":\"a\\u0000b\",\"role\":\"user\",\"content\":\"ok\"}", STENO_EPROTO},
        };
        uint64_t last;
        for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
                struct steno_error err = {0};
                uint64_t before;
                assert_int_equal(steno_conv_last_seq(w->play.open[0], &before, NULL), 0);
                int rc = steno_append(
                    w->play.open[0], CASES[i].json, strlen(CASES[i].json), NULL, NULL, &err);
                if (CASES[i].rc <= 0)
                        assert_int_equal(rc, CASES[i].rc);
                assert_int_equal(steno_conv_last_seq(w->play.open[0], &last, NULL), 0);
                assert_int_equal(last, before + (rc == 0));
        }
        /* And nothing of it blocks later appends. */
        assert_int_equal(play_append(&w->play, 0, 1, STENO_FULL, 0), 0);
}

#define TEST(name, f)                                                                              \
        {                                                                                          \
                name, f, world_make, world_drop, NULL                                              \
        }

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        const struct CMUnitTest tests[] = {
            TEST("a log cut at any byte opens with all that was whole", cut_anywhere),
            TEST("a damaged record in the middle is reported and costs nothing else",
                damage_anywhere),
            TEST("a damaged last record that was synced keeps its place", damage_at_the_end),
            TEST("an index that is damaged anywhere is not used", lying_index),
            TEST("recovery reads a bounded part of a log of any length", bounded),
            TEST("files that are odd or missing do not prevent a conversation from opening",
                odd_files),
            TEST("ids of any kind become conversations, or are refused", odd_names),
            TEST("a store of a later version is refused", future_store),
            TEST("bad input is refused and leaves nothing behind", bad_input),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
