/*
 * sdkparts.h - parts that both kinds of messages of the AI SDK have (uimessage, modelmessage):
 * text, reasoning, and media with a mediaType. Used inside format/ only.
 */
#ifndef FORMAT_SDKPARTS_H
#define FORMAT_SDKPARTS_H

#include "format/reading.h"
#include "format/writing.h"

/* Where a part has a type that the hub does not tell apart: keeps it for messages of the same
 * format, and gives it back, raw; absent: there is none. */
void sdkparts_keep_type(struct reading *r, struct extra **extras, json_ref type);
struct str sdkparts_type(const struct writer *w, const struct message *m, const struct part *p);
/* What a part with this mediaType is: an image, a sound or another file. */
enum part_kind sdkparts_kind(struct str mime);
/* The mediaType, which must be there. */
struct str sdkparts_mime(const struct part *p);

/* How a format writes the parts in which the two differ. */
struct sdkparts_writer {
        void (*call)(struct writer *w, const struct message *m, const struct part *p);
        void (*result)(struct writer *w, const struct message *m, const struct part *p);
        /* The members of a file: its type, where it is, mediaType, filename. */
        void (*file)(struct writer *w, const struct message *m, const struct part *p);
};

void sdkparts_write(struct writer *w, const struct message *m, const struct part *p,
    const struct sdkparts_writer *how);

#endif
