/*
 * members.h - the members of an OpenAI-shaped message that mean something to Steno.
 *
 * There is one table because four places use it: the openai reader (what does this member mean?),
 * the writers for providers (must it be left out?), steno_output_message() and the loop (may the
 * caller or a tool set it?). To add a member, add a row. The rows are also the enum, in the same
 * order, so that a reader can keep the members that it found in an array.
 */
#ifndef MODEL_MEMBERS_H
#define MODEL_MEMBERS_H

#include <stdbool.h>

#include "base/json.h"
#include "base/str.h"

/* Who sets a member, and who may see it. */
enum members_rule {
        /* Providers do not know it: a view for a provider leaves it out. */
        MEMBER_NOT_SENT = 1,
        /* steno_output_message() sets it and ignores the caller's value. */
        MEMBER_BY_OUTPUT = 2,
        /* The loop sets it on a tool's result: a tool may not add a member of this name. */
        MEMBER_BY_LOOP = 4,
        /* It says who wrote a message, whether the message counts, or which output belongs to it: a
         * model's reply may not set it. */
        MEMBER_OF_RUN = 8,
};

/* ROW(name in the enum, name in JSON, rules). The comment names the roles that have the member. */
#define MEMBERS(ROW)                                                                               \
        ROW(ROLE, "role", MEMBER_BY_OUTPUT)                               /* all */                \
        ROW(CONTENT, "content", MEMBER_BY_OUTPUT)                         /* all */                \
        ROW(TOOL_CALLS, "tool_calls", 0)                                  /* assistant */          \
        ROW(FUNCTION_CALL, "function_call", 0)                            /* assistant */          \
        ROW(TOOL_CALL_ID, "tool_call_id", MEMBER_BY_OUTPUT)               /* tool */               \
        ROW(ID, "id", MEMBER_NOT_SENT | MEMBER_BY_OUTPUT | MEMBER_OF_RUN) /* all */                \
        ROW(CREATED_AT, "createdAt", MEMBER_NOT_SENT | MEMBER_BY_OUTPUT | MEMBER_OF_RUN) /* all */ \
        ROW(MODE, "mode", MEMBER_NOT_SENT | MEMBER_BY_LOOP | MEMBER_OF_RUN)              /* all */ \
        ROW(RUN_ID, "runId", MEMBER_NOT_SENT | MEMBER_BY_LOOP | MEMBER_OF_RUN)           /* all */ \
        ROW(AGENT_ID, "agentId", MEMBER_NOT_SENT | MEMBER_OF_RUN)                        /* all */ \
        ROW(WORKFLOW_ID, "workflowId", MEMBER_NOT_SENT | MEMBER_OF_RUN)                  /* all */ \
        ROW(PART_TYPE, "partType", MEMBER_NOT_SENT | MEMBER_OF_RUN)                      /* all */ \
        ROW(ERROR, "error", MEMBER_NOT_SENT | MEMBER_OF_RUN)                /* assistant */        \
        ROW(FINISH_REASON, "finishReason", MEMBER_NOT_SENT | MEMBER_OF_RUN) /* assistant */        \
        ROW(INCLUDE, "includeInContext", MEMBER_NOT_SENT | MEMBER_OF_RUN)   /* all */              \
        ROW(TOOL_NAME, "toolName", MEMBER_NOT_SENT | MEMBER_BY_OUTPUT)      /* tool */             \
        ROW(SERVER_NAME, "serverName", MEMBER_NOT_SENT | MEMBER_BY_OUTPUT)  /* tool */             \
        ROW(DURATION, "duration", MEMBER_NOT_SENT | MEMBER_BY_LOOP)         /* tool */             \
        ROW(IS_ERROR, "isError", MEMBER_NOT_SENT | MEMBER_BY_LOOP)          /* tool */             \
        ROW(STEPS, "steps", MEMBER_NOT_SENT | MEMBER_BY_LOOP)               /* tool */             \
        ROW(INVOKED_AT, "invokedAt", MEMBER_NOT_SENT | MEMBER_BY_LOOP)      /* tool */             \
        ROW(EXIT_CODE, "exitCode", MEMBER_NOT_SENT | MEMBER_BY_LOOP)        /* tool */             \
        ROW(SIGNAL, "signal", MEMBER_NOT_SENT | MEMBER_BY_LOOP)             /* tool */             \
        ROW(TIMED_OUT, "timedOut", MEMBER_NOT_SENT | MEMBER_BY_LOOP)        /* tool */             \
        ROW(INTERRUPTED, "interrupted", MEMBER_NOT_SENT | MEMBER_BY_LOOP)   /* tool */             \
        ROW(DENIED, "denied", MEMBER_NOT_SENT | MEMBER_BY_LOOP)             /* tool */             \
        ROW(CUT, "cut", MEMBER_NOT_SENT | MEMBER_BY_LOOP)                   /* tool */             \
        ROW(UNFINISHED, "unfinished", MEMBER_NOT_SENT | MEMBER_BY_LOOP)     /* tool */             \
        ROW(REF, "ref", MEMBER_NOT_SENT | MEMBER_BY_OUTPUT | MEMBER_OF_RUN) /* tool */             \
        ROW(FULL_OUTPUT_PATH, "fullOutputPath",                                                    \
            MEMBER_NOT_SENT | MEMBER_BY_OUTPUT | MEMBER_OF_RUN) /* tool */                         \
        ROW(SEEN, "seen", MEMBER_NOT_SENT)   /* imported: what the model was shown */              \
        ROW(ENTRY, "entry", MEMBER_NOT_SENT) /* imported: the unchanged source entry */            \
        ROW(ACP, "acp", MEMBER_NOT_SENT)     /* recorded from ACP: what a message cannot           \
                                                express */

#define MEMBERS_ENUM(id, name, rules) MEMBER_##id,
enum member { MEMBERS(MEMBERS_ENUM) MEMBER_COUNT };
#undef MEMBERS_ENUM

/* Returns the member of this name, or MEMBER_COUNT if it is not in the table. `key` is the node of
 * a key; a `name` is plain text without escapes. */
enum member members_find(const struct json *j, json_ref key);
enum member members_find_name(struct str name);

/* Does one of `rules` (MEMBER_NOT_SENT ...) apply to the member? False for MEMBER_COUNT. */
bool members_has(enum member member, unsigned rules);
/* Lists the names of the members to which one of `rules` applies; ends with NULL. */
void members_list(unsigned rules, const char *names[MEMBER_COUNT + 1]);

/* How a call that has a result ended, if the tool itself did not end it. */
enum call_ending {
        ENDING_OWN, /* the tool ended by itself, with success or an error */
        ENDING_DENIED,
        ENDING_INTERRUPTED, /* it was stopped while it ran or before it was started */
        ENDING_CUT,         /* the arguments were cut off, so the tool was not run */
        ENDING_COUNT,
};

/* The state of a call with this ending ("denied", "interrupted", "cut"), which is also the name of
 * the member in a stored result; NULL for ENDING_OWN. */
const char *members_ending_name(enum call_ending ending);

#endif
