/*
 * writing.h - what the formats' writers have in common: members from hub fields, extras put back
 * or reported, arguments and outputs as text or as values. Used inside format/ only.
 */
#ifndef FORMAT_WRITING_H
#define FORMAT_WRITING_H

#include "format/format.h"

/* Arguments that are not a JSON object, where the target wants one, stand in an object of this one
 * member, and its readers take them out again (reading_input). */
#define RAW_ARGUMENTS "__raw_arguments"

/* `"key":"string"` resp. `"key":raw`; nothing where it is absent. */
void writing_string(struct writer *w, const char *key, struct str string);
void writing_raw(struct writer *w, const char *key, struct str raw);
void writing_text(struct writer *w, const char *key, const char *plain);
/* A string value without a key. */
void writing_value(struct writer *w, struct str string);

/* Copies an untouched message of the same format. False: it has to be built. */
bool writing_same(struct writer *w, const struct message *m);
/* Is this message of the format that is written? */
static inline bool writing_own(const struct writer *w, const struct message *m)
{
        return m->origin == w->format;
}
/* The same for a part: its raw value, where that is all there is to write. */
bool writing_same_part(struct writer *w, const struct message *m, const struct part *p);

void writing_lose(struct writer *w, const struct message *m, const char *field, const char *why);
/*
 * The extras of a message or part: written when it is of this format, else reported as
 * prefix.key. Those of the inner object are written or reported by a call of their own.
 */
void writing_extras(struct writer *w, const struct message *m, const char *prefix,
    const struct extra *list, bool inner);
/* Both kinds, reported. For targets that have no inner object. */
void writing_lose_extras(
    struct writer *w, const struct message *m, const char *prefix, const struct extra *list);
/* An opaque part: written when it is of this format (true), else reported by its type. */
bool writing_opaque(struct writer *w, const struct message *m, const struct part *p);
/* A part that this format has no place for: reported with all it holds. */
void writing_lose_part(struct writer *w, const struct message *m, const struct part *p);
/* The message's own members that most formats lack: id, name, createdAt; NULL-terminated list of
 * those that the target does have. */
void writing_lose_members(struct writer *w, const struct message *m, const char *const *has);
/* What Steno knows of a call and the target has no place for: duration, steps, invokedAt, ref. */
void writing_lose_figures(struct writer *w, const struct message *m, const struct part *p);

/* The message's id, or one that is made of its seq. */
void writing_id(struct writer *w, const struct message *m);

/* For a result that is written inside its call: reports that it has no call, and members that
 * cannot be written there; then that it is empty. What the format itself has no place for is
 * reported in between. */
void writing_report_result(struct writer *w, const struct message *m, const struct part *p);
void writing_report_silence(struct writer *w, const struct message *m, const struct part *p);

/*
 * A history in a format in which results stand with their calls, so that there are no messages of
 * tools: `message` writes one that speaks, `report` tells what a result's own message says beside
 * it. What came in another order is reported. 0 or a negative code, as a format's `write`.
 */
typedef int (*writing_message_fn)(struct writer *w, const struct message *m);
typedef void (*writing_part_fn)(struct writer *w, const struct message *m, const struct part *p);
int writing_embedded(
    struct writer *w, const struct history *h, writing_message_fn message, writing_part_fn report);

/* Arguments as a JSON object value, or as a string; with the key before it. */
void writing_arguments_value(
    struct writer *w, const struct message *m, const char *key, const struct part *p);
void writing_arguments_text(
    struct writer *w, const struct message *m, const char *key, const struct part *p);

/* What a result says as one string: data as its JSON text, texts joined; media are not in it. */
struct str writing_output(struct writer *w, const struct message *m, const struct part *p);
/* Is this text one JSON object? */
bool writing_is_object(struct str text);
/* The tool's name of a result, its own or its call's. */
static inline struct str writing_tool(const struct part *p)
{
        return p->name.p || !p->peer ? p->name : p->peer->name;
}

/* Gives a message parts of its own, with room for more, before they are changed; peers follow. */
bool writing_own_parts(struct writer *w, struct message *m, size_t room);

/* Was this id (text) asked for before? It is from now on. */
bool writing_seen(struct writer *w, struct str id);
/* The same with a set of the caller's, which begins cleared. */
bool writing_seen_in(struct writer *w, struct writer_seen *s, struct str id);

/* `"data:mime;base64,data"` or the url, with the key before it. */
void writing_url(struct writer *w, const char *key, const struct media *media);

#endif
