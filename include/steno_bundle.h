/*
 * steno_bundle.h - export and import: conversations, with everything they refer to, as one file.
 * Part of steno.h, which includes it.
 */
#ifndef STENO_BUNDLE_H
#define STENO_BUNDLE_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

enum steno_export_flags {
        STENO_EXPORT_PARTIAL = 1, /* records and outputs whose bytes are lost become tombstones */
};

struct steno_export_options {
        size_t size;
        uint32_t flags;
        uint64_t max_artifact; /* larger outputs become tombstones; 0: no limit */
        steno_progress progress;
        void *progress_ctx;
        const char *redact; /* rules for secrets (steno_export); NULL: nothing is masked */
};

/*
 * Streams a bundle: a .tar.zst with conversations and everything they refer to, which plain
 * `tar --zstd` opens. `ids` NULL exports every conversation of the project, or of the whole store
 * where `project` is NULL too. The same conversations give the same bytes. No reader or writer is
 * locked out: each conversation is exported as it was when its export began. Without
 * STENO_EXPORT_PARTIAL a ref without bytes, or damage in a log, stops the export (STENO_ECORRUPT);
 * what the sink has received by then is not a bundle. *report (may be NULL):
 * {"conversations","records","files","bytes","tombstones"}.
 *
 * `redact` has one rule in each line: "secrets" stands for the built-in rules, any other line is a
 * name, a space and a regular expression; "#" begins a comment. Every byte that a rule matches in
 * messages, outputs, titles and configs becomes "*", so that offsets and sizes stay the same.
 * Events of runs lose their content, as in a purge. The store keeps the original; the manifest says
 * "redacted", and there are no seals. The report has "redacted": {"count","rules":{NAME:n},
 * "places":[{"conversation","seq"|"file","count"}]}, at most 1,000 places. STENO_EPROTO: a rule is
 * not a valid regular expression; STENO_ELIMIT: matching a rule takes too long on this data, and
 * nothing unmasked reached the sink.
 */
STENO_API int steno_export(struct steno_store *store, const char *project, const char *const *ids,
    size_t count, const struct steno_export_options *opt, steno_sink sink, void *ctx, char **report,
    struct steno_error *err);

/*
 * Exports one conversation for people or for other programs. `format` is "html" (one file without
 * scripts and without references to other files), "md", or "json": an array of its records as they
 * are stored: {"seq","kind","id", "at","format","about","message"}. These files cannot be imported.
 */
STENO_API int steno_export_as(struct steno_conv *conv, const char *format, steno_sink sink,
    void *ctx, struct steno_error *err);
/* The same with secrets masked, as steno_export does. *report (may be NULL): the value of
 * "redacted" in its report. */
STENO_API int steno_export_redacted(struct steno_conv *conv, const char *format, const char *redact,
    steno_sink sink, void *ctx, char **report, struct steno_error *err);

enum steno_import_flags {
        STENO_IMPORT_NEW_IDS = 1, /* every conversation gets a new id */
        STENO_IMPORT_TRUSTED = 2, /* the bundle may expand without limit and have records of any
                                     size */
};

/* What to do where the store has another conversation with the same id. */
enum steno_conflict {
        STENO_CONFLICT_SKIP = 0,
        STENO_CONFLICT_BOTH = 1,    /* the bundle's conversation gets a new id */
        STENO_CONFLICT_REPLACE = 2, /* the store's conversation goes to the trash */
};

struct steno_import_options {
        size_t size;
        uint32_t flags;
        int on_conflict;     /* enum steno_conflict */
        const char *project; /* the project to import into; NULL: the projects that they came
                                from */
        steno_progress progress;
        void *progress_ctx;
};

/* Does a file that begins with these bytes look like a bundle? 4 bytes show only that it is
 * compressed; 256 KiB are enough to tell a bundle from a compressed transcript. */
STENO_API bool steno_is_bundle(const void *p, size_t n);

/*
 * Imports a bundle, which need not be trusted. The bundle is unpacked in a separate place, compared
 * with its manifests and checked. Its conversations appear when all of it was found correct;
 * otherwise nothing is left of it (STENO_EPROTO, STENO_ELIMIT). Memory stays below 64 MB, unless
 * the bundle is trusted. A conversation that exists with the same log is left as it is, so
 * importing twice changes nothing. *report (may be NULL):
 * {"conversations":[{"project","id","was"?,"state":"imported"|"replaced"|"copied"|"unchanged"|
 * "skipped","lastSeq"}],"imported":n,"replaced":n,"copied":n,"unchanged":n,"skipped":n}.
 */
STENO_API int steno_import_bundle(struct steno_store *store, const struct steno_import_options *opt,
    steno_source source, void *ctx, char **report, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
