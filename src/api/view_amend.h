/*
 * view_amend.h - what amendments say about messages, for one view.
 */
#ifndef API_VIEW_AMEND_H
#define API_VIEW_AMEND_H

#include "api/view_source.h"

/* What became of a message. */
struct amended {
        struct str target; /* id, decoded */
        bool deleted;
        uint64_t by;    /* seq of the record that deleted or replaced it, 0: neither did */
        struct str fmt; /* of what replaces it */
        struct about about;
        struct str m;
        int in_context; /* 1, 0, or -1: nothing was said */
};

struct amends {
        struct arena arena;
        struct amended *list; /* an open table */
        size_t size;          /* a power of two, or 0 */
        size_t count;
};

/* Reads all amendments of a conversation; most have none. */
int view_amends_read(struct amends *a, const struct view_source *source, struct steno_error *err);
void view_amends_release(struct amends *a);
/* NULL: nothing happened to it. */
const struct amended *view_amends_find(const struct amends *a, struct str id);

#endif
