/* file_url.c - see file_url.h */
#include "base/file_url.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/percent.h"

bool file_url_is(const char *text)
{
        return strncmp(text, "file:", 5) == 0;
}

/* Behind the scheme and the host, which is empty or this machine. NULL: another host. */
static const char *behind_host(const char *url)
{
        static const char LOCAL[] = "localhost";
        const char *p = url + 5;
        if (strncmp(p, "//", 2) != 0)
                return p;
        p += 2;
        if (strncmp(p, LOCAL, sizeof LOCAL - 1) == 0 && p[sizeof LOCAL - 1] == '/')
                p += sizeof LOCAL - 1;
        return *p == 0 || *p == '/' ? p : NULL;
}

int file_url_path(const char *url, char **path, struct steno_error *err)
{
        struct arena arena;
        struct str text = str_of(url);
        if (file_url_is(url)) {
                const char *p = behind_host(url);
                if (!p)
                        return error_set(
                            err, STENO_EINVAL, "\"%.60s\": a file: URL has no host", url);
                text = str_of(p);
        }
        arena_init(&arena);
        bool ok = !file_url_is(url) || percent_decode(&arena, text, false, &text);
        char *copy = ok ? strndup(text.p, text.n) : NULL;
        arena_release(&arena);
        if (!ok)
                return error_set(err, STENO_EINVAL,
                    "\"%.60s\": in a file: URL a %% stands before two hex digits, other than 00",
                    url);
        if (!copy)
                return error_nomem(err);
        *path = copy;
        return 0;
}

void file_url_put(struct buf *out, const char *path)
{
        buf_puts(out, "file:");
        for (const char *p = path; *p; p++) {
                if (strchr("%?#", *p))
                        buf_printf(out, "%%%02X", (unsigned char)*p);
                else
                        buf_putc(out, *p);
        }
}
