/*
 * The OpenAI-compatible provider against a server of literal bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "provider/provider.h"
#include "support/patience.h"
#include "tool/tool.h"

/* What the server does with one connection: it reads the request, sends `bytes`, then waits. */
struct answer {
        const char *bytes;
        int wait_ms; /* before closing; the peer may close first */
        bool reset;  /* close with RST */
        bool keep;   /* do not close: the next answer goes to the same connection */
};

struct server {
        int fd;
        int port;
        const struct answer *answers;
        size_t count;
        size_t served;
        size_t accepted;
        int64_t at[8]; /* when each connection came */
        char request[65536];
        pthread_t thread;
};

static void read_request(struct server *s, int c)
{
        size_t n = 0;
        s->request[0] = '\0';
        while (n < sizeof(s->request) - 1) {
                ssize_t got = read(c, s->request + n, sizeof(s->request) - 1 - n);
                if (got <= 0)
                        return;
                n += (size_t)got;
                s->request[n] = '\0';
                const char *head = strstr(s->request, "\r\n\r\n");
                const char *length = strcasestr(s->request, "content-length:");
                if (head && length &&
                    n >= (size_t)(head + 4 - s->request) + strtoul(length + 15, NULL, 10))
                        return;
        }
}

static void *serve(void *ctx)
{
        struct server *s = ctx;
        int c = -1;
        for (size_t i = 0; i < s->count; i++) {
                if (c < 0) {
                        c = accept(s->fd, NULL, NULL);
                        s->accepted++;
                }
                if (c < 0)
                        break;
                s->at[i] = time_monotonic_ms();
                read_request(s, c);
                s->served++;
                const struct answer *a = &s->answers[i];
                ssize_t sent = send(c, a->bytes, strlen(a->bytes), MSG_NOSIGNAL);
                (void)sent;
                if (a->keep)
                        continue;
                struct pollfd p = {.fd = c, .events = POLLIN | POLLRDHUP};
                poll(&p, 1, a->wait_ms);
                struct linger hard = {1, 0};
                if (a->reset)
                        setsockopt(c, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
                close(c);
                c = -1;
        }
        if (c >= 0)
                close(c);
        return NULL;
}

static void server_start(struct server *s, const struct answer *answers, size_t count)
{
        *s = (struct server){.answers = answers, .count = count};
        s->fd = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in at = {.sin_family = AF_INET};
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t n = sizeof(at);
        assert_int_equal(bind(s->fd, (struct sockaddr *)&at, n), 0);
        assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
        s->port = ntohs(at.sin_port);
        assert_int_equal(listen(s->fd, 8), 0);
        assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_end(struct server *s)
{
        shutdown(s->fd, SHUT_RDWR);
        pthread_join(s->thread, NULL);
        close(s->fd);
}

struct ask {
        struct reply reply;
        int retries_told;
        struct steno_stop *stop;
        struct buf text;
        bool stop_at_text;
        int rc;
        int64_t took;
};

static void make_id(void *ctx, char out[64])
{
        (void)ctx;
        snprintf(out, 64, "made");
}

static int piece(void *ctx, enum reply_piece kind, struct str text)
{
        struct ask *a = ctx;
        if (kind == REPLY_TEXT)
                buf_put_str(&a->text, text);
        if (a->stop_at_text)
                steno_stop_request(a->stop);
        return 0;
}

static void retry(void *ctx, const struct reply_fault *fault, unsigned attempt, int wait_ms)
{
        (void)fault;
        (void)attempt;
        (void)wait_ms;
        ((struct ask *)ctx)->retries_told++;
}

static void ask_port(struct ask *a, int port, uint32_t idle_ms, uint32_t retries)
{
        char url[64];
        snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1/", port);
        struct provider_options opt = {.base_url = url,
            .api_key = "sk-test",
            .connect_ms = FOREVER_MS,
            .idle_ms = idle_ms,
            .retries = retries};
        struct provider_client *p = NULL;
        assert_int_equal(provider_openai.open(&provider_openai, &opt, &p, NULL), 0);
        struct provider_request r = {.model = "m",
            .history = STR("[{\"role\":\"user\",\"content\":\"hi\"}]"),
            .params = STR("{\"temperature\": 0.0}"),
            .stream = true,
            .stop = a->stop};
        struct provider_hooks hooks = {NULL, retry, {make_id, piece, a}, a};
        reply_init(&a->reply);
        buf_init(&a->text, 0);
        int64_t begun = time_monotonic_ms();
        a->rc = p->complete(p, &r, &hooks, &a->reply, NULL);
        a->took = time_monotonic_ms() - begun;
        p->close(p);
}

static void ask_end(struct ask *a)
{
        reply_release(&a->reply);
        buf_release(&a->text);
        steno_stop_free(a->stop);
}

#define HEAD(status, type) "HTTP/1.1 " status "\r\nContent-Type: " type "\r\n"
#define SSE_HEAD HEAD("200 OK", "text/event-stream") "Connection: close\r\n\r\n"
#define TEXT(t) "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" t "\"}}]}\n\n"
#define STOP "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define GOOD SSE_HEAD TEXT("Hel") TEXT("lo") STOP "data: [DONE]\n\n"

static void ask_answers(struct ask *a, struct server *s, const struct answer *answers, size_t n,
    uint32_t idle_ms, uint32_t retries)
{
        server_start(s, answers, n);
        ask_port(a, s->port, idle_ms, retries);
        server_end(s);
}

static void good_stream(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        const struct answer answers[] = {{GOOD, FOREVER_MS, false, false}};
        ask_answers(&a, &s, answers, 1, FOREVER_MS, 0);
        assert_int_equal(a.rc, 0);
        assert_null(a.reply.fault.code);
        assert_string_equal(buf_cstr(&a.text), "Hello");
        assert_true(a.took < PATIENCE_MS); /* [DONE] ends it, not the close of the connection */
        assert_non_null(strstr(s.request, "POST /v1/chat/completions "));
        assert_non_null(strstr(s.request, "Authorization: Bearer sk-test\r\n"));
        assert_non_null(
            strstr(s.request, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":"
                              "\"hi\"}],\"stream\":true,"
                              "\"stream_options\":{\"include_usage\":true},\"temperature\":0.0}"));
        ask_end(&a);
}

static void kept_connection(void **state)
{
        (void)state;
        struct server s;
        const char *reply = HEAD("200 OK", "text/event-stream") "Transfer-Encoding: chunked\r\n\r\n"
                                                                "80\r\n" TEXT("x") STOP
            "data: [DONE]\n\n\r\n0\r\n\r\n";
        const struct answer answers[] = {{reply, 0, false, true}, {reply, 0, false, true}};
        server_start(&s, answers, 2);
        char url[64];
        snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1", s.port);
        struct provider_options opt = {
            .base_url = url, .connect_ms = FOREVER_MS, .idle_ms = FOREVER_MS};
        struct provider_client *p = NULL;
        assert_int_equal(provider_openai.open(&provider_openai, &opt, &p, NULL), 0);
        for (int i = 0; i < 2; i++) {
                struct ask a = {0};
                struct provider_request r = {.model = "m", .history = STR("[]"), .stream = true};
                struct provider_hooks hooks = {NULL, retry, {make_id, piece, &a}, &a};
                reply_init(&a.reply);
                buf_init(&a.text, 0);
                assert_int_equal(p->complete(p, &r, &hooks, &a.reply, NULL), 0);
                assert_null(a.reply.fault.code);
                assert_string_equal(buf_cstr(&a.text), "x");
                ask_end(&a);
        }
        p->close(p);
        server_end(&s);
        assert_int_equal(s.served, 2);
        assert_int_equal(s.accepted, 1);
}

static void json_instead(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        const struct answer answers[] = {
            {HEAD("200 OK",
                 "application/json") "Connection: close\r\n\r\n{\"choices\":[{\"message\":{"
                                     "\"role\":\"assistant\",\"content\":\"whole\"},\"finish_"
                                     "reason\":\"stop\"}]}",
                0, false, false}};
        ask_answers(&a, &s, answers, 1, FOREVER_MS, 0);
        assert_null(a.reply.fault.code);
        assert_string_equal(buf_cstr(&a.text), "whole");
        ask_end(&a);
}

static void no_done_and_open(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        const struct answer answers[] = {{SSE_HEAD TEXT("x") STOP, FOREVER_MS, false, false}};
        ask_answers(&a, &s, answers, 1, FOREVER_MS, 0);
        assert_null(a.reply.fault.code);
        assert_true(a.took < PATIENCE_MS);
        ask_end(&a);
}

static void refused(void **state)
{
        (void)state;
        struct server s;
        server_start(&s, NULL, 0);
        server_end(&s);
        struct ask a = {0};
        ask_port(&a, s.port, 1000, 0);
        assert_int_equal(a.rc, 0);
        assert_string_equal(a.reply.fault.code, "LLM_NETWORK");
        char where[64];
        snprintf(where, sizeof(where), "http://127.0.0.1:%d/v1/chat/completions", s.port);
        assert_non_null(strstr(a.reply.fault.message, where));
        ask_end(&a);
}

static void idle(void **state)
{
        (void)state;
        const struct answer answers[] = {{SSE_HEAD TEXT("par"), FOREVER_MS, false, false}};
        /* On a busy machine the time limit may pass before the server has sent anything. */
        bool in_time = false;
        for (uint32_t ms = 1000; !in_time; ms *= 2) {
                struct server s;
                struct ask a = {0};
                assert_true(ms < PATIENCE_MS);
                ask_answers(&a, &s, answers, 1, ms, 3);
                in_time = strcmp(buf_cstr(&a.reply.text), "par") == 0;
                if (in_time) {
                        assert_string_equal(a.reply.fault.code, "LLM_TIMEOUT");
                        assert_true(a.took >= ms && a.took < PATIENCE_MS);
                        assert_int_equal(s.served, 1);
                        assert_int_equal(a.retries_told, 0);
                }
                ask_end(&a);
        }
}

static void unauthorized(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        const struct answer answers[] = {
            {HEAD("401 Unauthorized",
                 "application/json") "Connection: close\r\n\r\n"
                                     "{\"error\":{\"message\":\"Incorrect API key provided\"}}",
                0, false, false}};
        ask_answers(&a, &s, answers, 1, FOREVER_MS, 3);
        assert_string_equal(a.reply.fault.code, "LLM_AUTH");
        assert_non_null(strstr(a.reply.fault.message, "Incorrect API key"));
        assert_non_null(strstr(a.reply.fault.message, "OPENAI_API_KEY"));
        assert_null(strstr(a.reply.fault.message, "sk-test"));
        assert_int_equal(a.retries_told, 0);
        ask_end(&a);
}

static void rate_limited(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        const struct answer answers[] = {
            {HEAD("429 Too Many", "text/plain") "Retry-After: 1\r\nConnection: close\r\n\r\nslow",
                0, false, false},
            {GOOD, 0, false, false}};
        ask_answers(&a, &s, answers, 2, FOREVER_MS, 3);
        assert_null(a.reply.fault.code);
        assert_string_equal(buf_cstr(&a.reply.text), "Hello");
        assert_int_equal(a.retries_told, 1);
        int64_t gap = s.at[1] - s.at[0];
        assert_true(gap >= 1000 && gap < PATIENCE_MS);
        ask_end(&a);
}

#define IN_STREAM(error) SSE_HEAD "data: {\"error\":" error "}\n\n"

static void error_inside_a_stream(void **state)
{
        (void)state;
        static const struct {
                const char *answer;
                bool again;
        } rows[] = {
            {IN_STREAM("{\"message\":\"slow\",\"code\":429}"), true},
            {IN_STREAM("{\"message\":\"busy\",\"type\":\"overloaded_error\"}"), true},
            {IN_STREAM("{\"message\":\"oops\",\"type\":\"server_error\"}"), true},
            {IN_STREAM("{\"message\":\"gone\",\"code\":504}"), true},
            {IN_STREAM("{\"message\":\"no such model\",\"code\":404}"), false},
            {IN_STREAM("{\"message\":\"who\",\"type\":\"authentication_error\"}"), false},
            {SSE_HEAD TEXT("half") "data: {\"error\":{\"message\":\"late\",\"code\":503}}\n\n",
                false},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct server s;
                struct ask a = {0};
                const struct answer answers[] = {
                    {rows[i].answer, 0, false, false}, {GOOD, 0, false, false}};
                ask_answers(&a, &s, answers, 2, FOREVER_MS, 3);
                if ((a.reply.fault.code == NULL) != rows[i].again)
                        fail_msg("row %zu: %s", i, a.reply.fault.code ? a.reply.fault.code : "ok");
                assert_int_equal(a.retries_told, rows[i].again);
                ask_end(&a);
        }
}

static void too_long_a_wait(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        const struct answer answers[] = {
            {HEAD("429 Too Many", "text/plain") "Retry-After: 3600\r\nConnection: close\r\n\r\n", 0,
                false, false}};
        ask_answers(&a, &s, answers, 1, FOREVER_MS, 3);
        assert_string_equal(a.reply.fault.code, "LLM_RATE_LIMIT");
        ask_end(&a);
}

static void server_errors(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        const struct answer answers[] = {
            {HEAD("500 Oops", "text/html") "Connection: close\r\n\r\n<html>", 0, false, false},
            {HEAD("503 Busy", "text/html") "Connection: close\r\n\r\n<html>", 0, false, false},
            {GOOD, 0, false, false}};
        ask_answers(&a, &s, answers, 3, FOREVER_MS, 3);
        assert_null(a.reply.fault.code);
        assert_int_equal(s.served, 3);
        assert_string_equal(buf_cstr(&a.text), "Hello");
        ask_end(&a);
}

static void dies_before_a_token(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        const struct answer answers[] = {
            {"", 0, false, false}, {SSE_HEAD, 0, true, false}, {GOOD, 0, false, false}};
        ask_answers(&a, &s, answers, 3, FOREVER_MS, 3);
        assert_null(a.reply.fault.code);
        assert_int_equal(s.served, 3);
        ask_end(&a);
}

static void dies_in_the_middle(void **state)
{
        (void)state;
        for (int reset = 0; reset < 2; reset++) {
                struct server s;
                struct ask a = {0};
                const struct answer answers[] = {
                    {SSE_HEAD TEXT("half"), 50, reset == 1, false}, {GOOD, 0, false, false}};
                ask_answers(&a, &s, answers, 2, FOREVER_MS, 3);
                assert_string_equal(a.reply.fault.code, "LLM_NETWORK");
                assert_string_equal(buf_cstr(&a.reply.text), "half");
                assert_int_equal(a.retries_told, 0);
                ask_end(&a);
        }
}

static void html(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        const struct answer answers[] = {
            {HEAD(
                 "200 OK", "text/html") "Connection: close\r\n\r\n<html><body>Log in</body></html>",
                0, false, false}};
        ask_answers(&a, &s, answers, 1, FOREVER_MS, 3);
        assert_string_equal(a.reply.fault.code, "LLM_BAD_REPLY");
        assert_non_null(strstr(a.reply.fault.message, "Log in"));
        ask_end(&a);
}

static void stopped(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {.stop_at_text = true};
        assert_int_equal(steno_stop_new(&a.stop, NULL), 0);
        const struct answer answers[] = {{SSE_HEAD TEXT("begun"), FOREVER_MS, false, false}};
        ask_answers(&a, &s, answers, 1, FOREVER_MS, 3);
        assert_int_equal(a.rc, STENO_EINTERRUPTED);
        assert_string_equal(buf_cstr(&a.reply.text), "begun");
        assert_true(a.took < PATIENCE_MS);
        ask_end(&a);
}

static void *stop_later(void *ctx)
{
        usleep(100000);
        steno_stop_request(ctx);
        return NULL;
}

static void stopped_while_silent(void **state)
{
        (void)state;
        struct server s;
        struct ask a = {0};
        pthread_t t;
        assert_int_equal(steno_stop_new(&a.stop, NULL), 0);
        const struct answer answers[] = {{SSE_HEAD, FOREVER_MS, false, false}};
        assert_int_equal(pthread_create(&t, NULL, stop_later, a.stop), 0);
        ask_answers(&a, &s, answers, 1, FOREVER_MS, 3);
        pthread_join(t, NULL);
        assert_int_equal(a.rc, STENO_EINTERRUPTED);
        assert_true(a.took < PATIENCE_MS);
        ask_end(&a);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"a stream is reported piece by piece and ends with [DONE]", good_stream, 0, 0, 0},
            {"the connection is kept from one call to the next", kept_connection, 0, 0, 0},
            {"an endpoint that answers whole JSON to a streamed request is understood",
                json_instead, 0, 0, 0},
            {"a connection that stays open after finish_reason is not waited for", no_done_and_open,
                0, 0, 0},
            {"a refused connection is LLM_NETWORK", refused, 0, 0, 0},
            {"silence is LLM_TIMEOUT, keeps the text and is not asked again", idle, 0, 0, 0},
            {"a refused key is LLM_AUTH, reported in the endpoint's words, never retried",
                unauthorized, 0, 0, 0},
            {"429 is asked again after Retry-After", rate_limited, 0, 0, 0},
            {"an error inside a stream is asked again as its status would be, before the first "
             "token",
                error_inside_a_stream, 0, 0, 0},
            {"a Retry-After of an hour is reported instead of waited for", too_long_a_wait, 0, 0,
                0},
            {"500 and 503 are asked again until 200", server_errors, 0, 0, 0},
            {"a connection dropped before the first token is asked again", dies_before_a_token, 0,
                0, 0},
            {"a stream that dies in the middle keeps its text and is not asked again",
                dies_in_the_middle, 0, 0, 0},
            {"a page of HTML is LLM_BAD_REPLY", html, 0, 0, 0},
            {"a stop between two pieces ends the call at once", stopped, 0, 0, 0},
            {"a stop while nothing comes ends the call at once", stopped_while_silent, 0, 0, 0},
        };
        return cmocka_run_group_tests_name("provider", tests, NULL, NULL);
}
