/*
 * steno_events.h - the events of a run: the one table that the loop, the programs, the page and
 * the docs share.
 *
 * An event is a name and a JSON object (steno_run_read, on_event). The object always has `runId`,
 * and `messageId` where the event belongs to a message of the model. The table lists its other
 * members; `?` marks a member that may be absent. Readers ignore events and members that they do
 * not know.
 *
 * To add an event, add a row and run tools/event-tables, which writes the table into docs/api.md
 * and into the page; tests/events.test fails until that is done.
 */
#ifndef STENO_EVENTS_H
#define STENO_EVENTS_H

/* ROW(identifier, name, is it for readers?, members, meaning). Rows that are not for
 * readers are the store's bookkeeping: recovery uses them to complete a run that died. */
#define STENO_EVENTS(ROW)                                                                          \
        ROW(RUN_STARTED, "run_started", 1, "mode, model, conversation",                            \
            "the user's message is stored and the run has begun; always the first")                \
        ROW(MESSAGE, "message", 1, "text",                                                         \
            "a piece of the reply; pieces are merged over at most 50 ms")                          \
        ROW(THINKING, "thinking", 1, "text", "the same for reasoning")                             \
        ROW(MESSAGE_DROPPED, "message_dropped", 1, "reason, tool",                                 \
            "the reply was streamed and is not kept, because it did not call the required tool")   \
        ROW(MODEL_RETRY, "model_retry", 1, "attempt, waitMs, code, message",                       \
            "a model call failed before its first token and is made again")                        \
        ROW(TOOL_CALL_START, "tool_call_start", 1, "toolCallId, toolName, serverName?, arguments", \
            "the model calls a tool; arguments is a string, byte for byte")                        \
        ROW(TOOL_CALL_STEP, "tool_call_step", 1, "toolCallId, text, progress?, total?",            \
            "the tool reports progress")                                                           \
        ROW(TOOL_CALL_APPROVAL, "tool_call_approval", 1,                                           \
            "toolCallId, toolName, arguments, approval, state, limits?, environment?",             \
            "the call waits for permission, or somebody has decided: state is pending, allowed "   \
            "or denied; approval is the hash of the exact call; limits (seconds, outputBytes, "    \
            "memoryBytes, cpuSeconds) and environment (names of variables) say what a pending "    \
            "call will run with")                                                                  \
        ROW(TOOL_CALL_RUNNING, "tool_call_running", 1, "toolCallId, toolName, invokedAt",          \
            "the tool begins to run; before this, the call waited for its turn or for permission") \
        ROW(TOOL_CALL_COMPLETE, "tool_call_complete", 1,                                           \
            "toolCallId, toolName, serverName?, state, content, ref?, exitCode?, duration, "       \
            "resultId",                                                                            \
            "the tool's result is stored; resultId is the id of its message, state is the state "  \
            "in the view chat")                                                                    \
        ROW(TOOL_CALL_ERROR, "tool_call_error", 1,                                                 \
            "toolCallId, toolName, serverName?, state, content, error, ref?, exitCode?, "          \
            "duration, resultId",                                                                  \
            "the same for a call that failed or could not be run: state is error, denied, "        \
            "interrupted or cut")                                                                  \
        ROW(FINAL_MESSAGE, "final_message", 1, "text, message, toolCalls",                         \
            "the whole last reply, as text and again as message; toolCalls has each call of the "  \
            "run, as in the view chat: id, name, arguments, state, result or error, invokedAt, "   \
            "duration, steps, ref, display")                                                       \
        ROW(RESPONSE_EVENT, "response_event", 1, "event?, input?, stored?",                        \
            "an event of /v1/responses as its client gets it; the first one has the items of the " \
            "input, the last one the seq up to which items are stored")                            \
        ROW(RUN_ERROR, "run_error", 1, "code, message, retryable", "why the run did not succeed")  \
        ROW(RUN_FINISHED, "run_finished", 1, "reason, turns?, usage?", "always the last")          \
        ROW(REQUEST, "request", 0, "messageId, after",                                             \
            "the model is about to be asked for that message; it gets the log up to `after`")      \
        ROW(REPLY_USAGE, "reply_usage", 0, "messageId, model, usage",                              \
            "the tokens of that message, as its provider counted and spelled them")                \
        ROW(DISPATCH, "dispatch", 0, "request, call, of?, tool, sha256, after",                    \
            "a tool is about to be run")                                                           \
        ROW(OUTPUT, "output", 0, "call, ref", "the output of a tool goes to this artifact")        \
        ROW(OUTCOME, "outcome", 0, "request, call, of?, message", "the result of a tool")

#define STENO_EVENT_ROW(id, name, shown, members, meaning) STENO_EVENT_##id,
enum steno_event { STENO_EVENTS(STENO_EVENT_ROW) STENO_EVENT_COUNT };
#undef STENO_EVENT_ROW

#endif
