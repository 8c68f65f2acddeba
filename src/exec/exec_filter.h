/*
 * exec_filter.h - system calls by which a child could change processes outside of its tree, or rid
 * itself of the mounts that guard a directory, and that neither Landlock nor a non-dumpable process
 * holds off. Private to exec.
 *
 * Landlock confines signals. For limits (prlimit), priorities and schedulers the kernel asks for
 * the same user and nothing else, and with a limit on processor time a child can end any process of
 * its user. Each of these calls is allowed for the caller itself (0 in place of a pid) and refused
 * with EPERM for everybody else, the caller's own children included, because a filter cannot tell
 * them from others.
 *
 * A folder cannot be renamed while it is a mount point, but the kernel looks only in the mount
 * namespace of whoever renames. In a namespace of its own, which a user namespace gives to
 * everybody, a child could put another root in place, unmount all that it had, and rename the
 * folder by a descriptor from before. So it gets no mount namespace: unshare() and clone() refuse
 * the flag with EPERM, and clone3(), whose flags a filter cannot see, is absent. Landlock refuses
 * the mounts themselves, so that nothing works less because of it where both are used.
 */
#ifndef EXEC_EXEC_FILTER_H
#define EXEC_EXEC_FILTER_H

#include <stdbool.h>

/* Does this kernel filter system calls, and is there a filter for this machine? */
bool exec_filter_possible(void);
/* Done by the child between fork and exec: only system calls. It holds for all that it starts. */
bool exec_filter_apply(void);

#endif
