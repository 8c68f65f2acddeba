/* ed25519.c - see ed25519.h */
#include "base/ed25519.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

int ed25519_public(const unsigned char seed[ED25519_SEED], unsigned char out[ED25519_PUBLIC])
{
        size_t n = ED25519_PUBLIC;
        EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, ED25519_SEED);
        int ok = key && EVP_PKEY_get_raw_public_key(key, out, &n) == 1;
        EVP_PKEY_free(key);
        return ok ? 0 : STENO_ENOMEM;
}

int ed25519_make(
    const unsigned char seed[ED25519_SEED], struct str text, unsigned char out[ED25519_SIGNATURE])
{
        size_t n = ED25519_SIGNATURE;
        EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, ED25519_SEED);
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        int ok = key && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
                 EVP_DigestSign(ctx, out, &n, (const unsigned char *)text.p, text.n) == 1;
        EVP_MD_CTX_free(ctx);
        EVP_PKEY_free(key);
        return ok ? 0 : STENO_ENOMEM;
}

int ed25519_check(const unsigned char key[ED25519_PUBLIC], struct str text,
    const unsigned char signature[ED25519_SIGNATURE])
{
        EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, ED25519_PUBLIC);
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        int rc = STENO_ENOMEM;
        if (k && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, k) == 1)
                rc = EVP_DigestVerify(ctx, signature, ED25519_SIGNATURE,
                         (const unsigned char *)text.p, text.n) == 1;
        EVP_MD_CTX_free(ctx);
        EVP_PKEY_free(k);
        return rc;
}

void ed25519_wipe(void *p, size_t n)
{
        OPENSSL_cleanse(p, n);
}
