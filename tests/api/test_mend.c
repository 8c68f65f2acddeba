/* What check finds of damaged files beside the log, and what --repair makes of them. */
#include "base/hash.h"
#include "support/crashfs.h"
#include "support/failalloc.h"
#include "api/damage.h"

#define MANIFEST "artifacts/manifest.jsonl"
#define OUTPUT "artifacts/tool/k.txt"

/* ---- helpers ---- */

struct findings {
        int count;
        int repaired;
        char first[400];
};

static int note(void *ctx, const char *json)
{
        struct findings *f = ctx;
        if (f->count++ == 0)
                snprintf(f->first, sizeof f->first, "%s", json);
        f->repaired += strstr(json, "\"repaired\":true") != NULL;
        return 0;
}

static struct findings look(struct rig *r, bool repair)
{
        struct steno_check_options opt = {.size = sizeof opt, .repair = repair};
        struct findings f = {0};
        OK(steno_check(r->store, &opt, note, &f, &err));
        return f;
}

/* Found, repaired, and gone. */
static void mends(struct rig *r, int count, const char *what)
{
        struct findings f = look(r, false);
        assert_int_equal(f.count, count);
        assert_int_equal(f.repaired, 0);
        if (!strstr(f.first, what))
                fail_msg("%s is not in %s", what, f.first);
        f = look(r, true);
        assert_int_equal(f.count, count);
        assert_int_equal(f.repaired, count);
        rig_check(r);
}

static void load(struct rig *r, const char *below, struct buf *to)
{
        char path[600], block[4096];
        put_path(r, below, path);
        buf_clear(to);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
                buf_put(to, block, n);
        fclose(f);
}

