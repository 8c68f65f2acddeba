/*
 * listen.h - the socket that the server listens on.
 */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

#include "steno.h"

struct sockaddr;

/*
 * A descriptor, or a negative errno. A port belongs to one server. SO_REUSEADDR lets a new one have
 * it as soon as the old one is gone, and never beside it.
 */
int listen_on(const struct sockaddr *address);
/* The port that the kernel gave; 0 when it cannot say. */
int listen_port(int fd);
/* Says why listen_on gave `sys`, and who has the port. Returns the error's code. */
int listen_failed(const char *host, int port, int sys, struct steno_error *err);

#endif
