/*
 * interrupt.h - Ctrl-C, noticed between steps.
 *
 * The first SIGINT, SIGTERM or SIGHUP sets a flag and makes a waiting read, or a wait for a lock,
 * return; commands look at the flag where they can stop. The second one ends the process at once,
 * which a store survives like any other kill.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

void interrupt_install(void);
bool interrupt_pending(void);
/* The exit code of a program that this signal has ended: 130 for Ctrl-C, 143 for SIGTERM. */
int interrupt_exit_code(void);
/* Was the process told to end, by SIGTERM? */
bool interrupt_is_term(void);
/* For a program that is meant to be ended by SIGTERM: its exit code is then not that of an
 * interrupt. */
void interrupt_obeyed(void);
/* Clears a Ctrl-C, and returns whether there was one; other signals are not cleared. */
bool interrupt_take(void);
/* Sets how many signals end the process at once (default: 2). */
void interrupt_patience(int signals);
/* The first signal also requests this, from inside the handler; NULL: nothing. It must live until
 * another takes its place. */
struct steno_stop;
void interrupt_stop(struct steno_stop *stop);
/* While a pager has the terminal, Ctrl-C is the pager's. */
void interrupt_ignore(void);

/* While a line is edited: notice that the program was continued, or the terminal resized. */
void interrupt_watch_terminal(bool on);
/* Did that happen since the last call? */
bool interrupt_terminal_changed(void);

#endif
