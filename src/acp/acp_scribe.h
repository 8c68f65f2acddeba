/*
 * acp_scribe.h - reads a journal and records its lines.
 *
 * It runs on a thread of its own while lines are passed on, or at once for a journal that was left.
 */
#ifndef ACP_ACP_SCRIBE_H
#define ACP_ACP_SCRIBE_H

#include <stdbool.h>
#include <stdint.h>

#include "acp/acp_journal.h"
#include "steno.h"

struct acp_scribe_result {
        uint64_t sessions;
        bool failed;            /* the journal must be read again later */
        bool refused;           /* something in the journal cannot be recorded */
        struct steno_error why; /* the error of either */
};

/* Reads the journal to its end. `again`: a part of it may be recorded already. */
void acp_scribe_read(struct steno_store *store, struct acp_journal *journal, bool again,
    struct acp_scribe_result *out);

#endif
