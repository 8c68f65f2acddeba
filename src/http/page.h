/*
 * page.h - the web page, from the binary.
 *
 * tools/embed-page builds ui/ and writes the result as a table of files: index.html, and assets
 * with a hash of their content in the name. They are served without a token, because they contain
 * no user data.
 */
#ifndef HTTP_PAGE_H
#define HTTP_PAGE_H

#include <stddef.h>

#include "http/request.h"

struct page_file {
        const char *name; /* "index.html", or the asset's */
        const char *type;
        const char *etag; /* with its quotes */
        const unsigned char *raw;
        size_t raw_n;
        const unsigned char *gzip;
        size_t gzip_n;
};

/* Generated. The first is index.html; the last has no name. */
extern const struct page_file PAGE_FILES[];

void page_index(struct request *r);
void page_asset(struct request *r);

#endif
