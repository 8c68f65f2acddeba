/*
 * bench_s3.c - how fast bytes go into the bucket of STENO_BLOBS and come back.
 *
 *   STENO_BLOBS=s3://... bench_s3      (without it: nothing)
 *
 * 256 MiB as the store sends and fetches them; tests/store/s3.long.test has curl beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "bench.h"
#include "store/blobs/blobs.h"

#define SIZE (256u << 20)
#define BLOCK (1u << 20)
#define ROUNDS 5

static int add(void *ctx, const void *p, size_t n)
{
        (void)p;
        *(size_t *)ctx += n;
        return 0;
}

int main(void)
{
        const char *url = getenv("STENO_BLOBS");
        struct steno_error err = {0};
        struct blobs *b;
        double put[ROUNDS], get[ROUNDS];
        char *block = malloc(BLOCK);
        if (!url || !*url || !block)
                return 0;
        for (size_t i = 0; i < BLOCK; i++)
                block[i] = (char)(i * 2654435761u >> 13);
        if (blobs_open(env_real(), url, &b, &err))
                die(url, err.msg);
        for (int i = 0; i < ROUNDS; i++) {
                char key[BLOBS_KEY], etag[BLOBS_ETAG];
                struct blobs_upload *u;
                size_t got = 0;
                double t = now();
                int rc = blobs_key(b, "bench", key, &err);
                if (rc == 0)
                        rc = blobs_upload_begin(b, key, SIZE, &u, &err);
                for (size_t at = 0; rc == 0 && at < SIZE; at += BLOCK)
                        rc = blobs_upload_write(u, block, BLOCK, &err);
                if (rc == 0)
                        rc = blobs_upload_end(u, etag, &err);
                put[i] = SIZE / (now() - t) / 1e6;
                t = now();
                if (rc == 0)
                        rc = blobs_stream(b, key, etag, SIZE, add, &got, &err);
                get[i] = SIZE / (now() - t) / 1e6;
                if (rc == 0)
                        rc = blobs_remove(b, key, "", &err);
                if (rc)
                        die("transfer", err.msg);
        }
        printf("{\"putMBs\":%.0f,\"getMBs\":%.0f}\n", median(put, ROUNDS), median(get, ROUNDS));
        blobs_close(b);
        free(block);
        return 0;
}
