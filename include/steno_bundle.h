/*
 * steno_bundle.h - conversations with all that they refer to in one file, out of a store and into
 * one. Part of steno.h, which includes it.
 */
#ifndef STENO_BUNDLE_H
#define STENO_BUNDLE_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

enum steno_export_flags {
        STENO_EXPORT_PARTIAL = 1, /* what has lost its bytes is left out as a tombstone */
};

struct steno_export_options {
        size_t size;
        uint32_t flags;
        uint64_t max_artifact; /* larger outputs are left out as tombstones; 0: none */
        steno_progress progress;
        void *progress_ctx;
        const char *redact; /* rules for secrets (steno_export); NULL: nothing is masked */
};

/*
 * Streams a bundle: a .tar.zst with conversations and everything they refer to, which plain
 * `tar --zstd` opens. `ids` NULL takes every conversation of the project, or of the store where
 * that is NULL too. The same conversations give the same bytes. Nobody is locked out: a
 * conversation comes as it was when its turn began. Without STENO_EXPORT_PARTIAL a ref without
 * bytes, or damage in a log, stops it (STENO_ECORRUPT); what the sink has by then is not a bundle.
 * *report (may be NULL): {"conversations","records","files","bytes","tombstones"}.
 *
 * `redact` are rules, a line each: "secrets" stands for those that are built in, any other line is
 * a name, a space and a regular expression; "#" begins a comment. What they match in messages,
 * outputs, titles and configs is masked with "*", byte for byte, so that places and sizes stay.
 * Events of runs lose what they say, as in a purge. The store keeps the original; the manifest says
 * "redacted", and there are no seals. The report has "redacted": {"count","rules":{NAME:n},
 * "places":[{"conversation","seq"|"file","count"}]}, at most 1,000 places. STENO_EPROTO: a rule is
 * no expression; STENO_ELIMIT: one is too costly for what is there, and nothing was let through.
 */
STENO_API int steno_export(struct steno_store *store, const char *project, const char *const *ids,
    size_t count, const struct steno_export_options *opt, steno_sink sink, void *ctx, char **report,
    struct steno_error *err);

/*
 * One conversation for people, or for other programs: "html" (one file that needs nothing else and
 * runs nothing), "md", or "json", an array of its records as they are stored: {"seq","kind","id",
 * "at","format","about","message"}. None of them is read back.
 */
STENO_API int steno_export_as(struct steno_conv *conv, const char *format, steno_sink sink,
    void *ctx, struct steno_error *err);
/* The same with secrets masked, as steno_export does. *report (may be NULL): what is "redacted"
 * there. */
STENO_API int steno_export_redacted(struct steno_conv *conv, const char *format, const char *redact,
    steno_sink sink, void *ctx, char **report, struct steno_error *err);

enum steno_import_flags {
        STENO_IMPORT_NEW_IDS = 1, /* every conversation gets a new id */
        STENO_IMPORT_TRUSTED = 2, /* it may expand without limit, and have records of any size */
};

/* What becomes of a conversation whose id is there with another log. */
enum steno_conflict {
        STENO_CONFLICT_SKIP = 0,
        STENO_CONFLICT_BOTH = 1,    /* the one of the bundle gets a new id */
        STENO_CONFLICT_REPLACE = 2, /* the one of the store goes to the trash */
};

struct steno_import_options {
        size_t size;
        uint32_t flags;
        int on_conflict;     /* enum steno_conflict */
        const char *project; /* where they go; NULL: the projects they came from */
        steno_progress progress;
        void *progress_ctx;
};

/* Does a file that begins with these bytes look like a bundle? With 256 KiB of them it is told
 * from a compressed transcript, with 4 it is not. */
STENO_API bool steno_is_bundle(const void *p, size_t n);

/*
 * Takes in a bundle, which may be anybody's: it is unpacked aside, held against its manifests, and
 * checked; conversations appear when all of it was found right, and otherwise nothing is left
 * (STENO_EPROTO, STENO_ELIMIT). Memory stays below 64 MB unless it is trusted. What is there with
 * the same log is left as it is, so that importing twice changes nothing. *report (may be NULL):
 * {"conversations":[{"project","id","was"?,"state":"imported"|"replaced"|"copied"|"unchanged"|
 * "skipped","lastSeq"}],"imported":n,"replaced":n,"copied":n,"unchanged":n,"skipped":n}.
 */
STENO_API int steno_import_bundle(struct steno_store *store, const struct steno_import_options *opt,
    steno_source source, void *ctx, char **report, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
