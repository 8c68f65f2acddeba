/* JSON: when any allocation fails, the answer is an error, and nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/json.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

/* Allocations until one fails; negative: none does. */
static long until_failure = -1;

static bool fails_now(void)
{
        return until_failure >= 0 && until_failure-- == 0;
}

void *__wrap_malloc(size_t n)
{
        return fails_now() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
        return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
        return fails_now() ? NULL : __real_realloc(p, n);
}

static struct buf text;

/* Uses every function that allocates; 0 only if all of it worked. */
static int exercise(void)
{
        struct json j;
        struct json_edits e;
        struct buf out;
        struct steno_error err;
        char *z = NULL;
        double d = 0;
        json_init(&j);
        json_edits_init(&e);
        buf_init(&out, 0);
        int rc = json_parse(&j, text.p, text.n, NULL, &err);
        if (rc) {
                assert_int_equal(rc, STENO_ENOMEM);
                assert_string_equal(err.msg, "out of memory");
                assert_int_equal(j.count, 0);
                goto out;
        }
        uint32_t n = json_count(&j, 0);
        for (uint32_t i = 2; i < n; i++)
                json_edit_replace(&e, &j, json_at(&j, 0, n + 1 - i), STR("\"other\""));
        rc = json_edits_apply(&e, &j, 0, &out);
        if (rc)
                goto out;
        z = json_dup_string(&j, json_at(&j, 0, 0));
        if (!z || !json_double(&j, json_at(&j, 0, 1), &d)) {
                rc = STENO_ENOMEM;
                goto out;
        }
        assert_string_equal(z, "a\nb");
        assert_true(d > 0);
        json_put_string(&out, buf_str(&text));
        rc = out.failed;
out:
        free(z);
        buf_release(&out);
        json_edits_release(&e);
        json_release(&j);
        return rc;
}

static void each_allocation_may_fail(void **state)
{
        (void)state;
        buf_init(&text, 0);
        buf_puts(&text, "[\"a\\nb\",1.");
        for (int i = 0; i < 200; i++)
                buf_putc(&text, '3');
        for (int i = 0; i < 300; i++)
                buf_puts(&text, ",\"some text that takes room\"");
        buf_putc(&text, ']');
        long failures = 0;
        for (;; failures++) {
                until_failure = failures;
                int rc = exercise();
                bool all_served = until_failure >= 0;
                until_failure = -1;
                if (all_served) {
                        assert_int_equal(rc, 0);
                        break;
                }
                assert_int_equal(rc, STENO_ENOMEM);
        }
        assert_true(failures > 8);
        buf_release(&text);
}

static void checking_allocates_nothing(void **state)
{
        (void)state;
        static const char doc[] = "{\"a\":[1,2,{\"b\":\"c\\u0041\"}]}";
        size_t start;
        until_failure = 0;
        bool valid = json_valid(doc, sizeof doc - 1, NULL);
        ptrdiff_t end = json_scan_value(doc, sizeof doc - 1, false, &start, NULL);
        bool untouched = until_failure == 0;
        until_failure = -1;
        assert_true(valid);
        assert_int_equal(end, sizeof doc - 1);
        assert_true(untouched);
}

static void a_tape_is_reused_without_allocating(void **state)
{
        (void)state;
        struct json j;
        json_init(&j);
        assert_int_equal(json_parse(&j, "[1,2,3]", 7, NULL, NULL), 0);
        until_failure = 0;
        int good = json_parse(&j, "{\"a\":1}", 7, NULL, NULL);
        int bad = json_parse(&j, "{\"a\"}", 5, NULL, NULL);
        bool untouched = until_failure == 0;
        until_failure = -1;
        assert_int_equal(good, 0);
        assert_int_equal(bad, STENO_EPROTO);
        assert_true(untouched);
        json_release(&j);
}

static void a_digest_without_its_context_is_zeros(void **state)
{
        (void)state;
        struct sha256 s = {NULL};
        unsigned char sum[SHA256_SIZE];
        memset(sum, 1, sizeof sum);
        hash_sha256_update(&s, "x", 1);
        hash_sha256_finish(&s, sum);
        for (size_t i = 0; i < sizeof sum; i++)
                assert_int_equal(sum[i], 0);
        hash_sha256_release(NULL);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_allocation_may_fail),
            cmocka_unit_test(checking_allocates_nothing),
            cmocka_unit_test(a_tape_is_reused_without_allocating),
            cmocka_unit_test(a_digest_without_its_context_is_zeros),
        };
        return cmocka_run_group_tests_name("json_memory", tests, NULL, NULL);
}
