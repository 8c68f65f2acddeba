/*
 * test_options.c - option structs: a size that is not set and members of a later version are
 * refused by every call that takes options, before anything happens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "steno.h"
#include "steno_loop.h"

#define ROOM 4096 /* no struct is so large */

static struct scratch scratch;
static struct steno_store *store;
static struct steno_conv *conv;
static struct steno_error err;

static int setup(void **state)
{
        (void)state;
        return scratch_make(&scratch) || steno_open(scratch.path, NULL, &store, NULL) ||
               steno_conv_create(store, NULL, "c", NULL, &conv, NULL);
}

static int teardown(void **state)
{
        (void)state;
        steno_conv_close(conv);
        steno_close(store);
        return scratch_remove(&scratch);
}

static int sink(void *ctx, const void *p, size_t n)
{
        (void)ctx, (void)p, (void)n;
        return 0;
}

static int try_open(const void *opt)
{
        struct steno_store *other = NULL;
        int rc = steno_open(scratch.path, opt, &other, &err);
        steno_close(other);
        return rc;
}

static int try_list(const void *opt)
{
        char *json = NULL;
        int rc = steno_list(store, NULL, opt, &json, &err);
        steno_free(json);
        return rc;
}

#define USER "{\"role\":\"user\",\"content\":\"x\",\"id\":\"m\"}"

static int try_append(const void *opt)
{
        return steno_append(conv, USER, sizeof USER - 1, opt, NULL, &err);
}

static int try_amend(const void *opt)
{
        return steno_amend(conv, "meta", "m", "{}", 2, opt, NULL, &err);
}

static int try_view(const void *opt)
{
        return steno_view(conv, opt, sink, NULL, NULL, &err);
}

static int try_output(const void *opt)
{
        struct steno_output *o = NULL;
        int rc = steno_output_begin(conv, opt, &o, &err);
        steno_output_free(o);
        return rc;
}

static int try_fork(const void *opt)
{
        struct steno_conv *fork = NULL;
        int rc = steno_fork(conv, opt, &fork, &err);
        steno_conv_close(fork);
        return rc;
}

static int try_check(const void *opt)
{
        int rc = steno_check(store, opt, NULL, NULL, &err);
        return rc > 0 ? 0 : rc;
}

static int try_loop(const void *opt)
{
        return steno_chat_loop(opt, NULL, &err);
}

static const struct {
        const char *name;
        size_t size;
        int (*try)(const void *opt);
        bool zeros_do; /* with all members zero it is accepted */
} calls[] = {
    {"steno_open", sizeof(struct steno_open_options), try_open, true},
    {"steno_list", sizeof(struct steno_list_options), try_list, true},
    {"steno_append", sizeof(struct steno_append_options), try_append, true},
    {"steno_amend", sizeof(struct steno_append_options), try_amend, true},
    {"steno_view", sizeof(struct steno_view_options), try_view, true},
    {"steno_output_begin", sizeof(struct steno_output_options), try_output, false},
    {"steno_fork", sizeof(struct steno_fork_options), try_fork, true},
    {"steno_check", sizeof(struct steno_check_options), try_check, true},
    {"steno_chat_loop", sizeof(struct steno_loop_options), try_loop, false},
};

#define COUNT (sizeof calls / sizeof *calls)

static void is_refused(size_t i, const void *opt, const char *words)
{
        err = (struct steno_error){0};
        int rc = calls[i].try(opt);
        if (rc != STENO_EINVAL || !strstr(err.msg, words))
                fail_msg("%s: %d %s", calls[i].name, rc, err.msg);
}

static void a_size_that_is_not_set_is_refused(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT; i++) {
                _Alignas(16) unsigned char opt[ROOM] = {0};
                is_refused(i, opt, "options: size is");
        }
}

static void members_of_a_later_version_are_refused_unless_they_are_zero(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT; i++) {
                _Alignas(16) unsigned char opt[ROOM] = {0};
                size_t size = calls[i].size + 64;
                memcpy(opt, &size, sizeof size);
                for (size_t at = calls[i].size; at < size; at++) {
                        opt[at] = 1;
                        is_refused(i, opt, "options: a member at byte");
                        opt[at] = 0;
                }
                if (calls[i].zeros_do && calls[i].try(opt))
                        fail_msg("%s: zeros: %s", calls[i].name, err.msg);
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(a_size_that_is_not_set_is_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(
                members_of_a_later_version_are_refused_unless_they_are_zero, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
