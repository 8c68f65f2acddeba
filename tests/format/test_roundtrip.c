/* test_roundtrip.c - random histories through every reader and writer, and every pair of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "facts.h"
#include "format/format.h"
#include "gen.h"
#include "model/repair.h"
#include "steno.h"

static uint64_t seed;

static int sink(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

/* A history that failed is printed whole; messages of the framework are cut. */
static void show(struct buf *b)
{
        for (size_t i = 0; i < b->n; i++)
                if (b->p[i] == '\n')
                        b->p[i] = ' ';
        fprintf(stderr, "# %s\n", buf_cstr(b));
}

static void make(struct buf *out, const char *format, uint64_t number, bool damage)
{
        struct gen g = {
            .state = seed + number * 7919, .out = out, .format = format, .damage = damage};
        buf_clear(out);
        gen_history(&g);
}

static void convert(
    const char *from, const char *to, const struct buf *in, struct buf *out, char **report)
{
        struct steno_error err = {0};
        buf_clear(out);
        if (steno_convert(from, to, in->p, in->n, sink, out, report, &err))
                fail_msg("%s to %s: %s\n%.*s", from, to, err.msg, (int)in->n, in->p);
}

static void every_format_gives_its_own_tokens_back(void **state)
{
        (void)state;
        struct buf in, out;
        buf_init(&in, 0);
        buf_init(&out, 0);
        const struct format *f;
        for (size_t k = 0; (f = format_at(k)) && gen_knows(f->name); k++) {
                for (unsigned i = 0; i < gen_count(12); i++) {
                        char *report;
                        make(&in, f->name, i, i % 4 == 0);
                        convert(f->name, f->name, &in, &out, &report);
                        if (!facts_same_tokens(buf_str(&in), buf_str(&out))) {
                                show(&in);
                                show(&out);
                                fail_msg("%s number %u", f->name, i);
                        }
                        free(report);
                }
        }
        buf_release(&in);
        buf_release(&out);
}

/* The same with nothing copied: every member is made from the hub's fields and extras. */
static void every_format_rebuilds_its_members_from_the_hub(void **state)
{
        (void)state;
        struct buf in, out;
        buf_init(&in, 0);
        buf_init(&out, 0);
        const struct format *f;
        for (size_t k = 0; (f = format_at(k)) && gen_knows(f->name); k++) {
                for (unsigned i = 0; i < gen_count(12); i++) {
                        struct json j;
                        struct arena arena;
                        struct history h;
                        struct steno_error err = {0};
                        json_init(&j);
                        arena_init(&arena);
                        make(&in, f->name, i, i % 4 == 0);
                        buf_clear(&out);
                        struct writer w = {.out = &out, .arena = &arena, .rebuild = true};
                        assert_int_equal(json_parse(&j, in.p, in.n, NULL, &err), 0);
                        assert_int_equal(format_read_history(f, &j, 0, &arena, &h, &err), 0);
                        assert_int_equal(repair_link(&h, &arena), 0);
                        assert_int_equal(format_write_history(f, &w, &h, &err), 0);
                        if (!facts_same_members(buf_str(&in), buf_str(&out))) {
                                show(&in);
                                show(&out);
                                fail_msg("%s number %u", f->name, i);
                        }
                        arena_release(&arena);
                        json_release(&j);
                }
        }
        buf_release(&in);
        buf_release(&out);
}

static void between_any_two_formats_every_difference_is_reported(void **state)
{
        (void)state;
        struct buf in, mid, out;
        buf_init(&in, 0);
        buf_init(&mid, 0);
        buf_init(&out, 0);
        const struct format *a, *b;
        for (size_t k = 0; (a = format_at(k)) && gen_knows(a->name); k++) {
                for (size_t l = 0; (b = format_at(l)) && gen_knows(b->name); l++) {
                        for (unsigned i = 0; a != b && i < gen_count(120); i++) {
                                char *there, *back, why[400];
                                make(&in, a->name, i, false);
                                convert(a->name, b->name, &in, &mid, &there);
                                convert(b->name, a->name, &mid, &out, &back);
                                if (!facts_accounted(buf_str(&in), buf_str(&mid), buf_str(&out),
                                        str_of(there), str_of(back), why, sizeof why)) {
                                        show(&in);
                                        show(&mid);
                                        show(&out);
                                        fprintf(stderr, "# %s\n# %s\n", there, back);
                                        fail_msg(
                                            "%s to %s number %u: %s", a->name, b->name, i, why);
                                }
                                free(there);
                                free(back);
                        }
                }
        }
        buf_release(&in);
        buf_release(&mid);
        buf_release(&out);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        seed = gen_seed();
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_format_gives_its_own_tokens_back),
            cmocka_unit_test(every_format_rebuilds_its_members_from_the_hub),
            cmocka_unit_test(between_any_two_formats_every_difference_is_reported),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
