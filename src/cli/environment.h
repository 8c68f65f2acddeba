/*
 * environment.h - the environment and the arguments, out of sight of other processes.
 */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

/* Moves the variables to the heap and wipes where they stood, so that /proc/PID/environ of this
 * process, and of what it forks, shows no keys to the commands that a model runs. getenv() works
 * as before. For the start of main(), before there are threads. Out of memory: nothing is done. */
void environment_hide(void);
/* The same for passwords in URLs among the arguments, which everybody on the machine can read in
 * /proc/PID/cmdline. Returns the arguments that are to be used from now on. */
char **environment_hide_passwords(int argc, char **argv);

#endif
