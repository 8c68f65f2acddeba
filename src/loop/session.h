/*
 * session.h - prepares the loop for a program: the configuration, and the tools and rules that
 * follow from it. The command line and the server use it.
 */
#ifndef LOOP_SESSION_H
#define LOOP_SESSION_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "loop/config.h"
#include "loop/permission.h"
#include "tool/tool.h"

struct session_options {
        const char *const *env; /* the process's environment */
        const char *directory;  /* where steno.json is looked for and commands run */
        const char *store_path; /* hidden from commands and servers; NULL: none */
        bool no_tools;          /* neither commands nor MCP servers */
        const char *tool_calls; /* "native" or "text"; NULL: as it is configured */
        bool strict;            /* whatever the configuration says (config.h) */
        /* Receives problems of MCP servers, one line at a time, on the separate thread that starts
         * the servers. NULL: they are kept in `late_warnings`. */
        void (*warn)(void *ctx, const char *line);
        void *warn_ctx;
        /* these override the configuration; each may be NULL */
        const char *provider;
        const char *base_url;
        const char *model;
        const char *system;
};

struct session {
        struct config config;
        struct permission permission;
        struct steno_tools tools;
        struct steno_tools visitor_tools; /* those of `tools` that are marked TOOL_VISITORS */
        struct buf warnings;              /* lines for a person */
        struct buf late_warnings;         /* more of them, to be read behind session_fill */
        const char *hidden[3]; /* of commands and servers: the store, and Steno's configuration */
        char *directory;
        char *store_path;
        char *config_path; /* holds trusted.json, and perhaps a key */
        /* Servers that are being started. Until `ready`, only their thread uses the tools. */
        struct session_options opened_with;
        struct steno_stop *stop; /* ends the starting */
        pthread_t starter;
        bool starts;
        bool ready;
        pthread_mutex_t mutex;
        pthread_cond_t change;
};

/* Reads the configuration and starts what it names. On failure nothing is left to close. */
int session_open(struct session *s, const struct session_options *opt, struct steno_error *err);
/* Would session_fill return without waiting for MCP servers that are being started? */
bool session_is_ready(struct session *s);
/* Fills in model, tools, rules and limits; members that are set are left alone. The session must
 * outlive the loop. Waits for MCP servers that are being started, which has a time limit; when
 * opt->stop is requested meanwhile there are no tools, and the loop ends before it needs any. */
void session_fill(struct session *s, struct steno_loop_options *opt);
/* The same for a turn of a visitor: only the tools and commands that the configuration marks
 * public, and nobody is asked. */
void session_fill_visitor(struct session *s, struct steno_loop_options *opt);
/* Stops starting servers, so that nobody waits for them any more. */
void session_stop_starting(struct session *s);
void session_close(struct session *s);

#endif
