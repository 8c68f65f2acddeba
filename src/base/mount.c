/* mount.c - see mount.h */
#include "base/mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/*
 * "36 35 0:98 /root /mount rw shared:1 - fuse.sshfs source options": the third field is the device,
 * and the type stands behind the first " - ". Spaces in names are escaped.
 */
static bool type_of_line(const char *line, size_t n, dev_t dev, char out[MOUNT_TYPE_MAX + 1])
{
        char want[32];
        int length = snprintf(want, sizeof want, " %u:%u ", major(dev), minor(dev));
        const char *end = line + n;
        const char *at = memchr(line, ' ', n);
        at = at ? memchr(at + 1, ' ', (size_t)(end - at - 1)) : NULL;
        if (!at || end - at < length || memcmp(at, want, (size_t)length) != 0)
                return false;
        at = memmem(at, (size_t)(end - at), " - ", 3);
        if (!at)
                return false;
        at += 3;
        const char *stop = memchr(at, ' ', (size_t)(end - at));
        size_t size = (size_t)((stop ? stop : end) - at);
        if (size == 0 || size > MOUNT_TYPE_MAX)
                return false;
        memcpy(out, at, size);
        out[size] = '\0';
        return true;
}

bool mount_type_in(const char *mountinfo, size_t n, dev_t dev, char out[MOUNT_TYPE_MAX + 1])
{
        const char *end = mountinfo + n;
        for (const char *line = mountinfo, *next; line < end; line = next) {
                const char *lf = memchr(line, '\n', (size_t)(end - line));
                next = lf ? lf + 1 : end;
                if (type_of_line(line, (size_t)((lf ? lf : end) - line), dev, out))
                        return true;
        }
        return false;
}

bool mount_type(dev_t dev, char out[MOUNT_TYPE_MAX + 1])
{
        FILE *f = fopen("/proc/self/mountinfo", "re");
        char *line = NULL;
        size_t room = 0;
        ssize_t n;
        bool found = false;
        while (f && !found && (n = getline(&line, &room, f)) > 0)
                found = mount_type_in(line, (size_t)n, dev, out);
        free(line);
        if (f)
                fclose(f);
        return found;
}

bool mount_is_remote(const char *type)
{
        static const char *const REMOTE[] = {"sshfs", "s3fs", "glusterfs", "rclone", "gcsfuse",
            "goofys", "mountpoint-s3", "ceph-fuse", "juicefs", "seaweedfs", "mfs", "curlftpfs",
            "davfs", "blobfuse", "blobfuse2", "hdfs", "smbnetfs"};
        if (strncmp(type, "fuse.", 5) != 0)
                return false;
        for (size_t i = 0; i < sizeof REMOTE / sizeof *REMOTE; i++)
                if (strcmp(type + 5, REMOTE[i]) == 0)
                        return true;
        return false;
}
