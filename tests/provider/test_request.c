/*
 * What the requests of all HTTP providers have in common.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "provider/provider_http.h"

static const char ENDS_WITH_WORDS[] =
    "[{\"role\":\"user\",\"content\":\"Hi.\"},{\"role\":\"assistant\",\"content\":\"I was\"}]";
static const char ENDS_WITH_USER[] = "[{\"role\":\"user\",\"content\":\"Hi.\"}]";

/* The request of a provider as text. */
static void write_request(
    const struct provider *p, const struct provider_request *r, struct buf *out)
{
        struct steno_error err = {0};
        struct provider_request whole = *r;
        whole.model = "m";
        buf_clear(out);
        assert_int_equal(provider_put_request(&whole, p->wire->put_body, out, &err), 0);
        assert_non_null(buf_cstr(out));
        assert_true(json_valid(out->p, out->n, NULL));
}

static void each_provider(void (*check)(const struct provider *p, struct buf *out))
{
        struct buf out;
        size_t seen = 0;
        buf_init(&out, 0);
        for (size_t i = 0; provider_at(i); i++)
                if (provider_at(i)->wire) {
                        check(provider_at(i), &out);
                        seen++;
                }
        assert_true(seen >= 3);
        buf_release(&out);
}

static void check_go_on(const struct provider *p, struct buf *out)
{
        struct provider_request r = {.history = STR(ENDS_WITH_WORDS), .go_on = true};
        write_request(p, &r, out);
        assert_non_null(strstr(out->p, PROVIDER_GO_ON));
        r.go_on_words = "Here are the results.";
        write_request(p, &r, out);
        assert_non_null(strstr(out->p, "Here are the results."));
        assert_null(strstr(out->p, PROVIDER_GO_ON));
        r.history = STR(ENDS_WITH_USER);
        write_request(p, &r, out);
        assert_null(strstr(out->p, "Here are the results."));
        r = (struct provider_request){.history = STR(ENDS_WITH_WORDS)};
        write_request(p, &r, out);
        assert_null(strstr(out->p, PROVIDER_GO_ON));
}

static void go_on(void **state)
{
        (void)state;
        each_provider(check_go_on);
}

static void check_params(const struct provider *p, struct buf *out)
{
        struct provider_request r = {.history = STR(ENDS_WITH_USER),
            .params = STR("{\"temperature\":0.25,\"messages\":[\"mine\"],\"input\":\"mine\"}")};
        write_request(p, &r, out);
        assert_non_null(strstr(out->p, "\"temperature\":0.25"));
        assert_null(strstr(out->p, "mine"));
        assert_non_null(strstr(out->p, "Hi."));
}

static void params(void **state)
{
        (void)state;
        each_provider(check_params);
}

static void check_broken(const struct provider *p, struct buf *out)
{
        struct steno_error err = {0};
        struct provider_request r = {.history = STR("[{]"), .model = "m"};
        assert_int_not_equal(provider_put_request(&r, p->wire->put_body, out, &err), 0);
        assert_true(err.msg[0] != '\0');
        r = (struct provider_request){.history = STR(ENDS_WITH_USER), .params = STR("{\"a\":")};
        assert_int_not_equal(provider_put_request(&r, p->wire->put_body, out, &err), 0);
}

static void broken(void **state)
{
        (void)state;
        each_provider(check_broken);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            {"every provider says the words that are given behind the assistant's own", go_on, 0, 0,
                0},
            {"every provider sends the parameters that do not replace the conversation", params, 0,
                0, 0},
            {"no provider sends a request from a history or parameters that are not JSON", broken,
                0, 0, 0},
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
