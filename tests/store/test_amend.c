/* Amendments are found through a chain; damage to one link costs no other amendment. */
#include <unistd.h>

#include "fixture.h"

#define LOG CONV_FOLDER "messages.jsonl"

static void user(struct fixture *f, const char *id)
{
        char json[100];
        snprintf(
            json, sizeof json, "{\"id\":\"%s\",\"role\":\"user\",\"content\":\"<%s>\"}", id, id);
        fixture_append(f, json);
}

static void drop(struct fixture *f, const char *id)
{
        OK(steno_amend(f->conv, "delete", id, NULL, 0, NULL, NULL, &err));
}

/* Turns one byte of the line of this seq into another. */
static void damage(struct fixture *f, int seq)
{
        static char text[64 * 1024];
        char begin[40];
        size_t n = fixture_slurp(f, LOG, text, sizeof text);
        snprintf(begin, sizeof begin, "{\"v\":1,\"seq\":%d,", seq);
        char *at = strstr(text, begin);
        assert_non_null(at);
        at = strstr(at, "\"at\":");
        at[7] ^= 1;
        FILE *out = fopen(fixture_path(f, LOG), "r+");
        assert_int_equal(fwrite(text, 1, n, out), n);
        fclose(out);
}

static int keep(void *ctx, const void *p, size_t n)
{
        char *to = ctx;
        strncat(to, p, n < 4000 ? n : 4000);
        return 0;
}

static bool shown(struct fixture *f, const char *id)
{
        char view[8192] = "", want[40];
        struct steno_view_options opt = {.size = sizeof opt, .format = "openai"};
        OK(steno_view(f->conv, &opt, keep, view, NULL, &err));
        snprintf(want, sizeof want, "<%s>", id);
        return strstr(view, want);
}

/* 1 to 4 are messages, 5 deletes b, 6 is a message, 7 deletes c, 8 a message, 9 deletes d. */
static void make(struct fixture *f)
{
        user(f, "a");
        user(f, "b");
        user(f, "c");
        user(f, "d");
        drop(f, "b");
        user(f, "e");
        drop(f, "c");
        user(f, "f");
        drop(f, "d");
        fixture_close(f);
}

static void expect(struct fixture *f, const char *visible)
{
        static const char all[] = "abcdef";
        for (const char *p = all; *p; p++) {
                char id[2] = {*p, '\0'};
                if (shown(f, id) != (strchr(visible, *p) != NULL))
                        fail_msg("%s: %s", id, shown(f, id) ? "shown" : "not shown");
        }
}

static void a_lost_link_brings_back_only_its_own_message(void **state)
{
        struct fixture *f = *state;
        make(f);
        damage(f, 7);
        fixture_open(f);
        expect(f, "acef");
}

static void damage_before_a_link_is_not_damage_to_it(void **state)
{
        struct fixture *f = *state;
        make(f);
        damage(f, 6);
        damage(f, 8);
        fixture_open(f);
        expect(f, "a");
}

static void without_the_index_too(void **state)
{
        struct fixture *f = *state;
        make(f);
        damage(f, 9);
        unlink(fixture_path(f, CONV_FOLDER "ids.idx"));
        fixture_open(f);
        /* The last record alone: nobody knows that it was once whole, so it counts as torn. */
        expect(f, "adef");
}

static void what_was_deleted_is_amended_no_more(void **state)
{
        static const char *const KINDS[] = {"delete", "supersede", "meta"};
        struct fixture *f = *state;
        make(f);
        fixture_open(f);
        for (size_t i = 0; i < 3; i++) {
                const char *json = i == 0 ? NULL : "{\"role\":\"user\",\"content\":\"<again>\"}";
                assert_int_equal(steno_amend(f->conv, KINDS[i], "b", json, json ? strlen(json) : 0,
                                     NULL, NULL, NULL),
                    STENO_ENOTFOUND);
        }
        expect(f, "aef");
}

#define IN_STORE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
            IN_STORE(a_lost_link_brings_back_only_its_own_message),
            IN_STORE(damage_before_a_link_is_not_damage_to_it),
            IN_STORE(without_the_index_too),
            IN_STORE(what_was_deleted_is_amended_no_more),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
