/*
 * exec_mounts.h - the file system that a child in a mount namespace of its own sees. Private to
 * exec.
 *
 * Only system calls: all of it runs between fork and exec.
 */
#ifndef EXEC_EXEC_MOUNTS_H
#define EXEC_EXEC_MOUNTS_H

#include "exec/exec_shield.h"

/* Enters a mount namespace, guards the plan's directories and mounts a /proc of the PID namespace;
 * as root, also a private /dev and a read-only /sys. False: not possible here. */
bool exec_mounts_enter(const struct exec_shield_plan *plan, bool root);

#endif
