/*
 * steno_import.h - transcripts of other tools. Part of steno.h, which includes it.
 *
 * The tools are Codex CLI, Claude Code, Gemini CLI, Qwen Code, opencode, Cline, Roo,
 * Pi, Continue, goose, neovate, CrewAgent, DeepChat, exports of Acontext, lists of messages of
 * LangChain and of every format that Steno reads, and ShareGPT. The importer finds out
 * which of them wrote a file.
 *
 * A session of a tool becomes the conversation "<tool>-<session>", a message of it a record with
 * the id and the time that the tool gave it; an entry without an id gets one that is made from the
 * tool, the session, its place and its bytes. Where a tool kept a whole output in a separate place,
 * the result's content is that output, and its member "seen" is what the model was shown. A message
 * that the importer had to build from an entry has that entry as the member "entry". Calls and
 * results that do not pair are kept and marked. Entries that the importer does not understand are
 * kept outside of the model's context, and counted.
 *
 * A later import continues where a file has grown. An entry that comes again under the same id
 * replaces what views show (a supersede amendment; every version is kept). Where a file was
 * rewritten, entries are compared. If all old entries are there in the same order, the file has
 * grown; the first entry that differs begins a fork, "<conversation>-r2", and later imports
 * continue there. Deleting a file changes nothing.
 */
#ifndef STENO_IMPORT_H
#define STENO_IMPORT_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

struct steno_importer;

struct steno_importer_options {
        size_t size;
        const char *project;     /* where conversations go; "default" when NULL */
        steno_progress progress; /* counts bytes; may be NULL */
        void *progress_ctx;
};

STENO_API int steno_importer_new(struct steno_store *store,
    const struct steno_importer_options *opt, struct steno_importer **out, struct steno_error *err);
/* Adds a file, or a folder and everything below it (links are not followed). STENO_ENOTFOUND: there
 * is none. */
STENO_API int steno_importer_add(
    struct steno_importer *importer, const char *path, struct steno_error *err);
/* Adds the places where the tools keep their files: below `home` (NULL: $HOME), and where
 * environment variables say. Places that do not exist yet are looked for again in each run. */
STENO_API int steno_importer_add_known(
    struct steno_importer *importer, const char *home, struct steno_error *err);
/*
 * Imports what has not been imported yet, by this importer or another one. A file that cannot be
 * read is named in the report; the others are imported all the same. *report (may be NULL):
 * {"files","conversations","messages","calls","results","replaced","forks","other","skipped",
 *  "damaged","torn","unknown","changed":[{"project","id","tool","path","state":"new"|"grown"|
 *  "forked","lastSeq"}],"errors":[{"path","message"}]}.
 * `messages` counts stored messages other than `results` and `other`; `other` counts entries that
 * were not understood; `replaced` new versions of messages; `skipped` entries of known kinds that
 * are not messages; `damaged` entries that cannot be read; `torn` files whose last line is not
 * complete yet (it is read once it is complete); `unknown` files that are not transcripts.
 */
STENO_API int steno_importer_run(
    struct steno_importer *importer, char **report, struct steno_error *err);
STENO_API void steno_importer_free(struct steno_importer *importer);

/* The same for one transcript (not a database) in an open file or in memory. `name` stands for its
 * path; no other file is read. STENO_EPROTO: not a known kind of transcript. */
STENO_API int steno_import_file(struct steno_store *store, const struct steno_importer_options *opt,
    const char *name, int fd, char **report, struct steno_error *err);
STENO_API int steno_import_transcript(struct steno_store *store,
    const struct steno_importer_options *opt, const char *name, const char *text, size_t n,
    char **report, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
