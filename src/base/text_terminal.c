/*
 * text_terminal.c - text from outside that may carry terminal sequences: shown or dropped, never
 * obeyed.
 *
 * Belongs to text.h. Sequences are cut as ECMA-48 does: ESC or its one-character form in
 * U+0080..U+009F, then
 *   CSI            parameters 0x30-3F, intermediates 0x20-2F, one final 0x40-7E
 *   OSC DCS SOS PM APC   a string up to ST or BEL
 *   others         intermediates, one final
 * A string also ends before a line feed, a CAN, a SUB or another ESC, so that a stray
 * introducer cannot hide more than the rest of its line.
 */
#include "base/text.h"

enum {
        BEL = 0x07,
        CAN = 0x18,
        SUB = 0x1A,
        ESC = 0x1B,
        DEL = 0x7F,
};

#define SGR_MAX 64 /* longer than any real colour; what is beyond is shown */

static unsigned char byte_at(struct str s, size_t i)
{
        return i < s.n ? (unsigned char)s.p[i] : 0;
}

/* U+0080..U+009F as its last byte, or 0. */
static unsigned char c1_at(struct str s, size_t i)
{
        unsigned char d = byte_at(s, i + 1);
        return byte_at(s, i) == 0xC2 && d >= 0x80 && d <= 0x9F ? d : 0;
}

static size_t skip_range(struct str s, size_t i, unsigned char low, unsigned char top)
{
        while (i < s.n && byte_at(s, i) >= low && byte_at(s, i) <= top)
                i++;
        return i;
}

static size_t skip_final(struct str s, size_t i, unsigned char low)
{
        unsigned char c = byte_at(s, i);
        return i < s.n && c >= low && c <= 0x7E ? i + 1 : i;
}

static size_t skip_csi(struct str s, size_t i)
{
        i = skip_range(s, i, 0x30, 0x3F);
        i = skip_range(s, i, 0x20, 0x2F);
        return skip_final(s, i, 0x40);
}

static size_t skip_control_string(struct str s, size_t i)
{
        for (; i < s.n; i++) {
                unsigned char c = byte_at(s, i);
                if (c == BEL || c == CAN || c == SUB)
                        return i + 1;
                if (c == '\n')
                        return i;
                if (c == ESC)
                        return byte_at(s, i + 1) == '\\' ? i + 2 : i;
                if (c1_at(s, i) == 0x9C)
                        return i + 2;
        }
        return i;
}

/* The end of what `kind` (the character behind ESC) introduces; `i` is behind it. */
static size_t skip_kind(struct str s, size_t i, unsigned char kind)
{
        switch (kind) {
        case '[':
                return skip_csi(s, i);
        case ']':
        case 'P':
        case 'X':
        case '^':
        case '_':
                return skip_control_string(s, i);
        default:
                return i;
        }
}

/* Length of the sequence at `i`, 0 when there is none. */
static size_t sequence_length(struct str s, size_t i)
{
        unsigned char c1 = c1_at(s, i);
        if (c1)
                return skip_kind(s, i + 2, (unsigned char)(c1 - 0x40)) - i;
        if (byte_at(s, i) != ESC)
                return 0;
        unsigned char kind = byte_at(s, i + 1);
        if (kind >= 0x20 && kind <= 0x2F)
                return skip_final(s, skip_range(s, i + 1, 0x20, 0x2F), 0x30) - i;
        if (kind < 0x30 || kind > 0x7E)
                return 1;
        return skip_kind(s, i + 2, kind) - i;
}

/* Two stray bytes that stood on both sides of a sequence must not become a control. */
static bool joins_to_c1(const struct buf *b, unsigned char next)
{
        return b->n > 0 && (unsigned char)b->p[b->n - 1] == 0xC2 && next >= 0x80 && next <= 0x9F;
}

void text_strip_ansi(struct buf *b, struct str s)
{
        size_t from = 0;
        size_t i = 0;
        while (i < s.n) {
                size_t len = sequence_length(s, i);
                if (len == 0) {
                        i++;
                        continue;
                }
                buf_put(b, s.p + from, i - from);
                i += len;
                while (i < s.n && joins_to_c1(b, byte_at(s, i)))
                        i++;
                from = i;
        }
        if (from < s.n)
                buf_put(b, s.p + from, s.n - from);
}

/* ---- showing ---- */

/* The next parameter of an SGR; its sub-parameters behind colons are passed over. */
static bool next_parameter(struct str s, size_t *i, unsigned *value, bool *sub)
{
        if (*i > s.n)
                return false;
        *value = 0;
        *sub = false;
        for (; *i < s.n && s.p[*i] != ';'; (*i)++) {
                *sub = *sub || s.p[*i] == ':';
                if (!*sub && *value < 1000)
                        *value = *value * 10 + (unsigned)(s.p[*i] - '0');
        }
        (*i)++;
        return true;
}

