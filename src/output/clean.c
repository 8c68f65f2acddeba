/* clean.c - see clean.h */
#include "output/clean.h"

#include <stdint.h>
#include <strings.h>

#include "base/json.h"
#include "base/text.h"
#include "output/cut.h"

/* Returns what a terminal would still show: the text behind the last CR that has text behind it. */
static struct str last_state(struct str line)
{
        while (line.n && line.p[line.n - 1] == '\r')
                line.n--;
        const char *cr = line.n ? memrchr(line.p, '\r', line.n) : NULL;
        return cr ? str_span(cr + 1, line.n - (size_t)(cr + 1 - line.p)) : line;
}

static bool is_shown_as_escape(uint32_t cp)
{
        return (cp < 0x20 && cp != '\t') || (cp >= 0x7F && cp < 0xA0) || cp == 0x2028 ||
               cp == 0x2029 || (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069);
}

static void put_visible(struct buf *out, struct str s)
{
        size_t from = 0;
        for (size_t i = 0; i < s.n;) {
                uint32_t cp = 0;
                unsigned char c = (unsigned char)s.p[i];
                if (c >= 0x20 && c < 0x7F) {
                        i++;
                        continue;
                }
                size_t len = text_decode(s.p + i, s.n - i, &cp);
                bool bad = cp == 0xFFFD && len == 1;
                if (bad || is_shown_as_escape(cp)) {
                        buf_put(out, s.p + from, i - from);
                        if (bad)
                                buf_printf(out, "\\x%02X", c);
                        else
                                buf_printf(out, "\\u%04x", (unsigned)cp);
                        from = i + len;
                }
                i += len;
        }
        buf_put(out, s.p + from, s.n - from);
}

void clean_put(struct buf *out, struct str line)
{
        struct buf plain;
        line = last_state(line);
        if (line.n == 0)
                return;
        if (!memchr(line.p, 0x1B, line.n) && !memchr(line.p, 0xC2, line.n)) {
                put_visible(out, line);
                return;
        }
        buf_init(&plain, 0);
        text_strip_ansi(&plain, line);
        if (plain.failed)
                out->failed = plain.failed;
        put_visible(out, buf_str(&plain));
        buf_release(&plain);
}

/* ---- the guard ---- */

static bool is_invisible(uint32_t cp)
{
        return cp == ' ' || cp == '\t' || cp == 0xA0 || cp == 0xAD || cp == 0x034F ||
               cp == 0x061C || cp == 0x1680 || cp == 0x180E || (cp >= 0x2000 && cp <= 0x200F) ||
               cp == 0x202F || (cp >= 0x205F && cp <= 0x2064) || cp == 0x3000 || cp == 0xFEFF ||
               cp == 0x2800 || cp == 0x3164 || cp == '\\';
}

static bool is_dash(uint32_t cp)
{
        return cp == '-' || (cp >= 0x2010 && cp <= 0x2015) || cp == 0x2212 || cp == 0xFE58 ||
               cp == 0xFE63 || cp == 0xFF0D || cp == 0x2500 || cp == 0x2501;
}

static struct str skip(struct str s, bool (*which)(uint32_t), size_t *count)
{
        *count = 0;
        while (s.n) {
                uint32_t cp = 0;
                size_t len = text_decode(s.p, s.n, &cp);
                if (!which(cp))
                        break;
                s.p += len;
                s.n -= len;
                (*count)++;
        }
        return s;
}

static bool starts_any(struct str s, const char *const *words)
{
        for (; *words; words++) {
                size_t n = strlen(*words);
                if (s.n >= n && strncasecmp(s.p, *words, n) == 0)
                        return true;
        }
        return false;
}

bool clean_looks_framed(struct str line)
{
        static const char *const sections[] = {
            "head", "errors", "outline", "tail", "first bytes", "end", NULL};
        static const char *const openings[] = {"[INCOMPLETE", "[NOT UTF-8", "[Full output",
            "More:", "More :", "tool:", "\xEF\xBC\xBBINCOMPLETE", "More\xEF\xBC\x9A", NULL};
        size_t count = 0;
        struct str s = skip(line, is_invisible, &count);
        if (starts_any(s, openings))
                return true;
        s = skip(s, is_dash, &count);
        if (count < 2)
                return false;
        s = skip(s, is_invisible, &count);
        return starts_any(s, sections);
}

/* ---- names ---- */

static bool is_plain(struct str name)
{
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];
                bool word =
                    (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                if (!word && (c == 0 || strchr("_.:/@-", c) == NULL))
                        return false;
        }
        return name.n > 0;
}

void clean_put_name(struct buf *out, struct str name, size_t max)
{
        struct buf visible;
        bool cut = name.n > max;
        if (cut)
                name.n = cut_before(name.p, name.n, max);
        if (is_plain(name)) {
                buf_put_str(out, name);
                buf_puts(out, cut ? "..." : "");
                return;
        }
        buf_init(&visible, 0);
        put_visible(&visible, name);
        buf_puts(&visible, cut ? "..." : "");
        if (visible.failed)
                out->failed = visible.failed;
        json_put_string(out, buf_str(&visible));
        buf_release(&visible);
}
