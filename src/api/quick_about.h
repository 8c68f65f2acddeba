/*
 * quick_about.h - reads a record's `x` without a parser.
 *
 * Nearly all records of a log have one of a few forms of `x`, and a view of a long log would spend
 * more time on parsing them than on anything else. A form without ids is remembered, so that the
 * next record with the same one costs only a comparison. Unusual forms are left to about_read.
 */
#ifndef API_QUICK_ABOUT_H
#define API_QUICK_ABOUT_H

#include "base/str.h"
#include "model/about.h"

#define QUICK_IDS 64
#define QUICK_FORMS 4
#define QUICK_FORM_MAX 64

struct quick_form {
        size_t n; /* 0: free */
        char text[QUICK_FORM_MAX];
        struct about about;
};

struct quick_about {
        struct quick_form forms[QUICK_FORMS];
        unsigned next; /* form to be forgotten */
        struct about about;
        struct str ids[QUICK_IDS]; /* of calls and answers */
};

void quick_about_init(struct quick_about *q);

/* NULL: about_read has to look. Lives until the next call, or as long as x. Its
 * length and salt are not set. */
const struct about *quick_about_read(struct quick_about *q, struct str x);

#endif
