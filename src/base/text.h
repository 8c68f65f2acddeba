/*
 * text.h - UTF-8: checking, counting, boundaries, and making text safe for a terminal.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Length of the longest valid UTF-8 prefix; == n when all of it is valid. Fast on ASCII. */
size_t text_utf8_prefix(const char *p, size_t n);
static inline bool text_is_utf8(const char *p, size_t n)
{
        return text_utf8_prefix(p, n) == n;
}

/*
 * A validator for a stream: feed pieces in order, then finish. State survives any split.
 */
struct text_utf8 {
        unsigned char pending[4];
        unsigned char have;
        bool bad;
};
void text_utf8_feed(struct text_utf8 *u, const char *p, size_t n);
bool text_utf8_finish(const struct text_utf8 *u);

/* Code points in a text; a byte that is not UTF-8 counts as one. */
size_t text_count(const char *p, size_t n);
/* Bytes that begin a character: the code points of a text that is known to be UTF-8, also when it
 * comes in pieces. */
size_t text_count_leads(const char *p, size_t n);
/* Bytes of the first `chars` code points (n when there are fewer). */
size_t text_bytes_of(const char *p, size_t n, size_t chars);

/* The largest k <= at (resp. smallest k >= at) that does not fall inside a character of p[0,n). */
size_t text_floor(const char *p, size_t n, size_t at);
size_t text_ceil(const char *p, size_t n, size_t at);

/* Decodes one code point; returns its length, 1 with *cp = 0xFFFD for a bad byte, 0 at the end. */
size_t text_decode(const char *p, size_t n, uint32_t *cp);
void text_encode(struct buf *b, uint32_t cp);
/* The same into memory; returns the length. A surrogate or a number beyond Unicode is U+FFFD. */
size_t text_encode_to(uint32_t cp, char out[4]);

/* For text that is nearly UTF-8, such as a log in Latin-1: every other byte is written as \xNN. The
 * second call gives the length of the result, the third the largest prefix of s whose result has at
 * most `room` bytes. */
void text_put_escaped(struct buf *b, struct str s);
size_t text_escaped_size(struct str s);
size_t text_escaped_fit(struct str s, size_t room);
/* Are these bytes no text in any encoding? True if there are NULs, or if more than a third of the
 * bytes are rare in text. Ask only for bytes that are not UTF-8; UTF-8 is always text. */
bool text_looks_binary(const char *p, size_t n);

/*
 * Text from outside for a person's terminal: SGR colours pass when `colours`, every other control
 * character or escape sequence is made visible (^[ and the like), bytes that are not UTF-8 become
 * U+FFFD, and characters that are invisible or change the order of text are shown as <U+202E>. Line
 * feeds (also behind a CR) and tabs pass. Concealing text (SGR 8) does not, and a colour that is
 * left on is reset at the end.
 */
void text_for_terminal(struct buf *b, struct str s, bool colours);
/* The same for a text about which a person decides: it has no colours, and shows joiners and
 * variation selectors, which other text needs for words and emoji. */
void text_for_decision(struct buf *b, struct str s);
/* Drops ANSI escape sequences (CSI, OSC and the rest); for snippets that a model reads. */
void text_strip_ansi(struct buf *b, struct str s);

/* "4.1 KB", "1.8 MB": decimal units, one digit. */
void text_put_size(struct buf *b, uint64_t bytes);
/* 1843220 as "1,843,220". */
void text_put_grouped(struct buf *b, uint64_t n);

#endif
