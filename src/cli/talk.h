/*
 * talk.h - a run of the loop from the command line: shared by chat, run, continue and demo.
 */
#ifndef CLI_TALK_H
#define CLI_TALK_H

#include "cli/command.h"
#include "cli/events.h"
#include "loop/session.h"

/* Options that these commands share: a member `talk` of their struct. */
struct talk_opts {
        const char *model;
        const char *base_url;
        const char *provider;
        const char *script;
        const char *system;
        const char *require_tool;
        const char *tools_as;
        struct opt_number turns;
        struct opt_number seconds;
        struct opt_number tokens;
        struct opt_number budget;
        bool no_tools;
        bool no_stream;
        bool strict;
};

/* Rows of an option table; `type` is the command's struct. */
#define TALK_ROWS(type)                                                                            \
        {"model", 0, OPT_TEXT, "M", offsetof(type, talk.model),                                    \
            "the model's name ($STENO_MODEL)"},                                                    \
            {"provider", 0, OPT_TEXT, "NAME", offsetof(type, talk.provider),                       \
                "the API of the endpoint: openai, responses, anthropic, script "                   \
                "($STENO_PROVIDER)"},                                                              \
            {"base-url", 0, OPT_TEXT, "URL", offsetof(type, talk.base_url),                        \
                "an OpenAI-compatible endpoint ($OPENAI_BASE_URL)"},                               \
            {"system", 0, OPT_TEXT, "T", offsetof(type, talk.system),                              \
                "a system prompt for these requests; it is not stored"},                           \
            {"require-tool", 0, OPT_TEXT, "NAME|any", offsetof(type, talk.require_tool),           \
                "the reply must call this tool"},                                                  \
            {"tools-as", 0, OPT_TEXT, "native|text", offsetof(type, talk.tools_as),                \
                "text is for models without function calling"},                                    \
            {"max-turns", 0, OPT_NUMBER, "N", offsetof(type, talk.turns),                          \
                "at most N model calls in a run (50 by default)"},                                 \
            {"max-seconds", 0, OPT_NUMBER, "N", offsetof(type, talk.seconds),                      \
                "the time limit of a run"},                                                        \
            {"max-tokens", 0, OPT_NUMBER, "N", offsetof(type, talk.tokens),                        \
                "at most N tokens in all requests and replies of a run"},                          \
            {"budget", 0, OPT_NUMBER, "N", offsetof(type, talk.budget),                            \
                "at most N tokens in one request; older tool outputs are left out first"},         \
            {"no-tools", 0, OPT_FLAG, NULL, offsetof(type, talk.no_tools),                         \
                "offer only the context tools: no commands, no MCP servers"},                      \
            {"no-stream", 0, OPT_FLAG, NULL, offsetof(type, talk.no_stream),                       \
                "ask for whole replies"},                                                          \
            {"strict", 0, OPT_FLAG, NULL, offsetof(type, talk.strict),                             \
                "send only members that the provider's own types have"},                           \
        {                                                                                          \
                "script", 0, OPT_TEXT, "FILE", offsetof(type, talk.script),                        \
                    "a scripted model instead of a real one"                                       \
        }

struct otel;

struct talk {
        struct cli *c;
        const struct talk_opts *o;
        struct session session;
        struct steno_stop *stop;
        struct events events;
        struct buf script;
        const char *script_json; /* of a scripted model; of --script when it was given */
        bool allow_all;          /* ask nothing */
        bool own_rules;          /* the configuration's rules count; else all is asked */
        const char *go_on;       /* what continues a run that broke off, for a person; or NULL */
        struct otel *otel;       /* NULL: runs are sent nowhere */
};

/* c->store and c->conv are open. 0 or an exit code, reported; then talk_close() all the same. */
int talk_open(struct talk *t, struct cli *c, const struct talk_opts *o);
void talk_close(struct talk *t);

struct talk_turn {
        struct str prompt; /* p is NULL: continue */
        const char *mode;
        const char *run_id; /* may be NULL */
};
/* Readable from the next signal on: for waiting between two runs. */
int talk_stop_fd(struct talk *t);

/* One run, printed as it comes. Returns an exit code. A Ctrl-C stops it and is pending then; after
 * interrupt_take() there may be another run. */
int talk_run(struct talk *t, const struct talk_turn *turn);

#endif
