/* check_lines.c - for check.test: reads one history on each line, writes its violations on one
 * line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "steno.h"

int main(int argc, char **argv)
{
        char *line = NULL;
        size_t cap = 0;
        ssize_t n;
        if (argc != 2)
                return 2;
        while ((n = getline(&line, &cap, stdin)) > 0) {
                struct steno_error err = {0};
                char *out = NULL;
                if (steno_check_history(argv[1], line, (size_t)n, &out, &err) != 0)
                        printf("error: %s\n", err.msg);
                else
                        printf("%s\n", out);
                steno_free(out);
        }
        free(line);
        return 0;
}
