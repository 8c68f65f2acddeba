/*
 * exec_filter.h - system calls by which a child could change processes outside of its tree, and
 * that neither Landlock nor a non-dumpable process holds off. Private to exec.
 *
 * Landlock confines signals. For limits (prlimit), priorities and schedulers the kernel asks for
 * the same user and nothing else, and with a limit on processor time a child can end any process of
 * its user. Each of these calls is allowed for the caller itself (0 in place of a pid) and refused
 * with EPERM for everybody else, the caller's own children included, because a filter cannot tell
 * them from others.
 */
#ifndef EXEC_EXEC_FILTER_H
#define EXEC_EXEC_FILTER_H

#include <stdbool.h>

/* Does this kernel filter system calls, and is there a filter for this machine? */
bool exec_filter_possible(void);
/* Done by the child between fork and exec: only system calls. It holds for all that it starts. */
bool exec_filter_apply(void);

#endif
