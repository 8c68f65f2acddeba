/*
 * cli.c - what every command shares: errors as one line, the store that is meant, and asking
 * before something is lost.
 */
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_url.h"
#include "base/json.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/term.h"
#include "loop/sealkey.h"

int cli_exit_code(int code)
{
        switch (code) {
        case STENO_OK:
                return EXIT_DONE;
        case STENO_ENOTFOUND:
                return EXIT_NOT_FOUND;
        case STENO_EINVAL:
                return EXIT_USAGE;
        case STENO_EPROTO:
        case STENO_ECONFLICT:
        case STENO_ELIMIT:
        case STENO_EDENIED:
        case STENO_EUNSUPPORTED:
                return EXIT_REFUSED;
        case STENO_ECORRUPT:
                return EXIT_CORRUPT;
        case STENO_EINTERRUPTED:
                return EXIT_INTERRUPTED;
        default:
                return EXIT_IO;
        }
}

/* One line on standard error. What it quotes came from outside, so nothing in it can move a
 * cursor or begin a second line. */
static void report(struct cli *c, const char *msg, const char *hint)
{
        struct buf raw, line;

        buf_init(&raw, 0);
        buf_init(&line, 0);
        buf_puts(&raw, msg);
        for (size_t i = 0; i < raw.n; i++) {
                if (raw.p[i] == '\n')
                        raw.p[i] = ' ';
        }
        buf_puts(&line, "steno: ");
        if (c->cmd != NULL)
                buf_printf(&line, "%s: ", c->cmd->name);
        text_for_terminal(&line, buf_str(&raw), false);
        buf_puts(&line, hint);
        buf_putc(&line, '\n');
        if (!line.failed)
                term_stderr(buf_str(&line));
        buf_release(&line);
        buf_release(&raw);
}

static void report_v(struct cli *c, const char *fmt, va_list ap, const char *hint)
{
        char msg[1200];

        vsnprintf(msg, sizeof(msg), fmt, ap);
        report(c, msg, hint);
}

int cli_fail(struct cli *c, const struct steno_error *err)
{
        /* A call that was stopped because its answer could not be printed: main says why. */
        if (c->out.sys != 0)
                return EXIT_IO;
        if (interrupt_pending() && err->code == STENO_EINTERRUPTED)
                return EXIT_INTERRUPTED;
        report(c, err->msg[0] ? err->msg : steno_code_name(err->code), "");
        return cli_exit_code(err->code);
}

int cli_refuse(struct cli *c, int exit_code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        report_v(c, fmt, ap, "");
        va_end(ap);
        return exit_code;
}

void cli_warn(struct cli *c, const char *what)
{
        c->warned = true;
        term_progress_end(&c->bar);
        report(c, what, "");
}

int cli_usage(struct cli *c, const char *fmt, ...)
{
        char hint[96];
        va_list ap;

        snprintf(hint, sizeof(hint), " (steno %s%s--help shows how)", c->cmd ? c->cmd->name : "",
            c->cmd ? " " : "");
        va_start(ap, fmt);
        report_v(c, fmt, ap, hint);
        va_end(ap);
        return EXIT_USAGE;
}

void cli_say(struct cli *c, const char *fmt, ...)
{
        char msg[1200];
        struct buf line;
        va_list ap;

        if (c->quiet)
                return;
        va_start(ap, fmt);
        vsnprintf(msg, sizeof(msg), fmt, ap);
        va_end(ap);
        buf_init(&line, 0);
        text_for_terminal(&line, str_of(msg), false);
        buf_putc(&line, '\n');
        if (!line.failed)
                term_stderr(buf_str(&line));
        buf_release(&line);
}

/* Makes the folders above a default store; a path that the user gave is taken as it is. */
static void make_parents(char *path)
{
        for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
                *slash = 0;
                mkdir(path, 0700);
                *slash = '/';
        }
}

const char cli_default_project[] = "default";

const char *cli_told_project(const struct cli *c)
{
        return c->project == cli_default_project ? NULL : c->project;
}

