/*
 * trust.c - hashes of files by their resolved path.
 */
#include "loop/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "loop/config.h"

#define TRUST_FILE "trusted.json"

/* The list of files, parsed; an absent one is empty. */
struct list {
        char *text;
        struct json j;
};

static void list_release(struct list *l)
{
        json_release(&l->j);
        free(l->text);
}

static int list_read(struct list *l, const char *home, struct steno_error *err)
{
        char *path = NULL;
        size_t n = 0;

        l->text = NULL;
        json_init(&l->j);
        if (asprintf(&path, "%s/" TRUST_FILE, home) < 0)
                return error_nomem(err);
        int rc = config_slurp(path, &l->text, &n, err);
        if (rc == STENO_ENOTFOUND)
                rc = 0;
        else if (rc == 0 && json_parse(&l->j, l->text, n, NULL, err) < 0)
                rc = error_prefix(err, STENO_ECORRUPT, "%.100s", path);
        free(path);
        return rc;
}

static json_ref list_files(const struct list *l)
{
        return l->text ? json_get(&l->j, 0, "files") : JSON_NONE;
}

bool trust_is_link(const char *path)
{
        struct stat st;

        return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* The folder's real path with the file's own name behind it. With realpath() of the whole path, a
 * link would be trusted like the file that it points to. */
static char *resolve(const char *path, struct steno_error *err)
{
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
        char *real = folder ? realpath(folder, NULL) : NULL;
        char *whole = NULL;

        if (!real)
                error_sys(err, errno, "%.160s", path);
        else if (trust_is_link(path))
                error_set(err, STENO_EDENIED,
                    "%.120s is a symbolic link, which cannot be trusted; put a copy of the file in "
                    "its place",
                    path);
        else if (access(path, F_OK) < 0)
                error_sys(err, errno, "%.160s", path);
        else if (asprintf(&whole, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0)
                whole = NULL;
        free(folder);
        free(real);
        return whole;
}

bool trust_holds(const char *home, const char *path, struct str text, struct steno_error *err)
{
        struct list l;
        char hash[SHA256_HEX];
        char *real = resolve(path, err);
        bool holds = false;

        if (!real)
                return false;
        if (list_read(&l, home, err) == 0 && hash_sha256_hex(text.p, text.n, hash) == 0)
                holds = json_is(&l.j, json_get(&l.j, list_files(&l), real), hash);
        list_release(&l);
        free(real);
        return holds;
}

/* The list with one entry set (or without it, when `hash` is NULL). */
static void put_list(struct buf *b, const struct list *l, const char *path, const char *hash)
{
        struct jsonw w = jsonw_to(b);
        json_ref files = list_files(l);

        jsonw_object(&w);
        jsonw_key(&w, "files");
        jsonw_object(&w);
        for (json_ref k = json_child(&l->j, files); k != JSON_NONE;
             k = json_next_key(&l->j, files, k)) {
                struct buf name;
                if (json_is(&l->j, k, path))
                        continue;
                buf_init(&name, 0);
                json_string(&l->j, k, &name, NULL);
                jsonw_key_str(&w, buf_str(&name));
                jsonw_raw(&w, json_raw(&l->j, json_value(&l->j, k)));
                buf_release(&name);
        }
        if (hash) {
                jsonw_key_str(&w, str_of(path));
                jsonw_cstr(&w, hash);
        }
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        buf_putc(b, '\n');
}

/* Makes the directory and its parents, private. */
static int open_home(const char *home, struct steno_error *err)
{
        char *path = strdup(home);
        int fd = -1;

        if (!path)
                return error_nomem(err);
        for (char *p = path + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = '\0';
                mkdir(path, 0700);
                *p = '/';
        }
        mkdir(path, 0700);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int sys = errno;
        free(path);
        return fd < 0 ? error_sys(err, sys, "%.160s", home) : fd;
}

static int change(const char *home, const char *real, const char *hash, struct steno_error *err)
{
        struct list l = {0};
        struct buf b;
        int dir = open_home(home, err);

        if (dir < 0)
                return dir;
        buf_init(&b, CONFIG_FILE_MAX);
        json_init(&l.j);
        /* Two processes that record trust at the same time must not lose each other's entry. */
        int rc = fs_real()->flock(fs_real(), dir, LOCK_EX);
        rc = rc < 0 ? error_sys(err, rc, "%.160s", home) : list_read(&l, home, err);
        if (rc == 0) {
                put_list(&b, &l, real, hash);
                rc = buf_check(&b, err);
        }
        if (rc == 0) {
                rc = fs_replace(fs_real(), dir, TRUST_FILE, b.p, b.n);
                if (rc < 0)
                        rc = error_sys(err, rc, "%.160s/" TRUST_FILE, home);
        }
        close(dir);
        list_release(&l);
        buf_release(&b);
        return rc;
}

int trust_record(const char *home, const char *path, char **out, struct steno_error *err)
{
        char hash[SHA256_HEX];
        char *text = NULL;
        size_t n;
        char *real = resolve(path, err);

        if (!real && trust_is_link(path))
                return STENO_EDENIED;
        if (!real)
                return err && err->sys == ENOENT
                           ? error_set(err, STENO_ENOTFOUND, "%.160s: no such file", path)
                           : STENO_EIO;
        /* The list is JSON: a path that is not UTF-8 would be changed in it, and then the file
         * would not be trusted. */
        int rc = text_is_utf8(real, strlen(real))
                     ? config_slurp(real, &text, &n, err)
                     : error_set(err, STENO_EINVAL, "%.160s: its path is not UTF-8", real);
        struct json_fault fault = {0};
        if (rc == 0 && !json_valid(text, n, &fault))
                rc = error_set(err, STENO_EPROTO, "%.140s is not JSON: byte %zu: %s", real,
                    fault.offset, fault.what ? fault.what : "it cannot be read");
        if (rc == 0 && hash_sha256_hex(text, n, hash) < 0)
                rc = error_nomem(err);
        if (rc == 0)
                rc = change(home, real, hash, err);
        if (rc == 0 && out) {
                *out = strdup(hash);
                rc = *out ? 0 : error_nomem(err);
        }
        free(text);
        free(real);
        return rc;
}

int trust_forget(const char *home, const char *path, struct steno_error *err)
{
        struct steno_error ignored = {0};
        char *real = resolve(path, &ignored);
        int rc = change(home, real ? real : path, NULL, err);

        free(real);
        return rc;
}
