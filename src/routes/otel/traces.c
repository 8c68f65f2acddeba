/*
 * traces.c - POST /v1/traces: spans of OpenTelemetry's exporters, taken in as conversations
 * (otel/otel.h). OTLP/HTTP in JSON, also with gzip; protobuf is refused before it comes here.
 */
#include "routes/handlers.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/gunzip.h"
#include "http/http_limits.h"
#include "otel/otel.h"

static bool unpack(struct request *r)
{
        struct steno_error err = {0};
        struct buf plain;
        const char *how = request_header(r, "Content-Encoding");
        if (!how || !*how || strcasecmp(how, "identity") == 0)
                return true;
        if (strcasecmp(how, "gzip") != 0) {
                request_error(r, 415, "unsupported_media_type", "Content-Encoding must be gzip");
                return false;
        }
        size_t size = 0;
        int rc = gunzip_size(buf_str(&r->body), SERVER_BODY_MAX, &size, &err);
        if (rc) {
                request_failed(r, rc, &err);
                return false;
        }
        if (!request_charge(r, size)) /* a small body may unpack to a large one */
                return false;
        buf_init(&plain, 0);
        rc = gunzip(buf_str(&r->body), size, &plain, &err);
        if (rc) {
                buf_release(&plain);
                request_failed(r, rc, &err);
                return false;
        }
        buf_release(&r->body);
        r->body = plain;
        return true;
}

void traces_take(struct request *r)
{
        struct steno_error err = {0};
        uint64_t left = 0;
        if (!unpack(r))
                return;
        int rc = otel_intake(
            r->store, r->who.project, r->body.n ? r->body.p : "", r->body.n, &left, &err);
        if (rc) {
                request_failed(r, rc, &err);
                return;
        }
        struct jsonw w = jsonw_to(&r->reply);
        jsonw_object(&w);
        jsonw_key(&w, "partialSuccess");
        jsonw_object(&w);
        if (left) {
                char words[120];
                snprintf(words, sizeof words,
                    "%llu spans hold no messages of a model call, so nothing of them is stored",
                    (unsigned long long)left);
                jsonw_field_cstr(&w, "rejectedSpans", "0");
                jsonw_field_cstr(&w, "errorMessage", words);
        }
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        request_reply_json(r, 200);
}
