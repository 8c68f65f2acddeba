/*
 * exec_filter.c - see exec_filter.h
 *
 * A program of the kernel's old packet filter, put together at compile time: a part for the
 * machine's own numbers of system calls and one for those of its 32-bit programs. Filters add up,
 * so programs that install their own (browsers) are not disturbed.
 */
#include "exec/exec_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_CLONE3 435 /* on every machine */

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
/* Pids and kinds are 32 bits wide: the kernel does not look at the other half of the word. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOAD_ARGUMENT(n) LOAD(args[n])
#else
#define LOAD_ARGUMENT(n)                                                                           \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]) + 4)
#endif
#define WHEN(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define WHEN_ANY(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, yes, no)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW ANSWER(SECCOMP_RET_ALLOW)
#define REFUSE ANSWER(SECCOMP_RET_ERRNO | EPERM)
#define ABSENT ANSWER(SECCOMP_RET_ERRNO | ENOSYS)

/* The target process is the first argument: prlimit64 and sched_*. */
#define ONLY_SELF(nr) WHEN(nr, 0, 4), LOAD_ARGUMENT(0), WHEN(0, 0, 1), ALLOW, REFUSE
/* The kind (a process, a group, a user) is the first argument, and the target is the second. */
#define ONLY_SELF_OF_KIND(nr, kind)                                                                \
        WHEN(nr, 0, 6), LOAD_ARGUMENT(0), WHEN(kind, 0, 3), LOAD_ARGUMENT(1), WHEN(0, 0, 1),       \
            ALLOW, REFUSE

/* Flags are the first argument: clone and unshare. */
#define WITHOUT(nr, flags) WHEN(nr, 0, 4), LOAD_ARGUMENT(0), WHEN_ANY(flags, 1, 0), ALLOW, REFUSE
/* Its flags stand in memory, where a filter cannot look: programs then take clone() instead. */
#define NEVER(nr) WHEN(nr, 0, 1), ABSENT

/* A mount namespace that is empty: UNSHARE_EMPTY_MNTNS of later kernels. */
#define EMPTY_MOUNTS 0x00100000u

#define PRIO_OF_PROCESS 0
#define IOPRIO_OF_PROCESS 1

/* The number of the call is loaded. 52 instructions, and the last answers. */
#define CALLS(prlimit, setscheduler, setparam, setaffinity, setattr, setpriority, ioprio, clone,   \
    unshare, clone3)                                                                               \
        ONLY_SELF(prlimit), ONLY_SELF(setscheduler), ONLY_SELF(setparam), ONLY_SELF(setaffinity),  \
            ONLY_SELF(setattr), ONLY_SELF_OF_KIND(setpriority, PRIO_OF_PROCESS),                   \
            ONLY_SELF_OF_KIND(ioprio, IOPRIO_OF_PROCESS), WITHOUT(clone, CLONE_NEWNS),             \
            WITHOUT(unshare, CLONE_NEWNS | EMPTY_MOUNTS), NEVER(clone3), ALLOW
#define CALLS_LENGTH 52

#define OWN_CALLS                                                                                  \
        CALLS(SYS_prlimit64, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setaffinity,    \
            SYS_sched_setattr, SYS_setpriority, SYS_ioprio_set, SYS_clone, SYS_unshare, NR_CLONE3)

#if defined(__x86_64__)
/* x32 has the same numbers with one bit more. */
#define X32_MASK BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xbfffffffu)
static const struct sock_filter program[] = {
    LOAD(arch),
    WHEN(AUDIT_ARCH_X86_64, 0, CALLS_LENGTH + 2),
    LOAD(nr),
    X32_MASK,
    OWN_CALLS,
    WHEN(AUDIT_ARCH_I386, 1, 0),
    REFUSE,
    LOAD(nr),
    CALLS(340, 156, 154, 241, 351, 97, 289, 120, 310, NR_CLONE3),
};
#elif defined(__aarch64__)
static const struct sock_filter program[] = {
    LOAD(arch),
    WHEN(AUDIT_ARCH_AARCH64, 0, CALLS_LENGTH + 1),
    LOAD(nr),
    OWN_CALLS,
    WHEN(AUDIT_ARCH_ARM, 1, 0),
    REFUSE,
    LOAD(nr),
    CALLS(369, 156, 154, 241, 380, 97, 314, 120, 337, NR_CLONE3),
};
#elif defined(__riscv) && __riscv_xlen == 64
static const struct sock_filter program[] = {
    LOAD(arch),
    WHEN(AUDIT_ARCH_RISCV64, 1, 0),
    REFUSE,
    LOAD(nr),
    OWN_CALLS,
};
#else
#define NO_PROGRAM
static const struct sock_filter program[] = {ALLOW};
#endif

#ifdef NO_PROGRAM
static const bool has_program = false;
#else
static const bool has_program = true;
#endif

bool exec_filter_possible(void)
{
        uint32_t action = SECCOMP_RET_ERRNO;

        return has_program && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0u, &action) == 0;
}

bool exec_filter_apply(void)
{
        const struct sock_fprog fprog = {
            .len = sizeof(program) / sizeof(*program), .filter = (struct sock_filter *)program};

        return has_program && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0u, &fprog) == 0;
}
