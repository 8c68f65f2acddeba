/*
 * rescue.h - saves the text of a reply that somebody has seen but that never became a message,
 * because the run died. Its pieces are in the journal. They become an assistant message with
 * partType "error" and the code RUN_DIED, under the id that the pieces were sent with, so that
 * doing this twice changes nothing. The message names the record that it answers, and whole views
 * show it there.
 */
#ifndef API_RESCUE_H
#define API_RESCUE_H

#include "api/api_run.h"

struct rescue {
        char message_id[64]; /* "": there is none */
        uint64_t after;      /* last seq of the log when the model was asked, 0: not known */
        struct buf text;
        struct buf thinking;
};

void rescue_init(struct rescue *r);
void rescue_release(struct rescue *r);

/* Reads the pieces of the last reply in a journal. */
int rescue_read(
    struct rescue *r, struct backend_conv *conv, const char *name, struct steno_error *err);
/* Stores them unless the log has a message of that id. */
int rescue_store(const struct rescue *r, struct steno_conv *conv, const char *run_id,
    const char *mode, struct steno_error *err);

/* Says where whole views show a recovered message, when others have written since. */
int rescue_place(
    struct steno_conv *conv, const char *message_id, uint64_t after, struct steno_error *err);

#endif
