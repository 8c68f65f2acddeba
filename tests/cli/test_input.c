/*
 * test_input.c - a stream of JSON values, cut anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/input.h"
#include "support/seed.h"
#include "support/patience.h"

/* The program's own reporting is not what is tried here. */
int cli_refuse(struct cli *c, int exit_code, const char *fmt, ...)
{
        (void)c, (void)fmt;
        return exit_code;
}

void cli_say(struct cli *c, const char *fmt, ...)
{
        (void)c, (void)fmt;
}

static const char *const values[] = {
    "{\"a\":1}",
    "[]",
    "[1,2,{\"b\":\"]}\"}]",
    "{\"q\":\"\\\"}{\\\\\"}",
    "\"a \\\" string {[\"",
    "{\"s\":\"\xe6\xbc\xa2\xf0\x9f\x98\x80\"}",
    "[[[[[[\"deep\"]]]]]]",
    "null",
    "-12.5e3",
};
#define VALUES (sizeof(values) / sizeof(values[0]))

static void write_all(int fd, const char *p, size_t n)
{
        while (n > 0) {
                ssize_t k = write(fd, p, n);
                assert_true(k > 0);
                p += k;
                n -= (size_t)k;
        }
}

/* Feeds `text` in two or more pieces into a pipe whose other end is read at the same time. */
static pid_t feed(struct seed *s, const char *text, size_t n, int *fd)
{
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                close(ends[0]);
                for (size_t at = 0; at < n;) {
                        size_t k = 1 + seed_below(s, n - at);
                        write_all(ends[1], text + at, k);
                        at += k;
                        if (seed_below(s, 4) == 0)
                                usleep(100);
                }
                _exit(0);
        }
        close(ends[1]);
        *fd = ends[0];
        return pid;
}

static void values_come_out_whole_and_in_order_however_the_stream_is_cut(void **state)
{
        struct seed s = seed_start();
        (void)state;

        for (int round = 0; round < seed_rounds(2000); round++) {
                char text[1024];
                size_t n = 0, count = 1 + seed_below(&s, 8), which[8];
                for (size_t i = 0; i < count; i++) {
                        which[i] = seed_below(&s, VALUES);
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", values[which[i]],
                            seed_below(&s, 2) ? "\n" : " ");
                }
                struct input_values in;
                int fd, status;
                struct seed cuts = s;
                seed_next(&s);
                pid_t pid = feed(&cuts, text, n, &fd);
                input_values_init(&in, fd);
                for (size_t i = 0; i < count; i++) {
                        struct str value;
                        uint64_t at;
                        const char *what;
                        assert_int_equal(input_values_next(&in, &value, &at, &what), INPUT_VALUE);
                        assert_int_equal(value.n, strlen(values[which[i]]));
                        assert_memory_equal(value.p, values[which[i]], value.n);
                        assert_memory_equal(text + at, value.p, value.n);
                }
                assert_int_equal(input_values_next(&in, NULL, NULL, NULL), INPUT_END);
                input_values_release(&in);
                close(fd);
                waitpid(pid, &status, 0);
        }
}

static void a_fault_is_named_by_its_place_in_the_stream(void **state)
{
        struct seed s = seed_start();
        static const char text[] = "{\"a\":1} [2] {\"b\":nil}";
        (void)state;

        for (int round = 0; round < seed_rounds(400); round++) {
                struct input_values in;
                struct str value;
                uint64_t at = 0;
                const char *what = NULL;
                int fd, status;
                struct seed cuts = s;
                seed_next(&s);
                pid_t pid = feed(&cuts, text, sizeof(text) - 1, &fd);
                input_values_init(&in, fd);
                assert_int_equal(input_values_next(&in, &value, &at, &what), INPUT_VALUE);
                assert_int_equal(input_values_next(&in, &value, &at, &what), INPUT_VALUE);
                assert_int_equal(input_values_next(&in, &value, &at, &what), INPUT_FAULT);
                assert_int_equal(at, 17);
                assert_non_null(what);
                input_values_release(&in);
                close(fd);
                waitpid(pid, &status, 0);
        }
}

static void a_large_value_in_small_pieces_costs_linear_time(void **state)
{
        size_t n = 4 << 20;
        char *text = malloc(n);
        struct input_values in;
        struct str value = {NULL, 0};
        uint64_t at;
        const char *what;
        int ends[2], status;
        (void)state;

        assert_non_null(text);
        for (size_t i = 0; i < n; i++)
                text[i] = i % 2 ? '0' : ',';
        text[0] = '[';
        memcpy(text + n - 2, "0]", 2);
        text[n - 3] = ' ';
        assert_int_equal(pipe(ends), 0);
        assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 0);
        pid_t pid = fork();
        if (pid == 0) {
                for (size_t i = 0; i < n; i += 4096)
                        write_all(ends[1], text + i, 4096);
                _exit(0);
        }
        close(ends[1]);
        clock_t began = clock();
        input_values_init(&in, ends[0]);
        assert_int_equal(input_values_next(&in, &value, &at, &what), INPUT_VALUE);
        assert_int_equal(value.n, n);
        /* 1,024 pieces; scanned anew for each of them this would be 2 GiB of small tokens. */
        assert_true((double)(clock() - began) / CLOCKS_PER_SEC < 1.5);
        input_values_release(&in);
        close(ends[0]);
        waitpid(pid, &status, 0);
        free(text);
}

static void a_large_value_is_handed_out_while_the_stream_stays_open(void **state)
{
        static const char bit[] = "\\\"{";
        struct input_values in;
        struct str value;
        struct buf text;
        uint64_t at;
        const char *what;
        int ends[2], status;
        (void)state;

        buf_init(&text, 0);
        buf_puts(&text, "{\"a\":\"");
        while (text.n < 200000)
                buf_puts(&text, bit);
        buf_puts(&text, "\"}");
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
                close(ends[0]);
                write_all(ends[1], text.p, text.n);
                alarm(FOREVER_MS / 1000);
                pause();
                _exit(0);
        }
        close(ends[1]);
        alarm(PATIENCE_MS /
              1000); /* a value that is not handed out would be waited for without end */
        input_values_init(&in, ends[0]);
        assert_int_equal(input_values_next(&in, &value, &at, &what), INPUT_VALUE);
        assert_int_equal(value.n, text.n);
        alarm(0);
        input_values_release(&in);
        close(ends[0]);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        buf_release(&text);
}

static void a_fault_in_a_large_value_is_found_before_its_end(void **state)
{
        struct input_values in;
        struct str value;
        uint64_t at = 0;
        const char *what = NULL;
        int ends[2], status;
        (void)state;

        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
                close(ends[0]);
                signal(SIGPIPE, SIG_DFL);
                write_all(ends[1], "[nonsense", 9);
                for (;;)
                        write_all(ends[1], ",0,0,0,0,0,0,0,0", 16);
        }
        close(ends[1]);
        input_values_init(&in, ends[0]);
        assert_int_equal(input_values_next(&in, &value, &at, &what), INPUT_FAULT);
        assert_int_equal(at, 1);
        input_values_release(&in);
        close(ends[0]);
        waitpid(pid, &status, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(values_come_out_whole_and_in_order_however_the_stream_is_cut),
            cmocka_unit_test(a_fault_is_named_by_its_place_in_the_stream),
            cmocka_unit_test(a_large_value_in_small_pieces_costs_linear_time),
            cmocka_unit_test(a_large_value_is_handed_out_while_the_stream_stays_open),
            cmocka_unit_test(a_fault_in_a_large_value_is_found_before_its_end),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
