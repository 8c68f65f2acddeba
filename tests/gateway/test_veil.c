/*
 * Calls in a stream of chat completions, in every way that endpoints spell them: names in pieces,
 * repeated names, calls without numbers or ids. The app sees its own calls, whole and in order, and
 * none of Steno's; the record has what the app saw.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "gateway/owncalls.h"
#include "gateway/veil.h"

/* ---- an endpoint ---- */

struct call {
        const char *name, *arguments;
};

/* How the endpoint sends calls. */
struct manner {
        bool numbers, same_number; /* `index`, counted or always 0 */
        bool ids, ids_again;       /* `id`, with the first fragment or with each */
        bool names_again;          /* the name with each fragment */
        bool beside_end;           /* the last fragment comes with the finish reason */
        bool no_delta;             /* a finish reason comes without a delta */
        size_t at;                 /* where names are cut in two; 0: they come whole */
        bool empty;                /* `arguments` is "" beside a name */
        bool apart;                /* arguments come behind the name, in two pieces */
};

struct telling {
        struct buf *out;
        const struct manner *how;
        size_t number;
        bool first;
};

static void put_chunk(struct buf *out, const char *delta, bool end)
{
        buf_printf(out, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,"
                        "\"model\":\"m\",\"choices\":[{\"index\":0");
        if (delta)
                buf_printf(out, ",\"delta\":%s", delta);
        buf_printf(out, ",\"finish_reason\":%s}]}\n\n", end ? "\"tool_calls\"" : "null");
}

/* One fragment of a call; NULL: it has no such member. */
static void put_fragment(struct telling *t, const char *name, const char *arguments, bool end)
{
        struct buf delta;
        buf_init(&delta, 0);
        buf_puts(&delta, "{\"tool_calls\":[{\"type\":\"function\"");
        if (t->how->numbers)
                buf_printf(&delta, ",\"index\":%zu", t->how->same_number ? 0 : t->number);
        if (t->how->ids && (t->first || t->how->ids_again))
                buf_printf(&delta, ",\"id\":\"call_%zu\"", t->number);
        buf_puts(&delta, ",\"function\":{");
        if (name)
                buf_printf(&delta, "\"name\":\"%s\"%s", name, arguments ? "," : "");
        if (arguments)
                buf_printf(&delta, "\"arguments\":\"%s\"", arguments);
        buf_puts(&delta, "}}]}");
        put_chunk(t->out, buf_cstr(&delta), end);
        t->first = false;
        buf_release(&delta);
}

static void put_call(struct telling *t, const struct call *c, bool last)
{
        const struct manner *how = t->how;
        char head[64], args[64];
        bool with_end = last && how->beside_end;
        const char *again = how->names_again ? c->name : NULL, *none = how->empty ? "" : NULL;
        t->first = true;
        if (how->at && how->at < strlen(c->name)) {
                snprintf(head, sizeof head, "%.*s", (int)how->at, c->name);
                put_fragment(t, head, none, false);
                put_fragment(t, c->name + how->at, how->apart ? none : c->arguments,
                    with_end && !how->apart);
        } else {
                put_fragment(t, c->name, how->apart ? none : c->arguments, with_end && !how->apart);
        }
        if (!how->apart || !*c->arguments)
                return;
        size_t half = strlen(c->arguments) / 2;
        half += c->arguments[half - 1] == '\\'; /* not within an escape */
        snprintf(args, sizeof args, "%.*s", (int)half, c->arguments);
        put_fragment(t, again, args, false);
        put_fragment(t, again, c->arguments + half, with_end);
}

static void put_stream(
    struct buf *out, const struct manner *how, const struct call *calls, size_t count)
{
        struct telling t = {.out = out, .how = how};
        put_chunk(out, "{\"role\":\"assistant\",\"content\":\"\"}", false);
        for (t.number = 0; t.number < count; t.number++)
                put_call(&t, &calls[t.number], t.number == count - 1);
        if (!how->beside_end || (how->apart && !*calls[count - 1].arguments))
                put_chunk(out, how->no_delta ? NULL : "{}", true);
        buf_puts(out, "data: [DONE]\n\n");
}

/* ---- what is read of a stream ---- */

/* "name arguments;" for each call that belongs to the app, and the number of the others. */
static void read_calls(struct str stream, struct buf *others, size_t *own)
{
        struct wire_answer a;
        struct json j;
        wire_answer_init(&a);
        json_init(&j);
        assert_int_equal(wire_named("chat")->read_answer(stream, true, &a), 0);
        *own = 0;
        if (a.messages.n)
                assert_int_equal(json_parse(&j, a.messages.p, a.messages.n, NULL, NULL), 0);
        json_ref m = a.messages.n ? json_child(&j, 0) : JSON_NONE;
        json_ref calls = json_get(&j, m, "tool_calls");
        for (json_ref c = json_child(&j, calls); c != JSON_NONE; c = json_next(&j, calls, c)) {
                json_ref f = json_get(&j, c, "function");
                if (owncalls_is_name(&j, json_get(&j, f, "name"))) {
                        (*own)++;
                        continue;
                }
                buf_put_str(others, json_inner(&j, json_get(&j, f, "name")));
                buf_putc(others, ' ');
                buf_put_str(others, json_inner(&j, json_get(&j, f, "arguments")));
                buf_putc(others, ';');
        }
        json_release(&j);
        wire_answer_release(&a);
}

