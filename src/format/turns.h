/*
 * turns.h - histories of providers that want turns: user and model alternate, the user begins, no
 * turn is empty. Neighbours of one role become one turn, and what has no place is reported. Shared
 * by anthropic and gemini, whose `struct turns_style` says what a part and a message look like.
 * Used inside format/ only.
 */
#ifndef FORMAT_TURNS_H
#define FORMAT_TURNS_H

#include "format/format.h"

struct turns_style {
        const char *content; /* the member with the parts: "content" or "parts" */
        const char *user;    /* the role that begins */
        const char *model;   /* the other role */
        bool results_first;  /* in a valid turn results stand before what else is said */
        /* Does the format have a place for the part, and does the provider take it? */
        bool (*is_writable)(const struct writer *w, const struct message *m, const struct part *p);
        /* A message of this format: does the provider take it as it stands? */
        bool (*is_clean)(const struct writer *w, const struct message *m);
        void (*write_part)(struct writer *w, const struct message *m, const struct part *p);
        /* Outside of `valid`: the members of one message of this format, in the usual order. */
        void (*write_alone)(struct writer *w, const struct message *m);
        /* A part that says `text`. */
        void (*say)(struct writer *w, const char *text);
};

/* 0, as a format's `write`. */
int turns_write(struct writer *w, const struct history *h, const struct turns_style *style);

const char *turns_role(const struct turns_style *style, const struct message *m);
/* Has the message a part that is written? */
bool turns_has_words(
    const struct turns_style *style, const struct writer *w, const struct message *m);

/* A text of nothing but white space, which providers refuse. */
bool turns_is_blank(struct str string);
/* Bytes of a string without the white space at its end. */
size_t turns_trimmed(struct str string);

#endif
