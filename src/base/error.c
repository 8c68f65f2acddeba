/* error.c - see error.h */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int code_of_errno(int sys)
{
        switch (sys) {
        case ENOSPC:
        case EDQUOT:
        case EFBIG:
                return STENO_EFULL;
        case EACCES:
        case EPERM:
        case EROFS:
                return STENO_EDENIED;
        case ENOMEM:
                return STENO_ENOMEM;
        case EINTR:
                return STENO_EINTERRUPTED;
        default:
                return STENO_EIO;
        }
}

/* A message must stay valid UTF-8 when it is cut, because it travels in JSON. */
static void trim_partial_character(char *msg)
{
        size_t n = strlen(msg);
        size_t i = n;
        while (i > 0 && n - i < 4 && ((unsigned char)msg[i - 1] & 0xC0) == 0x80)
                i--;
        if (i == 0)
                return;
        unsigned char lead = (unsigned char)msg[i - 1];
        size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
        if (need > n - i + 1)
                msg[i - 1] = '\0';
}

int error_set(struct steno_error *err, int code, const char *fmt, ...)
{
        if (err) {
                va_list ap;
                va_start(ap, fmt);
                err->code = code;
                err->sys = 0;
                vsnprintf(err->msg, sizeof err->msg, fmt, ap);
                va_end(ap);
                trim_partial_character(err->msg);
        }
        return code;
}

int error_sys(struct steno_error *err, int sys, const char *fmt, ...)
{
        if (sys < 0)
                sys = -sys;
        int code = code_of_errno(sys);
        if (err) {
                va_list ap;
                va_start(ap, fmt);
                err->code = code;
                err->sys = sys;
                char text[160];
                char why[64];
                vsnprintf(text, sizeof text, fmt, ap);
                va_end(ap);
                snprintf(
                    err->msg, sizeof err->msg, "%s: %s", text, strerror_r(sys, why, sizeof why));
                trim_partial_character(err->msg);
        }
        return code;
}

int error_nomem(struct steno_error *err)
{
        return error_set(err, STENO_ENOMEM, "out of memory");
}

int error_prefix(struct steno_error *err, int code, const char *fmt, ...)
{
        if (err) {
                char prefix[120];
                char old[sizeof err->msg];
                va_list ap;
                va_start(ap, fmt);
                vsnprintf(prefix, sizeof prefix, fmt, ap);
                va_end(ap);
                memcpy(old, err->msg, sizeof old);
                int n = snprintf(err->msg, sizeof err->msg, "%s: ", prefix);
                size_t room = sizeof err->msg - (size_t)n - 1;
                size_t len = strnlen(old, room);
                memcpy(err->msg + n, old, len);
                err->msg[(size_t)n + len] = '\0';
                err->code = code;
                trim_partial_character(err->msg);
        }
        return code;
}
