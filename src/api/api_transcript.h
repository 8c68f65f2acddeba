/*
 * api_transcript.h - a conversation for people to read: Markdown, or one HTML file that needs
 * nothing else. Made from the `chat` view, message by message; never read back.
 */
#ifndef API_API_TRANSCRIPT_H
#define API_API_TRANSCRIPT_H

#include "api/api_store.h"

int api_transcript_md(struct steno_conv *conv, steno_sink sink, void *ctx, struct steno_error *err);
/* What came from outside is text in it, never markup, and it loads nothing. */
int api_transcript_html(
    struct steno_conv *conv, steno_sink sink, void *ctx, struct steno_error *err);
/* Every record as it is stored: a JSON array of {"seq","id","at","format","kind","target"?,
 * "about","message"}. */
int api_transcript_json(
    struct steno_conv *conv, steno_sink sink, void *ctx, struct steno_error *err);

#endif
