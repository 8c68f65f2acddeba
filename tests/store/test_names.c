/*
 * test_names.c - the folder decides which conversation it holds: without its meta.json, and with
 * the meta.json of another one.
 */
#include "fixture.h"

#include <unistd.h>

#define ODD "a/b"
#define ODD_NAME "~c14cddc033f64b9dea80ea675cf280a0"
#define ODD_FOLDER "projects/default/conversations/" ODD_NAME "/"
#define MESSAGE "{\"role\":\"user\",\"content\":\"x\"}"

static void make_odd(struct fixture *f)
{
        struct steno_conv *conv;
        OK(steno_conv_create(f->store, NULL, ODD, "{\"title\":\"odd\"}", &conv, &err));
        OK(steno_append(conv, MESSAGE, strlen(MESSAGE), NULL, NULL, &err));
        steno_conv_close(conv);
        fixture_close(f);
        assert_int_equal(unlink(fixture_path(f, ODD_FOLDER "meta.json")), 0);
        fixture_open(f);
}

static void copy(struct fixture *f, const char *from, const char *to)
{
        char command[1400];
        snprintf(
            command, sizeof command, "cp -r '%s' '%s'", fixture_path(f, from), fixture_path(f, to));
        assert_int_equal(system(command), 0);
}

/* Appends to the conversation with an id; the receipt must name the same id. */
static void append_says(struct fixture *f, const char *open_as, const char *id)
{
        struct steno_conv *conv;
        struct steno_receipt *r;
        char want[100];
        OK(steno_conv_open(f->store, NULL, open_as, &conv, &err));
        assert_string_equal(steno_conv_id(conv), id);
        OK(steno_append(conv, MESSAGE, strlen(MESSAGE), NULL, &r, &err));
        snprintf(want, sizeof want, "{\"conversation\":\"%s\"", id);
        assert_non_null(strstr(steno_receipt_json(r), want));
        steno_receipt_free(r);
        steno_conv_close(conv);
}

static void lists(struct fixture *f, const char *id, int times)
{
        char *json, want[100];
        int count = 0;
        snprintf(want, sizeof want, "{\"id\":\"%s\",\"project\":\"default\"", id);
        OK(steno_list(f->store, NULL, NULL, &json, &err));
        for (const char *at = json; (at = strstr(at, want)); at++)
                count++;
        assert_int_equal(count, times);
        steno_free(json);
}

static void meta_says(struct fixture *f, const char *file, const char *words)
{
        char text[400];
        fixture_slurp(f, file, text, sizeof text);
        if (!strstr(text, words))
                fail_msg("%s: %s", file, text);
}

static void a_caller_that_knows_the_id_restores_it(void **state)
{
        struct fixture *f = *state;
        struct steno_conv *conv;
        char *json;
        make_odd(f);
        lists(f, ODD_NAME, 1);
        OK(steno_conv_open(f->store, NULL, ODD, &conv, &err));
        OK(steno_conv_meta(conv, &json, &err));
        assert_string_equal(json, "{\"id\":\"" ODD "\",\"project\":\"default\"}");
        steno_free(json);
        steno_conv_close(conv);
        append_says(f, ODD, ODD);
        meta_says(f, ODD_FOLDER "meta.json",
            "{\"id\":\"" ODD "\",\"project\":\"default\",\"createdAt\":\"2");
        fixture_close(f);
        fixture_open(f);
        lists(f, ODD, 1);
        lists(f, ODD_NAME, 0);
}

static void setting_a_title_writes_the_names(void **state)
{
        struct fixture *f = *state;
        struct steno_conv *conv;
        make_odd(f);
        OK(steno_conv_open(f->store, NULL, ODD, &conv, &err));
        OK(steno_conv_set_meta(conv, "{\"title\":\"new\"}", &err));
        steno_conv_close(conv);
        meta_says(f, ODD_FOLDER "meta.json", "{\"id\":\"" ODD "\",\"project\":\"default\"");
        meta_says(f, ODD_FOLDER "meta.json", "\"title\":\"new\"");
}

