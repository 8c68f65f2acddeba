/* test_repair.c - damaged histories are repaired, and each repair is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/repair.h"

#define MESSAGES 16

/* A history in letters: "u" is text of the user, "Cab" calls a and b, "Rab" has their results in
 * one message, "Mab" has the results followed by text. */
struct fixture {
        struct arena arena;
        struct message list[MESSAGES];
        struct history h;
        char notes[1024];
};

static void build(struct fixture *f, const char *plan)
{
        memset(f, 0, sizeof *f);
        arena_init(&f->arena);
        f->h.list = f->list;
        char copy[256];
        snprintf(copy, sizeof copy, "%s", plan);
        for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
                enum role role = *word == 'u'   ? ROLE_USER
                                 : *word == 'C' ? ROLE_ASSISTANT
                                                : ROLE_TOOL;
                if (*word == 'M')
                        role = ROLE_USER;
                struct message *m = message_new(&f->arena, role, 8);
                m->seq = f->h.count + 1;
                for (const char *id = word + 1; *id; id++) {
                        struct part *p = &m->parts[m->count++];
                        p->kind = *word == 'C' ? PART_CALL : PART_RESULT;
                        p->id = arena_dup(&f->arena, str_span(id, 1));
                        p->output_kind = OUTPUT_TEXT;
                        p->output = STR("ok");
                }
                if (*word == 'u' || *word == 'M') {
                        m->parts[m->count].kind = PART_TEXT;
                        m->parts[m->count++].text = STR("hi");
                }
                f->list[f->h.count++] = *m;
        }
}

/* The same letters for the repaired history; a synthetic result is "!". */
static const char *shape(const struct history *h)
{
        static char text[1024];
        size_t n = 0;
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                bool call = message_has(m, PART_CALL), result = message_has(m, PART_RESULT);
                bool words = message_has(m, PART_TEXT);
                char kind = call ? 'C' : result && words ? 'M' : result ? 'R' : 'u';
                if (result && m->id.p && memcmp(m->id.p, "syn_", 4) == 0)
                        kind = '!';
                n += (size_t)snprintf(text + n, sizeof text - n, "%s%c", i ? " " : "", kind);
                for (size_t k = 0; k < m->count; k++)
                        if (m->parts[k].kind == PART_CALL || m->parts[k].kind == PART_RESULT)
                                text[n++] = m->parts[k].id.p[0];
                text[n] = '\0';
        }
        return text;
}

static void on_note(void *ctx, const struct repair_note *note)
{
        struct fixture *f = ctx;
        size_t n = strlen(f->notes);
        snprintf(f->notes + n, sizeof f->notes - n, "%s%s %.*s@%d", n ? ", " : "",
            repair_class_name(note->class), (int)note->call.n, note->call.p, (int)note->seq);
}

static void repaired(const char *plan, const char *expected, const char *notes)
{
        struct fixture f;
        struct history out;
        build(&f, plan);
        struct repair_options opt = {.synthesize = true, .on_note = on_note, .note_ctx = &f};
        assert_int_equal(repair_history(&f.h, &opt, &f.arena, &out), 0);
        assert_string_equal(shape(&out), expected);
        assert_string_equal(f.notes, notes);
        for (size_t i = 0; i < out.count; i++)
                for (size_t k = 0; k < out.list[i].count; k++) {
                        const struct part *p = &out.list[i].parts[k];
                        if (p->kind == PART_CALL || p->kind == PART_RESULT)
                                assert_true(p->peer && p->peer->peer == p);
                }
        arena_release(&f.arena);
}

static void whole_histories_stay_as_they_are(void **state)
{
        (void)state;
        repaired("u Cab Rb Ra u", "u Cab Rb Ra u", "");
        repaired("u Ca Ra Ca Ra", "u Ca Ra Ca Ra", "");
        repaired("Cab Mba u", "Cab Mba u", "");
}

