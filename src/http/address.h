/*
 * address.h - a socket's address, of either family.
 */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

union address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
};

#endif
