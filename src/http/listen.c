/*
 * listen.c - see listen.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "base/port_owner.h"
#include "http/address.h"
#include "http/http_limits.h"
#include "http/listen.h"

int listen_on(const struct sockaddr *address)
{
        static const int ON = 1;
        bool v6 = address->sa_family == AF_INET6;
        socklen_t n = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
        int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &ON, sizeof ON) != 0 ||
            (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &ON, sizeof ON) != 0) ||
            bind(fd, address, n) != 0 || listen(fd, SERVER_BACKLOG) != 0) {
                int sys = errno;
                close(fd);
                return -sys;
        }
        return fd;
}

int listen_port(int fd)
{
        union address a = {.any.sa_family = AF_UNSPEC};
        socklen_t n = sizeof a;
        if (getsockname(fd, &a.any, &n) != 0)
                return 0;
        return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

int listen_failed(const char *host, int port, int sys, struct steno_error *err)
{
        char who[64];
        if (sys != -EADDRINUSE)
                return error_sys(err, sys, "listening on %s:%d", host, port);
        if (port_owner(port, who))
                return error_set(err, STENO_ECONFLICT,
                    "%s:%d is in use by %s: stop it, or take another port with --listen %s:PORT",
                    host, port, who, host);
        return error_set(err, STENO_ECONFLICT,
            "%s:%d is in use by a program of another user: take another port with --listen "
            "%s:PORT",
            host, port, host);
}
