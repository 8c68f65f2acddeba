/* libcurl.c - see libcurl.h */
#include "base/libcurl.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/library.h"
#include "base/named_file.h"

struct libcurl libcurl;

/* libcurl's one-time setup is not safe to race. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool ready;

static int load(struct steno_error *err)
{
        static const struct library_entry entries[] = {
#define X(name) LIBRARY_ENTRY(curl_##name)
            LIBCURL_CALLS(X)
#undef X
        };
        _Static_assert(sizeof libcurl / sizeof(library_fn) == sizeof entries / sizeof *entries,
            "a function for each entry");
        int rc = library_load(
            "libcurl.so.4", entries, (library_fn *)&libcurl, sizeof entries / sizeof *entries, err);
        if (rc == 0)
                libcurl.global_init(CURL_GLOBAL_DEFAULT);
        return rc;
}

#ifdef STENO_LINKED
/* A libcurl of the system knows where the system keeps them; one inside a static program knows only
 * where the system that it was built on does. */
static const char *system_authorities(void)
{
        static const char *const PLACES[] = {
            "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Alpine, Arch */
            "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora */
            "/etc/pki/tls/certs/ca-bundle.crt",                  /* older ones of that family */
            "/etc/ssl/ca-bundle.pem",                            /* openSUSE */
            "/etc/ssl/cert.pem",
        };
        for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
                int fd = named_file_open(PLACES[i]);
                if (fd < 0)
                        continue;
                close(fd);
                return PLACES[i];
        }
        return NULL;
}
#else
static const char *system_authorities(void)
{
        return NULL;
}
#endif

void libcurl_trust(CURL *e)
{
        const char *file = getenv("SSL_CERT_FILE");
        if (!file || !*file)
                file = system_authorities();
        if (file)
                libcurl.easy_setopt(e, CURLOPT_CAINFO, file);
}

CURL *libcurl_new(void)
{
        CURL *e = libcurl.easy_init();
        if (e)
                libcurl_trust(e);
        return e;
}

const char *libcurl_why(CURLcode code)
{
        if (code == CURLE_SSL_CACERT_BADFILE)
                return "no certificates of authorities can be read; install ca-certificates, or "
                       "name "
                       "a file of them in SSL_CERT_FILE";
        if (code == CURLE_PEER_FAILED_VERIFICATION)
                return "its certificate is not from an authority that this system trusts, or is "
                       "not "
                       "for this name; SSL_CERT_FILE can name a file of authorities";
        /* Memory is not what was short: libcurl 7.88 says so of every line that is longer than its
         * limit of 100 KB. */
        if (code == CURLE_OUT_OF_MEMORY)
                return "a line of its headers is too long";
        return libcurl.easy_strerror(code);
}

int libcurl_need(struct steno_error *err)
{
        pthread_mutex_lock(&mutex);
        int rc = ready ? 0 : load(err);
        ready = rc == 0;
        pthread_mutex_unlock(&mutex);
        return rc;
}
