/*
 * own_export.c - bundles over HTTP, and transcripts of other tools on their way in:
 * GET /api/chat-sessions/:id/export, POST /api/import.
 *
 * An export is written to a temporary file first. So a damaged conversation gives an error, and not
 * an incomplete download.
 */
#include "routes/handlers.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/error.h"
#include "base/named_file.h"
#include "http/spool.h"
#include "http/streams.h"

/* ---- out ---- */

struct spool {
        int fd;
        uint64_t size;
};

static int write_piece(void *ctx, const void *p, size_t n)
{
        struct spool *s = ctx;
        s->size += n;
        return fs_write_all(fs_real(), s->fd, p, n) != 0;
}

static ssize_t read_piece(void *ctx, uint64_t offset, char *p, size_t n)
{
        return fs_pread_all(fs_real(), ((struct spool *)ctx)->fd, p, n, (off_t)offset);
}

static void release_file(void *ctx)
{
        fs_real()->close(fs_real(), ((struct spool *)ctx)->fd);
        free(ctx);
}

static const struct {
        const char *name;
        const char *type;
        const char *file;
} FORMATS[] = {
    {"bundle", "application/zstd", "attachment; filename=\"conversation.tar.zst\""},
    {"html", "text/html; charset=utf-8", "attachment; filename=\"conversation.html\""},
    {"md", "text/markdown; charset=utf-8", "attachment; filename=\"conversation.md\""},
    {"json", "application/json", "attachment; filename=\"conversation.json\""},
};

static int write_export(struct request *r, struct steno_conv *conv, size_t format,
    struct spool *spool, struct steno_error *err)
{
        struct steno_export_options opt = {.size = sizeof opt};
        const char *id = steno_conv_id(conv);
        const char *redact = request_query(r, "redact");
        if (redact && strcmp(redact, "secrets") != 0)
                return error_set(err, STENO_EINVAL, "redact is \"secrets\"");
        if (redact && format > 0)
                return steno_export_redacted(
                    conv, FORMATS[format].name, redact, write_piece, spool, NULL, err);
        opt.redact = redact;
        if (format > 0)
                return steno_export_as(conv, FORMATS[format].name, write_piece, spool, err);
        if (request_flag(r, "partial", false))
                opt.flags |= STENO_EXPORT_PARTIAL;
        return steno_export(r->store, r->who.project, &id, 1, &opt, write_piece, spool, NULL, err);
}

void own_session_export(struct request *r)
{
        struct steno_error err = {0};
        struct spool *spool = NULL;
        size_t format = 0;
        const char *asked = request_query(r, "format");
        while (asked && format < sizeof FORMATS / sizeof *FORMATS &&
               strcmp(asked, FORMATS[format].name) != 0)
                format++;
        if (format == sizeof FORMATS / sizeof *FORMATS) {
                request_error(r, 400, "invalid", "format is bundle, html, md or json");
                return;
        }
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        spool = calloc(1, sizeof *spool);
        if (spool)
                spool->fd = named_file_temp();
        if (!spool || spool->fd < 0) {
                int failed = spool ? error_sys(&err, spool->fd, "making a temporary file")
                                   : error_nomem(&err);
                request_failed(r, failed, &err);
                free(spool);
                steno_conv_close(conv);
                return;
        }
        int rc = write_export(r, conv, format, spool, &err);
        steno_conv_close(conv);
        if (rc) {
                if (rc == STENO_EINTERRUPTED)
                        request_error(r, 507, "full", "there is no room for a temporary file");
                else
                        request_failed(r, rc, &err);
                release_file(spool);
                return;
        }
        request_header_out(r, "Content-Disposition", FORMATS[format].file);
        request_header_out(r, "Content-Security-Policy", "default-src 'none'; sandbox");
        stream_file(r, 200, FORMATS[format].type, spool->size, read_piece, release_file, spool);
}

/* ---- in ---- */

#define HEAD_MAX ((size_t)256 * 1024) /* with fewer a compressed transcript looks like a bundle */

struct body {
        struct request *r;
        uint64_t at;
};

static long body_read(void *ctx, void *p, size_t n)
{
        struct body *b = ctx;
        return spool_read(b->r, &b->at, p, n);
}

static bool is_bundle(struct request *r)
{
        char *head = malloc(HEAD_MAX);
        uint64_t at = 0;
        long got = head ? spool_read(r, &at, head, HEAD_MAX) : 0;
        bool is = got > 0 && steno_is_bundle(head, (size_t)got);
        free(head);
        return is;
}

/* Imports a transcript of another tool; `name` is the name of its file. */
static void import_transcript(struct request *r)
{
        struct steno_importer_options opt = {.size = sizeof opt, .project = r->who.project};
        struct steno_error err = {0};
        const char *name = request_query(r, "name");
        char *report = NULL;
        int rc = STENO_EPROTO;
        int fd = spool_size(r) ? spool_file(r) : 0;
        if (fd < 0)
                rc = error_sys(&err, fd, "writing the body to the disk");
        else if (spool_size(r))
                rc = steno_import_file(
                    r->store, &opt, name && *name ? name : "upload", fd, &report, &err);
        if (rc == STENO_EPROTO)
                request_error(r, 400, "protocol",
                    "the body is neither a bundle nor a transcript that Steno knows");
        else
                request_reply_made(r, rc, report, &err);
}

void own_import(struct request *r)
{
        struct steno_import_options opt = {.size = sizeof opt, .project = r->who.project};
        struct steno_error err = {0};
        struct body body = {.r = r};
        static const char *const CONFLICTS[] = {"skip", "both", "replace", NULL};
        static const int CHOICES[] = {
            STENO_CONFLICT_SKIP, STENO_CONFLICT_BOTH, STENO_CONFLICT_REPLACE};
        unsigned conflict;
        if (!request_choice(r, "on_conflict", CONFLICTS, &conflict))
                return;
        char *report = NULL;
        if (!is_bundle(r)) {
                import_transcript(r);
                return;
        }
        if (request_flag(r, "new_ids", false))
                opt.flags |= STENO_IMPORT_NEW_IDS;
        opt.on_conflict = CHOICES[conflict];
        int rc = steno_import_bundle(r->store, &opt, body_read, &body, &report, &err);
        request_reply_made(r, rc, report, &err);
}
