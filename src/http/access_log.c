/*
 * access_log.c - see access_log.h.
 */
#include <string.h>

#include "base/env.h"
#include "http/access_log.h"
#include "http/server_core.h"

static int hex_digit(char c)
{
        static const char digits[] = "0123456789abcdef";
        const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
        return at ? (int)(at - digits) : -1;
}

/* The first character, escaped or not, and how many bytes it takes; 0: none is left. An escape may
 * be escaped itself, as often as somebody likes. */
static size_t first_character(struct str s, char *c)
{
        size_t n = 1;
        if (s.n == 0)
                return 0;
        *c = s.p[0];
        if (*c != '%')
                return 1;
        while (n + 2 < s.n && s.p[n] == '2' && s.p[n + 1] == '5')
                n += 2;
        int high = n < s.n ? hex_digit(s.p[n]) : -1, low = n + 1 < s.n ? hex_digit(s.p[n + 1]) : -1;
        if (high < 0 || low < 0)
                return 1;
        *c = (char)(high << 4 | low);
        return n + 2;
}

static bool begins_like(struct str s, const char *head)
{
        for (char c; *head; head++) {
                size_t n = first_character(s, &c);
                if (!n || c != *head)
                        return false;
                s = str_span(s.p + n, s.n - n);
        }
        return true;
}

/* A token in the path may stand where we do not look for it: what begins like one is not told. */
static void put_logged_path(struct jsonw *w, struct str path)
{
        struct buf b;
        buf_init(&b, 0);
        for (size_t i = 0; i < path.n; i++) {
                struct str rest = str_span(path.p + i, path.n - i);
                bool token = begins_like(rest, "~") || begins_like(rest, TOKEN_PREFIX);
                buf_putc(&b, token ? '~' : path.p[i]);
                while (token && i + 1 < path.n && path.p[i + 1] != '/')
                        i++;
        }
        jsonw_str(w, buf_str(&b));
        buf_release(&b);
}

void access_log_request(struct request *r)
{
        struct server *s = r->server;
        struct buf b;
        char at[TIME_TEXT];
        if (!s->log)
                return;
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        time_format(env_real()->now(env_real()), at);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "at", at);
        jsonw_field_cstr(&w, "request", r->id);
        jsonw_field_cstr(&w, "method", r->method ? r->method : "?");
        jsonw_key(&w, "path"); /* without the query: it may hold a signature */
        put_logged_path(&w, r->path);
        jsonw_field_u64(&w, "status", (uint64_t)r->status);
        jsonw_field_cstr(&w, "token", r->who.known ? r->who.token_id : NULL);
        jsonw_field_u64(&w, "ms", (uint64_t)(http_now_us() - r->started_us) / 1000);
        jsonw_object_end(&w);
        buf_putc(&b, '\n');
        if (!b.failed)
                fwrite(b.p, 1, b.n, s->log);
        buf_release(&b);
}
