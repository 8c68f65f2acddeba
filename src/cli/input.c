/*
 * input.c - see input.h.
 */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/interrupt.h"

_Static_assert(MESSAGE_MAX == 67108864, "input_values_next says it in words");

#define READ_CHUNK (64 * KIB)
#define SCAN_ALWAYS (16 * KIB) /* below this a fault is looked for after every piece */

const char *input_name(const char *path)
{
        return path == NULL || strcmp(path, "-") == 0 ? "standard input" : path;
}

int input_open(struct cli *c, const char *path)
{
        int fd;

        if (path == NULL || strcmp(path, "-") == 0) {
                if (isatty(STDIN_FILENO))
                        cli_say(c, "reading from the terminal; Ctrl-D ends it");
                return STDIN_FILENO;
        }
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
                return -cli_refuse(c, EXIT_USAGE, "%s: no such file", path);
        if (fd < 0)
                return -cli_refuse(
                    c, errno == EACCES ? EXIT_REFUSED : EXIT_IO, "%s: %s", path, strerror(errno));
        return fd;
}

ssize_t input_read(int fd, void *p, size_t n)
{
        ssize_t k;

        do {
                if (interrupt_pending()) {
                        errno = EINTR;
                        return -1;
                }
                k = read(fd, p, n);
        } while (k < 0 && errno == EINTR);
        /* Ctrl-C also ends the program that writes into our pipe, and we may see the end of the
         * pipe before the signal. */
        if (k == 0 && interrupt_pending()) {
                errno = EINTR;
                return -1;
        }
        return k;
}

int input_slurp(struct cli *c, const char *path, struct buf *out)
{
        int fd = input_open(c, path);
        ssize_t k = 1;
        int rc = 0;

        if (fd < 0)
                return -fd;
        while (k > 0) {
                char *room = buf_reserve(out, READ_CHUNK);
                if (room == NULL) {
                        rc = cli_refuse(c, EXIT_REFUSED, "%s: too large", input_name(path));
                        break;
                }
                k = input_read(fd, room, READ_CHUNK);
                if (k > 0)
                        out->n += (size_t)k;
        }
        if (k < 0 && errno == EINTR)
                rc = EXIT_INTERRUPTED;
        else if (k < 0)
                rc = cli_refuse(c, EXIT_IO, "%s: %s", input_name(path), strerror(errno));
        if (fd != STDIN_FILENO)
                close(fd);
        return rc;
}

/* ---- a stream of values ---- */

void input_values_init(struct input_values *v, int fd)
{
        memset(v, 0, sizeof(*v));
        v->fd = fd;
        buf_init(&v->b, 0);
}

void input_values_release(struct input_values *v)
{
        buf_release(&v->b);
}

static void forget(struct input_values *v, size_t n)
{
        buf_drop_front(&v->b, n);
        v->base += n;
        v->seen = v->next_scan = v->message = 0;
        v->depth = 0;
        v->batch = v->in_string = v->escaped = false;
}

/*
 * Follows brackets and strings over the bytes that are new, and says whether the first value may
 * be complete. It is only a filter: json_scan_value decides. Without it a large value that comes
 * in small pieces would be scanned from its start for every piece.
 */
static bool may_be_complete(struct input_values *v)
{
        bool maybe = false;

        for (; v->seen < v->b.n; v->seen++) {
                char ch = v->b.p[v->seen];
                if (v->escaped)
                        v->escaped = false;
                else if (v->in_string && ch == '\\')
                        v->escaped = true;
                else if (ch == '"')
                        v->in_string = !v->in_string;
                else if (!v->in_string && (ch == '{' || ch == '['))
                        v->batch = v->depth++ == 0 ? ch == '[' : v->batch;
                else if (!v->in_string && (ch == '}' || ch == ']') && v->depth > 0)
                        v->depth--;
                if (v->depth == 0 && !v->in_string)
                        maybe = true;
                if (v->depth <= v->batch && !v->in_string)
                        v->message = v->seen + 1;
        }
        return maybe;
}

static enum input_next fill(struct input_values *v, const char **what)
{
        char *room = buf_reserve(&v->b, READ_CHUNK);
        ssize_t k;

        if (room == NULL) {
                *what = "there is not enough memory for a batch of this size";
                return INPUT_TOO_BIG;
        }
        k = input_read(v->fd, room, READ_CHUNK);
        if (k < 0)
                return INPUT_ERROR;
        v->eof = k == 0;
        v->b.n += (size_t)k;
        return INPUT_VALUE;
}

enum input_next input_values_next(
    struct input_values *v, struct str *value, uint64_t *at, const char **what)
{
        struct json_fault fault = {0, NULL};
        size_t start = 0;

        if (v->next_scan == SIZE_MAX) /* the value of the call before */
                forget(v, v->seen);
        for (;;) {
                bool maybe = may_be_complete(v);
                if (v->b.n > 0 && (maybe || v->eof || v->b.n >= v->next_scan)) {
                        ptrdiff_t end = json_scan_value(v->b.p, v->b.n, v->eof, &start, &fault);
                        if (end < 0) {
                                *at = v->base + fault.offset;
                                *what = fault.what;
                                return INPUT_FAULT;
                        }
                        if (end > 0) {
                                *at = v->base + start;
                                *value = str_span(v->b.p + start, (size_t)end - start);
                                v->seen = (size_t)end;
                                v->next_scan = SIZE_MAX;
                                return INPUT_VALUE;
                        }
                        if (start == v->b.n)
                                forget(v, v->b.n);
                        v->next_scan = v->b.n < SCAN_ALWAYS ? 0 : 2 * v->b.n;
                }
                if (v->eof)
                        return INPUT_END;
                /* Such a value would be refused when it is complete, and it may never end. So it is
                 * not collected any further. */
                if (v->b.n - v->message > MESSAGE_MAX) {
                        *what = "a message has at most 67108864 bytes";
                        return INPUT_TOO_BIG;
                }
                enum input_next got = fill(v, what);
                if (got != INPUT_VALUE)
                        return got;
        }
}
