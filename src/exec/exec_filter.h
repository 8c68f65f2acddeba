/*
 * exec_filter.h - a filter of system calls by which a child could change processes outside of its
 * tree, or remove the mounts that guard a directory. Neither Landlock nor a non-dumpable process
 * prevents these. Private to exec.
 *
 * Landlock confines signals. For limits (prlimit), priorities and schedulers the kernel only checks
 * that the user is the same, and with a limit on processor time a child can end any process of its
 * user. Each of these calls is allowed for the caller itself (0 in place of a pid) and refused with
 * EPERM for everybody else, the caller's own children included, because a filter cannot tell them
 * from others.
 *
 * A folder cannot be renamed while it is a mount point, but the kernel looks only in the mount
 * namespace of the process that renames it. Any process can make a namespace of its own with the
 * help of a user namespace. There a child could set another root, unmount everything, and rename
 * the folder by a descriptor that it opened before. So it gets no mount namespace: unshare() and
 * clone() refuse the flag with EPERM, and clone3(), whose flags a filter cannot see, is absent.
 * Landlock refuses the mounts themselves, so that nothing works less because of it where both are
 * used.
 */
#ifndef EXEC_EXEC_FILTER_H
#define EXEC_EXEC_FILTER_H

#include <stdbool.h>

/* Does this kernel filter system calls, and is there a filter for this machine? */
bool exec_filter_possible(void);
/* Called by the child between fork and exec: only system calls. The filter also applies to all
 * processes that the child starts. */
bool exec_filter_apply(void);

#endif
