/* json_stream.c - see json_stream.h */
#include "base/json_stream.h"

#include <string.h>

enum {
        BAD,
        VALUE,         /* a value must come */
        FIRST_VALUE,   /* a value or ] */
        FIRST_KEY,     /* a key or } */
        KEY,           /* a key must come */
        COLON,         /* : must come */
        NEXT,          /* a comma or the end of this level; at depth 0 only white space */
        KEY_STRING,    /* inside a key */
        STRING,        /* inside a value */
        KEY_ESCAPE,    /* behind a backslash */
        ESCAPE,        /* likewise */
        LITERAL,       /* inside true, false, null */
        MINUS,         /* a digit must come */
        ZERO,          /* behind a leading zero */
        DIGITS,        /* integer digits */
        POINT,         /* a digit must come */
        FRACTION,      /* fraction digits */
        EXPONENT,      /* a sign or digit must come */
        EXPONENT_SIGN, /* a digit must come */
        EXPONENT_DIGITS,
};

void json_stream_init(struct json_stream *s)
{
        *s = (struct json_stream){.state = VALUE};
}

static bool is_space(char c)
{
        return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static int push(struct json_stream *s, bool object)
{
        if (s->depth == JSON_DEPTH_MAX)
                return BAD;
        uint64_t bit = UINT64_C(1) << (s->depth % 64);
        if (object)
                s->object[s->depth / 64] |= bit;
        else
                s->object[s->depth / 64] &= ~bit;
        s->depth++;
        return object ? FIRST_KEY : FIRST_VALUE;
}

static bool in_object(const struct json_stream *s)
{
        uint32_t top = s->depth - 1;
        return s->object[top / 64] >> (top % 64) & 1;
}

static int pop(struct json_stream *s)
{
        s->depth--;
        return NEXT;
}

static int begin_value(struct json_stream *s, char c)
{
        switch (c) {
        case '"':
                return STRING;
        case '{':
                return push(s, true);
        case '[':
                return push(s, false);
        case 't':
                s->literal = "rue";
                return LITERAL;
        case 'f':
                s->literal = "alse";
                return LITERAL;
        case 'n':
                s->literal = "ull";
                return LITERAL;
        case '-':
                return MINUS;
        case '0':
                return ZERO;
        default:
                return is_digit(c) ? DIGITS : BAD;
        }
}

/* Behind a value. */
static int after_value(struct json_stream *s, char c)
{
        if (is_space(c))
                return NEXT;
        if (s->depth == 0)
                return BAD;
        if (c == ',')
                return in_object(s) ? KEY : VALUE;
        if (c == (in_object(s) ? '}' : ']'))
                return pop(s);
        return BAD;
}

static int in_number(struct json_stream *s, char c)
{
        switch (s->state) {
        case MINUS:
                return c == '0' ? ZERO : is_digit(c) ? DIGITS : BAD;
        case POINT:
                return is_digit(c) ? FRACTION : BAD;
        case EXPONENT:
                if (c == '+' || c == '-')
                        return EXPONENT_SIGN;
                return is_digit(c) ? EXPONENT_DIGITS : BAD;
        case EXPONENT_SIGN:
                return is_digit(c) ? EXPONENT_DIGITS : BAD;
        default:
                break;
        }
        if (is_digit(c) && s->state != ZERO)
                return s->state;
        if (c == '.' && (s->state == ZERO || s->state == DIGITS))
                return POINT;
        if ((c == 'e' || c == 'E') && s->state != EXPONENT_DIGITS)
                return EXPONENT;
        return after_value(s, c);
}

static int in_escape(struct json_stream *s, char c)
{
        int back = s->state == ESCAPE ? STRING : KEY_STRING;
        if (s->hex) {
                bool digit = is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f');
                return !digit ? BAD : --s->hex ? s->state : back;
        }
        if (c == 'u') {
                s->hex = 4;
                return s->state;
        }
        return c && strchr("\"\\/bfnrt", c) ? back : BAD;
}

static int step(struct json_stream *s, char c)
{
        switch (s->state) {
        case VALUE:
                return is_space(c) ? VALUE : begin_value(s, c);
        case FIRST_VALUE:
                return is_space(c) ? FIRST_VALUE : c == ']' ? pop(s) : begin_value(s, c);
        case FIRST_KEY:
                return is_space(c) ? FIRST_KEY : c == '}' ? pop(s) : c == '"' ? KEY_STRING : BAD;
        case KEY:
                return is_space(c) ? KEY : c == '"' ? KEY_STRING : BAD;
        case COLON:
                return is_space(c) ? COLON : c == ':' ? VALUE : BAD;
        case NEXT:
                return after_value(s, c);
        case KEY_ESCAPE:
        case ESCAPE:
                return in_escape(s, c);
        case LITERAL:
                return c != *s->literal ? BAD : *++s->literal ? LITERAL : NEXT;
        default:
                return in_number(s, c);
        }
}

/* The end of a run of plain characters inside a string. */
static size_t skip_plain(const char *p, size_t i, size_t n)
{
        while (i < n && p[i] != '"' && p[i] != '\\' && (unsigned char)p[i] >= 0x20)
                i++;
        return i;
}

/* Feeds p[i] and, inside a string, the plain characters before it; the place behind. */
static size_t advance(struct json_stream *s, const char *p, size_t i, size_t n)
{
        if (s->state != STRING && s->state != KEY_STRING) {
                s->state = (uint8_t)step(s, p[i]);
                return i + 1;
        }
        i = skip_plain(p, i, n);
        if (i == n)
                return n;
        bool key = s->state == KEY_STRING;
        if (p[i] == '"')
                s->state = key ? COLON : NEXT;
        else if (p[i] == '\\')
                s->state = key ? KEY_ESCAPE : ESCAPE;
        else
                s->state = BAD;
        return i + 1;
}

bool json_stream_feed(struct json_stream *s, const char *p, size_t n)
{
        for (size_t i = 0; i < n && s->state != BAD;)
                i = advance(s, p, i, n);
        return s->state != BAD;
}

bool json_stream_in_string(const struct json_stream *s)
{
        return s->state == STRING || s->state == KEY_STRING || s->state == ESCAPE ||
               s->state == KEY_ESCAPE;
}

size_t json_stream_feed_to(struct json_stream *s, uint32_t depth, const char *p, size_t n)
{
        size_t i = 0;
        while (i < n && s->state != BAD) {
                i = advance(s, p, i, n);
                if (s->depth <= depth && !json_stream_in_string(s))
                        break;
        }
        return i;
}

bool json_stream_finish(const struct json_stream *s)
{
        switch (s->state) {
        case NEXT:
        case ZERO:
        case DIGITS:
        case FRACTION:
        case EXPONENT_DIGITS:
                return s->depth == 0;
        default:
                return false;
        }
}
