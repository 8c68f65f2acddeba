/*
 * libcurl.h - libcurl, loaded when something is sent for the first time: libcurl.easy_init() is
 * curl_easy_init(), and so on.
 */
#ifndef BASE_LIBCURL_H
#define BASE_LIBCURL_H

#include <curl/curl.h>

#include "steno.h"

#define LIBCURL_CALLS(X)                                                                           \
        X(easy_cleanup)                                                                            \
        X(easy_getinfo)                                                                            \
        X(easy_init)                                                                               \
        X(easy_perform)                                                                            \
        X(easy_reset)                                                                              \
        X(easy_setopt)                                                                             \
        X(easy_strerror)                                                                           \
        X(getdate)                                                                                 \
        X(global_init)                                                                             \
        X(multi_add_handle)                                                                        \
        X(multi_cleanup)                                                                           \
        X(multi_info_read)                                                                         \
        X(multi_init)                                                                              \
        X(multi_perform)                                                                           \
        X(multi_poll)                                                                              \
        X(multi_remove_handle)                                                                     \
        X(multi_setopt)                                                                            \
        X(multi_wakeup)                                                                            \
        X(slist_append)                                                                            \
        X(slist_free_all)

struct libcurl {
#define X(name) __typeof__(curl_##name) *name;
        LIBCURL_CALLS(X)
#undef X
};

extern struct libcurl libcurl;

/* Loads it and sets it up, once; from any thread. Nothing above may be called before. */
int libcurl_need(struct steno_error *err);

/* curl_easy_init() with the certificates of authorities: those of SSL_CERT_FILE, else of the
 * system. */
CURL *libcurl_new(void);
/* The same certificates, for a handle that was reset. */
void libcurl_trust(CURL *e);
/* Why a transfer failed, in words that say what to do where that is known. */
const char *libcurl_why(CURLcode code);

#endif
