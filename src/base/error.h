/*
 * error.h - filling the caller's struct steno_error (declared in steno.h).
 *
 * Every function that can fail returns 0 or one of the negative codes of
 * enum steno_code and describes the failure in `err`, which may be NULL. The
 * text is lower case, most specific first, and says what the caller cannot
 * know: which id, which byte, which limit.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "steno.h"

/* Sets code and message; returns `code`, so that a caller can `return error_set(...)`. */
int error_set(struct steno_error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * The same for a failed system call: `sys` is an errno (either sign). The code follows from
 * it: ENOSPC, EDQUOT and EFBIG are STENO_EFULL, ENOMEM is STENO_ENOMEM, the rest STENO_EIO.
 * strerror's words are appended to the message.
 */
int error_sys(struct steno_error *err, int sys, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Out of memory. */
int error_nomem(struct steno_error *err);

/* Puts "prefix: " before the message that is already there. Returns err's code. */
int error_prefix(struct steno_error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
