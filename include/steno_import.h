/*
 * steno_import.h - transcripts of other tools. Part of steno.h, which includes it.
 *
 * The tools are Codex CLI, Claude Code, Gemini CLI, Qwen Code, opencode, Cline, Roo,
 * Pi, Continue, goose, neovate, CrewAgent, DeepChat, exports of Acontext, lists of messages of
 * LangChain and of every format that Steno reads, and ShareGPT. The importer finds out
 * which of them wrote a file.
 *
 * A session of a tool becomes the conversation "<tool>-<session>", a message of it a record with
 * the id and the time that the tool gave it; an entry without an id gets one that is made of the
 * tool, the session, its place and its bytes. Where a tool kept a whole output in a place of its
 * own, that is the result's content, and what the model was shown is its member "seen". Messages
 * that had to be put together have the entry they were made from as the member "entry". Pairing
 * that is broken is kept and marked. Entries that are not understood are kept as well, outside of
 * the model's context, and counted.
 *
 * Importing again goes on where a file has grown. An entry that comes again under its id replaces
 * what views show (a supersede amendment; every version stays). Where a file was rewritten, entries
 * are compared: as long as all old ones are there in order it has grown; the first one that differs
 * begins a fork, "<conversation>-r2", and later imports go on there. A file that is gone changes
 * nothing.
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
        steno_progress progress; /* told of bytes; may be NULL */
        void *progress_ctx;
};

STENO_API int steno_importer_new(struct steno_store *store,
    const struct steno_importer_options *opt, struct steno_importer **out, struct steno_error *err);
/* A file, or a folder that is walked (no links are followed). STENO_ENOTFOUND: there is none. */
STENO_API int steno_importer_add(
    struct steno_importer *importer, const char *path, struct steno_error *err);
/* The places where the tools keep their files, below `home` (NULL: $HOME) and where the variables
 * of the environment say. Those that are not there are looked for again at each run. */
STENO_API int steno_importer_add_known(
    struct steno_importer *importer, const char *home, struct steno_error *err);
/*
 * Imports what is new since the last run of this importer, or since anybody imported it. A file
 * that cannot be read is named in the report and costs the others nothing. *report (may be NULL):
 * {"files","conversations","messages","calls","results","replaced","forks","other","skipped",
 *  "damaged","torn","unknown","changed":[{"project","id","tool","path","state":"new"|"grown"|
 *  "forked","lastSeq"}],"errors":[{"path","message"}]}.
 * `messages` counts what was stored and is neither a result nor not understood (`other`);
 * `replaced` versions of messages; `skipped` entries that are known and no messages; `damaged`
 * entries that cannot be read; `torn` files whose last line is not whole yet, which is read once
 * it is; `unknown` files that are not transcripts.
 */
STENO_API int steno_importer_run(
    struct steno_importer *importer, char **report, struct steno_error *err);
STENO_API void steno_importer_free(struct steno_importer *importer);

/* The same for one transcript at hand (no database), in memory or in an open file; `name` stands
 * for its path, and no file beside it is looked at. STENO_EPROTO: it is none that we know. */
STENO_API int steno_import_file(struct steno_store *store, const struct steno_importer_options *opt,
    const char *name, int fd, char **report, struct steno_error *err);
STENO_API int steno_import_transcript(struct steno_store *store,
    const struct steno_importer_options *opt, const char *name, const char *text, size_t n,
    char **report, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
