/*
 * man.c - the manual pages, made from the rows of the commands: steno(1) with everything in it, and
 * a page for each command, steno-append(1), which is what "man steno-append" finds.
 */
#include <ctype.h>
#include <string.h>

#include "cli/command.h"

/* Text as roff: a backslash doubled, a dot or quote at a line's start and every dash protected. */
static void put_roff(struct out *o, const char *text)
{
        bool start = true;

        for (; *text != 0; text++) {
                if (start && (*text == '.' || *text == '\''))
                        out_puts(o, "\\&");
                if (*text == '\\')
                        out_puts(o, "\\e");
                else if (*text == '-')
                        out_puts(o, "\\-");
                else
                        out_put(o, text, 1);
                start = *text == '\n';
        }
}

static void man_options(struct out *o, const struct opt *table)
{
        for (; table != NULL && table->name != NULL; table++) {
                if (table->help == NULL)
                        continue;
                out_puts(o, ".TP\n.B ");
                if (table->letter)
                        out_printf(o, "\\-%c\\fR, \\fB", table->letter);
                out_puts(o, "\\-\\-");
                put_roff(o, table->name);
                if (table->arg != NULL) {
                        out_puts(o, " \\fI");
                        put_roff(o, table->arg);
                        out_puts(o, "\\fR");
                }
                out_puts(o, "\n");
                put_roff(o, table->help);
                out_puts(o, "\n");
        }
}

static void man_detail(struct out *o, const struct command *cmd)
{
        help_sentence(o, cmd->summary);
        if (cmd->detail != NULL) {
                out_puts(o, ".PP\n");
                put_roff(o, cmd->detail);
                out_puts(o, "\n");
        }
}

static void man_example(struct out *o, const struct command *cmd)
{
        out_puts(o, ".RS\n.nf\n");
        put_roff(o, cmd->example);
        out_puts(o, "\n.fi\n.RE\n");
}

static void man_command(struct out *o, const struct command *cmd)
{
        out_puts(o, ".SS steno ");
        put_roff(o, cmd->name);
        out_puts(o, " ");
        put_roff(o, cmd->usage);
        out_puts(o, "\n");
        man_detail(o, cmd);
        man_options(o, cmd->opts);
        out_puts(o, ".PP\n");
        man_example(o, cmd);
}

static void man_all(struct out *o)
{
        size_t n;
        const struct command *const *all = commands_all(&n);

        out_printf(o,
            ".TH STENO 1 \"\" \"steno %s\" \"Steno\"\n.SH NAME\nsteno \\- the verbatim record of "
            "conversations with tools\n.SH SYNOPSIS\n.B steno\n[\\-\\-store \\fIURL\\fR] "
            "[\\-\\-project \\fIP\\fR] [\\-\\-json] \\fICOMMAND\\fR ...\n.SH DESCRIPTION\n",
            steno_version());
        put_roff(o, "Steno keeps conversations between people, models and tools: every message "
                    "byte for byte, every large tool output in a file of its own, in a folder of "
                    "plain files that survives kills, power loss and full disks. Data goes to "
                    "standard output, everything else to standard error.\n");
        out_puts(o, ".SH OPTIONS\nThey may be given before or after the command.\n");
        man_options(o, cli_globals);
        out_puts(o, ".SH COMMANDS\n");
        for (size_t i = 0; i < n; i++)
                man_command(o, all[i]);
        out_puts(o, ".SH EXIT STATUS\n");
        put_roff(o, help_exit_codes);
        out_puts(o,
            ". .SH ENVIRONMENT .TP .B STENO_STORE the store, unless \\-\\-store is given .TP .B\n"
            "STENO_PROJECT the project, unless \\-\\-project is given .TP .B XDG_DATA_HOME where "
            "the\n"
            "default store is: \\fI$XDG_DATA_HOME/steno\\fR, else \\fI~/.local/share/steno\\fR .TP "
            ".B\n"
            "NO_COLOR no colours, when set and not empty .TP .B STENO_PAGER\\fR, \\fBPAGER the "
            "pager\n"
            "for long answers on a terminal; \\fIless \\-FRX\\fR unless set\n");
}

/* "context read" as a page's name has it: "context-read". */
static void put_page_name(struct out *o, const char *name, bool upper)
{
        for (; *name != 0; name++) {
                char c = *name == ' ' ? '-' : *name;
                c = upper ? (char)toupper((unsigned char)c) : c;
                out_puts(o, c == '-' ? "\\-" : (char[]){c, 0});
        }
}

static void man_one(struct out *o, const struct command *cmd)
{
        out_puts(o, ".TH STENO\\-");
        put_page_name(o, cmd->name, true);
        out_printf(o, " 1 \"\" \"steno %s\" \"Steno\"\n.SH NAME\nsteno\\-", steno_version());
        put_page_name(o, cmd->name, false);
        out_puts(o, " \\- ");
        put_roff(o, cmd->summary);
        out_puts(o, "\n.SH SYNOPSIS\n.B steno ");
        put_roff(o, cmd->name);
        out_puts(o, "\n");
        put_roff(o, cmd->usage);
        out_puts(o, cmd->usage[0] ? "\n.SH DESCRIPTION\n" : ".SH DESCRIPTION\n");
        man_detail(o, cmd);
        if (cmd->opts != NULL && cmd->opts->name != NULL) {
                out_puts(o, ".SH OPTIONS\n");
                man_options(o, cmd->opts);
        }
        out_puts(o, ".SH EXAMPLE\n");
        man_example(o, cmd);
        out_puts(o, ".SH SEE ALSO\n.BR steno (1)\n");
}

bool man_page(struct out *o, const char *name)
{
        size_t n;
        const struct command *const *all = commands_all(&n);

        if (name == NULL) {
                man_all(o);
                return true;
        }
        for (size_t i = 0; i < n; i++) {
                const char *a = all[i]->name, *b = name;
                while (*a != 0 && (*a == *b || (*a == ' ' && *b == '-')))
                        a++, b++;
                if (*a == 0 && *b == 0) {
                        man_one(o, all[i]);
                        return true;
                }
        }
        return false;
}
