/*
 * help.c - the help of the program and of each command, made from the rows of the commands.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#define NAME_COLUMNS 40 /* no command has so many letters */

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

/* How many letters were left out, added, changed, or typed in the wrong order. */
static unsigned distance(const char *a, const char *b)
{
        unsigned rows[3][NAME_COLUMNS];
        size_t na = strlen(a), nb = strlen(b);

        if (nb >= NAME_COLUMNS || na >= NAME_COLUMNS)
                return NAME_COLUMNS;
        for (size_t j = 0; j <= nb; j++)
                rows[0][j] = (unsigned)j;
        for (size_t i = 1; i <= na; i++) {
                unsigned *row = rows[i % 3], *up = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
                row[0] = (unsigned)i;
                for (size_t j = 1; j <= nb; j++) {
                        unsigned best = up[j - 1] + (a[i - 1] != b[j - 1]);
                        best = best < up[j] + 1 ? best : up[j] + 1;
                        best = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                            before[j - 2] + 1 < best)
                                best = before[j - 2] + 1;
                        row[j] = best;
                }
        }
        return rows[na % 3][nb];
}

/* What people type who know other programs. */
static const char *habit(const char *word)
{
        static const char *const habits[][2] = {{"list", "ls"}, {"dir", "ls"}, {"show", "log"},
            {"cat", "log"}, {"view", "log"}, {"history", "log"}, {"print", "messages"},
            {"delete", "rm"}, {"del", "rm"}, {"remove", "rm"}, {"undelete", "trash"},
            {"start", "serve"}, {"server", "serve"}, {"ui", "serve"}, {"web", "serve"},
            {"find", "search"}, {"grep", "search"}, {"status", "stats"}, {"info", "stats"},
            {"create", "new"}, {"add", "append"}, {"write", "append"}, {"tail", "context tail"},
            {"read", "context read"}, {"resume", "continue"}, {"kill", "stop"}, {"cancel", "stop"},
            {"allow", "approve"}, {"dump", "export"}, {"load", "import"}, {"fsck", "check"},
            {"doctor", "check"}, {"repair", "check"}, {"ask", "run"}, {"prompt", "run"},
            {"follow", "watch"}, {"clone", "fork"}, {"branch", "fork"}, {"sign", "seal"}};
        for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
                if (strcmp(word, habits[i][0]) == 0)
                        return habits[i][1];
        return NULL;
}

/* Are the letters of a word all in a name, in their order? */
static bool abbreviates(const char *word, const char *name)
{
        for (; *word != 0; word++) {
                name = strchr(name, *word);
                if (name++ == NULL)
                        return false;
        }
        return true;
}

/* Lower is nearer; MEANT_NOT and more is no match. A word that only lacks letters is nearer than
 * one with other letters. */
#define MEANT_NOT 6
static unsigned apart(const char *word, const char *name)
{
        return 2 * distance(word, name) + !abbreviates(word, name);
}

const char *help_nearest(const char *word)
{
        size_t n;
        const struct command *const *all = commands_all(&n);
        const char *nearest = habit(word);
        unsigned least = MEANT_NOT;

        if (nearest != NULL)
                return nearest;

        for (size_t i = 0; i < n; i++) {
                unsigned d = apart(word, all[i]->name);
                if (d < least) {
                        least = d;
                        nearest = all[i]->name;
                }
        }
        return nearest;
}

const char *help_nearest_of_family(const char *family, const char *word)
{
        size_t n, len = strlen(family);
        const struct command *const *all = commands_all(&n);
        const char *nearest = NULL;
        unsigned least = MEANT_NOT;

        for (size_t i = 0; i < n; i++) {
                if (strncmp(all[i]->name, family, len) != 0 || all[i]->name[len] != ' ')
                        continue;
                unsigned d = apart(word, all[i]->name + len + 1);
                if (d < least) {
                        least = d;
                        nearest = all[i]->name;
                }
        }
        return nearest;
}

void help_put_family(struct buf *b, const char *family)
{
        size_t n, len = strlen(family);
        const struct command *const *all = commands_all(&n);
        const char *between = "";

        for (size_t i = 0; i < n; i++) {
                if (strncmp(all[i]->name, family, len) != 0 || all[i]->name[len] != ' ')
                        continue;
                buf_printf(b, "%s%s", between, all[i]->name + len + 1);
                between = ", ";
        }
}

/* What people type who know other programs. A word can have several rows, because not every command
 * has each option. */
static const char *const option_habits[][2] = {{"timeout", "seconds"}, {"time-out", "seconds"},
    {"cwd", "dir"}, {"directory", "dir"}, {"chdir", "dir"}, {"count", "limit"}, {"max", "limit"},
    {"num", "limit"}, {"head", "limit"}, {"name", "title"}, {"out", "output"}, {"file", "output"},
    {"to-file", "output"}, {"output-format", "format"}, {"port", "listen"}, {"host", "listen"},
    {"bind", "listen"}, {"address", "listen"}, {"url", "base-url"}, {"endpoint", "base-url"},
    {"api-base", "base-url"}, {"message", "prompt"}, {"force", "yes"}, {"db", "store"},
    {"database", "store"}, {"path", "store"}, {"colour", "color"}, {"silent", "quiet"},
    {"tokens", "budget"}, {"max-tokens", "budget"}};

static const struct opt *option_named(const struct opt *table, const char *name)
{
        for (; table != NULL && table->name != NULL; table++)
                if (table->help != NULL && strcmp(table->name, name) == 0)
                        return table;
        return NULL;
}

static const char *nearest_in(const struct opt *table, const char *word, unsigned *least)
{
        const char *nearest = NULL;

        for (; table != NULL && table->name != NULL; table++) {
                bool prefix = strncmp(table->name, word, strlen(word)) == 0 && word[0] && word[1];
                unsigned d = prefix ? 1 : apart(word, table->name);
                if (table->help == NULL || d >= *least)
                        continue;
                *least = d;
                nearest = table->name;
        }
        return nearest;
}

const char *help_nearest_option(const struct opt *opts, const struct opt *globals, const char *word)
{
        unsigned least = strlen(word) < 4 ? 3 : 5;

        for (size_t i = 0; i < sizeof(option_habits) / sizeof(option_habits[0]); i++) {
                const char *meant = option_habits[i][1];
                if (strcmp(word, option_habits[i][0]) == 0 &&
                    (option_named(opts, meant) || option_named(globals, meant)))
                        return meant;
        }
        const char *own = nearest_in(opts, word, &least);
        const char *global = nearest_in(globals, word, &least);
        return global != NULL ? global : own;
}
