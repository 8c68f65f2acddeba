/*
 * port_owner.h - which program listens on a TCP port of this machine, for error messages.
 */
#ifndef BASE_PORT_OWNER_H
#define BASE_PORT_OWNER_H

#include <stdbool.h>

/* Writes "NAME (process N)". False: it cannot be told, as for programs of other users. */
bool port_owner(int port, char who[64]);

#endif
