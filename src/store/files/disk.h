/*
 * disk.h - disks (steno_disk.h) in a store of files.
 *
 *   <root>/projects/<project>/disks/<disk>/
 *     disk.json             {"v":1,"id","createdAt"}
 *     <name>.json           a file: its path, size, sha256, type, metadata, times, and "data"
 *     <name>.<contents>     its bytes, under the name that "data" says
 *
 * <name> follows from the path, <contents> from the bytes. Bytes are written and synced before the
 * .json that names them is put in its place, so a crash leaves the old file or the new one, and
 * perhaps bytes that nothing names. Who changes a disk holds flock on its folder.
 */
#ifndef STORE_FILES_DISK_H
#define STORE_FILES_DISK_H

#include "store/backend_disks.h"

extern const struct backend_disks disk_calls;

/* Copies all disks into a backup, whose root is `to`. 0 or a negative errno. */
struct files_store;
int disk_backup(struct files_store *store, int to, uint64_t *bytes);

#endif
