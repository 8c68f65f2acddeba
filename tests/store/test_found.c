/*
 * test_found.c - a search finds what a view shows: with messages that were replaced, deleted and
 * given other metadata, in several conversations whose records were indexed in turns.
 */
#include "fixture.h"

#include "base/json.h"
#include "support/seed.h"

#define CONVS 3
#define MESSAGES 60

/* A message, and the seq of the record that shows it; 0: none, because it was deleted. */
struct shown {
        char id[24];
        uint64_t seq;
};

struct model {
        struct steno_conv *conv[CONVS];
        struct shown list[CONVS][MESSAGES];
        int count[CONVS];
};

static uint64_t take_seq(struct steno_receipt *r)
{
        uint64_t seq = steno_receipt_last_seq(r);
        steno_receipt_free(r);
        return seq;
}

static void add(struct model *m, int c, struct seed *seed)
{
        char json[200];
        struct steno_receipt *r;
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        if (m->count[c] == MESSAGES)
                return;
        struct shown *s = &m->list[c][m->count[c]++];
        snprintf(s->id, sizeof s->id, "m%d", m->count[c]);
        snprintf(json, sizeof json, "{\"id\":\"%s\",\"role\":\"user\",\"content\":\"needle %.*s\"}",
            s->id, (int)seed_below(seed, 40), "0123456789 0123456789 0123456789 0123456789");
        OK(steno_append(m->conv[c], json, strlen(json), &opt, &r, &err));
        s->seq = take_seq(r);
}

static void amend(struct model *m, int c, struct seed *seed)
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        struct steno_receipt *r;
        if (!m->count[c])
                return;
        struct shown *s = &m->list[c][seed_below(seed, (uint64_t)m->count[c])];
        if (!s->seq)
                return;
        const char *with = "{\"role\":\"user\",\"content\":\"needle again\"}";
        switch (seed_below(seed, 4)) {
        case 0:
                OK(steno_amend(m->conv[c], "delete", s->id, NULL, 0, &opt, NULL, &err));
                s->seq = 0;
                break;
        case 1:
                with = "{\"star\":true}";
                OK(steno_amend(m->conv[c], "meta", s->id, with, strlen(with), &opt, NULL, &err));
                break;
        default:
                OK(steno_amend(m->conv[c], "supersede", s->id, with, strlen(with), &opt, &r, &err));
                s->seq = take_seq(r);
                break;
        }
}

static int conv_number(const struct json *j, json_ref item)
{
        struct str id = json_inner(j, json_get(j, item, "conversation"));
        assert_int_equal(id.n, 2);
        return id.p[1] - '0';
}

/* Is this what is shown of a message? Each message is found once. */
static void take_item(struct model *m, const struct json *j, json_ref item, bool seen[][MESSAGES])
{
        uint64_t seq = 0;
        int c = conv_number(j, item);
        struct str id = json_inner(j, json_get(j, item, "id"));
        assert_true(json_u64(j, json_get(j, item, "seq"), &seq));
        for (int i = 0; i < m->count[c]; i++) {
                if (!str_is(id, m->list[c][i].id))
                        continue;
                assert_int_equal(m->list[c][i].seq, seq);
                assert_false(seen[c][i]);
                seen[c][i] = true;
                return;
        }
        fail_msg("what was found has an id that nobody knows: %.*s", (int)id.n, id.p);
}

static void holds(struct fixture *f, struct model *m)
{
        bool seen[CONVS][MESSAGES] = {{false}};
        struct steno_search_options opt = {
            .size = sizeof opt, .query = "needle", .limit = 200, .catch_up_ms = 60000};
        struct json j;
        char *text;
        OK(steno_search(f->store, &opt, &text, &err));
        json_init(&j);
        assert_int_equal(json_parse(&j, text, strlen(text), NULL, NULL), 0);
        json_ref items = json_get(&j, 0, "items");
        for (json_ref i = json_child(&j, items); i != JSON_NONE; i = json_next(&j, items, i))
                take_item(m, &j, i, seen);
        for (int c = 0; c < CONVS; c++)
                for (int i = 0; i < m->count[c]; i++)
                        assert_int_equal(seen[c][i], m->list[c][i].seq != 0);
        json_release(&j);
        steno_free(text);
}

static void found_as_shown(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        for (int round = 0; round < seed_rounds(60); round++) {
                struct model m = {0};
                fixture_teardown(state);
                assert_int_equal(fixture_setup(state), 0);
                f = *state;
                for (int c = 0; c < CONVS; c++) {
                        char id[16];
                        snprintf(id, sizeof id, "c%d", c);
                        OK(steno_conv_create(f->store, NULL, id, NULL, &m.conv[c], &err));
                }
                for (int step = 0; step < 150; step++) {
                        int c = (int)seed_below(&seed, CONVS);
                        if (seed_below(&seed, 3))
                                add(&m, c, &seed);
                        else
                                amend(&m, c, &seed);
                        if (seed_below(&seed, 25) == 0)
                                holds(f, &m);
                }
                holds(f, &m);
                for (int c = 0; c < CONVS; c++)
                        steno_conv_close(m.conv[c]);
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"of messages that were replaced and deleted, a search finds what is shown",
                found_as_shown, fixture_setup, fixture_teardown, NULL},
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
