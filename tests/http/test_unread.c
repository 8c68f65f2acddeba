/*
 * Which answers make room for another one when many are not read. Sizes are only numbers here;
 * nothing of that size is allocated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_limits.h"
#include "http/unread.h"

enum { MOST = 300, ADDRESSES = 4 };

/* Connections from 127.0.0.2 and on: the server's end, and the client's. */
static int sockets[MOST][2];
static unsigned opened;
static struct unread_answer answers[MOST];

static void open_from(unsigned host)
{
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof at;
        int fd = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
        struct sockaddr_in from = {
            .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + host)};
        assert_int_equal(bind(client, (struct sockaddr *)&from, sizeof from), 0);
        assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
        sockets[opened][0] = accept(fd, NULL, NULL);
        sockets[opened][1] = client;
        close(fd);
}

static bool was_cut(unsigned i)
{
        struct pollfd look = {.fd = sockets[i][1], .events = POLLRDHUP};
        return poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP));
}

static int begin(void **state)
{
        *state = unread_new();
        opened = 0;
        memset(answers, 0, sizeof answers);
        return 0;
}

static int end(void **state)
{
        for (unsigned i = 0; i < opened; i++) {
                unread_let_go(*state, &answers[i]);
                close(sockets[i][0]);
                close(sockets[i][1]);
        }
        assert_int_equal(unread_bytes(*state), 0);
        unread_free(*state);
        return 0;
}

/* True: it was accepted. */
static bool hold(
    struct unread *all, unsigned host, const char *token, bool guest, uint64_t bytes, bool lasting)
{
        open_from(host);
        struct unread_answer *a = &answers[opened];
        a->fd = sockets[opened][0];
        a->guest = guest;
        a->lasting = lasting;
        opened++;
        return unread_hold(all, a, token, bytes);
}

static unsigned count_cut(void)
{
        unsigned n = 0;
        for (unsigned i = 0; i < opened; i++)
                n += was_cut(i);
        return n;
}

static uint64_t room_of(bool guest)
{
        return guest ? SERVER_VISITOR_REPLIES_MAX : SERVER_REPLIES_MAX;
}

enum { PARTS = 32 };

/* Some tokens hold all of it, in equal parts. */
static void fill(struct unread *all, unsigned hosts, unsigned tokens, bool guest)
{
        char token[32];
        for (unsigned i = 0; i < PARTS; i++) {
                unsigned who = i % tokens;
                snprintf(token, sizeof token, "greedy%u", who);
                assert_true(hold(all, who % hosts, token, guest, room_of(guest) / PARTS, false));
        }
}

/* Whoever holds less than those who hold everything is accepted, whatever the addresses and the
 * kind of token; the oldest answers of those who hold most make room, and no more of them than
 * needed. */
static void the_fullest_make_room(void **state)
{
        static const unsigned hosts[] = {1, 2, 3}, tokens[] = {2, 3, 5, 16};
        for (unsigned guest = 0; guest < 2; guest++)
                for (unsigned h = 0; h < sizeof hosts / sizeof *hosts; h++)
                        for (unsigned t = 0; t < sizeof tokens / sizeof *tokens; t++)
                                for (unsigned host = 0; host < ADDRESSES; host++) {
                                        uint64_t part = room_of(guest) / PARTS;
                                        fill(*state, hosts[h], tokens[t], guest);
                                        assert_int_equal(count_cut(), 0);
                                        assert_true(hold(
                                            *state, host, "modest", guest, part + part / 4, false));
                                        assert_int_equal(count_cut(), 2);
                                        assert_false(was_cut(opened - 1));
                                        assert_true(unread_bytes(*state) <= room_of(guest));
                                        end(state);
                                        begin(state);
                                }
}

/* One address with very many tokens cannot keep another one out. */
static void another_address_gets_in(void **state)
{
        char token[32];
        for (unsigned i = 0; i < 64; i++) {
                snprintf(token, sizeof token, "sybil%u", i);
                assert_true(hold(*state, 0, token, true, SERVER_VISITOR_REPLIES_MAX / 64, false));
        }
        assert_false(hold(*state, 0, "late", true, SERVER_VISITOR_REPLIES_MAX / 32, false));
        assert_int_equal(count_cut(), 0);
        assert_true(hold(*state, 1, "late", true, SERVER_VISITOR_REPLIES_MAX / 32, false));
        assert_int_equal(count_cut(), 2);
        assert_true(was_cut(0) && was_cut(1));
}

