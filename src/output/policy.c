/* policy.c - see policy.h */
#include "output/policy.h"

#include <string.h>

#include "base/text.h"
#include "output/stub.h"

static uint64_t limit_or(uint64_t given, uint64_t fallback)
{
        if (given == 0)
                return fallback;
        return given < INLINE_BYTES_FLOOR ? INLINE_BYTES_FLOOR : given;
}

static const struct {
        const char *name;
        uint64_t chars;
        uint64_t bytes;
        bool path;
} profiles[] = {
#define POLICY_ROW(id, name, chars, bytes, path) {name, chars, bytes, path},
    POLICY_PROFILES(POLICY_ROW)
#undef POLICY_ROW
};

void policy_init(
    struct policy *p, enum policy_profile profile, uint64_t max_chars, uint64_t max_bytes)
{
        p->profile = profile;
        p->max_chars = limit_or(max_chars, profiles[profile].chars);
        p->max_bytes = limit_or(max_bytes, profiles[profile].bytes);
}

bool policy_profile_parse(struct str name, enum policy_profile *out)
{
        int i = name.n == 0 ? POLICY_DEFAULT : 0;
        while (name.n && i < POLICY_PROFILE_COUNT && !str_is(name, profiles[i].name))
                i++;
        if (i == POLICY_PROFILE_COUNT)
                return false;
        *out = (enum policy_profile)i;
        return true;
}

const char *policy_profile_name(enum policy_profile profile)
{
        return profiles[profile].name;
}

bool policy_names_path(const struct policy *p)
{
        return profiles[p->profile].path;
}

static size_t length_by_lead(unsigned char c)
{
        return c < 0xC2 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 1;
}

/* Returns the number of bytes at the end that begin a sequence which the next piece may
 * complete. */
static size_t open_end(const char *p, size_t n)
{
        for (size_t back = 1; back <= 3 && back <= n; back++) {
                unsigned char c = (unsigned char)p[n - back];
                if (c < 0x80)
                        return 0;
                if (c >= 0xC0)
                        return length_by_lead(c) > back ? back : 0;
        }
        return 0;
}

void policy_count_feed(struct policy_count *c, const void *bytes, size_t n)
{
        const char *p = bytes;
        c->bytes += n;
        while (c->have && n) {
                c->pending[c->have++] = (unsigned char)*p++;
                n--;
                if (c->have < length_by_lead(c->pending[0]))
                        continue;
                /* An invalid sequence may contain the beginning of a valid one. */
                size_t keep = open_end((const char *)c->pending, c->have);
                c->chars += text_count((const char *)c->pending, c->have - keep);
                memmove(c->pending, c->pending + c->have - keep, keep);
                c->have = (unsigned char)keep;
        }
        if (n == 0)
                return;
        size_t keep = open_end(p, n);
        c->chars += text_count(p, n - keep);
        memcpy(c->pending, p + n - keep, keep);
        c->have = (unsigned char)keep;
}

uint64_t policy_count_chars(const struct policy_count *c)
{
        return c->chars + text_count((const char *)c->pending, c->have);
}

bool policy_passed(const struct policy *p, const struct policy_count *c)
{
        /* An incomplete sequence becomes at least one character. */
        return c->bytes > p->max_bytes || c->chars + (c->have > 0) > p->max_chars;
}

bool policy_is_large(const struct policy *p, struct str text)
{
        struct policy_count c = {0};
        if (text.n <= p->max_bytes && text.n <= p->max_chars)
                return false;
        if (policy_is_stub(text))
                return false;
        if (text.n > p->max_bytes)
                return true;
        policy_count_feed(&c, text.p, text.n);
        return policy_count_chars(&c) > p->max_chars;
}

/* ---- our own stubs ---- */

static bool is_ref_char(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_' || c == '-';
}

static struct str last_line(struct str text)
{
        while (text.n && text.p[text.n - 1] == '\n')
                text.n--;
        const char *nl = text.n ? memrchr(text.p, '\n', text.n) : NULL;
        return nl ? str_span(nl + 1, text.n - (size_t)(nl + 1 - text.p)) : text;
}

/* Is it "[INCOMPLETE: <size> of <size> shown; the rest is in ctx_...]", or "[NOT UTF-8: ..."? */
static bool is_first_line(struct str line)
{
        bool whole = str_starts(line, POLICY_NOT_UTF8);
        const char *middle = whole ? POLICY_NOT_UTF8_IN : " shown; the rest is in ";
        if (line.p[line.n - 1] != ']')
                return false;
        const char *at = memmem(line.p, line.n, middle, strlen(middle));
        if (!at || !str_starts(str_span(at + strlen(middle), 4), "ctx_"))
                return false;
        for (const char *p = at + strlen(middle); p < line.p + line.n - 1; p++) {
                if (!is_ref_char(*p))
                        return false;
        }
        return true;
}

bool policy_is_stub(struct str text)
{
        if (text.n == 0 || text.n > STUB_MAX)
                return false;
        struct str last = last_line(text);
        const char *nl = memchr(text.p, '\n', text.n);
        struct str first = nl ? str_span(text.p, (size_t)(nl - text.p)) : text;
        if (str_starts(first, POLICY_NOT_UTF8))
                return nl && is_first_line(first);
        if (str_starts(first, "[INCOMPLETE: "))
                return is_first_line(first) && (!nl || str_starts(last, "More: "));
        return str_starts(last, "[Full output: @state/logs/tool-results/") &&
               last.p[last.n - 1] == ']' && last.p - text.p >= 2 && last.p[-2] == '\n';
}
