/*
 * environment.c - see environment.h.
 */
#include "cli/environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ours stays known when the C library replaces the list to add a variable: nothing frees it,
 * because its strings are still in use. Nobody reads this, so only `volatile` keeps the compiler
 * from leaving it out, and a leak checker from taking the list for lost. */
static char **volatile hidden;

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
