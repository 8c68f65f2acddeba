/*
 * events.h - a run's events as they come: for a person, or as lines of JSON.
 */
#ifndef CLI_EVENTS_H
#define CLI_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/out.h"

#define EVENTS_WIDTH 120

struct events {
        struct out *out;
        bool json;        /* {"seq","type","data"}, one a line */
        bool remarks_out; /* what is not text goes to `out` as well; else to standard error */
        bool colours;     /* of the remarks */
        unsigned width;   /* columns of the remarks; 0: EVENTS_WIDTH */
        bool quiet;       /* no remarks at all */
        bool asks;        /* a question about permission is put at this terminal: no remark */
        bool in_text;     /* the cursor stands behind text */
        bool in_thinking;
};

/* Prints one event and flushes, so that a reader sees it at once. */
void events_print(struct events *e, uint64_t seq, const char *type, const char *data, size_t n);

#endif
