/*
 * kill_at.c - a library for LD_PRELOAD that ends the program with SIGKILL before its n-th call that
 * changes a file ($STENO_KILL_AT), so that a test can kill it between any two writes. Threads are
 * counted together. Children are not counted: a command that the program starts is not killed.
 */
#undef _FILE_OFFSET_BITS /* both spellings of a call are defined here */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static atomic_long left;
static pid_t me;

__attribute__((constructor)) static void begin(void)
{
        const char *n = getenv("STENO_KILL_AT");
        atomic_store(&left, n ? strtol(n, NULL, 10) : 0);
        me = getpid();
}

static void count(void)
{
        if (me == getpid() && atomic_load(&left) > 0 && atomic_fetch_sub(&left, 1) == 1)
                kill(me, SIGKILL);
}

EXPORT ssize_t write(int fd, const void *p, size_t n);
EXPORT ssize_t pwrite(int fd, const void *p, size_t n, off_t at);
EXPORT ssize_t pwrite64(int fd, const void *p, size_t n, off_t at);
EXPORT int fdatasync(int fd);
EXPORT int fsync(int fd);
EXPORT int ftruncate(int fd, off_t n);
EXPORT int ftruncate64(int fd, off_t n);
EXPORT int renameat2(int olddir, const char *old, int newdir, const char *new, unsigned flags);

ssize_t write(int fd, const void *p, size_t n)
{
        count();
        return syscall(SYS_write, fd, p, n);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
        count();
        return syscall(SYS_pwrite64, fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
        return pwrite(fd, p, n, at);
}

int fdatasync(int fd)
{
        count();
        return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
        count();
        return (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t n)
{
        count();
        return (int)syscall(SYS_ftruncate, fd, n);
}

int ftruncate64(int fd, off_t n)
{
        return ftruncate(fd, n);
}

int renameat2(int olddir, const char *old, int newdir, const char *new, unsigned flags)
{
        count();
        return (int)syscall(SYS_renameat2, olddir, old, newdir, new, flags);
}
