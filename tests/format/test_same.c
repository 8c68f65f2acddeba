/* test_same.c - a history gives the same bytes as a view of a store and through steno_convert. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "format/format.h"
#include "gen.h"
#include "support/scratch.h"
#include "steno.h"

static uint64_t seed;

static int sink(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

/* Stores the history as a conversation of its own. False: no store accepts it (an id twice). */
static bool stored(struct steno_store *store, const char *format, const struct buf *in,
    const char *name, struct steno_conv **conv)
{
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD,
            .format = format,
            .durability = STENO_PROCESS};
        struct steno_error err = {0};
        assert_int_equal(steno_conv_create(store, NULL, name, NULL, conv, &err), 0);
        if (steno_append(*conv, in->p, in->n, &opt, NULL, &err) == 0)
                return true;
        steno_conv_close(*conv);
        return false;
}

/* The number of bytes of an id that a store made for a call without one, or that was made from its
 * place. */
static size_t made_id(const char *p)
{
        if (strncmp(p, "call_made_", 10) == 0)
                return 10 + strspn(p + 10, "0123456789_");
        if (strncmp(p, "call_01", 7) == 0)
                return 5 + strspn(p + 5, "0123456789ABCDEFGHJKMNPQRSTVWXYZ");
        return 0;
}

/* Such ids differ, and Gemini gets none that is made from a place. */
static void mask_made_ids(struct buf *b)
{
        const char *p = buf_cstr(b), *end = p + b->n;
        char *to = b->p; /* not before that: the NUL after it may have moved */
        while (p < end) {
                size_t member = strncmp(p, "\"id\":\"", 6) == 0 ? made_id(p + 6) : 0;
                if (member)
                        p += 6 + member + 2; /* with the quote and the comma */
                else if (made_id(p))
                        p += made_id(p);
                else
                        *to++ = *p++;
        }
        b->n = (size_t)(to - b->p);
}

/* For a result without an id, only a store also considers calls that have an id. */
static bool is_mixed(const struct buf *in)
{
        bool gemini = strstr(in->p, "\"functionResponse\":{\"name\"") &&
                      strstr(in->p, "\"functionCall\":{\"id\"");
        bool openai =
            strstr(in->p, "\"role\":\"function\"") && strstr(in->p, "\"tool_calls\":[{\"id\"");
        return gemini || openai;
}

static void compare(const char *from, struct steno_conv *conv, const struct buf *in, unsigned i)
{
        static const char *const targets[] = {"openai", "anthropic", "gemini", "responses"};
        struct buf view, other;
        struct steno_error err = {0};
        buf_init(&view, 0);
        buf_init(&other, 0);
        for (size_t k = 0; k < 4; k++) {
                struct steno_view_options opt = {
                    .size = sizeof opt, .format = targets[k], .all_messages = true};
                if (strcmp(from, targets[k]) == 0)
                        continue; /* to its own format a conversion is the identity */
                buf_clear(&view);
                buf_clear(&other);
                assert_int_equal(steno_view(conv, &opt, sink, &view, NULL, &err), 0);
                assert_int_equal(
                    steno_convert(from, targets[k], in->p, in->n, sink, &other, NULL, &err), 0);
                mask_made_ids(&view);
                mask_made_ids(&other);
                if (strcmp(buf_cstr(&view), buf_cstr(&other)) == 0 || is_mixed(in))
                        continue;
                fprintf(stderr, "# %.4000s\n# %.4000s\n# %.4000s\n", in->p, view.p, other.p);
                fail_msg("%s to %s number %u", from, targets[k], i);
        }
        buf_release(&view);
        buf_release(&other);
}

static void a_view_is_what_a_conversion_gives(void **state)
{
        (void)state;
        struct scratch dir;
        struct steno_store *store;
        struct steno_error err = {0};
        struct buf in;
        const struct format *f;
        unsigned compared = 0;
        buf_init(&in, 0);
        scratch_make(&dir);
        assert_int_equal(steno_open(dir.path, NULL, &store, &err), 0);
        for (size_t k = 0; (f = format_at(k)) && gen_knows(f->name); k++) {
                for (unsigned i = 0; i < gen_count(250); i++) {
                        struct steno_conv *conv;
                        struct gen g = {.state = seed + i * 7919u,
                            .out = &in,
                            .format = f->name,
                            .damage = i % 3 != 0};
                        char name[64];
                        buf_clear(&in);
                        gen_history(&g);
                        buf_cstr(&in);
                        snprintf(name, sizeof name, "%s_%u", f->name, i);
                        if (!stored(store, f->name, &in, name, &conv))
                                continue;
                        compare(f->name, conv, &in, i);
                        steno_conv_close(conv);
                        compared++;
                }
        }
        assert_true(compared > gen_count(250));
        steno_close(store);
        scratch_remove(&dir);
        buf_release(&in);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        seed = gen_seed();
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_view_is_what_a_conversion_gives),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
