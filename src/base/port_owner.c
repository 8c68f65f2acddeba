/*
 * port_owner.c - see port_owner.h. Linux says in /proc/net/tcp which socket listens on a port, and
 * in /proc/N/fd who has that socket open. Every failure means that it cannot be told.
 */
#include "base/port_owner.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTENING 0x0A

/* The inode of the socket that listens on `port`; 0: none. */
static unsigned long find_socket(const char *table, int port)
{
        char line[512];
        unsigned long inode = 0;
        FILE *f = fopen(table, "re");
        while (f && !inode && fgets(line, sizeof line, f)) {
                unsigned at, state;
                unsigned long found;
                if (sscanf(line,
                        " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*s %*s %lu", &at,
                        &state, &found) == 3 &&
                    at == (unsigned)port && state == LISTENING)
                        inode = found;
        }
        if (f)
                fclose(f);
        return inode;
}

static bool has_socket(const char *process, unsigned long inode)
{
        char path[300], want[40], link[64];
        bool has = false;
        snprintf(path, sizeof path, "/proc/%s/fd", process);
        snprintf(want, sizeof want, "socket:[%lu]", inode);
        DIR *dir = opendir(path);
        struct dirent *e;
        while (dir && !has && (e = readdir(dir))) {
                ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
                link[n > 0 ? n : 0] = '\0';
                has = strcmp(link, want) == 0;
        }
        if (dir)
                closedir(dir);
        return has;
}

static void put_name(const char *process, char who[64])
{
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/%s/comm", process);
        FILE *f = fopen(path, "re");
        if (f && fgets(name, sizeof name, f))
                name[strcspn(name, "\n")] = '\0';
        if (f)
                fclose(f);
        snprintf(who, 64, "%s (process %.10s)", name[0] ? name : "a program", process);
}

bool port_owner(int port, char who[64])
{
        unsigned long inode = find_socket("/proc/net/tcp", port);
        bool found = false;
        if (!inode)
                inode = find_socket("/proc/net/tcp6", port);
        DIR *dir = inode ? opendir("/proc") : NULL;
        struct dirent *e;
        while (dir && !found && (e = readdir(dir))) {
                if (e->d_name[0] < '1' || e->d_name[0] > '9' || !has_socket(e->d_name, inode))
                        continue;
                put_name(e->d_name, who);
                found = true;
        }
        if (dir)
                closedir(dir);
        return found;
}
