/*
 * mcp_stdio.h - an MCP server as a child process: one JSON message a line. Only the files
 * mcp_stdio*.c include it.
 *
 * A thread of its own reads what the server prints and hands each message to the exchange that
 * waits for it; it also drains stderr, notices death, and sees the process to its end. It owns the
 * process and our ends of its output pipes. `lock` guards the list of waiting exchanges and what
 * they were handed; `write_lock` guards stdin, so that lines are never interleaved.
 */
#ifndef MCP_MCP_STDIO_H
#define MCP_MCP_STDIO_H

#include <pthread.h>

#include "exec/exec.h"
#include "mcp/mcp_transport.h"

#define MCP_STDIO_TICK_MS 50
#define MCP_STDIO_CLOSE_MS 2000 /* for a server to end by itself after its stdin was closed */

struct mcp_letter {
        struct mcp_letter *next;
        char *text;
        size_t n;
        bool is_answer;
};

/* An exchange that waits; lives on its caller's stack. */
struct mcp_waiter {
        struct mcp_waiter *next;
        const struct mcp_exchange *x;
        uint64_t id;
        struct mcp_letter *first;
        struct mcp_letter **last;
        size_t letters;
        int failed; /* STENO_ELIMIT: its answer may have been in a line that was too long */
        struct steno_error why; /* with a code: why an answer that was not held failed */
};

struct mcp_stdio {
        struct mcp_transport base;
        char *name;
        struct exec_process process;
        pthread_t thread;
        bool threaded;
        int in, out, err, wake;

        pthread_mutex_t write_lock;
        pthread_mutex_t lock;
        pthread_cond_t change;
        struct mcp_waiter *waiters;
        bool dead;
        bool closing;
        int status;
        struct buf stderr_tail;

        struct buf line; /* the reader's */
        bool spoke;      /* it has written something; the reader's */
        bool skipping;   /* inside of a line that is too long */

        /* A line that is not held: either its content goes to a waiter as it comes, or, where
         * nobody can tell yet whose it is, it waits in a file. The reader's, too. */
        struct mcp_stream *large;
        uint64_t large_id;
        int spool;     /* descriptor, -1: none */
        bool judged;   /* it was decided what becomes of the line at hand */
        bool deserted; /* somebody left without an answer, which may still come; by `lock` */
};

/* ---- mcp_stdio_exchange.c ---- */

/* The two of struct mcp_transport_ops. */
int mcp_stdio_exchange(struct mcp_transport *t, struct mcp_exchange *x, struct steno_error *err);
int mcp_stdio_notify(struct mcp_transport *t, struct str body, struct steno_error *err);
/* Writes a line. One that was written only in part cannot be taken back: the server can no longer
 * be used then, and is ended. `deadline` 0: none. */
int mcp_stdio_send(struct mcp_stdio *s, struct str body, int64_t deadline,
    const struct steno_stop *stop, struct steno_error *err);

/* ---- mcp_stdio_lines.c ---- */

/* Takes what the server printed, however it is cut; on the reader's thread. */
void mcp_stdio_take(struct mcp_stdio *s, const char *p, size_t n);

#endif
