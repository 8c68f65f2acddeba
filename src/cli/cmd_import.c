/*
 * cmd_import.c - steno import. The first bytes of a file show whether it is a bundle. Any other
 * file goes to the importer of transcripts, which finds out what it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/named_file.h"
#include "base/wait.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/term.h"

struct import_opts {
        const char *on_conflict;
        const char *into;
        bool new_ids;
        bool trusted;
        bool known;
        bool watch;
};

#define HEAD_MAX ((size_t)256 * 1024)

/* A file whose first bytes were looked at. */
struct source {
        const char *path;
        int fd;
        char *head; /* HEAD_MAX bytes: with fewer a compressed transcript looks like a bundle */
        size_t head_n;
        size_t given; /* of them */
};

static long source_read(void *ctx, void *p, size_t n)
{
        struct source *s = ctx;
        size_t left = s->head_n - s->given;
        ssize_t got;

        if (left > 0) {
                n = n < left ? n : left;
                memcpy(p, s->head + s->given, n);
                s->given += n;
                return (long)n;
        }
        do
                got = read(s->fd, p, n);
        while (got < 0 && errno == EINTR && !interrupt_pending());
        return got < 0 ? -errno : (long)got;
}

static bool is_pipe(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

static int source_open(struct cli *c, struct source *s, const char *path)
{
        ssize_t got = 1;

        *s = (struct source){.path = path, .fd = STDIN_FILENO};
        if (strcmp(path, "-") != 0)
                s->fd = named_file_open(path);
        if (s->fd == -ENOENT)
                return cli_refuse(c, EXIT_USAGE, "%s: no such file", path);
        if (s->fd < 0)
                return cli_refuse(c, EXIT_IO, "cannot open %s: %s", path, strerror(-s->fd));
        s->head = malloc(HEAD_MAX);
        if (s->head == NULL)
                return cli_refuse(c, EXIT_IO, "out of memory");
        while (s->head_n < HEAD_MAX && got > 0) {
                got = read(s->fd, s->head + s->head_n, HEAD_MAX - s->head_n);
                if (got > 0)
                        s->head_n += (size_t)got;
                bool slow = got < 0 && errno == EAGAIN; /* a pipe that has a writer */
                if (slow)
                        named_file_wait(s->fd);
                if (slow || (got < 0 && errno == EINTR && !interrupt_pending()))
                        got = 1;
        }
        if (got < 0)
                return cli_refuse(c, EXIT_IO, "cannot read %s: %s", path, strerror(errno));
        if (s->fd != STDIN_FILENO)
                named_file_wait(s->fd);
        if (s->head_n == 0 && is_pipe(s->fd))
                return cli_refuse(c, EXIT_REFUSED, "%s is a pipe that nobody writes to", path);
        return 0;
}

static void source_close(struct source *s)
{
        if (s->fd > STDIN_FILENO)
                close(s->fd);
        free(s->head);
}

/* ---- bundles ---- */

static bool is_bundle(const struct source *s)
{
        return steno_is_bundle(s->head, s->head_n);
}

static uint64_t skipped(const char *report)
{
        struct json j;
        uint64_t n = 0;

        json_init(&j);
        if (json_parse(&j, report, strlen(report), NULL, NULL) == 0)
                json_u64(&j, json_get(&j, 0, "skipped"), &n);
        json_release(&j);
        return n;
}

static int import_bundle(struct cli *c, const struct import_opts *o, struct source *s)
{
        struct steno_import_options opt = {.size = sizeof(opt), .project = o->into};
        struct steno_error err = {0};
        struct term_progress bar;
        char *report = NULL;

        if (o->new_ids)
                opt.flags |= STENO_IMPORT_NEW_IDS;
        if (o->trusted)
                opt.flags |= STENO_IMPORT_TRUSTED;
        if (o->on_conflict != NULL)
                opt.on_conflict = strcmp(o->on_conflict, "both") == 0      ? STENO_CONFLICT_BOTH
                                  : strcmp(o->on_conflict, "replace") == 0 ? STENO_CONFLICT_REPLACE
                                                                           : STENO_CONFLICT_SKIP;
        term_progress_init(&bar, c->quiet);
        opt.progress = term_progress_step;
        opt.progress_ctx = &bar;
        int rc = steno_import_bundle(c->store, &opt, source_read, s, &report, &err);
        term_progress_end(&bar);
        if (rc < 0)
                return cli_fail(c, &err);
        uint64_t n = skipped(report);
        rc = cli_print_json(c, report);
        return rc != 0 || n == 0
                   ? rc
                   : cli_refuse(c, EXIT_REFUSED,
                         "%llu conversation%s in the store with another history, and %s not "
                         "changed (--on-conflict both|replace)",
                         (unsigned long long)n, n == 1 ? " is" : "s are", n == 1 ? "was" : "were");
}

/* ---- transcripts ---- */

#define WATCH_MS 300 /* between two looks: a new line is to be seen within a second */

static uint64_t number(const struct json *j, const char *name)
{
        uint64_t n = 0;

        json_u64(j, json_get(j, 0, name), &n);
        return n;
}

static void print_changes(struct cli *c, const struct json *j)
{
        json_ref list = json_get(j, 0, "changed");

        for (json_ref e = json_child(j, list); e != JSON_NONE; e = json_next(j, list, e)) {
                struct buf id, path;
                uint64_t seq = 0;

                buf_init(&id, 0);
                buf_init(&path, 0);
                json_string(j, json_get(j, e, "id"), &id, NULL);
                json_string(j, json_get(j, e, "path"), &path, NULL);
                json_u64(j, json_get(j, e, "lastSeq"), &seq);
                out_str(&c->out, json_inner(j, json_get(j, e, "state")));
                out_puts(&c->out, "  ");
                out_text(&c->out, buf_str(&id));
                out_printf(&c->out, "  %llu %s  ", (unsigned long long)seq,
                    seq == 1 ? "record" : "records");
                out_text(&c->out, buf_str(&path));
                out_puts(&c->out, "\n");
                buf_release(&id);
                buf_release(&path);
        }
}

static void print_errors(struct cli *c, const struct json *j)
{
        json_ref list = json_get(j, 0, "errors");

        for (json_ref e = json_child(j, list); e != JSON_NONE; e = json_next(j, list, e)) {
                struct buf line;

                buf_init(&line, 0);
                json_string(j, json_get(j, e, "path"), &line, NULL);
                buf_puts(&line, ": ");
                json_string(j, json_get(j, e, "message"), &line, NULL);
                const char *text = buf_cstr(&line);
                if (text != NULL)
                        cli_refuse(c, EXIT_CORRUPT, "%s", text);
                buf_release(&line);
        }
}

static void print_summary(struct cli *c, const struct json *j)
{
        static const char *const REST[] = {
            "replaced", "forks", "other", "skipped", "damaged", "torn", "unknown", NULL};
        static const char *const WORDS[] = {"replaced", "forks", "not understood and kept",
            "skipped", "damaged", "torn at the end", "unknown files", NULL};

        out_printf(&c->out,
            "%llu files, %llu conversations, %llu messages, %llu calls, %llu results",
            (unsigned long long)number(j, "files"), (unsigned long long)number(j, "conversations"),
            (unsigned long long)number(j, "messages"), (unsigned long long)number(j, "calls"),
            (unsigned long long)number(j, "results"));
        for (size_t i = 0; REST[i] != NULL; i++) {
                uint64_t n = number(j, REST[i]);

                if (n > 0)
                        out_printf(&c->out, ", %llu %s", (unsigned long long)n, WORDS[i]);
        }
        out_puts(&c->out, "\n");
}

/* Prints the report of an import; when watching, only what has changed. `named`: the user has named
 * the places, so it also says when nothing was found. */
static int print_report(struct cli *c, const char *report, bool named, bool watching)
{
        struct json j;
        int rc = 0;

        json_init(&j);
        if (json_parse(&j, report, strlen(report), NULL, NULL) != 0) {
                json_release(&j);
                return cli_refuse(c, EXIT_IO, "out of memory");
        }
        bool changed = json_count(&j, json_get(&j, 0, "changed")) > 0;
        bool failed = json_count(&j, json_get(&j, 0, "errors")) > 0;
        if (watching && !changed && !failed) {
                json_release(&j);
                return 0;
        }
        if (c->json) {
                out_text(&c->out, str_of(report));
                out_puts(&c->out, "\n");
        } else {
                print_changes(c, &j);
                if (!watching)
                        print_summary(c, &j);
        }
        print_errors(c, &j);
        if (failed && !watching)
                rc = EXIT_CORRUPT;
        bool nothing = rc == 0 && !watching && number(&j, "files") == 0;
        if (nothing && number(&j, "unknown") > 0)
                rc = cli_refuse(c, EXIT_REFUSED, "no transcript that Steno knows was found there");
        else if (nothing && named) /* they may all be gone, as tools remove their own */
                cli_say(c, "no transcript was found there; to import a bundle, name its file");
        json_release(&j);
        if (watching)
                out_flush(&c->out);
        return rc;
}

static int run_once(
    struct cli *c, struct steno_importer *m, struct term_progress *bar, bool named, bool watching)
{
        struct steno_error err = {0};
        char *report = NULL;
        int rc = steno_importer_run(m, &report, &err);

        term_progress_end(bar);
        if (rc < 0)
                return cli_fail(c, &err);
        rc = print_report(c, report, named, watching);
        steno_free(report);
        return rc;
}

static int import_transcripts(struct cli *c, const struct import_opts *o, int argc, char **argv)
{
        struct steno_importer_options opt = {.size = sizeof(opt)};
        struct steno_importer *m = NULL;
        struct steno_error err = {0};
        struct term_progress bar;

        term_progress_init(&bar, c->quiet);
        opt.project = o->into != NULL ? o->into : c->project;
        opt.progress = term_progress_step;
        opt.progress_ctx = &bar;
        int rc = steno_importer_new(c->store, &opt, &m, &err);
        for (int i = 0; rc == 0 && i < argc; i++)
                rc = steno_importer_add(m, argv[i], &err);
        if (rc == 0 && o->known)
                rc = steno_importer_add_known(m, NULL, &err);
        if (rc < 0) {
                steno_importer_free(m);
                return cli_fail(c, &err);
        }
        rc = run_once(c, m, &bar, argc > 0, false);
        if (o->watch)
                out_flush(&c->out);
        while (o->watch && (rc == 0 || rc == EXIT_CORRUPT || rc == EXIT_REFUSED) &&
               !interrupt_pending()) {
                wait_sleep(WATCH_MS);
                if (!interrupt_pending())
                        rc = run_once(c, m, &bar, argc > 0, true);
        }
        steno_importer_free(m);
        return rc;
}

/* Writes what comes through a pipe to an open file. */
static int spool(struct cli *c, struct source *s, int fd)
{
        char block[1 << 16];
        long got;

        while ((got = source_read(s, block, sizeof(block))) > 0) {
                int sys = fs_write_all(fs_real(), fd, block, (size_t)got);
                if (sys != 0)
                        return cli_refuse(
                            c, EXIT_IO, "cannot write a temporary file: %s", strerror(-sys));
        }
        return got < 0 ? cli_refuse(c, interrupt_pending() ? EXIT_INTERRUPTED : EXIT_IO,
                             "cannot read %s: %s", s->path, strerror((int)-got))
                       : 0;
}

static int import_stream(struct cli *c, const struct import_opts *o, struct source *s)
{
        struct steno_importer_options opt = {.size = sizeof(opt)};
        struct steno_error err = {0};
        char *report = NULL;
        int fd = named_file_temp();

        if (fd < 0)
                return cli_refuse(c, EXIT_IO, "cannot make a temporary file: %s", strerror(-fd));
        int rc = spool(c, s, fd);
        opt.project = o->into != NULL ? o->into : c->project;
        if (rc == 0)
                rc = steno_import_file(c->store, &opt,
                    strcmp(s->path, "-") == 0 ? "stdin" : s->path, fd, &report, &err);
        close(fd);
        if (rc < 0)
                return cli_fail(c, &err);
        if (rc == 0)
                rc = print_report(c, report, true, false);
        steno_free(report);
        return rc;
}

/* ---- a store that is not there yet ---- */

static bool is_there(struct cli *c)
{
        struct stat st;
        const char *path = cli_store_path(c);

        return path == NULL || lstat(path, &st) == 0;
}

/* A refused file, or a mistyped path, must not leave a new store behind. The folder is not removed
 * if another program has put something into it meanwhile. */
static void remove_new_store(struct cli *c)
{
        static const char *const FILES[] = {"import.lock", "recent", "recent.old", "figures.json",
            "index.db", "index.db-wal", "index.db-shm", "place.json", "store.json"};
        const struct fs *fs = fs_real();
        const char *path = cli_store_path(c);

        steno_close(c->store);
        c->store = NULL;
        int root = path != NULL ? fs->open_root(fs, path, false) : -1;
        if (root < 0)
                return;
        int sys = fs->unlink(fs, root, "projects", AT_REMOVEDIR);
        bool used = sys != 0 && sys != -ENOENT;
        for (size_t i = 0; !used && i < sizeof(FILES) / sizeof(*FILES); i++)
                fs->unlink(fs, root, FILES[i], 0);
        fs->close(fs, root);
        if (!used)
                rmdir(path);
}

/* ---- the command ---- */

/* 0: it is not a bundle; 1: it was imported, and *rc is the result. */
static int import_path(struct cli *c, const struct import_opts *o, const char *path, int *rc)
{
        struct source s;
        struct stat st;

        if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
                return 0;
        *rc = source_open(c, &s, path);
        if (*rc != 0) {
                source_close(&s);
                return 1;
        }
        bool pipe = fstat(s.fd, &st) == 0 && !S_ISREG(st.st_mode);
        bool bundle = is_bundle(&s);
        if (bundle)
                *rc = import_bundle(c, o, &s);
        else if (pipe || s.fd == STDIN_FILENO)
                *rc = import_stream(c, o, &s);
        source_close(&s);
        return bundle || pipe || s.fd == STDIN_FILENO;
}

static int run_import(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct import_opts *o = opts;
        int left = 0;

        if (argc == 0 && !o->known)
                return cli_refuse(c, EXIT_USAGE, "no file given: name one, or use --known");
        bool there = is_there(c);
        int rc = cli_open_store(c, CLI_CREATE);
        for (int i = 0; rc == 0 && i < argc; i++)
                if (import_path(c, o, argv[i], &rc) == 0)
                        argv[left++] = argv[i];
        if (rc == 0 && (left > 0 || o->known))
                rc = import_transcripts(c, o, left, argv);
        if (rc != 0 && !there)
                remove_new_store(c);
        return rc;
}

static const struct opt import_table[] = {
    {"known", 0, OPT_FLAG, NULL, offsetof(struct import_opts, known),
        "look in the places where the tools usually keep their sessions"},
    {"watch", 0, OPT_FLAG, NULL, offsetof(struct import_opts, watch),
        "continue until interrupted, and import what the tools write within a second"},
    {"on-conflict", 0, OPT_CHOICE, "skip|both|replace", offsetof(struct import_opts, on_conflict),
        "for bundles: what to do if the id has another history; a replaced one goes to the trash"},
    {"new-ids", 0, OPT_FLAG, NULL, offsetof(struct import_opts, new_ids),
        "for bundles: give every conversation a new id"},
    {"into", 0, OPT_TEXT, "PROJECT", offsetof(struct import_opts, into),
        "the project to import into; the default for a bundle is the project it came from"},
    {"trusted", 0, OPT_FLAG, NULL, offsetof(struct import_opts, trusted),
        "for bundles: lift the limits on expansion and on the size of records"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_import = {
    .name = "import",
    .group = GROUP_KEEP,
    .usage = "[FILE|FOLDER]...",
    .summary = "imports bundles, and sessions of other tools",
    .detail =
        "A bundle (steno export) is unpacked in a temporary place and verified against its\n"
        "checksums. Then all of it is imported, or nothing.\n\n"
        "Anything else is a transcript of another tool, and Steno detects which one: Codex CLI,\n"
        "Claude Code, Gemini CLI, Qwen Code, opencode, Cline, Roo, Pi, Continue, goose, neovate,\n"
        "CrewAgent, DeepChat, Acontext, LangChain, ShareGPT, and lists of messages in any format\n"
        "that Steno reads. In a folder, all files are read. A session becomes the conversation\n"
        "TOOL-SESSION, with its ids and times; large outputs become context files.\n\n"
        "You can import a file again: if it has grown, the new part is added; if it was\n"
        "rewritten, the difference becomes a fork. If a file is gone, nothing is removed. If FILE\n"
        "is -, standard input is read. Exit code 3 means that a bundle was refused or skipped, or\n"
        "that no file is a transcript; 4 means that a file could not be read.",
    .example = "steno import --known\n"
               "steno import ~/.codex/sessions --watch\n"
               "steno import demo.tar.zst --on-conflict both",
    .opts = import_table,
    .opts_size = sizeof(struct import_opts),
    .min_args = 0,
    .max_args = -1,
    .run = run_import,
};
