/*
 * connections.c - see connections.h
 *
 * The deadlines are set by the daemon's threads and read by the ticker. A connection is in the list
 * for as long as the library has it, so its socket is its own while the mutex is held.
 */
#include "http/connections.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "http/http_limits.h"
#include "http/libmhd.h"

enum owes {
        OWES_NOTHING,
        OWES_HEADERS,
        OWES_BODY,
        OWES_REST, /* of a body that is read past; the answer may still arrive */
};

struct connection {
        struct connection *next, *prev;
        int fd;
        atomic_llong due;   /* what it owes and until when: see owe() */
        atomic_llong pause; /* of OWES_REST: when the client seems to wait for its answer */
        /* The thread that reads its chunked body; 0: none. What follows is that thread's. */
        atomic_ulong reader;
        uint64_t seen; /* bytes that had been read when the last piece came */
        void *request;
        /* By the mutex. */
        char *answer;
        size_t answer_n;
        bool told;
};

/* A socket that the library has closed, whose client is still sending. Without it the kernel would
 * reset the connection, and the client could lose the answer. */
struct leftover {
        int fd;
        int64_t until;
        size_t skipped;
};

struct connections {
        pthread_mutex_t mutex;
        struct connection *first, *last; /* the newest, and the oldest */
        unsigned count, most;
        struct leftover leftovers[SERVER_SKIPPING_MAX];
        unsigned leftover_count;
};

struct connections *connections_new(unsigned most)
{
        struct connections *all = calloc(1, sizeof *all);
        if (all) {
                all->most = most;
                pthread_mutex_init(&all->mutex, NULL);
        }
        return all;
}

unsigned connections_most(const struct connections *all)
{
        return all->most;
}

void connections_free(struct connections *all)
{
        if (!all)
                return;
        for (unsigned i = 0; i < all->leftover_count; i++)
                close(all->leftovers[i].fd);
        pthread_mutex_destroy(&all->mutex);
        free(all);
}

/* Both are in one word. If they were read separately, the debt of one request could be combined
 * with the deadline of another, and a connection would be ended in the middle of its request. */
enum { OWES_VALUES = 4 };

static void owe(struct connection *c, enum owes what, int64_t deadline)
{
        if (!c)
                return;
        if (deadline > INT64_MAX / OWES_VALUES - 1)
                deadline = INT64_MAX / OWES_VALUES - 1;
        atomic_store(&c->due, deadline * OWES_VALUES + what);
}

static enum owes owed(long long due)
{
        return (enum owes)(due % OWES_VALUES);
}

static int64_t deadline_of(long long due)
{
        return due / OWES_VALUES;
}

static void add(struct connections *all, struct MHD_Connection *connection, void **socket_context)
{
        const union MHD_ConnectionInfo *info =
            libmhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct connection *c = info ? calloc(1, sizeof *c) : NULL;
        *socket_context = c;
        if (!c)
                return; /* without a deadline, but served */
        c->fd = info->connect_fd;
        owe(c, OWES_HEADERS, time_monotonic_ms() + SERVER_HEADER_SECONDS * 1000);
        pthread_mutex_lock(&all->mutex);
        c->next = all->first;
        *(c->next ? &c->next->prev : &all->last) = c;
        all->first = c;
        all->count++;
        pthread_mutex_unlock(&all->mutex);
}

