/* terminal.c - see terminal.h */
#include "base/terminal.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int terminal_open_again(int fd)
{
        char path[32];

        if (!isatty(fd))
                return -1;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}
