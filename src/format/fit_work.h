/*
 * fit_work.h - the steps of fit.c, which are spread over the files fit_*.c. Nobody else includes
 * it.
 *
 * A step changes one message so that the provider takes it, and reports what it changed. It copies
 * the message's parts before the first change (fit_own_parts); *touched says that a step before it
 * did so. 0 or STENO_ENOMEM.
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
        /* of the message at hand */
        size_t left, texts;      /* parts that stay, and texts among them */
        struct server_use *uses; /* calls that the provider runs itself */
        size_t use_count;
};

struct server_use {
        struct str id;
        size_t at; /* among the parts */
};

/* A copy of a message's parts that may be changed; peers follow. False: out of memory. */
bool fit_own_parts(struct fit *f, struct message *m, bool *touched);
/* A list of extras but for one of them. */
struct extra *fit_without(struct fit *f, const struct extra *list, const struct extra *one);
/* Leaves out the parts that `drop` names; `why` is reported of each. */
int fit_drop_parts(struct fit *f, struct message *m, bool *touched,
    bool (*drop)(struct fit *f, const struct message *m, const struct part *p), const char *why);
/* The same for the parts of a message's results. A result without any remaining part gets the text
 * `instead`.
 */
int fit_drop_children(struct fit *f, struct message *m, bool *touched,
    bool (*drop)(struct fit *f, const struct message *m, const struct part *p), const char *instead,
    const char *why);
/* A member of an opaque part, as text; absent where it is not a string. */
struct str fit_opaque_member(struct fit *f, const struct part *p, const char *key);

/* fit_texts.c */
int fit_surrogates(struct fit *f, struct message *m, bool *touched);
/* Texts of a type that the provider has only elsewhere, and refusals of who is not the assistant.
 */
int fit_words(struct fit *f, struct message *m, bool *touched);
/* Empty texts, and parts without members, among those of a result. */
int fit_children(struct fit *f, struct message *m, bool *touched);
/* A result of a type that the provider does not take. */
int fit_outputs(struct fit *f, struct message *m, bool *touched);
/* A failure that says nothing. */
int fit_errors(struct fit *f, struct message *m, bool *touched);
int fit_empty_texts(struct fit *f, struct message *m, bool *touched);
/* Is this an assistant message with nothing that the provider would read, or a tool message without
 * a result? */
bool fit_says_nothing(const struct fit *f, const struct message *m);

/* fit_media.c */
int fit_media(struct fit *f, struct message *m, bool *touched);

/* fit_parts.c: parts that mean something only beside another; in a strict view, parts of types that
 * the table does not have. */
int fit_parts(struct fit *f, struct message *m, bool *touched);
int fit_types(struct fit *f, struct message *m, bool *touched);

/* Is it a part without any member? */
bool fit_is_bare(struct fit *f, const struct message *m, const struct part *p);

/* fit_secrets.c: what only another endpoint can read; signatures that Gemini cannot decode; and, of
 * the whole history, calls that Gemini 3 wants signed. */
int fit_origin(struct fit *f, struct message *m, bool *touched);
int fit_signatures(struct fit *f, struct message *m, bool *touched);
int fit_placeholders(struct fit *f, struct history *h);

#endif