const char *cli_store_url(struct cli *c)
{
        const char *env = getenv("STENO_STORE");
        const char *base = getenv("XDG_DATA_HOME");
        const char *home = getenv("HOME");
        struct buf path;

        if (c->store_url != NULL)
                return c->store_url;
        if (env != NULL && env[0] != 0)
                return env;
        if (c->default_url != NULL)
                return c->default_url;
        if (home == NULL || home[0] != '/') {
                struct passwd *pw = getpwuid(getuid());
                home = pw ? pw->pw_dir : "/";
        }
        buf_init(&path, 0);
        if (base != NULL && base[0] == '/')
                buf_printf(&path, "%s/steno", base);
        else
                buf_printf(&path, "%s/.local/share/steno", home);
        c->default_url = buf_take(&path, NULL);
        if (c->default_url != NULL)
                make_parents(c->default_url);
        return c->default_url;
}

const char *cli_store_path(struct cli *c)
{
        const char *url = cli_store_url(c);
        if (url == NULL || !file_url_is(url))
                return url;
        if (c->store_path == NULL && file_url_path(url, &c->store_path, NULL) != 0)
                return url; /* the library reports what is wrong with it */
        return c->store_path;
}

const char *cli_store_folder(struct cli *c)
{
        const char *url = cli_store_url(c);
        if (url != NULL && c->store_folder == NULL)
                (void)state_folder(url, &c->store_folder, NULL);
        return c->store_folder;
}

static void warn(void *ctx, const char *what)
{
        cli_warn(ctx, what);
}

int cli_open_store(struct cli *c, enum cli_open how)
{
        struct steno_open_options opt = {.size = sizeof(opt)};
        struct steno_error err = {0};

        if (c->store != NULL)
                return 0;
        const char *url = cli_store_url(c);
        if (url == NULL)
                return cli_refuse(c, EXIT_IO, "out of memory");
        if (url[0] == 0)
                return cli_usage(c, "--store: an empty path");
        opt.flags = how == CLI_CREATE ? 0 : STENO_OPEN_EXISTING;
        opt.flags |= how == CLI_REPAIR ? STENO_OPEN_REPAIR : 0;
        term_progress_init(&c->bar, c->quiet);
        opt.progress = term_progress_step;
        opt.progress_ctx = &c->bar;
        opt.warning = warn;
        opt.warning_ctx = c;
        char *key = NULL;
        int rc = c->sealing ? sealkey_load((const char *const *)environ, &key, &err) : 0;
        if (rc == STENO_ENOTFOUND)
                rc = 0;
        opt.seal_key = key;
        if (rc == 0)
                rc = steno_open(url, &opt, &c->store, &err);
        sealkey_free(key);
        if (rc == STENO_ENOTFOUND && how != CLI_CREATE)
                return cli_refuse(c, cli_exit_code(rc),
                    "%s; steno new makes one, and steno demo shows what it is for", err.msg);
        return rc < 0 ? cli_fail(c, &err) : 0;
}

int cli_open_conv(struct cli *c, const char *id)
{
        struct steno_error err = {0};
        int rc = cli_open_store(c, CLI_MUST_EXIST);

        if (rc != 0)
                return rc;
        rc = steno_conv_open(c->store, c->project, id, &c->conv, &err);
        if (rc == STENO_ENOTFOUND && c->cmd->group == GROUP_RUN)
                return cli_refuse(
                    c, cli_exit_code(rc), "%s (steno new --id %.100s makes it)", err.msg, id);
        return rc < 0 ? cli_fail(c, &err) : 0;
}

/* The newest run in a list of them that is at work, else the newest. */
static char *newest_run(const char *list)
{
        struct json j;
        char *id = NULL;
        json_init(&j);
        if (json_parse(&j, list, strlen(list), NULL, NULL) == 0) {
                json_ref items = json_get(&j, 0, "items"), best = json_child(&j, items);
                for (json_ref i = best; i != JSON_NONE; i = json_next(&j, items, i))
                        if (json_is(&j, json_get(&j, i, "state"), "running")) {
                                best = i;
                                break;
                        }
                if (best != JSON_NONE)
                        id = json_dup_string(&j, json_get(&j, best, "id"));
        }
        json_release(&j);
        return id;
}

