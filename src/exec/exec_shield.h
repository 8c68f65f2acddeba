/*
 * exec_shield.h - keeps a child process away from directories, from its parent, and from everything
 * by which it could undo that.
 *
 * Some directories are guarded (the store, Steno's configuration): a child can neither see what is
 * in them nor rename, replace or shadow them or a folder above them. A child can also not signal or
 * trace a process outside, and nothing that it starts outlives its supervisor. There are three ways
 * to keep these promises, tried in the order that suits the caller:
 *
 *   root       mount and PID namespaces of its own. An empty read-only file system is mounted over
 *              each guarded directory, and every folder above it is bound onto itself, because a
 *              mount point cannot be renamed. /dev holds only harmless devices, /sys and what in
 *              /proc is the machine's are read-only, and only harmless capabilities are left.
 *   user       the same in a user namespace, for callers that are not root. There, files of others
 *              seem to belong to nobody, which ssh and some other programs do not accept.
 *   landlock   an allow-list of everything beside the path to each guarded directory. Landlock has
 *              no "all but", so the folders on that path lose what belongs to themselves: they
 *              cannot be listed, and names that are made in them later cannot be used. Signals are
 *              confined from version 6 of Landlock on. /sys can be read only, because its control
 *              groups can end or freeze processes of the same user.
 *
 * In the first two the child ends in a Landlock domain as well, where the kernel has one. In all of
 * them a filter of system calls (exec_filter.h) keeps limits and priorities of other processes, and
 * keeps the child in the mount namespace that it was given.
 * What the files of a process in /proc can change is closed by a process that is not dumpable, as
 * the supervisor and Steno's own programs are: they belong to root then. Where a promise cannot be
 * kept, the gaps say which (exec_shield_gaps).
 */
#ifndef EXEC_EXEC_SHIELD_H
#define EXEC_EXEC_SHIELD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "steno.h"

#define EXEC_HIDDEN_MAX 12
#define EXEC_PROCESSES_MAX 4096 /* of one command, threads too: far above any build */

enum exec_shield {
        EXEC_SHIELD_NONE,
        EXEC_SHIELD_LANDLOCK,
        EXEC_SHIELD_NAMESPACE,
};

/* What a shield does not prevent. */
enum exec_gap {
        EXEC_GAP_FILES = 1,     /* access to guarded directories: only file modes protect them */
        EXEC_GAP_SIGNALS = 2,   /* it can signal processes of its user, its supervisor's too */
        EXEC_GAP_PROCESSES = 4, /* how many processes it starts; they end with it all the same */
        EXEC_GAP_MACHINE = 8,   /* root's: the devices of the machine and settings of its kernel */
        EXEC_GAP_LIMITS = 16,   /* it can change limits and priorities of processes of its user */
};

/* How a child is started; a plan has the ways to try, best first. */
enum exec_way {
        EXEC_WAY_ROOT,
        EXEC_WAY_USER,
        EXEC_WAY_LANDLOCK,
        EXEC_WAY_BARE,
};

#define EXEC_WAYS 4

struct exec_shield_plan {
        char hidden[EXEC_HIDDEN_MAX][PATH_MAX]; /* resolved */
        size_t count;
        int strict;    /* Landlock rules: all but the hidden ones; -1 where there is no Landlock */
        int loose;     /* Landlock rules: all */
        bool scoped;   /* those rules confine signals */
        bool filtered; /* system calls can be filtered */
        bool own_pid_max; /* the kernel has a limit of processes for each PID namespace */
        enum exec_way ways[EXEC_WAYS];
        size_t way_count;
        char user_map[64];
        char group_map[64];
};

/*
 * Done by the parent, because it allocates. `hidden` is a NULL-terminated list of directories (or
 * NULL), which are hidden at every path that shows them; one that does not exist is left out.
 * `directory` is where the child will work.
 */
int exec_shield_plan(struct exec_shield_plan *plan, const char *const *hidden,
    const char *directory, struct steno_error *err);
void exec_shield_release(struct exec_shield_plan *plan);

/* Flags for clone(): the namespaces in which the supervisor must be made. */
unsigned long exec_shield_clone_flags(enum exec_way way);
/* Is the supervisor the first process of a PID namespace? */
bool exec_shield_has_pids(enum exec_way way);

/* Done by the supervisor first of all. Only system calls. */
bool exec_shield_enter(const struct exec_shield_plan *plan, enum exec_way way);
/*
 * Done by the child between fork and exec: only system calls. Returns the shield that holds now and
 * fills in the gaps (enum exec_gap), or -1 when this way is not possible here: the process is then
 * of no use, and the next way is tried in a new one.
 */
int exec_shield_apply(const struct exec_shield_plan *plan, enum exec_way way, unsigned *gaps);

#endif
