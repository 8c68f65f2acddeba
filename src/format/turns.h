/*
 * turns.h - writes histories for providers that require turns: user and model alternate, the user
 * begins, no turn is empty. Neighbours of one role are joined to one turn. What a turn cannot hold
 * is reported. Shared by anthropic and gemini; their `struct turns_style` describes parts and
 * messages. Used inside format/ only.
 */
#ifndef FORMAT_TURNS_H
#define FORMAT_TURNS_H

#include "format/format.h"

struct turns_style {
        const char *content; /* the member with the parts: "content" or "parts" */
        const char *user;    /* the role of the user, who begins */
        const char *model;   /* the role of the model */
        bool results_first;  /* in a valid turn, results come before other parts */
        /* Can the format express the part, and does the provider accept it? */
        bool (*is_writable)(const struct writer *w, const struct message *m, const struct part *p);
        /* Does the provider accept this message of its own format unchanged? */
        bool (*is_clean)(const struct writer *w, const struct message *m);
        void (*write_part)(struct writer *w, const struct message *m, const struct part *p);
        /* Without `valid`: writes the members of one message of this format, in the usual order. */
        void (*write_alone)(struct writer *w, const struct message *m);
        /* Writes a part with the text `text`. */
        void (*say)(struct writer *w, const char *text);
};

/* Returns 0, as a format's `write` does. */
int turns_write(struct writer *w, const struct history *h, const struct turns_style *style);

const char *turns_role(const struct turns_style *style, const struct message *m);
/* Does the message have a part that is written? */
bool turns_has_words(
    const struct turns_style *style, const struct writer *w, const struct message *m);

/* Has the text only white space? Providers refuse such a text. */
bool turns_is_blank(struct str string);
/* Returns the length of a string without the white space at its end. */
size_t turns_trimmed(struct str string);

#endif
