/* bundle_in.c - a conversation that was unpacked, before this store takes it over (bundle.h) */
#include "store/files/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/files/conv.h"
#include "store/files/files_check.h"
#include "store/files/run.h"

struct verifying {
        struct files_conv *conv;
        const struct fs *fs;
        struct steno_error *err;
};

/* Lines of a file that are too long to be looked at. */
static int measure_lines(struct verifying *v, const char *path, size_t max)
{
        char block[16384];
        uint64_t at = 0, line = 0, longest = 0;
        ssize_t got;
        int fd = v->fs->open(v->fs, v->conv->dir, path, O_RDONLY, 0);
        if (fd < 0)
                return fd == -ENOENT ? 0 : error_sys(v->err, fd, "opening %s", path);
        while ((got = fs_pread_all(v->fs, fd, block, sizeof block, (off_t)at)) > 0) {
                for (char *p = block, *end = block + got; p < end;) {
                        char *lf = memchr(p, '\n', (size_t)(end - p));
                        line += (uint64_t)((lf ? lf : end) - p);
                        longest = line > longest ? line : longest;
                        line = lf ? 0 : line;
                        p = lf ? lf + 1 : end;
                }
                at += (uint64_t)got;
        }
        v->fs->close(v->fs, fd);
        if (got < 0)
                return error_sys(v->err, (int)got, "reading %s", path);
        return longest <= max ? 0
                              : error_set(v->err, STENO_ELIMIT,
                                    "a line of %s has %llu bytes; only a trusted bundle may have "
                                    "more than %zu",
                                    path, (unsigned long long)longest, max);
}

static int measure_run(void *ctx, const char *name)
{
        char path[128];
        snprintf(path, sizeof path, "runs/%s.jsonl", name);
        return measure_lines(ctx, path, BUNDLE_LINE_MAX);
}

/* Records that would take much memory to check. */
static int measure_records(struct verifying *v)
{
        struct lines lines;
        struct record rec;
        struct str line;
        struct stat st;
        uint64_t at;
        int rc;
        int fd = v->fs->open(v->fs, v->conv->dir, "messages.jsonl", O_RDONLY, 0);
        int sys = fd < 0 ? fd : v->fs->fstat(v->fs, fd, &st);
        if (sys)
                return error_sys(v->err, sys, "opening messages.jsonl");
        line_reader_init(&lines, v->fs, fd, 256 * KIB, 0, (uint64_t)st.st_size);
        while ((rc = line_reader_next(&lines, &line, &at, v->err)) == 1) {
                if (!record_peek(line, &rec) || rec.x.n > BUNDLE_X_MAX ||
                    (line.n > BUNDLE_REF_LINE_MAX &&
                        (memmem(rec.x.p, rec.x.n, "\"ref", 4) ||
                            memmem(rec.x.p, rec.x.n, "\"outs\"", 6)))) {
                        rc = error_set(v->err, STENO_EPROTO,
                            "the line at byte %llu of messages.jsonl is not a record that can be "
                            "checked",
                            (unsigned long long)at);
                        break;
                }
        }
        line_reader_release(&lines);
        v->fs->close(v->fs, fd);
        return rc == 2 ? error_set(v->err, STENO_ELIMIT, "a record is too long") : rc;
}

static int refuse_finding(void *ctx, const struct check_finding *f)
{
        struct verifying *v = ctx;
        if (f->lost) /* the record says so itself, and every check of the store will report it */
                return 0;
        return f->seq ? error_set(v->err, STENO_EPROTO, "record %llu: %.150s",
                            (unsigned long long)f->seq, f->what)
                      : error_set(v->err, STENO_EPROTO, "%.180s", f->what);
}

int bundle_verify(struct files_conv *conv, bool trusted, struct steno_error *err)
{
        struct steno_error why = {0};
        struct verifying v = {.conv = conv, .fs = conv->store->env->fs, .err = err ? err : &why};
        int rc = 0;
        if (!trusted) {
                rc = measure_lines(&v, "messages.jsonl", BUNDLE_LINE_MAX);
                if (rc == 0)
                        rc = measure_lines(&v, "artifacts/manifest.jsonl", BUNDLE_LISTED_MAX);
                if (rc == 0)
                        rc = run_each(conv, measure_run, &v, v.err);
                if (rc == 0)
                        rc = measure_records(&v);
        }
        return rc ? rc : files_check_conv(conv, false, refuse_finding, &v, v.err);
}