/* Concealed text (8) would let a message hide part of itself. The arguments of 38, 48 and 58 are
 * colours and may be any number. */
static bool conceals(struct str parameters)
{
        size_t i = 0;
        unsigned v;
        bool sub;
        while (next_parameter(parameters, &i, &v, &sub)) {
                if (v == 8)
                        return true;
                if (sub || (v != 38 && v != 48 && v != 58))
                        continue;
                unsigned space = 0;
                size_t after = i;
                next_parameter(parameters, &after, &space, &sub);
                int args = space == 5 ? 1 : space == 2 ? 3 : 0;
                if (args)
                        i = after;
                while (args-- > 0)
                        next_parameter(parameters, &i, &v, &sub);
        }
        return false;
}

/* Length of a colour sequence at `i`, 0 when it is none; *reset says that it ends all colours. */
static size_t sgr_length(struct str s, size_t i, bool *reset)
{
        if (byte_at(s, i) != ESC || byte_at(s, i + 1) != '[')
                return 0;
        size_t end = skip_range(s, i + 2, '0', ';');
        struct str parameters = str_span(s.p + i + 2, end - i - 2);
        if (byte_at(s, end) != 'm' || parameters.n > SGR_MAX || conceals(parameters))
                return 0;
        *reset = parameters.n == 0 || str_is(parameters, "0");
        return end + 1 - i;
}

struct range {
        uint32_t from, to;
};

/* Characters that show nothing, or that change the order of what is beside them. */
static const struct range UNSEEN[] = {{0x80, 0x9F}, {0xAD, 0xAD}, {0x34F, 0x34F}, {0x61C, 0x61C},
    {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180E, 0x180E}, {0x200B, 0x200B}, {0x200E, 0x200F},
    {0x2028, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0},
    {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE00FF},
    {0xE01F0, 0xE0FFF}};
/* Characters that words of some languages and emoji need, and letters and blanks that look like a
 * space or like nothing. Text about which a person decides must not have any of them. */
static const struct range JOINING[] = {{0xA0, 0xA0}, {0x1680, 0x1680}, {0x180B, 0x180F},
    {0x2000, 0x200A}, {0x200C, 0x200D}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x2800, 0x2800},
    {0x3000, 0x3000}, {0xFE00, 0xFE0F}, {0x13430, 0x1343F}, {0x16FE4, 0x16FE4}, {0x1D159, 0x1D159},
    {0xE0100, 0xE01EF}};

static bool is_in(uint32_t cp, const struct range *ranges, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (cp >= ranges[i].from && cp <= ranges[i].to)
                        return true;
        return false;
}

static bool is_unseen(uint32_t cp, bool decision)
{
        return is_in(cp, UNSEEN, sizeof UNSEEN / sizeof *UNSEEN) ||
               (decision && is_in(cp, JOINING, sizeof JOINING / sizeof *JOINING));
}

static void put_caret(struct buf *b, unsigned char c)
{
        buf_putc(b, '^');
        buf_putc(b, (char)(c ^ 0x40));
}

static size_t show_character(struct buf *b, struct str s, size_t i, bool decision)
{
        uint32_t cp;
        size_t len = text_decode(s.p + i, s.n - i, &cp);
        if (is_unseen(cp, decision))
                buf_printf(b, "<U+%04X>", (unsigned)cp);
        else
                text_encode(b, cp);
        return len;
}

static bool is_plain(struct str s, size_t i)
{
        unsigned char c = byte_at(s, i);
        if (c == '\r')
                return byte_at(s, i + 1) == '\n';
        return (c >= 0x20 && c < DEL) || c == '\n' || c == '\t';
}

static void show(struct buf *b, struct str s, bool colours, bool decision)
{
        bool coloured = false;
        size_t i = 0;
        while (i < s.n && !b->failed) {
                size_t from = i;
                while (i < s.n && is_plain(s, i))
                        i++;
                buf_put(b, s.p + from, i - from);
                if (i == s.n)
                        break;
                bool reset = false;
                size_t sgr = colours ? sgr_length(s, i, &reset) : 0;
                unsigned char c = byte_at(s, i);
                if (sgr) {
                        buf_put(b, s.p + i, sgr);
                        coloured = !reset;
                        i += sgr;
                } else if (c < 0x20 || c == DEL) {
                        put_caret(b, c);
                        i++;
                } else {
                        i += show_character(b, s, i, decision);
                }
        }
        if (coloured)
                buf_puts(b, "\x1b[0m");
}

void text_for_terminal(struct buf *b, struct str s, bool colours)
{
        show(b, s, colours, false);
}

void text_for_decision(struct buf *b, struct str s)
{
        show(b, s, false, true);
}