static void a_folder_nobody_knows_opens_by_its_name(void **state)
{
        struct fixture *f = *state;
        make_odd(f);
        append_says(f, ODD_NAME, ODD_NAME);
        assert_int_not_equal(access(fixture_path(f, ODD_FOLDER "meta.json"), F_OK), 0);
        append_says(f, ODD, ODD);
        append_says(f, ODD_NAME, ODD);
}

static void the_trash_gives_it_back_to_its_folder(void **state)
{
        struct fixture *f = *state;
        static const char *const ways[][2] = {
            {ODD_NAME, ODD_NAME}, {ODD_NAME, ODD}, {ODD, ODD}, {ODD, ODD_NAME}};
        make_odd(f);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
                unlink(fixture_path(f, ODD_FOLDER "meta.json"));
                fixture_close(f);
                fixture_open(f);
                OK(steno_remove(f->store, NULL, ways[i][0], NULL, &err));
                OK(steno_trash_restore(f->store, NULL, ways[i][1], NULL, &err));
                assert_int_equal(access(fixture_path(f, ODD_FOLDER "messages.jsonl"), F_OK), 0);
                append_says(f, ODD, ODD);
        }
}

static void a_copy_is_a_conversation_of_its_own(void **state)
{
        struct fixture *f = *state;
        fixture_append(f, MESSAGE);
        copy(f, CONV_FOLDER, "projects/default/conversations/c2");
        copy(f, "projects/default", "projects/other");
        append_says(f, "c2", "c2");
        append_says(f, "c", "c");
        meta_says(f, "projects/default/conversations/c2/meta.json", "{\"id\":\"c2\"");
        lists(f, "c", 1);
        lists(f, "c2", 1);
        OK(steno_remove(f->store, NULL, "c2", NULL, &err));
        OK(steno_trash_restore(f->store, NULL, "c2", NULL, &err));
        lists(f, "c2", 1);
        struct steno_conv *conv;
        OK(steno_conv_open(f->store, "other", "c", &conv, &err));
        assert_string_equal(steno_conv_project(conv), "other");
        steno_conv_close(conv);
}

static int count_repaired(void *ctx, const char *json)
{
        *(int *)ctx += strstr(json, "\"repaired\":true") != NULL;
        return 0;
}

static int repairs(struct fixture *f, const char *id)
{
        int count = 0;
        struct steno_check_options opt = {.size = sizeof opt, .id = id, .repair = true};
        assert_true(steno_check(f->store, &opt, count_repaired, &count, NULL) >= 0);
        return count;
}

static void a_repair_writes_what_is_known(void **state)
{
        struct fixture *f = *state;
        static const char other[] = "{\"id\":\"x\",\"project\":\"y\",\"title\":\"kept\"}";
        static const char half[] = "{\"id\":\"c\",\"title\":\"ha";
        make_odd(f);
        fixture_spit(f, CONV_FOLDER "meta.json", other, sizeof other - 1);
        assert_int_equal(repairs(f, NULL), 1);
        meta_says(f, CONV_FOLDER "meta.json", "{\"id\":\"c\",\"project\":\"default\"");
        meta_says(f, CONV_FOLDER "meta.json", "\"title\":\"kept\"");
        fixture_spit(f, CONV_FOLDER "meta.json", half, sizeof half - 1);
        assert_int_equal(repairs(f, NULL), 1);
        meta_says(f, CONV_FOLDER "meta.json", "{\"id\":\"c\",\"project\":\"default\"}");
        assert_true(fixture_holds(f, half)); /* in the quarantine */
        assert_int_equal(repairs(f, ODD), 1);
        assert_int_equal(repairs(f, NULL), 0);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
            T(a_caller_that_knows_the_id_restores_it),
            T(setting_a_title_writes_the_names),
            T(a_folder_nobody_knows_opens_by_its_name),
            T(the_trash_gives_it_back_to_its_folder),
            T(a_copy_is_a_conversation_of_its_own),
            T(a_repair_writes_what_is_known),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
