/* named_file.c - see named_file.h */
#include "base/named_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int named_file_open(const char *path)
{
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int named_file_slurp(const char *path, size_t max, char **text, size_t *n)
{
        int fd = named_file_open(path), rc = 0;
        size_t cap = 0, have = 0;
        char *p = NULL;
        ssize_t got = 1;
        if (fd < 0)
                return fd;
        named_file_wait(fd);
        while (rc == 0 && got > 0) {
                if (have + 1 >= cap) {
                        cap = cap ? cap * 2 : 4096;
                        char *more = realloc(p, cap);
                        rc = more ? 0 : -ENOMEM;
                        p = more ? more : p;
                }
                got = rc ? 0 : read(fd, p + have, cap - have - 1);
                if (got < 0)
                        rc = -errno;
                have += got > 0 ? (size_t)got : 0;
                if (have > max)
                        rc = -EFBIG;
        }
        close(fd);
        if (rc) {
                free(p);
                return rc;
        }
        p[have] = '\0';
        *text = p;
        *n = have;
        return 0;
}

void named_file_wait(int fd)
{
        int flags = fcntl(fd, F_GETFL);
        if (flags >= 0)
                fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

int named_file_append(const char *path)
{
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
        return fd < 0 ? -errno : fd;
}

char *named_file_absolute(const char *path)
{
        char *folder = NULL, *full = NULL;
        if (path[0] == '/')
                return strdup(path);
        while (path[0] == '.' && path[1] == '/')
                path += 2;
        folder = getcwd(NULL, 0);
        if (folder && asprintf(&full, "%s%s%s", folder, strcmp(path, ".") == 0 ? "" : "/",
                          strcmp(path, ".") == 0 ? "" : path) < 0)
                full = NULL;
        free(folder);
        return full;
}

int named_file_temp(void)
{
        const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
        char path[PATH_MAX];
        int fd = -1;
        for (size_t i = 0; fd < 0 && i < 3; i++) {
                if (!folders[i] || !*folders[i])
                        continue;
                fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
                if (fd >= 0)
                        break;
                /* For file systems without O_TMPFILE. */
                snprintf(path, sizeof path, "%s/steno-XXXXXX", folders[i]);
                fd = mkostemp(path, O_CLOEXEC);
                if (fd >= 0)
                        unlink(path);
        }
        return fd < 0 ? -errno : fd;
}

int named_file_begin(struct named_file *f, const char *path)
{
        *f = (struct named_file){.fd = STDOUT_FILENO};
        if (!path || strcmp(path, "-") == 0)
                return 0;
        struct stat st;
        bool there = stat(path, &st) == 0;
        f->path = there ? realpath(path, NULL) : strdup(path);
        if (!f->path)
                return there ? -errno : -ENOMEM;
        if (there && !S_ISREG(st.st_mode)) {
                f->fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
                return f->fd < 0 ? -errno : 0;
        }
        if (asprintf(&f->part, "%s.part", f->path) < 0) {
                f->part = NULL;
                f->fd = -1;
                return -ENOMEM;
        }
        f->fd = open(f->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        return f->fd < 0 ? -errno : 0;
}

int named_file_write(struct named_file *f, const void *p, size_t n, bool (*when)(void))
{
        const char *at = p;
        while (n > 0) {
                ssize_t put = write(f->fd, at, n);
                if (put < 0 && errno == EINTR && !(when && when()))
                        continue;
                if (put <= 0) {
                        f->sys = put < 0 ? errno : EIO;
                        return 1;
                }
                at += put;
                n -= (size_t)put;
        }
        return when && when();
}

int named_file_end(struct named_file *f, bool keep)
{
        if (f->path && f->fd >= 0) {
                if (f->part && keep && !f->sys && fsync(f->fd) < 0)
                        f->sys = errno;
                if (close(f->fd) < 0 && !f->sys)
                        f->sys = errno;
                if (f->part && keep && !f->sys && rename(f->part, f->path) < 0)
                        f->sys = errno;
                if (f->part && (!keep || f->sys))
                        unlink(f->part);
        }
        free(f->path);
        free(f->part);
        f->path = f->part = NULL;
        return -f->sys;
}
