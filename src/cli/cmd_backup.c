/*
 * cmd_backup.c - steno backup and steno restore: a consistent copy of a store that is being
 * written, and a store from one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/named_file.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/term.h"

/* Is the place for the copy inside the store? The folder itself may not exist yet. */
static bool is_inside(const char *store, const char *path)
{
        char *root = realpath(store, NULL), *at = named_file_absolute(path), *real = NULL;
        while (at && at[0] && !(real = realpath(at, NULL))) {
                char *slash = strrchr(at, '/');
                if (slash == at)
                        break;
                *slash = '\0';
        }
        size_t n = root ? strlen(root) : 0;
        bool inside =
            root && real && strncmp(real, root, n) == 0 && (real[n] == '\0' || real[n] == '/');
        free(root);
        free(at);
        free(real);
        return inside;
}

/* A folder, unless there is a file or the name is that of one. */
static bool is_file(const char *path)
{
        static const char END[] = ".zst";
        struct stat st;
        size_t n = strlen(path);

        if (strcmp(path, "-") == 0)
                return true;
        if (stat(path, &st) == 0)
                return !S_ISDIR(st.st_mode);
        return n > sizeof(END) - 1 && strcmp(path + n - (sizeof(END) - 1), END) == 0;
}

/* ---- into one file ---- */

/* A folder for one conversation at a time. It is beside the file, because that disk has to have
 * room anyway. */
struct scratch {
        char *parent;
        char *name;
        char *path;
};

static bool scratch_make(struct scratch *s, const char *path)
{
        const char *tmp = getenv("TMPDIR");
        struct stat st;
        bool beside = strcmp(path, "-") != 0 && (stat(path, &st) != 0 || S_ISREG(st.st_mode));
        char *full = beside ? named_file_absolute(path) : NULL;
        char *slash = full ? strrchr(full, '/') : NULL;
        int n = 0;

        *s = (struct scratch){0};
        if (beside && slash == NULL)
                n = -1;
        else if (beside)
                n = asprintf(&s->parent, "%.*s", slash == full ? 1 : (int)(slash - full), full);
        else
                n = asprintf(&s->parent, "%s", tmp && *tmp ? tmp : "/tmp");
        if (n >= 0)
                n = beside ? asprintf(&s->name, ".%s.scratch", slash + 1)
                           : asprintf(&s->name, "steno-backup-%ld", (long)getpid());
        if (n >= 0)
                n = asprintf(&s->path, "%s/%s", s->parent, s->name);
        free(full);
        return n >= 0;
}

static void scratch_remove(const struct scratch *s)
{
        const struct fs *fs = fs_real();
        int dir = fs->open_root(fs, s->parent, false);

        if (dir < 0)
                return;
        fs_remove_tree(fs, dir, s->name);
        fs->close(fs, dir);
}

static void scratch_free(struct scratch *s)
{
        free(s->parent);
        free(s->name);
        free(s->path);
}

static int take_bytes(void *ctx, const void *p, size_t n)
{
        return named_file_write(ctx, p, n, interrupt_pending);
}

/* Refuses to replace a file that is not a backup, because that is probably a mistake. */
static int check_place(struct cli *c, const char *path)
{
        static const unsigned char ZSTD[] = {0x28, 0xb5, 0x2f, 0xfd};
        unsigned char begin[sizeof ZSTD];
        struct stat st;
        if (strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !st.st_size)
                return 0;
        int fd = named_file_open(path);
        long got = fd < 0 ? -1 : fs_pread_all(fs_real(), fd, begin, sizeof begin, 0);
        if (fd >= 0)
                fs_real()->close(fs_real(), fd);
        if (got == (long)sizeof begin && memcmp(begin, ZSTD, sizeof ZSTD) == 0)
                return 0;
        return cli_refuse(c, EXIT_REFUSED,
            "%s exists and is not a backup of Steno: name another file, or remove it first", path);
}

/* Prints the report. Damage in the store gives the same exit code as for check. */
static int print_report(struct cli *c, char *report)
{
        struct json j;
        uint64_t damaged = 0;

        json_init(&j);
        if (report && json_parse(&j, report, strlen(report), NULL, NULL) == 0)
                json_u64(&j, json_get(&j, 0, "damaged"), &damaged);
        json_release(&j);
        int rc = cli_print_json(c, report);
        if (damaged > 0)
                cli_say(c, "%llu item%s of the store %s damaged or lost: see steno check",
                    (unsigned long long)damaged, damaged == 1 ? "" : "s",
                    damaged == 1 ? "is" : "are");
        return rc == EXIT_DONE && damaged > 0 ? EXIT_CORRUPT : rc;
}

