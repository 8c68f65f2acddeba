/*
 * map.c - see map.h.
 *
 * SIGBUS comes to the thread that touched the memory, so each thread has a list of its own maps and
 * the handler needs no lock. It replaces the whole mapping by empty memory, and the read that
 * failed is repeated there.
 */
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

static _Thread_local struct map *open_maps;
static _Thread_local bool passing_on;
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before; /* whose handler was there; changes only under the mutex */

static bool mend(struct map *m)
{
        void *at = (void *)(size_t)m->p;
        m->broken = 1;
        return mmap(at, m->n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
        int saved = errno;
        const char *where = info->si_addr;

        for (struct map *m = open_maps; m; m = m->next) {
                if (where >= m->p && where < m->p + m->n && mend(m)) {
                        errno = saved;
                        return;
                }
        }
        errno = saved;
        /* A handler that was installed after ours may call ours in turn. */
        bool again = passing_on;
        passing_on = true;
        if (!again && before.sa_flags & SA_SIGINFO)
                before.sa_sigaction(sig, info, context);
        else if (!again && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
                before.sa_handler(sig);
        else
                signal(sig, SIG_DFL); /* the read is repeated, and ends the process */
        passing_on = again;
}

/* With every map, because the program may have installed a handler of its own since the last. */
static void install(void)
{
        struct sigaction ours = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        struct sigaction now;

        sigemptyset(&ours.sa_mask);
        pthread_mutex_lock(&installing);
        sigaction(SIGBUS, NULL, &now);
        if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_sigbus) {
                before = now;
                sigaction(SIGBUS, &ours, NULL);
        }
        pthread_mutex_unlock(&installing);
}

/* A thread that blocks the signal would be killed by it. */
static void let_signal_in(void)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGBUS);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int map_open(struct map *m, int fd, size_t n)
{
        install();
        let_signal_in();
        void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
                return -errno;
        madvise(p, n, MADV_SEQUENTIAL);
        *m = (struct map){.p = p, .n = n, .next = open_maps};
        open_maps = m;
        return 0;
}

bool map_is_broken(const struct map *m)
{
        return m->broken;
}

void map_close(struct map *m)
{
        if (!m->p)
                return;
        for (struct map **at = &open_maps; *at; at = &(*at)->next) {
                if (*at == m) {
                        *at = m->next;
                        break;
                }
        }
        munmap((void *)(size_t)m->p, m->n);
        *m = (struct map){0};
}
