/* watchers.c - see watchers.h */
#include "http/watchers.h"

#include <stdlib.h>
#include <string.h>

struct watched {
        struct watched *next;
        struct steno_watcher *said; /* NULL: not yet */
        bool noted;
        char project[];
};

struct watchers {
        struct steno_store *store;
        struct watched *list;
};

struct watchers *watchers_new(struct steno_store *store)
{
        struct watchers *w = calloc(1, sizeof *w);
        if (w)
                w->store = store;
        return w;
}

void watchers_note(struct watchers *w, const char *project)
{
        size_t n = strlen(project) + 1;
        struct watched *p = w->list;
        while (p && strcmp(p->project, project) != 0)
                p = p->next;
        if (!p && (p = calloc(1, sizeof *p + n))) {
                memcpy(p->project, project, n);
                p->next = w->list;
                w->list = p;
        }
        if (p)
                p->noted = true;
}

void watchers_settle(struct watchers *w)
{
        for (struct watched **at = &w->list; *at;) {
                struct watched *p = *at;
                if (!p->noted) {
                        *at = p->next;
                        steno_watch_end(p->said);
                        free(p);
                        continue;
                }
                if (!p->said)
                        steno_watch_begin(w->store, p->project, &p->said, NULL);
                p->noted = false;
                at = &p->next;
        }
}

void watchers_free(struct watchers *w)
{
        if (!w)
                return;
        for (struct watched *p = w->list; p; p = p->next)
                p->noted = false;
        watchers_settle(w);
        free(w);
}
