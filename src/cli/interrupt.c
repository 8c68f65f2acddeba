/*
 * interrupt.c - see interrupt.h. A signal handler can reach nothing but static variables, so the
 * flags are statics of this file. They are atomic, because the kernel may run the handler in any
 * thread of a server while another thread reads the flag.
 */
#include "cli/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "steno_loop.h"

static atomic_int pending; /* the signal */
static atomic_int count;
static atomic_int enough = 2;
static atomic_int terminal_changed;
static _Atomic(struct steno_stop *) stop_too;

static void on_signal(int sig)
{
        struct steno_stop *stop = stop_too;
        if (atomic_fetch_add(&count, 1) + 1 >= enough)
                _exit(128 + sig);
        if (pending == 0 || sig != SIGINT)
                pending = sig;
        if (stop)
                steno_stop_request(stop);
}

void interrupt_install(void)
{
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
        struct sigaction sa;

        memset(&sa, 0, sizeof(sa));
        sa.sa_handler = on_signal; /* no SA_RESTART: a read of a silent pipe has to end */
        sigemptyset(&sa.sa_mask);
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
                struct sigaction old;
                /* nohup and background jobs of a shell ignore them on purpose. */
                if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN)
                        continue;
                sigaction(signals[i], &sa, NULL);
        }
        /* Writers see EPIPE, so that a store is closed in order before the process ends. */
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk, not an end */
}

void interrupt_stop(struct steno_stop *stop)
{
        stop_too = stop;
        if (stop && pending)
                steno_stop_request(stop);
}

bool interrupt_pending(void)
{
        return pending != 0;
}

int interrupt_exit_code(void)
{
        return 128 + pending;
}

bool interrupt_is_term(void)
{
        return pending == SIGTERM;
}

void interrupt_obeyed(void)
{
        pending = 0;
}

bool interrupt_take(void)
{
        if (pending != SIGINT)
                return false;
        pending = 0;
        count = 0;
        return true;
}

void interrupt_patience(int signals)
{
        enough = signals;
}

void interrupt_ignore(void)
{
        signal(SIGINT, SIG_IGN);
}

static void on_change(int sig)
{
        (void)sig;
        terminal_changed = 1;
}

void interrupt_watch_terminal(bool on)
{
        struct sigaction sa;
        memset(&sa, 0, sizeof(sa));
        sa.sa_handler = on ? on_change : SIG_DFL;
        sigemptyset(&sa.sa_mask);
        sigaction(SIGCONT, &sa, NULL);
        sigaction(SIGWINCH, &sa, NULL);
        terminal_changed = 0;
}

bool interrupt_terminal_changed(void)
{
        return atomic_exchange(&terminal_changed, 0) != 0;
}
