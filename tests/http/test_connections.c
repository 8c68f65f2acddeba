/*
 * The deadlines of connections while their requests are under way: a connection that owes nothing,
 * or that has time left, is never ended, at whatever moment the ticker looks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "http/connections.h"
#include "http/libmhd.h"

/* One connection of the library's, which here is a pair of sockets. */
struct pair {
        union MHD_ConnectionInfo socket, context;
        void *socket_context;
        int client;
};

static const union MHD_ConnectionInfo *info_of(
    struct MHD_Connection *connection, enum MHD_ConnectionInfoType type, ...)
{
        struct pair *p = (struct pair *)connection;
        p->context.socket_context = p->socket_context;
        return type == MHD_CONNECTION_INFO_CONNECTION_FD ? &p->socket : &p->context;
}

struct libmhd libmhd = {.get_connection_info = info_of};

static struct MHD_Connection *open_pair(struct connections *all, struct pair *p)
{
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        *p = (struct pair){.client = fds[1]};
        p->socket.connect_fd = fds[0];
        struct MHD_Connection *c = (struct MHD_Connection *)p;
        connections_notify(all, c, &p->socket_context, MHD_CONNECTION_NOTIFY_STARTED);
        return c;
}

static void close_pair(struct connections *all, struct pair *p)
{
        connections_notify(
            all, (struct MHD_Connection *)p, &p->socket_context, MHD_CONNECTION_NOTIFY_CLOSED);
        close(p->socket.connect_fd);
        close(p->client);
}

static bool was_ended(const struct pair *p)
{
        struct pollfd look = {.fd = p->client, .events = POLLRDHUP};
        return poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP));
}

struct requests {
        struct connections *all;
        struct MHD_Connection *connection;
        atomic_bool over;
};

/* What the server's callbacks do for one request after the other. */
static void *go_on(void *arg)
{
        struct requests *r = arg;
        for (unsigned n = 0; !atomic_load(&r->over); n++) {
                connections_begun(r->connection, NULL);
                int64_t later = time_monotonic_ms() + 60 * 1000;
                connections_owes_body(r->connection, n % 2 ? INT64_MAX : later);
                if (n % 3 == 0) {
                        connections_skip(r->all, r->connection, later, STR("refused"));
                        connections_claim(r->all, r->connection);
                } else {
                        connections_settled(r->connection);
                }
                connections_answered(r->connection);
        }
        return NULL;
}

static void no_request_is_ended(void **state)
{
        (void)state;
        struct connections *all = connections_new(100);
        struct pair pair;
        struct requests r = {.all = all, .connection = open_pair(all, &pair)};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, go_on, &r), 0);
        for (int i = 0; i < 300000 && !was_ended(&pair); i++)
                connections_reap(all);
        atomic_store(&r.over, true);
        pthread_join(thread, NULL);
        assert_false(was_ended(&pair));
        close_pair(all, &pair);
        connections_free(all);
}

static void a_late_body_is_ended(void **state)
{
        (void)state;
        struct connections *all = connections_new(100);
        struct pair late, in_time, for_ever;
        connections_owes_body(open_pair(all, &late), time_monotonic_ms() - 1);
        connections_owes_body(open_pair(all, &in_time), time_monotonic_ms() + 60 * 1000);
        connections_owes_body(open_pair(all, &for_ever), INT64_MAX);
        connections_reap(all);
        assert_true(was_ended(&late));
        assert_false(was_ended(&in_time));
        assert_false(was_ended(&for_ever));
        close_pair(all, &late);
        close_pair(all, &in_time);
        close_pair(all, &for_ever);
        connections_free(all);
}

/* It may have sent all of its body and wait for the answer, which is still written. */
static void a_client_that_has_left_is_still_written_to(void **state)
{
        (void)state;
        struct connections *all = connections_new(100);
        struct pair pair;
        connections_owes_body(open_pair(all, &pair), INT64_MAX);
        shutdown(pair.client, SHUT_WR);
        connections_reap(all);
        assert_int_equal(send(pair.socket.connect_fd, "x", 1, MSG_NOSIGNAL), 1);
        close_pair(all, &pair);
        connections_free(all);
}

/* Of 16, 14 are allowed; at 15 some are ended until there are 12: the oldest ones that owe
 * something. */
static void the_oldest_idle_connections_make_room(void **state)
{
        enum { MOST = 16, COUNT = 15 };
        (void)state;
        struct connections *all = connections_new(MOST);
        struct pair pairs[COUNT];
        for (unsigned i = 0; i < COUNT; i++) {
                struct MHD_Connection *c = open_pair(all, &pairs[i]);
                if (i % 3 == 0) /* an owner's body */
                        connections_owes_body(c, INT64_MAX);
                else if (i % 3 == 1) /* a guest's that is under way */
                        connections_owes_body(c, time_monotonic_ms() + 30 * 1000);
                else
                        connections_settled(c);
                if (i == COUNT - 2) {
                        connections_reap(all);
                        for (unsigned k = 0; k <= i; k++)
                                assert_false(was_ended(&pairs[k]));
                }
        }
        connections_reap(all);
        for (unsigned i = 0; i < COUNT; i++)
                assert_int_equal(was_ended(&pairs[i]), i == 1 || i == 4 || i == 7);
        for (unsigned i = 0; i < COUNT; i++)
                close_pair(all, &pairs[i]);
        connections_free(all);
}

/* A connection is not ended while its request or body may be arriving. */
static void new_connections_stay(void **state)
{
        enum { COUNT = 16 };
        (void)state;
        struct connections *all = connections_new(COUNT);
        struct pair pairs[COUNT];
        for (unsigned i = 0; i < COUNT; i++) {
                struct MHD_Connection *c = open_pair(all, &pairs[i]);
                if (i % 3 == 1)
                        connections_owes_body(c, time_monotonic_ms() + 60 * 1000);
                else if (i % 3 == 2)
                        connections_answered(c);
        }
        connections_reap(all);
        for (unsigned i = 0; i < COUNT; i++) {
                assert_false(was_ended(&pairs[i]));
                close_pair(all, &pairs[i]);
        }
        connections_free(all);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"no request is ended while it goes on, whenever the ticker looks", no_request_is_ended,
                0, 0, 0},
            {"a body that is late is ended, one that has time is not", a_late_body_is_ended, 0, 0,
                0},
            {"a client that has left is still written to",
                a_client_that_has_left_is_still_written_to, 0, 0, 0},
            {"where there is hardly room, the oldest that keep waiting are ended",
                the_oldest_idle_connections_make_room, 0, 0, 0},
            {"where there is hardly room, new connections stay", new_connections_stay, 0, 0, 0},
        };
        return cmocka_run_group_tests_name("connections", tests, NULL, NULL);
}
