/*
 * input.h - what comes in: files and standard input, whole or as a stream of JSON values.
 */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/command.h"

/* Reads a file (NULL or "-": standard input) to its end. 0 or an exit code, reported. */
int input_slurp(struct cli *c, const char *path, struct buf *out);

/* Opens a file for reading; NULL or "-" is standard input. On failure the error is reported and the
 * negative exit code returned: a missing file is a mistake in the command line. */
int input_open(struct cli *c, const char *path);
/* How a person calls it. */
const char *input_name(const char *path);
/* read() that continues after EINTR. The number of bytes, 0 at the end, or -1 (errno; EINTR after
 * Ctrl-C). */
ssize_t input_read(int fd, void *p, size_t n);

/*
 * A stream of JSON values from a descriptor that delivers them in any pieces. A value is handed
 * out as soon as its last byte is there, and cost is linear in the bytes however they are cut.
 */
struct input_values {
        int fd;
        struct buf b;
        uint64_t base; /* stream position of b's first byte */
        bool eof;
        /* how far the search for the end of the first value has come */
        size_t seen;      /* bytes looked at */
        size_t next_scan; /* check for syntax errors again when this many bytes are there */
        size_t message;   /* where the message at hand began, of an object or of a batch */
        unsigned depth;
        bool batch; /* the value is an array: messages are one level further in */
        bool in_string;
        bool escaped;
};

enum input_next {
        INPUT_VALUE,   /* *value is it; valid until the next call */
        INPUT_END,     /* nothing is left */
        INPUT_FAULT,   /* not JSON: *at in the stream, *what */
        INPUT_ERROR,   /* errno; EINTR after Ctrl-C */
        INPUT_TOO_BIG, /* before it was read to its end: *what */
};

void input_values_init(struct input_values *v, int fd);
void input_values_release(struct input_values *v);
enum input_next input_values_next(
    struct input_values *v, struct str *value, uint64_t *at, const char **what);

#endif
