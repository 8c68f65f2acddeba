/*
 * cli_follow.h - an artifact as it grows: its last lines, then what is added, until Ctrl-C.
 */
#ifndef CLI_CLI_FOLLOW_H
#define CLI_CLI_FOLLOW_H

#include <stdint.h>

#include "cli/command.h"

/* Returns an exit code. */
int cli_follow_artifact(struct cli *c, const char *ref, uint64_t lines);

#endif
