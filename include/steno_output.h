/*
 * steno_output.h - outputs of tools: storing one while it arrives, reading what was stored, and
 * stubs for results on their way to a model. Part of steno.h, which includes it.
 */
#ifndef STENO_OUTPUT_H
#define STENO_OUTPUT_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------ tool outputs */

struct steno_output;

struct steno_output_options {
        size_t size;
        const char *tool;    /* name of the tool; required */
        const char *call_id; /* the call it answers; required */
        const char *server;  /* MCP server, may be NULL */
        bool terminal;       /* a command's output: artifacts/terminal, always a file */
        uint32_t flags;      /* STENO_RECORD */
        const char *profile;
        uint64_t max_inline_chars;
        uint64_t max_inline_bytes;
        bool context_tools; /* the model that will read the stub has the context_* tools */
        /* Called when the output becomes a file, before its first byte is written. A caller that
         * stores the ref can find the partial output after a kill. May be NULL. */
        void (*on_ref)(void *ctx, const char *ref);
        void *on_ref_ctx;
};

/*
 * A tool's output, stored while it arrives. It needs constant memory at any size, and what has
 * arrived survives a kill. Once it is larger than the inline limit it has a ref, and others can
 * read it while it grows.
 */
STENO_API int steno_output_begin(struct steno_conv *conv, const struct steno_output_options *opt,
    struct steno_output **out, struct steno_error *err);
STENO_API int steno_output_write(
    struct steno_output *o, const void *p, size_t n, struct steno_error *err);
/* The ref, or NULL while (or because) the output is inline. */
STENO_API const char *steno_output_ref(const struct steno_output *o);

/*
 * Syncs and closes the artifact, and returns the tool message {"id","role":"tool",...}, which is
 * not appended yet. `fields_json` (may be NULL) is an object whose members are added to the
 * message: isError, duration, invokedAt, steps, exitCode ...; the stub shows exitCode as well.
 */
STENO_API int steno_output_message(struct steno_output *o, const char *fields_json, char **message,
    size_t *n, struct steno_error *err);
/* The same, and appends the message. *json is {"seq","id","content","ref"}. */
STENO_API int steno_output_finish(
    struct steno_output *o, const char *fields_json, char **json, struct steno_error *err);
/* Frees the handle. An output that was not finished stays in the store, marked as unfinished. */
STENO_API void steno_output_free(struct steno_output *o);

/* ----------------------------------------------------------- context files */

/*
 * op is "list", "read", "tail", "grep" or "json"; args a JSON object: {"kind"?,"limit"?,"after"?}
 * (after: a ref; the list begins behind it), {"ref","offset","limit"} or {"ref","line","count"},
 * {"ref","lines"}, {"ref","pattern", "max_results","context_lines","case_sensitive"},
 * {"ref","at"?,"from"?,"limit"?,"cursor"?} (one level of an output that is JSON: docs/api.md). The
 * answer is JSON. The call reads only artifacts of this conversation: a ref of another conversation
 * is STENO_ENOTFOUND, like an unknown one. For a deleted artifact the error says when and by what
 * it was deleted. STENO_ELIMIT: "pattern too costly". "damaged" is true in answers about a file
 * that is shorter or longer than when it was stored; a page is not checked against the hash of the
 * whole file.
 */
STENO_API int steno_context(struct steno_conv *conv, const char *op, const char *args, size_t n,
    char **json, struct steno_error *err);

struct steno_context_options {
        size_t size;
        steno_progress progress; /* for a grep: how many bytes were searched, and of how many; may
                                    be NULL. A non-zero return stops the grep: STENO_EINTERRUPTED */
        void *progress_ctx;
};
/* The same with options: to see the progress, or to stop the call. */
STENO_API int steno_context_with(struct steno_conv *conv, const char *op, const char *args,
    size_t n, const struct steno_context_options *opt, char **json, struct steno_error *err);

/* Streams an artifact's bytes from offset; length 0: to its present end. STENO_ECORRUPT is returned
 * after the bytes were streamed: for the whole artifact when the bytes are not those that were
 * stored, for a range when the file's size has changed. */
STENO_API int steno_context_raw(struct steno_conv *conv, const char *ref, uint64_t offset,
    uint64_t length, steno_sink sink, void *ctx, struct steno_error *err);

/* The context_* tools as JSON for "openai", "anthropic" or "mcp". Those for "mcp" have the schemas
 * of the answers as well. */
STENO_API int steno_context_tools(const char *flavour, char **json, struct steno_error *err);
/* Is this name one of them (plain or dotted)? */
STENO_API bool steno_is_context_tool(const char *name);
/*
 * Executes a model's call. The answer is always text: a mistake of the model is explained in words
 * that the model can act on, with *is_error set. The answer never becomes an artifact itself.
 */
STENO_API int steno_context_call(struct steno_conv *conv, const char *name, const char *args,
    size_t n, char **text, bool *is_error, struct steno_error *err);
STENO_API int steno_context_call_with(struct steno_conv *conv, const char *name, const char *args,
    size_t n, const struct steno_context_options *opt, char **text, bool *is_error,
    struct steno_error *err);

/* ------------------------------------------- results on their way to a model */

/*
 * For a list of messages that another program sends to a model. Large results in it are replaced by
 * stubs, and kept in memory for the context tools until the model has answered. Nothing is stored.
 * A stub depends only on the bytes and the limits, so the prompt stays the same from request to
 * request. Its ref names the bytes: steno_context accepts it in every conversation that has the
 * same output.
 */
struct steno_stubs;

struct steno_stubs_options {
        size_t size;
        uint64_t max_inline_chars; /* 0: the usual ones */
        uint64_t max_inline_bytes;
        bool context_tools; /* the model has the context_* tools */
};

/* Called for each range [at, at + n) of the list that is to be replaced, with its replacement. A
 * non-zero return stops the call, which returns that value. */
typedef int (*steno_stub_fn)(void *ctx, size_t at, size_t n, const char *with, size_t with_n);

/* `messages` is a JSON array in `format`; it has to stay valid only during the call. `each` is
 * called in the order of the list. Messages that the format does not know are left as they are. */
STENO_API int steno_stubs_new(const char *format, const char *messages, size_t n,
    const struct steno_stubs_options *opt, steno_stub_fn each, void *ctx, struct steno_stubs **out,
    struct steno_error *err);
STENO_API size_t steno_stubs_count(const struct steno_stubs *s);
/* Answers a model's call of a context tool from these results, as steno_context_call does. One
 * thread at a time. */
STENO_API int steno_stubs_call(struct steno_stubs *s, const char *name, const char *args, size_t n,
    char **text, bool *is_error, struct steno_error *err);
STENO_API void steno_stubs_free(struct steno_stubs *s);

/* The store's inline limits: a larger output becomes a stub. */
STENO_API void steno_inline_limits(struct steno_store *store, uint64_t *chars, uint64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
