/* Which lines say what went wrong, in the languages and test runners that are common today. */
#include "output/play.h"

#include "output/errors.h"

struct sample {
        const char *line;
        int least; /* at least this score */
};

static const struct sample telling[] = {
    /* C, linkers, make, sanitizers */
    {"src/a.c:12:5: error: expected ';' before 'return'", ERRORS_CAUSE},
    {"a.h:1:10: fatal error: missing.h: No such file or directory", ERRORS_CAUSE},
    {"/usr/bin/ld: a.o: in function `main': undefined reference to `foo'", ERRORS_MENTION},
    {"a.c:(.text+0x1): undefined reference to `foo'", ERRORS_CAUSE},
    {"collect2: error: ld returned 1 exit status", ERRORS_FRAME},
    {"make[2]: *** [Makefile:88: net/socket.o] Error 1", ERRORS_FRAME},
    {"ninja: build stopped: subcommand failed.", ERRORS_FRAME},
    {"==123==ERROR: AddressSanitizer: heap-use-after-free on address 0x6", ERRORS_CAUSE},
    {"a.c:3:7: runtime error: signed integer overflow", ERRORS_CAUSE},
    {"Segmentation fault (core dumped)", ERRORS_CAUSE},
    {"prog: a.c:9: main: Assertion `x > 0' failed.", ERRORS_CAUSE},
    /* Python */
    {"Traceback (most recent call last):", ERRORS_FAILED},
    {"ValueError: invalid literal for int() with base 10: 'x'", ERRORS_CAUSE},
    {"requests.exceptions.ConnectionError: refused", ERRORS_CAUSE},
    {"KeyboardInterrupt", ERRORS_CAUSE},
    {"E       AssertionError: assert 1 == 2", ERRORS_CAUSE},
    {"FAILED tests/test_a.py::test_b - assert 1 == 2", ERRORS_FAILED},
    {"========= 2 failed, 31 passed in 1.2s =========", ERRORS_SUMMARY},
    /* JavaScript */
    {"TypeError: Cannot read properties of undefined (reading 'x')", ERRORS_CAUSE},
    {"Error: Cannot find module 'left-pad'", ERRORS_CAUSE},
    {"FATAL ERROR: out of heap", ERRORS_CAUSE},
    {"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        ERRORS_CAUSE},
    {"npm ERR! code ELIFECYCLE", ERRORS_FRAME},
    {"  \xE2\x97\x8F suite \xE2\x80\xBA adds numbers", ERRORS_FAILED},
    {"Tests:       1 failed, 4 passed, 5 total", ERRORS_SUMMARY},
    {"  2 failing", ERRORS_SUMMARY},
    {"src/app.ts(3,7): error TS2322: Type 'string' is not assignable", ERRORS_CAUSE},
    /* Java */
    {"Exception in thread \"main\" java.lang.NullPointerException", ERRORS_CAUSE},
    {"Caused by: java.io.IOException: disk", ERRORS_CAUSE},
    {"java.lang.IllegalStateException: closed", ERRORS_CAUSE},
    {"[ERROR] Failed to execute goal org.apache.maven", ERRORS_FRAME},
    {"Tests run: 5, Failures: 1, Errors: 0, Skipped: 0", ERRORS_SUMMARY},
    {"BUILD FAILURE", ERRORS_SUMMARY},
    /* Go */
    {"panic: runtime error: index out of range [3] with length 2", ERRORS_CAUSE},
    {"--- FAIL: TestParse (0.00s)", ERRORS_FAILED},
    {"FAIL\texample.com/pkg\t0.003s", ERRORS_SUMMARY},
    {"./main.go:9:2: undefined: foo", ERRORS_FAILED},
    /* Rust */
    {"error[E0308]: mismatched types", ERRORS_CAUSE},
    {"error: could not compile `x` due to previous error", ERRORS_CAUSE},
    {"thread 'main' panicked at 'boom', src/main.rs:2:5", ERRORS_CAUSE},
    {"test parser::tests::empty ... FAILED", ERRORS_FAILED},
    {"test result: FAILED. 3 passed; 1 failed; 0 ignored", ERRORS_SUMMARY},
    /* shells and tools */
    {"bash: foo: command not found", ERRORS_CAUSE},
    {"cat: nothing: No such file or directory", ERRORS_CAUSE},
    {"sh: 3: Syntax error: \"fi\" unexpected", ERRORS_LIKELY},
    {"fatal: not a git repository", ERRORS_CAUSE},
    /* cmocka, TAP, gtest, ctest */
    {"not ok 3 - a stub is smaller than half", ERRORS_FAILED},
    {"[  FAILED  ] test_split", ERRORS_FAILED},
    {"[  ERROR   ] --- 0x1 != 0x2", ERRORS_CAUSE},
    {" 3/10 Test  #3: parser ...................***Failed    0.01 sec", ERRORS_FAILED},
    {"90% tests passed, 1 tests failed out of 10", ERRORS_SUMMARY},
    {"something error: happened", ERRORS_LIKELY},
    {"an error occurred", ERRORS_MENTION},
};

static const char *const harmless[] = {
    "0 errors, 0 warnings",
    "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
    "test result: ok. 31 passed; 0 failed; 0 ignored",
    "========= 31 passed in 1.2s =========",
    "tests/test_error_handling.py::test_failure PASSED",
    "test error::parses ... ok",
    "ok 3 - an error is reported",
    "[       OK ] error_is_reported",
    "gcc -Wall -Werror -c src/error.c -o error.o",
    "cc -c src/errors/fail_fast.c",
    "100% tests passed, 0 tests failed out of 10",
    "no errors found",
    "a.c:3:7: warning: unused variable 'error'",
    "  \xE2\x9C\x93 reports an error",
    "Failed: 0",
    "everything is fine",
    "",
};

static void telling_lines_are_told_by_kind(void **state)
{
        (void)state;
        for (size_t i = 0; i < ITEMS(telling); i++) {
                int score = errors_score(str_of(telling[i].line));
                if (score < telling[i].least)
                        fail_msg("%d, not %d: %s", score, telling[i].least, telling[i].line);
        }
}

static void mentions_are_no_failures(void **state)
{
        (void)state;
        for (size_t i = 0; i < ITEMS(harmless); i++) {
                int score = errors_score(str_of(harmless[i]));
                if (score != ERRORS_NONE)
                        fail_msg("%d: %s", score, harmless[i]);
        }
}

static void the_filter_lets_every_telling_line_pass(void **state)
{
        struct finder f;
        (void)state;
        errors_filter(&f);
        for (size_t i = 0; i < ITEMS(telling); i++) {
                size_t n = strlen(telling[i].line);
                if (finder_next(&f, telling[i].line, n, 0, NULL) == n)
                        fail_msg("kept back: %s", telling[i].line);
        }
        assert_int_equal(finder_next(&f, "everything is fine", 18, 0, NULL), 18);
}

static void stack_frames_and_notes_continue_a_report(void **state)
{
        static const char *const more[] = {"    at Object.<anonymous> (/x/y.js:1:7)",
            "\tat com.example.Main.main(Main.java:5)", "  File \"x.py\", line 3, in f",
            "   12 |   int x", "      |       ^~~",
            "goroutine 1 [running]:", " --> src/main.rs:2:5", "note: required by this"};
        (void)state;
        for (size_t i = 0; i < ITEMS(more); i++) {
                if (!errors_continues(str_of(more[i])))
                        fail_msg("%s", more[i]);
        }
        assert_false(errors_continues(STR("[3/9] compiling")));
        assert_false(errors_continues(STR("")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(telling_lines_are_told_by_kind),
            cmocka_unit_test(mentions_are_no_failures),
            cmocka_unit_test(the_filter_lets_every_telling_line_pass),
            cmocka_unit_test(stack_frames_and_notes_continue_a_report),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
