/*
 * exec_super.h - the process between us and a child. Private to exec.
 *
 * Everything declared here runs in a forked copy of a process that may have had many threads: it
 * makes system calls and nothing else, allocates nothing, and takes no lock.
 */
#ifndef EXEC_EXEC_SUPER_H
#define EXEC_EXEC_SUPER_H

#include <stdint.h>

#include "exec/exec_shield.h"

/* Prepared by the parent before the fork. */
struct exec_launch {
        char *const *programs; /* paths to try, NULL-terminated */
        char *const *argv;
        char *const *env;
        const char *directory; /* absolute */
        const char *inside;    /* a path beneath it that must not leave it, or NULL */
        const struct exec_shield_plan *plan;
        enum exec_way way;
        uint64_t memory_bytes;
        uint64_t cpu_seconds;
        int in, out, err;
        int control; /* the supervisor's end of a SOCK_SEQPACKET pair */
};

/* What the supervisor says, one packet each: FAILED alone, or STARTED, EXITED, GONE. */
enum exec_word_kind {
        EXEC_STARTED, /* a: the shield, b: its gaps */
        EXEC_FAILED,  /* a: enum exec_stage, b: errno */
        EXEC_EXITED,  /* a: wait status */
        EXEC_GONE,    /* a: processes that had outlived the child */
};

struct exec_word {
        int32_t kind;
        int32_t a;
        int32_t b;
};

enum exec_stage {
        EXEC_STAGE_NONE,
        EXEC_STAGE_FORK,
        EXEC_STAGE_SHIELD,
        EXEC_STAGE_SETUP,
        EXEC_STAGE_DIRECTORY,
        EXEC_STAGE_EXEC,
};

/* What the supervisor is told, one byte each. The end of the stream means EXEC_ORDER_KILL. */
#define EXEC_ORDER_TERMINATE 'T'
#define EXEC_ORDER_KILL 'K'

_Noreturn void exec_supervise(const struct exec_launch *launch);

#endif
