/*
 * gaps.c - see gaps.h
 */
#include "gateway/gaps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gap **find(struct gap **all, const char *owner)
{
        while (*all && strcmp((*all)->owner, owner) != 0)
                all = &(*all)->next;
        return all;
}

const struct gap *gaps_find(const struct gap *all, const char *owner)
{
        while (all && strcmp(all->owner, owner) != 0)
                all = all->next;
        return all;
}

void gaps_note(struct gap **all, const char *owner, struct str at)
{
        struct gap **g = find(all, owner);
        if (!*g) {
                struct gap *one = calloc(1, sizeof *one);
                char *name = strdup(owner);
                if (!one || !name) {
                        free(one);
                        free(name);
                        return;
                }
                one->owner = name;
                snprintf(one->since, sizeof one->since, "%.*s", (int)at.n, at.n ? at.p : "");
                *g = one;
        }
        (*g)->count++;
}

static void drop(struct gap **g)
{
        struct gap *one = *g;
        *g = one->next;
        free(one->owner);
        free(one);
}

void gaps_forget(struct gap **all, const char *owner)
{
        struct gap **g = find(all, owner);
        if (*g)
                drop(g);
}

void gaps_release(struct gap **all)
{
        while (*all)
                drop(all);
}
