/*
 * acp_journal.h - a file with the lines that were passed on, in order.
 *
 *   acp/acp_<ULID>   steno-acp 1 <project>\n
 *                    <kind> <milliseconds since 1970> <bytes>\n<bytes>\n
 *                    ...
 *
 * The kinds are enum acp_kind. An incomplete frame at the end was not passed on and is ignored. A
 * process that writes a journal, or records the journal of a killed process, holds a lock on it.
 */
#ifndef ACP_ACP_JOURNAL_H
#define ACP_ACP_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/str.h"
#include "steno.h"

#define ACP_NAME 40
#define ACP_LINE_MAX                                                                               \
        (512 * MIB) /* a longer line is passed on in pieces, and the journal has only              \
                       its beginning */

enum acp_kind {
        ACP_CLIENT = '>', /* a line of the client, unchanged */
        ACP_AGENT = '<',  /* a line of the agent, unchanged */
        ACP_ASKED = '?',  /* a request of our own to the client */
        ACP_NOTE = '=',   /* a decision of the relay, JSON */
        ACP_HUGE = '!',   /* the first bytes of a line that is too long to be kept */
};

struct acp_journal;

struct acp_frame {
        enum acp_kind kind;
        int64_t at;
        struct str bytes; /* valid until the next read */
};

/* Makes a new journal and locks it. */
int acp_journal_create(const struct env *env, const char *path, const char *project,
    struct acp_journal **out, struct steno_error *err);
/* Opens an existing journal. STENO_ECONFLICT: another process uses it; STENO_ENOTFOUND: it does not
 * exist; STENO_ECORRUPT: it is not a journal. */
int acp_journal_open(const struct env *env, const char *path, const char *name,
    struct acp_journal **out, struct steno_error *err);
/* Lists the names of all journals, oldest first, NULL-terminated. Free them with
 * acp_journal_names_free. */
int acp_journal_names(
    const struct env *env, const char *path, char ***out, struct steno_error *err);
void acp_journal_names_free(char **names);

const char *acp_journal_name(const struct acp_journal *j);
const char *acp_journal_project(const struct acp_journal *j);

/* Adds a line. Only one thread may call it. After STENO_EFULL or STENO_EIO the line must not be
 * passed on. */
int acp_journal_put(
    struct acp_journal *j, enum acp_kind kind, struct str bytes, struct steno_error *err);
/* Says that nothing more will be written. */
void acp_journal_end(struct acp_journal *j);

/*
 * Reads the next frame; only one other thread may call it. Returns 1; 0 at the end; or a negative
 * code. While the journal is being written, it waits for more frames or for acp_journal_end.
 */
int acp_journal_next(struct acp_journal *j, struct acp_frame *out, struct steno_error *err);

/* Renames the journal (kept_...), because something in it cannot be recorded. It is not read
 * again. */
void acp_journal_set_aside(struct acp_journal *j);
/* Closes the journal. The file stays, or is removed if `remove`. */
void acp_journal_close(struct acp_journal *j, bool remove);

#endif