static size_t streams;

static void check_stream(const struct manner *how, const struct call *calls, size_t count)
{
        struct buf came, shown, theirs, seen;
        size_t own, none, hidden = 0;
        bool passes = how->at == 0; /* as it came */
        buf_init(&came, 0);
        buf_init(&shown, 0);
        buf_init(&theirs, 0);
        buf_init(&seen, 0);
        for (size_t i = 0; i < count; i++) {
                hidden += owncalls_is_own(str_of(calls[i].name));
                passes = passes && !owncalls_may_become_own(str_of(calls[i].name));
                if (!owncalls_is_own(str_of(calls[i].name)))
                        buf_printf(&theirs, "%s %s;", calls[i].name, calls[i].arguments);
        }
        put_stream(&came, how, calls, count);
        struct veil *v = veil_new(wire_named("chat"));
        assert_non_null(v);
        veil_begin(v, true, false);
        assert_int_equal(veil_feed(v, came.p, came.n, &shown), 0);
        assert_int_equal(veil_end(v, &shown), 0);
        bool on = veil_goes_on(v);
        if (!on)
                assert_int_equal(veil_rest(v, &shown), 0);

        read_calls(buf_str(&came), &seen, &own);
        bool same = own == hidden && strcmp(buf_cstr(&theirs), buf_cstr(&seen)) == 0;
        buf_clear(&seen);
        read_calls(buf_str(&shown), &seen, &none);
        if (!same || none || strcmp(buf_cstr(&theirs), buf_cstr(&seen)) != 0 ||
            on != (hidden == count) || (passes && !str_eq(buf_str(&came), buf_str(&shown))))
                fail_msg("cut at %zu: of %s there came\n%s\nand the app saw\n%s", how->at,
                    buf_cstr(&theirs), buf_cstr(&came), buf_cstr(&shown));
        streams++;
        veil_free(v);
        buf_release(&came);
        buf_release(&shown);
        buf_release(&theirs);
        buf_release(&seen);
}

/* ---- tests ---- */

static const struct call lists[][3] = {
    {{"context_list", "{}"}},
    {{"context.grep", "{\\\"ref\\\":\\\"x\\\"}"}},
    {{"context_read", ""}},
    {{"dump", "{}"}},
    {{"convert", "{\\\"n\\\":1}"}},
    {{"context", "{\\\"n\\\":1}"}},
    {{"context_lists", "{}"}},
    {{"context_foo", ""}},
    {{"context_list", "{}"}, {"dump", "{\\\"n\\\":1}"}},
    {{"dump", "{\\\"n\\\":1}"}, {"context_list", "{}"}},
    {{"context_list", "{}"}, {"context_tail", "{\\\"ref\\\":\\\"y\\\"}"}},
    {{"context_list", "{}"}, {"context_lists", "{\\\"n\\\":1}"}, {"context_list", "{}"}},
    {{"con", "{\\\"n\\\":1}"}, {"context_list", "{}"}, {"context_foo", "{}"}},
};

static size_t count_of(const struct call list[3])
{
        size_t n = 0;
        while (n < 3 && list[n].name)
                n++;
        return n;
}

/* Nobody can say where one call ends and the next begins. */
static bool is_vague(const struct manner *m, const struct call list[3])
{
        size_t n = count_of(list);
        bool empty = false;
        for (size_t i = 0; i < n; i++)
                empty = empty || !*list[i].arguments;
        if (m->ids_again && !m->ids)
                return true;
        if (m->same_number && !m->numbers)
                return true;
        if (!m->numbers && !m->ids_again && (m->at || (m->names_again && m->apart)))
                return true; /* a name begins a call */
        if (m->same_number && !m->ids && empty && n > 1)
                return true;
        return m->names_again && m->at; /* one or the other */
}

static void check_manners(size_t at)
{
        for (unsigned bits = 0; bits < 1u << 9; bits++) {
                struct manner m = {.at = at,
                    .numbers = bits & 1,
                    .same_number = bits & 2,
                    .ids = bits & 4,
                    .ids_again = bits & 8,
                    .names_again = bits & 16,
                    .beside_end = bits & 32,
                    .no_delta = bits & 64,
                    .empty = bits & 128,
                    .apart = bits & 256};
                for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
                        if (!is_vague(&m, lists[i]))
                                check_stream(&m, lists[i], count_of(lists[i]));
        }
}

static void test_whole(void **state)
{
        (void)state;
        check_manners(0);
        assert_true(streams > 1000);
}

static void test_pieces(void **state)
{
        static const size_t cuts[] = {1, 3, 7, 8, 9, 12};
        (void)state;
        streams = 0;
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
                check_manners(cuts[i]);
        assert_true(streams > 5000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            {"an app sees its own calls and no others, however an endpoint numbers and names them",
                test_whole, NULL, NULL, NULL},
            {"a call whose name comes in pieces is the app's or Steno's by the whole name",
                test_pieces, NULL, NULL, NULL},
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
