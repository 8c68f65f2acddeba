/*
 * fit_work.h - the steps of fit.c, which are in the files fit_*.c. No other file includes it.
 *
 * A step changes one message so that the provider accepts it, and reports what it changed. It
 * copies the message's parts before the first change (fit_own_parts); *touched says that an earlier
 * step did so. Each returns 0 or STENO_ENOMEM.
 */
#ifndef FORMAT_FIT_WORK_H
#define FORMAT_FIT_WORK_H

#include "format/fit.h"
#include "format/writing.h"

struct fit {
        struct writer *w;
        const struct rules *rules;
        struct arena *arena;
        struct writer_seen asked, approved; /* ids of requests for approval */
        /* for the current message */
        size_t left, texts;      /* number of parts that stay, and of texts among them */
        struct server_use *uses; /* calls of the provider's own tools */
        size_t use_count;
};

struct server_use {
        struct str id;
        size_t at; /* place among the parts */
};

/* Copies a message's parts, so that they can be changed. Peers then point to the copy. False: out
 * of memory. */
bool fit_own_parts(struct fit *f, struct message *m, bool *touched);
/* Returns a list of extras without one of them. */
struct extra *fit_without(struct fit *f, const struct extra *list, const struct extra *one);
/* Leaves out the parts for which `drop` returns true, and reports `why` for each. */
int fit_drop_parts(struct fit *f, struct message *m, bool *touched,
    bool (*drop)(struct fit *f, const struct message *m, const struct part *p), const char *why);
/* Does the same for the parts of a message's results. A result that has no part left gets the text
 * `instead`. */
int fit_drop_children(struct fit *f, struct message *m, bool *touched,
    bool (*drop)(struct fit *f, const struct message *m, const struct part *p), const char *instead,
    const char *why);
/* Returns a member of an opaque part as text; absent if it is not a string. */
struct str fit_opaque_member(struct fit *f, const struct part *p, const char *key);

/* fit_texts.c */
int fit_surrogates(struct fit *f, struct message *m, bool *touched);
/* Texts of a type that the provider has only elsewhere, and refusals in messages that are not the
 * assistant's. */
int fit_words(struct fit *f, struct message *m, bool *touched);
/* Empty texts, and parts without members, inside of a result. */
int fit_children(struct fit *f, struct message *m, bool *touched);
/* Results of a type that the provider does not accept. */
int fit_outputs(struct fit *f, struct message *m, bool *touched);
/* Errors without content. */
int fit_errors(struct fit *f, struct message *m, bool *touched);
int fit_empty_texts(struct fit *f, struct message *m, bool *touched);
/* Is this an assistant message with nothing that the provider would read, or a tool message without
 * a result? */
bool fit_says_nothing(const struct fit *f, const struct message *m);

/* fit_media.c */
int fit_media(struct fit *f, struct message *m, bool *touched);

/* fit_parts.c: parts that need another part; in a strict view, also parts of types that the table
 * does not have. */
int fit_parts(struct fit *f, struct message *m, bool *touched);
int fit_types(struct fit *f, struct message *m, bool *touched);

/* Is it a part without any member? */
bool fit_is_bare(struct fit *f, const struct message *m, const struct part *p);

/* fit_secrets.c: parts that only another endpoint can read; signatures that Gemini cannot decode;
 * and, for the whole history, calls that need a signature for Gemini 3. */
int fit_origin(struct fit *f, struct message *m, bool *touched);
int fit_signatures(struct fit *f, struct message *m, bool *touched);
int fit_placeholders(struct fit *f, struct history *h);

#endif
