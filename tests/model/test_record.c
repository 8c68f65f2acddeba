/* test_record.c - a record is read the same whether its line is looked for or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/seed.h"
#include "model/about.h"
#include "model/record.h"
#include "api/quick_about.h"

static const char *const IDS[] = {"msg_01M7F3D85HS5QW80PED65BMC8M", "a", "quote\" and \\ back",
    "},\"m\":", "}", "\xc3\xa9t\xc3\xa9", "exactly sixteen!"};
static const char *const BODIES[] = {"{\"role\":\"user\",\"content\":\"x\"}", "{}", "null",
    "{\"content\":\"},\\\"m\\\":\"}", "{\"crc\":\"00000000\"}"};
#define PICK(s, list) list[seed_below(s, sizeof list / sizeof *list)]

struct made {
        struct buf text;
        struct buf x;
        struct record rec;
        struct about about;
        struct str calls[3];
};

static void make(struct seed *s, struct made *m)
{
        m->about = (struct about){.role = STR("assistant"), .calls = m->calls};
        m->about.call_count = seed_below(s, 4);
        for (size_t i = 0; i < m->about.call_count; i++)
                m->calls[i] = str_of(PICK(s, IDS));
        m->about.own_fields = seed_below(s, 4) == 0;
        m->about.off_context = seed_below(s, 8) == 0;
        m->about.plain = (unsigned)seed_below(s, 3);
        m->rec = (struct record){.seq = 1 + seed_below(s, 1000000),
            .at = STR("2026-11-15T04:20:00.000Z"),
            .fmt = STR("openai"),
            .batch_count = 1 + (uint32_t)seed_below(s, 3),
            .group = seed_below(s, 2) * seed_below(s, 100000),
            .m = str_of(PICK(s, BODIES))};
        m->about.length = seed_below(s, 8) ? m->rec.m.n : 0;
        buf_clear(&m->x);
        about_write(&m->about, &m->x);
        m->rec.x = buf_str(&m->x);
        record_write(&m->text, &m->rec, str_of(PICK(s, IDS)));
}

static void both_ways_agree(void **state)
{
        struct seed s = seed_start();
        struct made m;
        (void)state;
        buf_init(&m.text, 0);
        buf_init(&m.x, 0);
        int taken = 0, rounds = seed_rounds(20000);
        for (int i = 0; i < rounds; i++) {
                struct record a, b;
                buf_clear(&m.text);
                make(&s, &m);
                struct str line = str_span(m.text.p, m.text.n - 1);
                assert_true(record_read(line, &a));
                buf_puts(&m.text, "{\"v\":1,");
                bool took = record_take(buf_str(&m.text), &b);
                taken += took;
                line.p = m.text.p; /* it may have moved */
                assert_true(record_read(line, &a));
                if (!took)
                        continue;
                assert_true(str_eq(a.line, b.line) && a.line.p == b.line.p);
                assert_true(a.m.p == b.m.p && a.m.n == b.m.n);
                assert_true(a.x.p == b.x.p && a.x.n == b.x.n);
                assert_true(a.id.p == b.id.p && a.id.n == b.id.n);
                assert_true(a.seq == b.seq && a.group == b.group);
                assert_true(a.batch_index == b.batch_index && a.batch_count == b.batch_count);
        }
        assert_in_range(taken, rounds / 3, rounds);
        buf_release(&m.text);
        buf_release(&m.x);
}

static void what_is_cut_or_changed_is_not_taken(void **state)
{
        struct seed s = seed_start();
        struct made m;
        struct record r;
        (void)state;
        buf_init(&m.text, 0);
        buf_init(&m.x, 0);
        for (int i = 0; i < seed_rounds(200); i++) {
                buf_clear(&m.text);
                make(&s, &m);
                for (size_t n = 0; n < m.text.n; n++) {
                        /* A copy of just this length, so that a byte too far is noticed. */
                        char *cut = malloc(n ? n : 1);
                        memcpy(cut, m.text.p, n);
                        assert_false(record_take(str_span(cut, n), &r));
                        free(cut);
                        m.text.p[n] ^= 1;
                        assert_false(record_take(buf_str(&m.text), &r));
                        m.text.p[n] ^= 1;
                }
        }
        buf_release(&m.text);
        buf_release(&m.x);
}

static void quick_reading_agrees_with_parsing(void **state)
{
        struct seed s = seed_start();
        static struct quick_about quick;
        struct arena arena;
        struct made m;
        (void)state;
        int quickly = 0, rounds = seed_rounds(20000);
        buf_init(&m.text, 0);
        buf_init(&m.x, 0);
        arena_init(&arena);
        quick_about_init(&quick);
        for (int i = 0; i < rounds; i++) {
                struct about parsed;
                buf_clear(&m.text);
                make(&s, &m);
                const struct about *a = quick_about_read(&quick, m.rec.x);
                if (!a)
                        continue;
                quickly++;
                arena_reset(&arena);
                assert_int_equal(about_read(m.rec.x, &arena, &parsed, NULL), 0);
                assert_true(str_eq(a->role, parsed.role));
                assert_int_equal(a->call_count, parsed.call_count);
                for (size_t k = 0; k < a->call_count; k++)
                        assert_true(str_eq(a->calls[k], parsed.calls[k]));
                assert_int_equal(a->own_fields, parsed.own_fields);
                assert_false(parsed.off_context);
                assert_true(a->plain == 0 || a->plain == parsed.plain);
        }
        assert_in_range(quickly, rounds / 4, rounds);
        arena_release(&arena);
        buf_release(&m.text);
        buf_release(&m.x);
}

static void a_place_beyond_its_batch_is_no_record(void **state)
{
        struct buf text;
        struct record out;
        (void)state;
        buf_init(&text, 0);
        for (uint32_t index = 0; index < 4; index++) {
                struct record r = {.seq = 7,
                    .at = STR("2026-11-15T04:20:00.000Z"),
                    .fmt = STR("openai"),
                    .batch_index = index,
                    .batch_count = 2,
                    .x = STR("{\"len\":2}"),
                    .m = STR("{}")};
                buf_clear(&text);
                record_write(&text, &r, STR("m"));
                struct str line = str_span(text.p, text.n - 1);
                assert_int_equal(record_read(line, &out), index < 2);
                assert_int_equal(record_take(buf_str(&text), &out), index < 2);
        }
        buf_release(&text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(both_ways_agree),
            cmocka_unit_test(what_is_cut_or_changed_is_not_taken),
            cmocka_unit_test(quick_reading_agrees_with_parsing),
            cmocka_unit_test(a_place_beyond_its_batch_is_no_record),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
