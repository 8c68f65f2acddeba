/*
 * main.c - finds the command that is meant, runs it, and answers with its exit code.
 */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "cli/interrupt.h"
#include "cli/term.h"

/* A closed standard descriptor must not become the number of a store's file. The replacement fails
 * like a closed descriptor: standard input cannot be read, and the others cannot be written. */
static void guard_standard_descriptors(void)
{
        for (int fd = 0; fd <= 2; fd++) {
                if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
                        continue;
                if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
                        _exit(EXIT_IO);
        }
}

/* The row for the first one or two words; *used says how many. */
static const struct command *find_command(int argc, char **argv, int *used)
{
        size_t n;
        const struct command *const *all = commands_all(&n);

        for (size_t i = 0; i < n; i++) {
                const char *space = strchr(all[i]->name, ' ');
                size_t len = space ? (size_t)(space - all[i]->name) : strlen(all[i]->name);
                if (strlen(argv[0]) != len || strncmp(argv[0], all[i]->name, len) != 0)
                        continue;
                *used = space ? 2 : 1;
                if (space == NULL || (argc > 1 && strcmp(argv[1], space + 1) == 0))
                        return all[i];
        }
        return NULL;
}

static int check_count(struct cli *c, int argc, char **argv)
{
        const struct command *cmd = c->cmd;

        if (argc < cmd->min_args)
                return cli_usage(c, "too few arguments; usage: steno %s %s", cmd->name, cmd->usage);
        if (cmd->max_args >= 0 && argc > cmd->max_args)
                return cli_usage(c, "unexpected argument \"%s\"", argv[cmd->max_args]);
        return 0;
}

static void put_version(struct cli *c)
{
        out_printf(&c->out, "steno %s\n", steno_version());
}

static int run_command(struct cli *c, int argc, char **argv)
{
        void *opts = calloc(1, c->cmd->opts_size + 1);
        int rc;

        if (opts == NULL)
                return cli_refuse(c, EXIT_IO, "out of memory");
        rc = options_parse(c, cli_globals, c->cmd->opts, opts, false, &argc, argv);
        c->out.raw = c->raw;
        c->out.colours = term_colours(STDOUT_FILENO, c->color);
        if (rc == 0 && c->version)
                put_version(c);
        else if (rc == 0 && c->help)
                help_command(&c->out, c->cmd);
        else if (rc == 0 && (rc = check_count(c, argc, argv)) == 0)
                rc = c->cmd->run(c, opts, argc, argv);
        free(opts);
        return rc;
}

/* A first word that only has commands behind it. */
static int unknown_in_family(struct cli *c, int argc, char **argv)
{
        const char *nearest = argc > 1 ? help_nearest_of_family(argv[0], argv[1]) : NULL;
        struct buf all;
        int rc;

        buf_init(&all, 0);
        help_put_family(&all, argv[0]);
        if (nearest != NULL)
                rc = cli_usage(
                    c, "%s has no command \"%s\"; did you mean %s?", argv[0], argv[1], nearest);
        else if (argc > 1)
                rc = cli_usage(c, "%s has no command \"%s\"; it has %s", argv[0], argv[1],
                    buf_cstr(&all) ? all.p : "others");
        else
                rc = cli_usage(c, "%s needs a command after it: %s", argv[0],
                    buf_cstr(&all) ? all.p : "one of its own");
        buf_release(&all);
        return rc;
}

static int unknown_command(struct cli *c, int argc, char **argv)
{
        const char *nearest = help_nearest(argv[0]);

        if (c->help && help_family(&c->out, argv[0]))
                return EXIT_DONE;
        if (help_family(NULL, argv[0]))
                return unknown_in_family(c, argc, argv);
        if (nearest != NULL)
                return cli_usage(c, "no command \"%s\"; did you mean %s?", argv[0], nearest);
        return cli_usage(c, "no command \"%s\"", argv[0]);
}

static int dispatch(struct cli *c, int argc, char **argv)
{
        int used = 0;
        int rc = options_parse(c, cli_globals, NULL, c, true, &argc, argv);

        if (rc != 0)
                return rc;
        c->out.colours = term_colours(STDOUT_FILENO, c->color);
        if (c->version) {
                put_version(c);
                return EXIT_DONE;
        }
        if (c->help_man) {
                if (man_page(&c->out, argc > 0 ? argv[0] : NULL))
                        return EXIT_DONE;
                return cli_usage(c, "no command \"%s\"", argv[0]);
        }
        if (argc > 0 && strcmp(argv[0], "help") == 0) {
                c->help = true;
                argc--, argv++;
        }
        if (argc == 0 && c->help) {
                help_general(&c->out);
                return EXIT_DONE;
        }
        if (argc == 0)
                return cli_usage(c, "no command was given");
        c->cmd = find_command(argc, argv, &used);
        if (c->cmd == NULL) {
                for (int i = 1; i < argc; i++)
                        c->help |= strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
                return unknown_command(c, argc, argv);
        }
        return run_command(c, argc - used, argv + used);
}

/* A command has failed if its output could not be written, even if all else went well. */
static int finish_output(struct cli *c, int rc)
{
        int sys = out_flush(&c->out);

        if (sys == EPIPE) {
                /* The reader closed the pipe because it has seen enough. As other filters do, we
                 * end without a message. */
                signal(SIGPIPE, SIG_DFL);
                raise(SIGPIPE);
        }
        if (interrupt_pending())
                return interrupt_exit_code();
        if (sys != 0)
                return cli_refuse(c, EXIT_IO, "standard output: %s", strerror(sys));
        return rc;
}

/* The history does not show that a torn end was moved to quarantine, so a warning says it. */
static void say_quarantined(struct cli *c)
{
        unsigned long long n = steno_quarantined(c->store);

        if (n > 0)
                cli_refuse(c, 0, "%llu byte%s that could not be read %s moved to quarantine/", n,
                    n == 1 ? "" : "s", n == 1 ? "was" : "were");
}

int main(int argc, char **argv)
{
        struct cli c;
        const char *project;
        int rc;

        environment_hide();
        argv = environment_hide_passwords(argc, argv);
        project = getenv("STENO_PROJECT");
        guard_standard_descriptors();
        setlocale(LC_CTYPE, "C.UTF-8"); /* for wcwidth; the environment's may not be UTF-8 */
        interrupt_install();
        fs_end_waits(interrupt_pending);
        memset(&c, 0, sizeof(c));
        c.project = project != NULL && project[0] != 0 ? project : cli_default_project;
        out_init(&c.out, STDOUT_FILENO);
        c.out.tty = isatty(STDOUT_FILENO);

        rc = dispatch(&c, argc - 1, argv + 1);

        steno_conv_close(c.conv);
        say_quarantined(&c);
        steno_close(c.store);
        rc = finish_output(&c, rc);
        out_release(&c.out);
        free(c.default_url);
        free(c.store_path);
        free(c.store_folder);
        free(c.run);
        return rc;
}
