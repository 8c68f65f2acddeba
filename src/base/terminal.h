/*
 * terminal.h - reading from a terminal without being caught in a read.
 *
 * Ctrl-C makes the kernel throw away what was typed, besides sending the signal. A program that
 * waits with poll() and then reads can therefore find nothing to read although poll() promised a
 * byte, and a read that blocks then waits for the next key: the signal came before the read and
 * does not end it.
 */
#ifndef BASE_TERMINAL_H
#define BASE_TERMINAL_H

/*
 * Opens the terminal behind `fd` a second time, for reads that never block (EAGAIN: nothing is
 * there). A flag on `fd` itself would also change it for the shell that shares it. Negative when
 * `fd` is not a terminal or cannot be opened again, for example after su(1); the caller then reads
 * from `fd`. The caller closes the descriptor.
 */
int terminal_open_again(int fd);

#endif
