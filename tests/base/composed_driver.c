/* Brings each line of standard input, characters as hexadecimal numbers, into NFC (composed.test).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/composed.h"

int main(void)
{
        char line[4096], *at, *end;
        while (fgets(line, sizeof line, stdin)) {
                uint32_t c[COMPOSED_ROOM];
                size_t n = 0;
                for (at = line; n < COMPOSED_MAX; at = end) {
                        uint32_t one = (uint32_t)strtoul(at, &end, 16);
                        if (end == at)
                                break;
                        c[n++] = one;
                }
                n = composed(c, n);
                for (size_t i = 0; i < n; i++)
                        printf("%X ", c[i]);
                putchar('\n');
        }
        return 0;
}