static int backup_to_file(struct cli *c, const char *path)
{
        int refused = check_place(c, path);
        if (refused)
                return refused;
        struct steno_error err = {0};
        struct term_progress bar;
        struct scratch s;
        struct named_file f;
        char *report = NULL;

        if (!scratch_make(&s, path)) {
                scratch_free(&s);
                return cli_refuse(c, EXIT_IO, "out of memory");
        }
        int sys = named_file_begin(&f, path);
        int rc = sys != 0 ? sys : 0;
        term_progress_init(&bar, c->quiet);
        if (sys == 0) {
                scratch_remove(&s); /* of one that was killed */
                rc = steno_backup_stream(
                    c->store, s.path, take_bytes, &f, term_progress_step, &bar, &report, &err);
                scratch_remove(&s);
        }
        term_progress_end(&bar);
        int closed = named_file_end(&f, rc == 0);
        scratch_free(&s);
        if (rc == 0 && closed == 0 && strcmp(path, "-") != 0)
                return print_report(c, report);
        steno_free(report);
        if (sys != 0 || closed != 0)
                return cli_refuse(
                    c, EXIT_IO, "cannot write %s: %s", path, strerror(-(sys ? sys : closed)));
        return rc == 0 ? EXIT_DONE : cli_fail(c, &err);
}

struct backup_opts {
        bool verify;
};

static int run_backup(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct backup_opts *o = opts;
        struct steno_backup_options opt = {.size = sizeof(opt), .verify = o->verify};
        struct steno_error err = {0};
        struct term_progress bar;
        char *report = NULL;

        (void)argc;
        if (o->verify && is_file(argv[0]))
                return cli_usage(
                    c, "--verify needs a folder: a backup file is always written completely");
        int rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc != 0)
                return rc;
        if (is_inside(cli_store_path(c), argv[0]))
                return cli_refuse(c, EXIT_REFUSED,
                    "%s is inside the store: choose a place outside of it", argv[0]);
        if (is_file(argv[0]))
                return backup_to_file(c, argv[0]);
        term_progress_init(&bar, c->quiet);
        opt.progress = term_progress_step;
        opt.progress_ctx = &bar;
        rc = steno_backup_with(c->store, argv[0], &opt, &report, &err);
        term_progress_end(&bar);
        return rc < 0 ? cli_fail(c, &err) : print_report(c, report);
}

static const struct opt backup_table[] = {
    {"verify", 0, OPT_FLAG, NULL, offsetof(struct backup_opts, verify),
        "read everything that an earlier backup copied, and copy again what is damaged"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_backup = {
    .name = "backup",
    .group = GROUP_KEEP,
    .usage = "DIR|FILE",
    .summary = "copies the store into a folder or a file, also while it is in use",
    .detail =
        "The copy has everything that was acknowledged before the backup began, and every ref in\n"
        "it has its bytes. A second backup into the same folder copies what has changed and\n"
        "removes what was purged. steno --store DIR check verifies a backup; steno restore makes\n"
        "a store from it. If the store itself is damaged, the report says where, and the exit\n"
        "code is 4. A flipped bit in the backup does not change a file's time: only --verify and\n"
        "check find it.\n\n"
        "If the name ends in .zst or is that of a file, the backup is one .tar.zst; - is standard\n"
        "output. This needs free space beside the file for the largest conversation.",
    .example = "steno backup /mnt/backup/steno\n"
               "steno backup --verify /mnt/backup/steno\n"
               "steno backup monday.tar.zst",
    .opts = backup_table,
    .opts_size = sizeof(struct backup_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_backup,
};

struct restore_opts {
        const char *into;
};

static long read_bytes(void *ctx, void *p, size_t n)
{
        ssize_t got;

        do
                got = read(*(int *)ctx, p, n);
        while (got < 0 && errno == EINTR && !interrupt_pending());
        return got < 0 ? -errno : (long)got;
}

static int restore_file(struct cli *c, const char *path, const char *into)
{
        struct steno_error err = {0};
        char *report = NULL;
        int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : named_file_open(path);

        if (fd < 0)
                return cli_refuse(c, fd == -ENOENT ? EXIT_NOT_FOUND : EXIT_IO, "cannot open %s: %s",
                    path, strerror(-fd));
        if (fd != STDIN_FILENO)
                named_file_wait(fd);
        int rc = steno_restore_stream(read_bytes, &fd, into, &report, &err);
        if (fd != STDIN_FILENO)
                close(fd);
        return rc < 0 ? cli_fail(c, &err) : cli_print_json(c, report);
}

static int run_restore(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct restore_opts *o = opts;
        struct steno_error err = {0};
        const char *into = o->into ? o->into : cli_store_url(c);
        char *report = NULL;

        (void)argc;
        if (into == NULL)
                return cli_refuse(c, EXIT_IO, "out of memory");
        if (is_file(argv[0]))
                return restore_file(c, argv[0], into);
        if (is_inside(argv[0], into) && !is_inside(into, argv[0]))
                return cli_refuse(c, EXIT_REFUSED,
                    "%s is inside the backup: restore into a folder outside of it", into);
        if (steno_restore(argv[0], into, &report, &err) < 0)
                return cli_fail(c, &err);
        return cli_print_json(c, report);
}

static const struct opt restore_table[] = {
    {"into", 0, OPT_TEXT, "STORE", offsetof(struct restore_opts, into),
        "the store to make; that of --store by default"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_restore = {
    .name = "restore",
    .group = GROUP_KEEP,
    .usage = "DIR|FILE",
    .summary = "makes a store from a backup",
    .detail =
        "The store must be empty or must not exist yet. The backup does not change. If FILE is -,\n"
        "standard input is read. A file that was cut off or changed is refused, and then no store\n"
        "is made.",
    .example = "steno restore /mnt/backup/steno --into ./restored",
    .opts = restore_table,
    .opts_size = sizeof(struct restore_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_restore,
};