/* Without a token, each address counts as a client. */
static void addresses_without_a_token_are_told_apart(void **state)
{
        uint64_t half = SERVER_VISITOR_REPLIES_MAX / 2;
        assert_true(hold(*state, 0, "", true, half, false));
        assert_false(hold(*state, 0, "", true, half / 8, false));
        assert_true(hold(*state, 1, "", true, half, false));
        assert_true(hold(*state, 2, "", true, half / 8, false));
        assert_int_equal(count_cut(), 1);
}

/* One token gets at most half, and its own answers do not make room for more of them. */
static void a_token_gets_at_most_half(void **state)
{
        for (unsigned guest = 0; guest < 2; guest++) {
                uint64_t half = room_of(guest) / 2;
                for (unsigned i = 0; i < 4; i++)
                        assert_true(hold(*state, i, "t", guest, half / 4, false));
                assert_false(hold(*state, 0, "t", guest, half / 4, false));
                assert_true(hold(*state, 0, "other", guest, half, false));
                assert_int_equal(count_cut(), 0);
                end(state);
                begin(state);
        }
}

/* Answers that are read too slowly make room for anybody, also for more answers of the same token,
 * the oldest first. An answer that has time left stays. */
static void the_slow_make_room(void **state)
{
        uint64_t part = SERVER_VISITOR_REPLIES_MAX / 16;
        int64_t time = SERVER_READ_GRACE_MS + (int64_t)(part * 1000 / SERVER_READ_RATE);
        char token[32];
        for (unsigned i = 0; i < 16; i++) {
                snprintf(token, sizeof token, "t%u", i / 8);
                assert_true(hold(*state, 0, token, true, part, false));
        }
        assert_false(hold(*state, 0, "t1", true, part, false));
        answers[3].begun_ms -= time / 2;
        answers[7].begun_ms -= time + 1000;
        answers[9].begun_ms -= time + 1000;
        assert_true(hold(*state, 0, "t1", true, part, false));
        assert_true(was_cut(9) && count_cut() == 1);
        assert_true(hold(*state, 0, "t2", true, part, false));
        assert_true(was_cut(7) && count_cut() == 2);
        assert_true(hold(*state, 0, "t3", true, part, false));
        assert_int_equal(count_cut(), 3);
        assert_false(was_cut(3));
}

/* Nothing is cut off for an answer that would not fit anyway. */
static void nobody_is_cut_off_in_vain(void **state)
{
        fill(*state, 1, 4, true);
        answers[0].begun_ms -= 1000000;
        uint64_t before = unread_bytes(*state);
        assert_false(hold(*state, 0, "new", true, SERVER_VISITOR_REPLIES_MAX / 2 - 1, false));
        assert_int_equal(count_cut(), 0);
        assert_int_equal(unread_bytes(*state), before);
        assert_true(hold(*state, 0, "new", true, SERVER_VISITOR_REPLIES_MAX / 32, false));
        assert_true(was_cut(0) && count_cut() == 1);
}

/* An answer that cannot be asked for again is never refused, and never makes room. */
static void lasting_answers_stay(void **state)
{
        for (unsigned i = 0; i < 40; i++)
                assert_true(hold(*state, 0, "t", true, SERVER_VISITOR_REPLIES_MAX / 32, true));
        for (unsigned i = 0; i < 40; i++)
                answers[i].begun_ms -= 1000000;
        assert_false(hold(*state, 1, "u", true, SERVER_VISITOR_REPLIES_MAX / 32, false));
        assert_int_equal(count_cut(), 0);
        assert_true(hold(*state, 1, "u", true, SERVER_KEPT_REPLY, false));
}

/* Guests take nothing from owners, and owners nothing from guests. */
static void the_two_kinds_are_apart(void **state)
{
        fill(*state, 1, 2, true);
        assert_true(hold(*state, 0, "owner", false, SERVER_REPLIES_MAX / 2, false));
        assert_true(hold(*state, 0, "another", false, SERVER_REPLIES_MAX / 2, false));
        assert_int_equal(count_cut(), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
            TEST(the_fullest_make_room),
            TEST(another_address_gets_in),
            TEST(addresses_without_a_token_are_told_apart),
            TEST(a_token_gets_at_most_half),
            TEST(the_slow_make_room),
            TEST(nobody_is_cut_off_in_vain),
            TEST(lasting_answers_stay),
            TEST(the_two_kinds_are_apart),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