/* Under the mutex. */
static void keep_open(struct connections *all, int fd)
{
        char byte;
        if (all->leftover_count == SERVER_SKIPPING_MAX ||
            recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
                return;
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (copy < 0)
                return;
        shutdown(copy, SHUT_WR);
        all->leftovers[all->leftover_count++] = (struct leftover){
            .fd = copy, .until = time_monotonic_ms() + SERVER_LEFTOVER_SECONDS * 1000};
}

static void remove_one(struct connections *all, struct connection *c)
{
        pthread_mutex_lock(&all->mutex);
        keep_open(all, c->fd);
        *(c->prev ? &c->prev->next : &all->first) = c->next;
        *(c->next ? &c->next->prev : &all->last) = c->prev;
        all->count--;
        pthread_mutex_unlock(&all->mutex);
        free(c->answer);
        free(c);
}

void connections_notify(struct connections *all, struct MHD_Connection *connection,
    void **socket_context, enum MHD_ConnectionNotificationCode what)
{
        if (what == MHD_CONNECTION_NOTIFY_STARTED) {
                add(all, connection, socket_context);
        } else if (*socket_context) {
                remove_one(all, *socket_context);
                *socket_context = NULL;
        }
}

static struct connection *of(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
            libmhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        return info ? info->socket_context : NULL;
}

void connections_settled(struct MHD_Connection *connection)
{
        struct connection *c = of(connection);
        if (c)
                atomic_store(&c->reader, 0);
        owe(c, OWES_NOTHING, 0);
}

void connections_answered(struct MHD_Connection *connection)
{
        struct connection *c = of(connection);
        if (c) {
                atomic_store(&c->reader, 0);
                c->request = NULL;
        }
        owe(c, OWES_HEADERS,
            time_monotonic_ms() + (SERVER_IDLE_SECONDS + SERVER_HEADER_SECONDS) * 1000);
}

void *connections_request(struct MHD_Connection *connection)
{
        struct connection *c = of(connection);
        return c ? c->request : NULL;
}

/* How many bytes the library has read from it since it was opened: what came, less what waits. More
 * may come between the two questions. */
static uint64_t bytes_read(int fd)
{
        enum { TRIES = 10 };
        struct tcp_info info = {0};
        socklen_t n = sizeof info;
        int before, waits = 0;
        for (unsigned i = 0; i < TRIES; i++) {
                if (ioctl(fd, SIOCINQ, &before) != 0 ||
                    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0 ||
                    ioctl(fd, SIOCINQ, &waits) != 0)
                        return 0;
                if (before == waits)
                        break;
        }
        return info.tcpi_bytes_received - (uint64_t)waits;
}

void connections_owes_chunk(struct MHD_Connection *connection)
{
        struct connection *c = of(connection);
        if (!c)
                return;
        c->seen = bytes_read(c->fd);
        atomic_store(&c->reader, pthread_self());
}

void *connections_unparsed(struct connections *all)
{
        enum { MOST = 64 }; /* so that many of them make nobody wait */
        struct connection *found = NULL;
        unsigned n = 0, looked = 0;
        pthread_mutex_lock(&all->mutex);
        for (struct connection *c = all->first; c && looked <= MOST; c = c->next) {
                if (atomic_load(&c->reader) != pthread_self())
                        continue;
                looked++;
                if (bytes_read(c->fd) > c->seen) {
                        found = c;
                        n++;
                }
        }
        pthread_mutex_unlock(&all->mutex);
        return n == 1 && looked <= MOST ? found->request : NULL;
}

void connections_begun(struct MHD_Connection *connection, void *request)
{
        struct connection *c = of(connection);
        int64_t soon = time_monotonic_ms() + SERVER_HEADER_SECONDS * 1000;
        if (c)
                c->request = request;
        if (c && deadline_of(atomic_load(&c->due)) > soon)
                owe(c, OWES_HEADERS, soon);
}

void connections_owes_body(struct MHD_Connection *connection, int64_t deadline)
{
        owe(of(connection), OWES_BODY, deadline);
}

void connections_skip(
    struct connections *all, struct MHD_Connection *connection, int64_t deadline, struct str answer)
{
        struct connection *c = of(connection);
        if (!c)
                return;
        if (answer.n) {
                char *copy = malloc(answer.n);
                if (copy)
                        memcpy(copy, answer.p, answer.n);
                pthread_mutex_lock(&all->mutex);
                free(c->answer);
                c->answer = copy;
                c->answer_n = copy ? answer.n : 0;
                pthread_mutex_unlock(&all->mutex);
        }
        atomic_store(&c->pause, time_monotonic_ms() + SERVER_SKIP_PAUSE_MS);
        owe(c, OWES_REST, deadline);
}

bool connections_claim(struct connections *all, struct MHD_Connection *connection)
{
        struct connection *c = of(connection);
        if (!c)
                return true;
        pthread_mutex_lock(&all->mutex);
        bool told = c->told;
        free(c->answer);
        c->answer = NULL;
        owe(c, OWES_NOTHING, 0);
        pthread_mutex_unlock(&all->mutex);
        return !told;
}

int connections_fd(struct MHD_Connection *connection)
{
        struct connection *c = of(connection);
        return c ? c->fd : -1;
}

/* The library does not always notice the end of a connection in the middle of a body (0.9.75, when
 * it comes right behind some bytes of it), and would keep it for a minute. */
static bool has_left(const struct connection *c)
{
        char byte;
        return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* One write is tried. What comes behind it is read past, so that nothing resets the connection. */
static void tell(struct connection *c)
{
        if (!c->answer)
                return;
        c->told = true;
        (void)!send(c->fd, c->answer, c->answer_n, MSG_DONTWAIT | MSG_NOSIGNAL);
        shutdown(c->fd, SHUT_WR);
        free(c->answer);
        c->answer = NULL;
}

/* Has its client ended, or had its share? */
static bool skip_leftover(struct leftover *l, int64_t now)
{
        enum { PIECES = 4 }; /* of each at a time */
        ssize_t n = 1;
        for (unsigned i = 0; i < PIECES && n > 0; i++) {
                n = recv(l->fd, NULL, MIB, MSG_TRUNC | MSG_DONTWAIT);
                if (n > 0)
                        l->skipped += (size_t)n;
        }
        bool more = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
        return !more || now > l->until || l->skipped > SERVER_SKIP_MAX;
}

/* Has its client kept it waiting for at least a second? That follows from the time that is left: a
 * deadline that was just set has all of it. */
static bool is_idle(const struct connection *c, int64_t now)
{
        enum { GRACE_MS = 1000 };
        long long due = atomic_load(&c->due);
        int64_t left = deadline_of(due) - now, first = SERVER_HEADER_SECONDS * 1000;
        int64_t later = first + SERVER_IDLE_SECONDS * 1000;
        if (owed(due) == OWES_HEADERS)
                return left <= first - GRACE_MS || (left > first && left <= later - GRACE_MS);
        /* The deadline of an owner's body is never. */
        return owed(due) == OWES_BODY && left <= SERVER_VISITOR_BODY_SECONDS * 1000 - GRACE_MS;
}

/* Closes idle connections when nearly all are in use: otherwise a new client would wait behind them
 * without a limit. Under the mutex. */
static void make_room(struct connections *all, int64_t now)
{
        unsigned enough = all->most / 4 * 3, count = all->count;
        if (count <= all->most / 8 * 7)
                return;
        for (struct connection *c = all->last; c && count > enough; c = c->prev)
                if (is_idle(c, now)) {
                        shutdown(c->fd, SHUT_RDWR);
                        count--;
                }
}

void connections_reap(struct connections *all)
{
        int64_t now = time_monotonic_ms();
        pthread_mutex_lock(&all->mutex);
        for (unsigned i = all->leftover_count; i-- > 0;)
                if (skip_leftover(&all->leftovers[i], now)) {
                        close(all->leftovers[i].fd);
                        all->leftovers[i] = all->leftovers[--all->leftover_count];
                }
        for (struct connection *c = all->first; c; c = c->next) {
                long long due = atomic_load(&c->due);
                enum owes owes = owed(due);
                bool late = owes != OWES_NOTHING && now > deadline_of(due);
                if (owes == OWES_REST && (late || now > atomic_load(&c->pause)))
                        tell(c);
                /* The library notices this and releases the connection. A client that seems to have
                 * left may have sent everything, and may be waiting for an answer that is being
                 * written now. */
                if (late && owes != OWES_REST)
                        shutdown(c->fd, SHUT_RDWR);
                else if (late || (owes >= OWES_BODY && has_left(c)))
                        shutdown(c->fd, SHUT_RD);
        }
        make_room(all, now);
        pthread_mutex_unlock(&all->mutex);
}
