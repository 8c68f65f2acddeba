/* For each line of standard input, characters as hexadecimal numbers: brings them into NFC, or with
 * the argument "words" gives the words that search sees in them (composed.test). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/composed.h"
#include "base/text.h"
#include "base/words.h"

static void put_nfc(uint32_t *c, size_t n)
{
        n = composed(c, n);
        for (size_t i = 0; i < n; i++)
                printf("%X ", c[i]);
}

static void put_words(const uint32_t *c, size_t n)
{
        char text[4 * COMPOSED_ROOM];
        size_t size = 0;
        struct word word;
        for (size_t i = 0; i < n; i++)
                size += text_encode_to(c[i], text + size);
        struct words w = words_of(str_span(text, size));
        while (words_next(&w, &word)) {
                for (size_t i = 0; i < word.n; i++)
                        printf("%02X", (unsigned char)word.folded[i]);
                putchar(' ');
        }
}

int main(int argc, char **argv)
{
        bool words = argc > 1 && strcmp(argv[1], "words") == 0;
        char line[4096], *at, *end;
        while (fgets(line, sizeof line, stdin)) {
                uint32_t c[COMPOSED_ROOM];
                size_t n = 0;
                for (at = line; n < (words ? COMPOSED_ROOM : COMPOSED_MAX); at = end) {
                        uint32_t one = (uint32_t)strtoul(at, &end, 16);
                        if (end == at)
                                break;
                        c[n++] = one;
                }
                if (words)
                        put_words(c, n);
                else
                        put_nfc(c, n);
                putchar('\n');
        }
        return 0;
}