const char *cli_run_of(struct cli *c, const char *name)
{
        struct steno_conv *conv = NULL;
        char *info = NULL, *list = NULL;
        if (steno_run_info(c->store, c->project, name, &info, NULL) == STENO_ENOTFOUND &&
            steno_conv_open(c->store, c->project, name, &conv, NULL) == 0 &&
            steno_run_list(conv, &list, NULL) == 0)
                c->run = newest_run(list);
        steno_free(info);
        steno_free(list);
        steno_conv_close(conv);
        return c->run ? c->run : name;
}

int cli_make_conv(struct cli *c, const char *id)
{
        struct steno_error err = {0};
        int rc = cli_open_store(c, CLI_CREATE);

        if (rc != 0)
                return rc;
        rc = steno_conv_open(c->store, c->project, id, &c->conv, &err);
        if (rc == STENO_ENOTFOUND)
                rc = steno_conv_create(c->store, c->project, id, NULL, &c->conv, &err);
        if (rc == STENO_ECONFLICT) /* somebody made it meanwhile */
                rc = steno_conv_open(c->store, c->project, id, &c->conv, &err);
        return rc < 0 ? cli_fail(c, &err) : 0;
}

int cli_confirm(struct cli *c, const char *question, ...)
{
        char msg[600];
        char answer[16];
        va_list ap;

        if (c->yes)
                return 0;
        va_start(ap, question);
        vsnprintf(msg, sizeof(msg), question, ap);
        va_end(ap);
        if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
                return cli_refuse(
                    c, EXIT_REFUSED, "%s: this cannot be undone; use --yes to confirm", msg);
        struct buf line;
        buf_init(&line, 0);
        text_for_terminal(&line, str_of(msg), false);
        buf_puts(&line, "? This cannot be undone. [y/N] ");
        if (!line.failed)
                term_stderr(buf_str(&line));
        buf_release(&line);
        ssize_t n = read(STDIN_FILENO, answer, sizeof(answer));
        if (interrupt_pending()) {
                term_stderr(STR("\n"));
                return EXIT_INTERRUPTED;
        }
        if (n > 0 && (answer[0] == 'y' || answer[0] == 'Y'))
                return 0;
        return cli_refuse(c, EXIT_REFUSED, "nothing was changed");
}

int cli_print_json(struct cli *c, char *json)
{
        out_text(&c->out, str_of(json));
        out_puts(&c->out, "\n");
        steno_free(json);
        return EXIT_DONE;
}

/* Calls and results that a report says are not there. */
static uint64_t count_lost(const struct json *j)
{
        uint64_t n = 0;
        json_ref losses = json_get(j, 0, "losses"), repairs = json_get(j, 0, "repairs");
        for (json_ref l = json_child(j, losses); l != JSON_NONE; l = json_next(j, losses, l)) {
                json_ref field = json_get(j, l, "field");
                struct str why = json_inner(j, json_get(j, l, "why"));
                n += (json_is(j, field, "call") || json_is(j, field, "result")) &&
                     !memmem(why.p, why.n, "written as", 10) && !memmem(why.p, why.n, "became", 6);
        }
        for (json_ref r = json_child(j, repairs); r != JSON_NONE; r = json_next(j, repairs, r)) {
                json_ref class = json_get(j, r, "class");
                n += json_is(j, class, "orphan") || json_is(j, class, "duplicate");
        }
        return n;
}

void cli_say_lost(struct cli *c, const char *report)
{
        struct json j;
        json_init(&j);
        uint64_t n = 0;
        if (json_parse(&j, report, strlen(report), NULL, NULL) == 0)
                n = count_lost(&j);
        json_release(&j);
        if (n)
                cli_refuse(c, 0, "%llu call%s or result%s left out (--report says which)",
                    (unsigned long long)n, n == 1 ? "" : "s", n == 1 ? " was" : "s were");
}

void cli_end_view(struct cli *c, const char *report)
{
        out_text_end(&c->out);
        out_puts(&c->out, "\n");
        out_flush(&c->out);
        if (report == NULL)
                return;
        struct buf line;
        buf_init(&line, 0);
        /* It quotes ids and types of parts. JSON escapes them, but not U+009B. */
        if (isatty(STDERR_FILENO) && !c->out.raw)
                text_for_terminal(&line, str_of(report), false);
        else
                buf_puts(&line, report);
        buf_putc(&line, '\n');
        if (!line.failed)
                term_stderr(buf_str(&line));
        buf_release(&line);
}