static void open_calls_get_a_result_where_they_stand(void **state)
{
        (void)state;
        repaired("u Ca u", "u Ca !a u", "unrecorded a@2");
        repaired("Cab Rb u Cc", "Cab Rb !a u Cc !c", "unrecorded a@1, unrecorded c@4");
}

static void late_results_move_to_their_calls(void **state)
{
        (void)state;
        repaired("Ca u u Ra u", "Ca Ra u u u", "moved a@4");
        repaired("Cab Ra u Mb", "Cab Ra Rb u u", "moved b@4");
        repaired("Ca Cb Ra Rb", "Ca Ra Cb Rb", "moved a@3");
}

static void orphans_and_duplicates_are_left_out(void **state)
{
        (void)state;
        repaired("u Rx Ca Ra Ra u", "u Ca Ra u", "orphan x@2, duplicate a@5");
        repaired("Ca Rax u", "Ca Ra u", "orphan x@2");
        repaired("Ca Ra u Ca Ra Ra", "Ca Ra u Ca Ra", "duplicate a@6");
}

static void results_of_two_turns_in_one_message_come_apart(void **state)
{
        (void)state;
        repaired("Ca u Cb Rab", "Ca Ra u Cb Rb", "moved a@4");
}

static enum repair_class classify(
    void *ctx, uint64_t seq, struct str id, struct repair_facts *facts)
{
        (void)facts;
        (void)ctx;
        (void)seq;
        return str_is(id, "a") ? REPAIR_INDETERMINATE : REPAIR_CUT;
}

static void synthetic_results_tell_the_truth_and_are_stable(void **state)
{
        (void)state;
        struct fixture f;
        struct history out;
        build(&f, "u Cab");
        struct repair_options opt = {.synthesize = true, .classify = classify};
        assert_int_equal(repair_history(&f.h, &opt, &f.arena, &out), 0);
        assert_int_equal(out.count, 4);
        assert_true(str_is(out.list[2].id, "syn_2_0"));
        assert_true(str_is(out.list[3].id, "syn_2_1"));
        assert_true(str_is(out.list[2].parts[0].output, repair_class_text(REPAIR_INDETERMINATE)));
        assert_non_null(
            strstr(repair_class_text(REPAIR_INDETERMINATE), "side effects are unknown"));
        assert_non_null(strstr(repair_class_text(REPAIR_CUT), "cut off"));
        assert_true(out.list[3].parts[0].error);
        arena_release(&f.arena);
}

static void a_page_leaves_open_calls_open(void **state)
{
        (void)state;
        struct fixture f;
        struct history out;
        build(&f, "Ca u Rx");
        struct repair_options opt = {.on_note = on_note, .note_ctx = &f};
        assert_int_equal(repair_history(&f.h, &opt, &f.arena, &out), 0);
        assert_string_equal(shape(&out), "Ca u");
        assert_string_equal(f.notes, "orphan x@3");
        arena_release(&f.arena);
}

static void a_dropped_part_leaves_no_peer_behind(void **state)
{
        (void)state;
        struct fixture f;
        build(&f, "Cab Rab");
        assert_int_equal(repair_link(&f.h, &f.arena), 0);
        struct part *a = &f.list[0].parts[0], *b = &f.list[0].parts[1];
        const bool first[8] = {true};
        message_drop_parts(&f.list[1], first);
        assert_null(a->peer);
        assert_ptr_equal(b->peer, &f.list[1].parts[0]);
        assert_ptr_equal(b->peer->peer, b);
        arena_release(&f.arena);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(whole_histories_stay_as_they_are),
            cmocka_unit_test(open_calls_get_a_result_where_they_stand),
            cmocka_unit_test(late_results_move_to_their_calls),
            cmocka_unit_test(orphans_and_duplicates_are_left_out),
            cmocka_unit_test(results_of_two_turns_in_one_message_come_apart),
            cmocka_unit_test(synthetic_results_tell_the_truth_and_are_stable),
            cmocka_unit_test(a_page_leaves_open_calls_open),
            cmocka_unit_test(a_dropped_part_leaves_no_peer_behind),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
