/*
 * environment.c - see environment.h.
 */
#include "cli/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A pointer to our list, for leak checkers: when the C library replaces the list to add a variable,
 * the strings of ours are still in use. No code reads this, so only `volatile` stops the compiler
 * from removing it. */
static char **volatile hidden;
static char **volatile arguments;

static void free_list(char **list, size_t n)
{
        while (n > 0)
                free(list[--n]);
        free(list);
}

void environment_hide(void)
{
        char **old = environ;
        size_t n = 0;
        while (old && old[n])
                n++;
        char **copy = calloc(n + 1, sizeof(*copy));
        if (!copy)
                return;
        for (size_t i = 0; i < n; i++) {
                copy[i] = strdup(old[i]);
                if (!copy[i]) {
                        free_list(copy, i);
                        return;
                }
        }
        environ = hidden = copy;
        for (size_t i = 0; i < n; i++)
                explicit_bzero(old[i], strlen(old[i]));
}

static void blank(char *from, const char *to)
{
        while (from < to)
                *from++ = 'x';
}

/* USER:PASSWORD@ behind the scheme, and the values of password= and sslpassword=. True: there was
 * one. `z` may be NULL: then it is only looked for. */
static bool has_password(const char *url, char *z)
{
        static const char name[] = "password=";
        const char *scheme = strstr(url, "://");
        bool found = false;
        if (!scheme)
                return false;
        const char *host = scheme + 3, *end = host + strcspn(host, "/?#");
        const char *colon = memchr(host, ':', (size_t)(end - host));
        const char *at = memrchr(host, '@', (size_t)(end - host));
        if (colon && at && colon + 1 < at) {
                found = true;
                if (z)
                        blank(z + (colon + 1 - url), z + (at - url));
        }
        for (const char *p = end; (p = strstr(p, name));) {
                p += sizeof(name) - 1;
                size_t n = strcspn(p, "&#");
                found = found || n > 0;
                if (z)
                        blank(z + (p - url), z + (p + n - url));
                p += n;
        }
        return found;
}

char **environment_hide_passwords(int argc, char **argv)
{
        char **list = calloc((size_t)argc + 1, sizeof(*list));
        if (!list)
                return argv;
        for (int i = 0; i < argc; i++) {
                char *copy = has_password(argv[i], NULL) ? strdup(argv[i]) : NULL;
                list[i] = copy ? copy : argv[i];
                if (copy)
                        has_password(copy, argv[i]);
        }
        arguments = list;
        return list;
}
