/* manifest_mend.c - finding and taking out what cannot be read of a manifest (manifest.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/files/conv.h"
#include "store/files/manifest.h"

struct mending {
        struct files_conv *conv;
        int fd;
        bool repair;
        const char *text;
        struct buf kept;
        size_t bad; /* where lines that cannot be read begin, SIZE_MAX: none does */
        struct manifest_damage *damage;
        struct steno_error *err;
};

/* Lines in a row that cannot be read go together. */
static int end_bad(struct mending *m, size_t to)
{
        size_t from = m->bad;
        m->bad = SIZE_MAX;
        if (from == SIZE_MAX || !m->repair)
                return 0;
        return quarantine_bytes(m->conv, m->fd, "artifacts/" MANIFEST_NAME, from, to,
            "lines that cannot be read", m->err);
}

static int take_line(struct mending *m, struct json *j, size_t from, size_t n, bool ended)
{
        struct artifact_info info;
        struct str line = str_span(m->text + from, n);
        int rc = n ? backend_manifest_read(j, line, &info) : 1;
        if (rc < 0)
                return error_nomem(m->err);
        if (rc == 0) {
                m->bad = m->bad == SIZE_MAX ? from : m->bad;
                m->damage->lines += ended;
        } else {
                rc = end_bad(m, from);
                if (n) {
                        buf_put_str(&m->kept, line);
                        buf_putc(&m->kept, '\n');
                }
        }
        m->damage->torn = !ended;
        return rc;
}

static int take_lines(struct mending *m, size_t size)
{
        struct json j;
        int rc = 0;
        json_init(&j);
        for (size_t at = 0; rc == 0 && at < size;) {
                const char *lf = memchr(m->text + at, '\n', size - at);
                size_t n = lf ? (size_t)(lf - m->text) - at : size - at;
                rc = take_line(m, &j, at, n, lf != NULL);
                at += n + 1;
        }
        json_release(&j);
        return rc ? rc : end_bad(m, size);
}

int manifest_mend(struct files_conv *conv, int artifacts, bool repair, struct manifest_damage *out,
    struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct mending m = {
            .conv = conv, .repair = repair, .bad = SIZE_MAX, .damage = out, .err = err};
        char *text = NULL;
        size_t n = 0;
        *out = (struct manifest_damage){0};
        /* Under its lock no line is half written by someone who lives. */
        m.fd = manifest_lock(fs, artifacts, O_RDONLY);
        if (m.fd < 0)
                return m.fd == -ENOENT ? 0 : error_sys(err, m.fd, "opening the manifest");
        buf_init(&m.kept, 0);
        int sys = fs_slurp(fs, artifacts, MANIFEST_NAME, BUF_MAX_DEFAULT, &text, &n);
        int rc = sys ? error_sys(err, sys, "reading the manifest") : 0;
        m.text = text;
        if (rc == 0)
                rc = take_lines(&m, n);
        if (rc == 0)
                rc = buf_check(&m.kept, err);
        if (rc == 0 && repair && (out->lines || out->torn)) {
                sys = fs_replace(fs, artifacts, MANIFEST_NAME, m.kept.p, m.kept.n);
                rc = sys ? error_sys(err, sys, "replacing the manifest") : 0;
        }
        fs->close(fs, m.fd);
        buf_release(&m.kept);
        free(text);
        return rc;
}
