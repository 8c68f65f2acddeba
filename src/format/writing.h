/*
 * writing.h - what the formats' writers have in common: members from hub fields, extras that are
 * put back or reported, arguments and outputs as text or as values. Used inside format/ only.
 */
#ifndef FORMAT_WRITING_H
#define FORMAT_WRITING_H

#include "format/format.h"

/* If the target requires an object and the arguments are not one, they are written in an object
 * with this one member. Its readers take them out again (reading_input). */
#define RAW_ARGUMENTS "__raw_arguments"

/* Writes `"key":"string"` or `"key":raw`; nothing if the value is absent. */
void writing_string(struct writer *w, const char *key, struct str string);
void writing_raw(struct writer *w, const char *key, struct str raw);
void writing_text(struct writer *w, const char *key, const char *plain);
/* Writes a string value without a key. */
void writing_value(struct writer *w, struct str string);

/* Copies an untouched message of the same format. False: it must be built. */
bool writing_same(struct writer *w, const struct message *m);
/* Is this message of the format that is written? */
static inline bool writing_own(const struct writer *w, const struct message *m)
{
        return m->origin == w->format;
}
/* The same for a part: writes its raw value if nothing else has to be written. */
bool writing_same_part(struct writer *w, const struct message *m, const struct part *p);

void writing_lose(struct writer *w, const struct message *m, const char *field, const char *why);
/*
 * Writes the extras of a message or part if it is of this format, otherwise reports them as
 * prefix.key. The extras of the inner object need a call of their own.
 */
void writing_extras(struct writer *w, const struct message *m, const char *prefix,
    const struct extra *list, bool inner);
/* Reports both kinds of extras. For targets that have no inner object. */
void writing_lose_extras(
    struct writer *w, const struct message *m, const char *prefix, const struct extra *list);
/* Writes an opaque part if it is of this format (true), otherwise reports its type. */
bool writing_opaque(struct writer *w, const struct message *m, const struct part *p);
/* Reports a part that this format cannot express, with all its members. */
void writing_lose_part(struct writer *w, const struct message *m, const struct part *p);
/* Reports the message's own members that most formats lack: id, name, createdAt. `have` is a
 * NULL-terminated list of those that the target does have. */
void writing_lose_members(struct writer *w, const struct message *m, const char *const *has);
/* Reports what Steno knows about a call and the target has no place for: duration, steps,
 * invokedAt, ref. */
void writing_lose_figures(struct writer *w, const struct message *m, const struct part *p);

/* Writes the message's id, or an id that is made from its seq. */
void writing_id(struct writer *w, const struct message *m);

/* For a result that is written inside its call: the first function reports that it has no call, and
 * members that cannot be written there; the second reports that it is empty. Between the two, the
 * format reports what it has no place for. */
void writing_report_result(struct writer *w, const struct message *m, const struct part *p);
void writing_report_silence(struct writer *w, const struct message *m, const struct part *p);

/*
 * Writes a history in a format whose calls hold their results, so that there are no tool messages:
 * `message` writes any other message, `report` reports the other members of a result's own message.
 * Results in another order than their calls are reported. 0 or a negative code, as a format's
 * `write`.
 */
typedef int (*writing_message_fn)(struct writer *w, const struct message *m);
typedef void (*writing_part_fn)(struct writer *w, const struct message *m, const struct part *p);
int writing_embedded(
    struct writer *w, const struct history *h, writing_message_fn message, writing_part_fn report);

/* Writes arguments as a JSON object value, or as a string, with the key before it. */
void writing_arguments_value(
    struct writer *w, const struct message *m, const char *key, const struct part *p);
void writing_arguments_text(
    struct writer *w, const struct message *m, const char *key, const struct part *p);

/* Returns the output of a result as one string: data as its JSON text, texts joined, media left
 * out. */
struct str writing_output(struct writer *w, const struct message *m, const struct part *p);
/* Is this text one JSON object? */
bool writing_is_object(struct str text);
/* Returns the tool's name of a result: its own, or its call's. */
static inline struct str writing_tool(const struct part *p)
{
        return p->name.p || !p->peer ? p->name : p->peer->name;
}

/* Copies a message's parts with room for more, so that they can be changed. Peers then point to the
 * copy. */
bool writing_own_parts(struct writer *w, struct message *m, size_t room);

/* Was this id (text) given to this function before? */
bool writing_seen(struct writer *w, struct str id);
/* The same with a set of the caller's. It must be cleared before the first call. */
bool writing_seen_in(struct writer *w, struct writer_seen *s, struct str id);

/* Writes `"data:mime;base64,data"` or the url, with the key before it. */
void writing_url(struct writer *w, const char *key, const struct media *media);

#endif
