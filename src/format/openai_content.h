/*
 * openai_content.h - the `content` of OpenAI-shaped messages: a string, null or parts. Shared by
 * openai and legacy, which keep their tool calls in different places.
 */
#ifndef FORMAT_OPENAI_CONTENT_H
#define FORMAT_OPENAI_CONTENT_H

#include "format/format.h"
#include "format/reading.h"

enum role openai_role(const struct json *j, json_ref role);
const char *openai_role_name(enum role role);

/* Adds the parts and sets the message's shape. */
void openai_read_content(struct reading *r, json_ref content);
void openai_read_part(struct reading *r, json_ref part);
int openai_detect_content(const struct json *j, json_ref content);

/* Writes `"content":...` of a message: its texts, media and refusals. */
/* Does the provider refuse one of these parts, or a part inside of one? Writers with `valid` make a
 * text of such a part. */
bool openai_has_broken(const struct part *parts, size_t count);
/* Is there anything to write between the brackets of a content? */
bool openai_has_content(const struct writer *w, const struct message *m);
void openai_write_content(struct writer *w, const struct message *m);
/* Writes the same for a result. */
void openai_write_output(struct writer *w, const struct message *m, const struct part *p);

/* Is a refusal of this message written as a member beside the content? A provider accepts no
 * refusal among other parts. */
bool openai_refuses_apart(const struct writer *w, const struct message *m);

#endif
