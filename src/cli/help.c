/*
 * help.c - the help of the program and of each command, made from the rows of the commands.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const char *const group_titles[GROUP_COUNT] = {
    [GROUP_RECORD] = "Recording",
    [GROUP_READ] = "Reading",
    [GROUP_CONTEXT] = "Context files (large tool outputs)",
    [GROUP_RUN] = "Running a model with tools",
    [GROUP_SERVE] = "Serving",
    [GROUP_KEEP] = "Keeping the store",
};

const char help_exit_codes[] =
    "0 done, 1 not found or no match, 2 usage, 3 refused (permission, conflict,\n"
    "protocol), 4 corrupt, 5 I/O or full disk, 130 interrupted";

/* A summary is a phrase in the list and a sentence on its own. */
void help_sentence(struct out *o, const char *phrase)
{
        char first = (char)toupper((unsigned char)phrase[0]);

        out_put(o, &first, 1);
        out_puts(o, phrase + 1);
        out_puts(o, ".\n");
}

static void put_option(struct out *o, const struct opt *opt)
{
        char left[64];
        int n;

        if (opt->help == NULL)
                return;
        n = snprintf(left, sizeof(left), "%s%c%s--%s%s%s", opt->letter ? "-" : "",
            opt->letter ? opt->letter : ' ', opt->letter ? ", " : "   ", opt->name,
            opt->arg ? " " : "", opt->arg ? opt->arg : "");
        if (n > 28)
                out_printf(o, "  %s\n  %28s  %s\n", left, "", opt->help);
        else
                out_printf(o, "  %-28s  %s\n", left, opt->help);
}

static void put_options(struct out *o, const char *title, const struct opt *table)
{
        if (table == NULL || table->name == NULL)
                return;
        out_style(o, "1");
        out_printf(o, "\n%s\n", title);
        out_plain(o);
        for (; table->name != NULL; table++)
                put_option(o, table);
}

static void put_row(struct out *o, const struct command *cmd)
{
        out_puts(o, "  ");
        out_style(o, "1");
        out_printf(o, "%-15s", cmd->name);
        out_plain(o);
        out_printf(o, " %s\n", cmd->summary);
}

void help_general(struct out *o)
{
        size_t n;
        const struct command *const *all = commands_all(&n);

        out_puts(o, "steno - the verbatim record of conversations with tools\n\n"
                    "usage: steno [--store URL] [--project P] [--json] COMMAND ...\n");
        for (int g = 0; g < GROUP_COUNT; g++) {
                bool titled = false;
                for (size_t i = 0; i < n; i++) {
                        if ((int)all[i]->group != g)
                                continue;
                        if (!titled) {
                                out_style(o, "1");
                                out_printf(o, "\n%s\n", group_titles[g]);
                                out_plain(o);
                        }
                        titled = true;
                        put_row(o, all[i]);
                }
        }
        put_options(o, "Options of every command", cli_globals);
        out_puts(o, "\nExample\n"
                    "  id=$(steno new --title \"First steps\")\n"
                    "  echo '{\"role\":\"user\",\"content\":\"Hello\"}' | steno append \"$id\"\n"
                    "  steno log \"$id\"\n"
                    "\nExit codes: ");
        out_puts(o, help_exit_codes);
        out_puts(o, ".\n");
}

static void put_indented(struct out *o, const char *text)
{
        for (const char *line = text; *line != 0;) {
                size_t n = strcspn(line, "\n");
                out_puts(o, "  ");
                out_put(o, line, n);
                out_puts(o, "\n");
                line += n + (line[n] == '\n');
        }
}

void help_command(struct out *o, const struct command *cmd)
{
        out_printf(o, "usage: steno %s%s%s%s\n\n", cmd->name, cmd->opts ? " [options]" : "",
            cmd->usage[0] ? " " : "", cmd->usage);
        help_sentence(o, cmd->summary);
        if (cmd->detail != NULL)
                out_printf(o, "\n%s\n", cmd->detail);
        put_options(o, "Options", cmd->opts);
        out_style(o, "1");
        out_puts(o, "\nExample\n");
        out_plain(o);
        put_indented(o, cmd->example);
        out_puts(o, "\nOptions of every command: --store, --project, --json, --color, --quiet,\n"
                    "--raw, --yes (steno --help).\n");
}

bool help_family(struct out *o, const char *word)
{
        size_t n, len = strlen(word);
        const struct command *const *all = commands_all(&n);
        const struct command *first = NULL;

        for (size_t i = 0; i < n; i++) {
                if (strncmp(all[i]->name, word, len) != 0 || all[i]->name[len] != ' ')
                        continue;
                if (o == NULL)
                        return true;
                if (first == NULL)
                        out_printf(o, "usage: steno %s COMMAND ...\n\n", word);
                first = first ? first : all[i];
                put_row(o, all[i]);
        }
        if (first == NULL)
                return false;
        out_puts(o, "\nExample\n");
        put_indented(o, first->example);
        return true;
}

/* ---- the nearest name ---- */

static unsigned distance(const char *a, const char *b)
{
        unsigned row[40];
        size_t nb = strlen(b);

        if (nb >= 40 || strlen(a) >= 40)
                return 40;
        for (size_t j = 0; j <= nb; j++)
                row[j] = (unsigned)j;
        for (size_t i = 1; a[i - 1] != 0; i++) {
                unsigned diagonal = row[0];
                row[0] = (unsigned)i;
                for (size_t j = 1; j <= nb; j++) {
                        unsigned best = diagonal + (a[i - 1] != b[j - 1]);
                        diagonal = row[j];
                        best = best < row[j] + 1 ? best : row[j] + 1;
                        row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
                }
        }
        return row[nb];
}

const char *help_nearest(const char *word)
{
        size_t n;
        const struct command *const *all = commands_all(&n);
        const char *nearest = NULL;
        unsigned least = 3;

        for (size_t i = 0; i < n; i++) {
                unsigned d = distance(word, all[i]->name);
                if (d < least) {
                        least = d;
                        nearest = all[i]->name;
                }
        }
        return nearest;
}
