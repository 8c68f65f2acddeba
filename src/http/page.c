/* page.c - see page.h */
#include "http/page.h"

#include <string.h>

/*
 * Nothing but our own files, and no way from text to markup or code: what a model or a tool wrote
 * is data on this page. Styles are set through the object model only; data: and blob: are for the
 * images that tools return. The one policy of trusted types passes the addresses of the page's two
 * workers and nothing else.
 */
#define POLICY                                                                                     \
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "            \
        "worker-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; "     \
        "frame-ancestors 'none'; require-trusted-types-for 'script'; "                             \
        "trusted-types steno-worker"

static bool takes_gzip(struct request *r)
{
        const char *a = request_header(r, "Accept-Encoding");
        const char *at = a ? strstr(a, "gzip") : NULL;
        return at && strncmp(at, "gzip;q=0", 8) != 0;
}

static void send_file(struct request *r, const struct page_file *f, const char *cache)
{
        const char *known = request_header(r, "If-None-Match");
        request_header_out(r, "ETag", f->etag);
        request_header_out(r, "Cache-Control", cache);
        request_header_out(r, "Vary", "Accept-Encoding");
        request_header_out(r, "Content-Security-Policy", POLICY);
        request_header_out(r, "X-Frame-Options", "DENY");
        request_header_out(r, "Cross-Origin-Opener-Policy", "same-origin");
        r->counted = true; /* the caching is said above */
        if (known && strcmp(known, f->etag) == 0) {
                r->status = 304;
                return;
        }
        r->status = 200;
        r->content_type = f->type;
        if (takes_gzip(r)) {
                request_header_out(r, "Content-Encoding", "gzip");
                r->still = str_span((const char *)f->gzip, f->gzip_n);
        } else {
                r->still = str_span((const char *)f->raw, f->raw_n);
        }
}

void page_index(struct request *r)
{
        send_file(r, &PAGE_FILES[0], "no-cache");
}

void page_asset(struct request *r)
{
        for (const struct page_file *f = PAGE_FILES; f->name; f++) {
                if (str_is(r->params[0], f->name)) {
                        send_file(r, f, "public, max-age=31536000, immutable");
                        return;
                }
        }
        request_error(r, 404, "not_found", "no such file");
}
