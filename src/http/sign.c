/* sign.c - see sign.h */
#include "http/sign.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"
#include "http/server_core.h"
#include "http/http_limits.h"

static void mac(
    struct server *s, struct str path, const char *project, int64_t expires, char hex[65])
{
        struct buf text;
        unsigned char sum[EVP_MAX_MD_SIZE];
        unsigned n = 0;
        buf_init(&text, 64 * KIB);
        buf_put_str(&text, path);
        buf_printf(&text, "\n%s\n%lld", project, (long long)expires);
        hex[0] = '\0';
        if (!text.failed && HMAC(EVP_sha256(), s->signing_key, sizeof s->signing_key,
                                (unsigned char *)text.p, text.n, sum, &n))
                hash_hex(sum, n, hex);
        buf_release(&text);
}

void sign_put(
    struct server *s, struct str path, const char *project, struct buf *out, int64_t *expires)
{
        char hex[65];
        const struct env *env = env_real();
        *expires = env->now(env) / 1000 + SERVER_SIGNED_SECONDS;
        mac(s, path, project, *expires, hex);
        buf_printf(out, "?exp=%lld&prj=", (long long)*expires);
        for (const char *p = project; *p; p++)
                buf_printf(out, "%%%02x", (unsigned char)*p);
        buf_printf(out, "&sig=%s", hex);
}

bool sign_check(struct request *r)
{
        char hex[65];
        const char *sig = request_query(r, "sig");
        const char *exp = request_query(r, "exp");
        const char *project = request_query(r, "prj");
        if (!sig || !exp || !project || strlen(sig) != 64 ||
            strlen(project) >= sizeof r->who.project)
                return false;
        int64_t expires = strtoll(exp, NULL, 10);
        mac(r->server, r->path, project, expires, hex);
        if (!hex[0] || CRYPTO_memcmp(hex, sig, 64) != 0 ||
            env_real()->now(env_real()) / 1000 > expires)
                return false;
        snprintf(r->who.project, sizeof r->who.project, "%s", project);
        return true;
}