static void spit(struct rig *r, const char *below, const char *mode, const char *p, size_t n)
{
        char path[600];
        put_path(r, below, path);
        FILE *f = fopen(path, mode);
        assert_non_null(f);
        assert_int_equal(fwrite(p, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
}

/* A call and its large result. */
static void fill(struct rig *r, const char *id)
{
        struct buf m;
        rig_call_in(r->conv, "k");
        large_result(&m, id);
        append(r, &m);
        buf_release(&m);
}

/* ---- the manifest ---- */

static void lines_that_cannot_be_read_are_moved_aside(void **state)
{
        struct rig *r = *state;
        struct buf before, after;
        buf_init(&before, 0);
        buf_init(&after, 0);
        fill(r, "t1");
        load(r, MANIFEST, &before);
        spit(r, MANIFEST, "a", "garbage\n{\"id\":\n", 15);
        mends(r, 1, "2 lines of artifacts/manifest.jsonl");
        assert_int_equal(set_aside(r), 1);
        load(r, MANIFEST, &after);
        assert_same(buf_str(&before), buf_str(&after));
        /* Others write on. */
        fill(r, "t2");
        sees(r, STENO_OUTPUTS_FULL, 4, "[]");
        buf_release(&before);
        buf_release(&after);
}

static void a_closing_line_that_was_lost_is_written_anew(void **state)
{
        struct rig *r = *state;
        struct buf before, after;
        buf_init(&before, 0);
        buf_init(&after, 0);
        fill(r, "t1");
        load(r, MANIFEST, &before);
        /* The manifest loses only its end, a part, or everything. */
        const char *lf = memchr(before.p, '\n', before.n);
        size_t first = (size_t)(lf - before.p) + 1;
        spit(r, MANIFEST, "w", before.p, before.n - 1);
        assert_int_equal(look(r, false).count, 2); /* a line without an end does not count */
        assert_int_equal(look(r, true).repaired, 1);
        rig_check(r);
        assert_int_equal(set_aside(r), 0);
        spit(r, MANIFEST, "w", before.p, before.n - 5);
        sees(r, STENO_OUTPUTS_FULL, 2, "[2]");
        mends(r, 2, "torn");
        assert_int_equal(set_aside(r), 1);
        sees(r, STENO_OUTPUTS_FULL, 2, "[]");
        spit(r, MANIFEST, "w", before.p, first);
        mends(r, 1, "it refers to artifact");
        load(r, MANIFEST, &after);
        assert_same(buf_str(&before), buf_str(&after));
        sees(r, STENO_OUTPUTS_FULL, 2, "[]");
        buf_release(&before);
        buf_release(&after);
}

static void a_manifest_that_was_lost_is_made_of_records_and_files(void **state)
{
        struct rig *r = *state;
        const char *const calls[] = {"plain", "not/plain \\u00e9", "plain", "a.b"};
        char path[600];
        struct buf m, before, after;
        buf_init(&before, 0);
        buf_init(&after, 0);
        for (size_t i = 0; i < 4; i++) {
                buf_init(&m, 0);
                buf_printf(&m,
                    "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"%s\","
                    "\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]},"
                    "{\"role\":\"tool\",\"tool_call_id\":\"%s\",\"content\":\"",
                    calls[i], calls[i]);
                for (size_t k = 0; k < 9000 + i; k++)
                        buf_puts(&m, "0123456\\u00e9");
                buf_puts(&m, "\"}]");
                append(r, &m);
                buf_release(&m);
        }
        rig_view(r, STENO_OUTPUTS_FULL, &before);
        put_path(r, MANIFEST, path);
        assert_int_equal(remove(path), 0);
        sees(r, STENO_OUTPUTS_FULL, 8, "[2,4,6,8]");
        mends(r, 4, "it refers to artifact");
        rig_view(r, STENO_OUTPUTS_FULL, &after);
        assert_same(buf_str(&before), buf_str(&after));
        buf_release(&before);
        buf_release(&after);
}

/* It is not guessed which of two files it was. */
static void a_line_is_not_written_where_the_file_is_in_doubt(void **state)
{
        struct rig *r = *state;
        char path[600];
        fill(r, "t1");
        fill(r, "t2");
        put_path(r, MANIFEST, path);
        assert_int_equal(remove(path), 0);
        struct findings f = look(r, true);
        assert_int_equal(f.count, 2);
        assert_int_equal(f.repaired, 0);
}

static void change_output(struct rig *r)
{
        struct buf now;
        buf_init(&now, 0);
        load(r, OUTPUT, &now);
        now.p[now.n / 2] ^= 1;
        spit(r, OUTPUT, "w", now.p, now.n);
        buf_release(&now);
}

/* A call whose output streams in, and the message that names it. */
static void fill_streamed(struct rig *r)
{
        struct steno_output_options opt = rig_options("k");
        struct streamed s = {0};
        char *bytes = malloc(200000);
        assert_non_null(bytes);
        memset(bytes, 'o', 200000);
        rig_call_in(r->conv, "k");
        rig_stream(r, &opt, bytes, 200000, NULL, &s);
        assert_true(s.ref[0] != '\0');
        free(bytes);
        streamed_release(&s);
}

static void a_line_is_not_written_of_bytes_that_the_record_does_not_know(void **state)
{
        struct rig *r = *state;
        struct buf m;
        char path[600];
        for (int streamed = 0; streamed < 2; streamed++) {
                if (streamed)
                        fill_streamed(r);
                else
                        fill(r, "t1");
                put_path(r, MANIFEST, path);
                assert_int_equal(unlink(path), 0);
                mends(r, 1, "it refers to artifact");
                assert_int_equal(unlink(path), 0);
                change_output(r);
                for (int i = 0; i < 2; i++) {
                        struct findings f = look(r, true);
                        assert_int_equal(f.count, 1);
                        assert_int_equal(f.repaired, 0);
                        assert_non_null(strstr(f.first, "it refers to artifact"));
                        sees(r, STENO_OUTPUTS_FULL, 2, "[2]");
                }
                if (streamed)
                        break;
                large_result(&m, "t1");
                append(r, &m);
                buf_release(&m);
                sees(r, STENO_OUTPUTS_FULL, 2, "[]");
                rig_check(r);
                rig_teardown(state);
                rig_setup(state);
                r = *state;
        }
}

/* ---- parts ---- */

/* Lines of an older Steno: without checksums. */
static void drop_sums(struct buf *manifest)
{
        static const char SUM[] = ",\"crc\":\"01234567\"";
        char *at;
        while ((at = memmem(manifest->p, manifest->n, SUM, strlen(",\"crc\":\"")))) {
                size_t rest = manifest->n - (size_t)(at - manifest->p) - strlen(SUM);
                memmove(at, at + strlen(SUM), rest);
                manifest->n -= strlen(SUM);
        }
}

/* The line was lost, and the file had been changed before an older Steno rebuilt the line from
 * it. */
static void an_output_is_what_is_sent_again_whatever_the_manifest_says(void **state)
{
        struct rig *r = *state;
        struct buf before, now, m;
        char was[SHA256_HEX], is[SHA256_HEX];
        buf_init(&before, 0);
        buf_init(&now, 0);
        fill(r, "t1");
        load(r, OUTPUT, &before);
        change_output(r);
        load(r, OUTPUT, &now);
        assert_int_equal(hash_sha256_hex(before.p, before.n, was), 0);
        assert_int_equal(hash_sha256_hex(now.p, now.n, is), 0);
        load(r, MANIFEST, &now);
        memcpy(memmem(now.p, now.n, was, strlen(was)), is, strlen(is));
        drop_sums(&now);
        spit(r, MANIFEST, "w", now.p, now.n);
        struct findings f = look(r, true);
        assert_int_equal(f.count, 1);
        assert_non_null(strstr(f.first, "has other bytes than the record says"));
        large_result(&m, "t1");
        append(r, &m);
        load(r, OUTPUT, &now);
        assert_same(buf_str(&before), buf_str(&now));
        assert_int_equal(set_aside(r), 1);
        rig_check(r);
        /* What is correct is left alone. */
        append(r, &m);
        assert_int_equal(set_aside(r), 1);
        buf_release(&m);
        buf_release(&before);
        buf_release(&now);
}

static void a_changed_part_is_moved_aside_until_it_is_sent_again(void **state)
{
        struct rig *r = *state;
        struct buf m;
        char path[600];
        large_message(&m, "u1");
        append(r, &m);
        change_byte(r, PARTS, 500, 'X');
        struct findings f = look(r, true);
        assert_int_equal(f.count, 2);
        assert_int_equal(f.repaired, 1);
        only_file(r, PARTS, path);
        assert_string_equal(path, "");
        assert_int_equal(set_aside(r), 1);
        f = look(r, true);
        assert_int_equal(f.count, 1);
        assert_non_null(strstr(f.first, "it refers to part"));
        append(r, &m);
        rig_check(r);
        buf_release(&m);
}

/* ---- power cuts ---- */

struct cuts {
        struct buf messages[2];
        struct buf view;  /* as it was, in full */
        size_t confirmed; /* the call after which everything was acknowledged again */
};

/* What was damaged is in its place or in quarantine. */
static bool keeps(const char *dir, const char *bytes)
{
        char command[700];
        snprintf(command, sizeof command, "grep -rqs '%s' '%s'", bytes, dir);
        return system(command) == 0;
}

/* Whatever is left, nothing wrong is shown, and a repair and sending again restore everything. */
static int comes_back(void *ctx, const char *dir, size_t k, int state)
{
        struct cuts *c = ctx;
        struct rig r = {0};
        struct buf got;
        char *report = NULL;
        (void)state;
        snprintf(r.scratch.path, sizeof r.scratch.path, "%s", dir);
        r.env = *env_real();
        r.env.fs = play_fs();
        rig_open(&r);
        buf_init(&got, 0);
        struct steno_view_options opt = {
            .size = sizeof opt, .format = "openai", .outputs = STENO_OUTPUTS_FULL};
        OK(steno_view(r.conv, &opt, rig_gather, &got, &report, &err));
        bool whole = strstr(report, "\"damaged\":[]") != NULL;
        bool same = str_eq(buf_str(&got), buf_str(&c->view));
        steno_free(report);
        int rc = !keeps(dir, "UXU") || !keeps(dir, "garbage") || (whole && !same) ||
                 (k >= c->confirmed && !whole);
        look(&r, true);
        append(&r, &c->messages[0]);
        append(&r, &c->messages[1]);
        rig_view(&r, STENO_OUTPUTS_FULL, &got);
        rc = rc || !str_eq(buf_str(&got), buf_str(&c->view)) || look(&r, false).count != 0;
        buf_release(&got);
        rig_close(&r);
        return rc;
}

static void a_power_cut_while_it_is_mended_costs_nothing(void **state)
{
        struct rig *r = *state;
        struct seed seed = seed_start();
        struct cuts c = {0};
        size_t made = 0;
        rig_call_in(r->conv, "k");
        large_message(&c.messages[0], "u1");
        large_result(&c.messages[1], "t1");
        append(r, &c.messages[0]);
        append(r, &c.messages[1]);
        buf_init(&c.view, 0);
        rig_view(r, STENO_OUTPUTS_FULL, &c.view);
        change_byte(r, PARTS, 500, 'X');
        change_byte(r, TOOL, 500, 'X');
        spit(r, MANIFEST, "a", "garbage\n{\"id\":", 14);
        rig_close(r);

        struct crashfs *fs = crashfs_new(play_fs(), r->scratch.path);
        assert_non_null(fs);
        r->env.fs = crashfs_fs(fs);
        rig_open(r);
        look(r, true);
        append(r, &c.messages[0]);
        append(r, &c.messages[1]);
        c.confirmed = crashfs_calls(fs);
        sees(r, STENO_OUTPUTS_FULL, 3, "[]");
        rig_close(r);
        assert_int_equal(
            crashfs_sweep(fs, seed.state, seed_rounds(4), seed_every(4), comes_back, &c, &made), 0);
        printf("# %zu calls, %zu states\n", crashfs_calls(fs), made);
        r->env.fs = play_fs();
        crashfs_free(fs);
        rig_open(r);
        buf_release(&c.view);
        buf_release(&c.messages[0]);
        buf_release(&c.messages[1]);
}

/* ---- no memory ---- */

static void no_memory_costs_no_line(void **state)
{
        struct rig *r = *state;
        struct steno_check_options opt = {.size = sizeof opt, .repair = true};
        struct buf before, after, m;
        long n = 1;
        buf_init(&before, 0);
        buf_init(&after, 0);
        fill(r, "t1");
        load(r, MANIFEST, &before);
        const char *lf = memchr(before.p, '\n', before.n);
        size_t first = (size_t)(lf - before.p) + 1;
        for (bool fired = true; fired; n++) {
                /* The repair has one line to remove and one to write. */
                spit(r, MANIFEST, "w", before.p, first);
                spit(r, MANIFEST, "a", "garbage\n", 8);
                failalloc_start(n);
                int rc = steno_check(r->store, &opt, NULL, NULL, NULL);
                fired = failalloc_stop();
                assert_true(rc >= 0 || rc == STENO_ENOMEM);
                assert_true(fired || rc == 2);
                load(r, MANIFEST, &after);
                assert_true(after.n >= first);
                assert_memory_equal(after.p, before.p, first);
        }
        assert_same(buf_str(&before), buf_str(&after));
        large_result(&m, "t1");
        n = 1;
        for (bool fired = true; fired; n++) {
                spit(r, MANIFEST, "w", before.p, before.n);
                change_byte(r, TOOL, 500, 'X');
                failalloc_start(n);
                int rc = steno_append(r->conv, m.p, m.n, NULL, NULL, NULL);
                fired = failalloc_stop();
                assert_true(rc == 0 || (fired && rc == STENO_ENOMEM));
                append(r, &m);
                sees(r, STENO_OUTPUTS_FULL, 2, "[]");
        }
        buf_release(&m);
        buf_release(&before);
        buf_release(&after);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
        const struct CMUnitTest tests[] = {
            TEST(lines_that_cannot_be_read_are_moved_aside),
            TEST(a_closing_line_that_was_lost_is_written_anew),
            TEST(a_manifest_that_was_lost_is_made_of_records_and_files),
            TEST(a_line_is_not_written_where_the_file_is_in_doubt),
            TEST(a_line_is_not_written_of_bytes_that_the_record_does_not_know),
            TEST(an_output_is_what_is_sent_again_whatever_the_manifest_says),
            TEST(a_changed_part_is_moved_aside_until_it_is_sent_again),
            TEST(no_memory_costs_no_line),
            TEST(a_power_cut_while_it_is_mended_costs_nothing),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
