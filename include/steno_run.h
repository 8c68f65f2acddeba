/*
 * steno_run.h - runs: their claims, journals, mail and recovery. Part of steno.h, which includes
 * it. The loop that calls a model is in steno_loop.h.
 */
#ifndef STENO_RUN_H
#define STENO_RUN_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

struct steno_run;

/*
 * Makes an id, as "run_01M7...", for a caller that has to know it before its run begins. `prefix`
 * has at most 16 bytes. An id that a caller has from elsewhere is looked for in the whole project
 * when the run begins; one that was made here is new, and is not.
 */
STENO_API void steno_run_make_id(struct steno_store *store, const char *prefix, char id[48]);

/*
 * A run has a journal: its numbered events, and the dispatch and outcome of each tool call. The
 * writer holds the run until it closes the handle or its process dies. A run that did not finish is
 * then dead for everybody else. `mode` is "chat", "agent" or "run". `id` NULL makes one up.
 *
 * A conversation has at most one live run, across threads, processes and servers. While it is live,
 * beginning another one is STENO_ECONFLICT, and the message names the live run.
 */
STENO_API int steno_run_begin(struct steno_conv *conv, const char *id, const char *mode,
    struct steno_run **out, struct steno_error *err);
/*
 * The same in two steps. A claim keeps other runs away and writes nothing that a reader sees. Its
 * holder can read the history and decide whether to start the run. Events can be written after the
 * start. steno_run_close releases a claim.
 */
STENO_API int steno_run_claim(struct steno_conv *conv, const char *id, const char *mode,
    struct steno_run **out, struct steno_error *err);
STENO_API int steno_run_start(struct steno_run *run, struct steno_error *err);
STENO_API const char *steno_run_id(const struct steno_run *run);

/* Writes an event; `data` is a JSON object. When the call returns, the event is as durable as
 * `durability` asks. Events may be written from several threads. The type "run_finished" ends the
 * run: the conversation is free for the next run, and further events are STENO_EINVAL. `seq` may be
 * NULL. */
STENO_API int steno_run_event(struct steno_run *run, const char *type, const char *data, size_t n,
    int durability, uint64_t *seq, struct steno_error *err);

/* Is the run still ours? STENO_ECONFLICT: another process considered it dead and completed it. The
 * calls below check this themselves. A caller that appends messages of a run calls this first. */
STENO_API int steno_run_check(struct steno_run *run, struct steno_error *err);
/* Says which message's calls are executed from now on, by its seq. Dispatches and outcomes record
 * it, so that recovery finds the right call even if the call's id was used before. */
STENO_API void steno_run_set_caller(struct steno_run *run, uint64_t seq);

/*
 * `fn` is called when somebody asks the run through the store to stop (`approval` is NULL), or
 * decides about the call with this approval hash. It is called on a thread that belongs to the run,
 * until the run has finished or is closed, and must not make calls on the run. `fn` NULL: stop
 * listening.
 */
typedef void (*steno_run_mail_fn)(void *ctx, const char *approval, bool allow);
STENO_API void steno_run_listen(struct steno_run *run, steno_run_mail_fn fn, void *ctx);
/* Asks a live run to stop, whichever process or server holds it. STENO_ENOTFOUND: there is no such
 * run, or it has ended. */
STENO_API int steno_run_stop(
    struct steno_store *store, const char *project, const char *run_id, struct steno_error *err);
/*
 * Decides about a call that waits for permission. Returns 0 when the run has taken the answer, and
 * 1 when it has not done so within a second; it will take the answer later. `approval` is the hash
 * from the event tool_call_approval. STENO_ECONFLICT: the hash belongs to another call, or somebody
 * else has decided otherwise. STENO_ENOTFOUND: no such call waits.
 */
STENO_API int steno_run_answer(struct steno_store *store, const char *project, const char *run_id,
    const char *call_id, const char *approval, bool allow, struct steno_error *err);

/*
 * A watcher tells the store that a person who may decide about the calls of a project's runs is
 * connected to this process: from steno_watch_begin to steno_watch_end, or to the end of the
 * process. The holder of a run asks steno_watched, which sees the watchers of every process that
 * uses the store.
 */
struct steno_watcher;
STENO_API int steno_watch_begin(struct steno_store *store, const char *project,
    struct steno_watcher **out, struct steno_error *err);
STENO_API void steno_watch_end(struct steno_watcher *watcher);
STENO_API bool steno_watched(struct steno_store *store, const char *project);

/* Call it before a tool has side effects: it is synced when it returns. (run, request, call_id)
 * identifies the operation. */
STENO_API int steno_run_dispatch(struct steno_run *run, uint64_t request, const char *call_id,
    const char *tool, const char *args, size_t n, struct steno_error *err);
/* Syncs the whole tool message before anybody is told about it. Append the message with
 * steno_append afterwards. */
STENO_API int steno_run_outcome(struct steno_run *run, uint64_t request, const char *call_id,
    const char *message, size_t n, struct steno_error *err);

/* Frees the handle. A run without a run_finished event counts as dead from then on. */
STENO_API void steno_run_close(struct steno_run *run);

/* The types "dispatch" and "outcome" tell the life of tool calls; every other type is an event. */
typedef int (*steno_event_fn)(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n);
STENO_API int steno_run_read(struct steno_store *store, const char *project, const char *run_id,
    uint64_t after_seq, steno_event_fn each, void *ctx, struct steno_error *err);
/* Waits for an event behind after_seq. Returns 1 when there is one, 0 when the time is over. */
STENO_API int steno_run_wait(struct steno_store *store, const char *project, const char *run_id,
    uint64_t after_seq, int timeout_ms, struct steno_error *err);
/* {"id","conversation","project","mode","state":"running"|"finished"|"dead","lastSeq",
 *  "reason"?} */
STENO_API int steno_run_info(struct steno_store *store, const char *project, const char *run_id,
    char **json, struct steno_error *err);
/* A conversation's runs, newest first: {"items":[info...]}. */
STENO_API int steno_run_list(struct steno_conv *conv, char **json, struct steno_error *err);

/*
 * Completes a conversation after a crash: appends outcomes that never reached the log and the text
 * of a reply that somebody may have seen, and ends dead runs with run_error and run_finished. The
 * call is safe at any time and from any process; live runs are left alone. Opening a conversation,
 * views, lists and a new run do the same by themselves; this call also looks at runs that earlier
 * versions left. *report: {"completed":[...],"ended":[run ids],"open":[{"call","class","run"}]}.
 */
STENO_API int steno_conv_recover(struct steno_conv *conv, char **report, struct steno_error *err);
/* The same for every conversation of the store that has an unfinished run according to the index. A
 * server calls it when it starts. *completed (may be NULL): how many runs had died. */
STENO_API int steno_recover(
    struct steno_store *store, uint64_t *completed, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
