/*
 * play.h - what the tests of this folder share: cmocka's includes, chance, texts.
 */
#ifndef OUTPUT_PLAY_H
#define OUTPUT_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/text.h"
#include "support/seed.h"

#define ITEMS(a) (sizeof(a) / sizeof((a)[0]))

/* Pieces that cause errors when they are cut, or look like something else. */
static const char *const play_pieces[] = {"a", "word ", "\n", "\n", "\r\n", "\t", "\xC3\xA9",
    "\xF0\x9F\x98\x80", "e\xCC\x81", "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7",
    "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA", "\\ud83d\\ude00", "\\\\", "\\n", "\x1B[31m", "\x1B[0m",
    "\x1B]0;title\x07", "10%\r20%\r", "error: no such file\n", "FAILED tests/test_a.py::b\n",
    "Traceback (most recent call last):\n", "--- tail (lines 1-2) ---\n", "[INCOMPLETE: x]\n",
    "More: nothing\n", "tool: x\n", "--- head (lines 1-40) ---\n", "\\--- errors (line 1) ---\n",
    "\xE2\x80\xA8", "\x01", "lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do\n"};

static inline void play_text(struct seed *s, struct buf *b, size_t least)
{
        while (b->n < least) {
                uint64_t k = seed_below(s, ITEMS(play_pieces) + 1);
                if (k < ITEMS(play_pieces)) {
                        buf_puts(b, play_pieces[k]);
                        continue;
                }
                for (uint64_t i = seed_below(s, 3000); i > 0; i--)
                        buf_putc(b, (char)('a' + seed_below(s, 26)));
        }
}

#endif
