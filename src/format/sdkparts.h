/*
 * sdkparts.h - parts that both kinds of messages of the AI SDK have (uimessage, modelmessage):
 * text, reasoning, and media with a mediaType. Used inside format/ only.
 */
#ifndef FORMAT_SDKPARTS_H
#define FORMAT_SDKPARTS_H

#include "format/reading.h"
#include "format/writing.h"

/* If a part has a type for which the hub has no kind, keeps the type for messages of the same
 * format. The second function returns it, raw; absent: there is none. */
void sdkparts_keep_type(struct reading *r, struct extra **extras, json_ref type);
struct str sdkparts_type(const struct writer *w, const struct message *m, const struct part *p);
/* Returns the kind of a part with this mediaType: an image, a sound or another file. */
enum part_kind sdkparts_kind(struct str mime);
/* Returns the mediaType. It is never absent, because the format requires it. */
struct str sdkparts_mime(const struct part *p);

/* How a format writes the parts that differ between the two. */
struct sdkparts_writer {
        void (*call)(struct writer *w, const struct message *m, const struct part *p);
        void (*result)(struct writer *w, const struct message *m, const struct part *p);
        /* Writes the members of a file: its type, its data or address, mediaType, filename. */
        void (*file)(struct writer *w, const struct message *m, const struct part *p);
};

void sdkparts_write(struct writer *w, const struct message *m, const struct part *p,
    const struct sdkparts_writer *how);

#endif
