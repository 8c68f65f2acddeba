/*
 * mount.h - what kind of file system a device is, by the kernel's table of mounts.
 */
#ifndef BASE_MOUNT_H
#define BASE_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MOUNT_TYPE_MAX 63

/* "ext4", "fuse.sshfs" ... of the device (st_dev), by the text of a mountinfo (proc(5)). False
 * where it has no line of it. */
bool mount_type_in(const char *mountinfo, size_t n, dev_t dev, char out[MOUNT_TYPE_MAX + 1]);
/* By /proc/self/mountinfo; false where that cannot be read. */
bool mount_type(dev_t dev, char out[MOUNT_TYPE_MAX + 1]);
/* Is it a FUSE file system that reaches other machines? False for unknown types. */
bool mount_is_remote(const char *type);

#endif
