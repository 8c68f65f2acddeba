/*
 * cmd_completion.c - steno completion: the scripts with which shells complete steno's command line,
 * made from the rows of the commands.
 *
 * Each shell is a row with its own writer. All of them complete commands, options, the words that
 * an option takes, conversations where a command takes one, and files elsewhere.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

/* How a shell script lists the newest conversations. */
#define LIST_CONVERSATIONS                                                                         \
        "steno ls --json -n 200 2>/dev/null | grep -o '\"id\":\"[^\"]*\"' | cut -d'\"' -f4"

/* The option's values are fixed words: "auto|always|never". */
static bool has_words(const struct opt *o)
{
        return o->arg != NULL && strchr(o->arg, '|') != NULL &&
               strpbrk(o->arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZ:[") == NULL;
}

static bool takes_value(const struct opt *o)
{
        return o->type != OPT_FLAG;
}

static bool takes_conversation(const struct command *cmd)
{
        return strncmp(cmd->usage, "CONV", 4) == 0 || strncmp(cmd->usage, "[CONV", 5) == 0;
}

static void put_words(struct out *o, const char *words)
{
        for (; *words != 0; words++)
                out_puts(o, *words == '|' ? " " : (char[]){*words, 0});
}

static const struct opt *shown(const struct opt *o)
{
        while (o != NULL && o->name != NULL && o->help == NULL)
                o++;
        return o != NULL && o->name != NULL ? o : NULL;
}

#define EACH_OPTION(o, table) for (const struct opt *o = shown(table); o != NULL; o = shown(o + 1))

/* ---- bash ---- */

static void bash_options(struct out *o, const struct opt *table)
{
        EACH_OPTION(opt, table)
        {
                out_printf(o, " --%s", opt->name);
        }
}

static void bash_values(struct out *o, const char *command, const struct opt *table)
{
        EACH_OPTION(opt, table)
        {
                if (!takes_value(opt))
                        continue;
                out_printf(o, "        \"%s --%s\") words=\"", command, opt->name);
                if (has_words(opt))
                        put_words(o, opt->arg);
                out_puts(o, "\" value=1 ;;\n");
        }
}

static void put_first_words(struct out *o, const struct command *const *all, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                size_t len = strcspn(all[i]->name, " ");
                if (i == 0 || strncmp(all[i]->name, all[i - 1]->name, len + 1) != 0)
                        out_printf(o, " %.*s", (int)len, all[i]->name);
        }
}

static void bash_families(struct out *o, const struct command *const *all, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const char *space = strchr(all[i]->name, ' ');
                if (space == NULL)
                        continue;
                out_printf(o, "        %.*s) second=\"$second %s\" ;;&\n",
                    (int)(space - all[i]->name), all[i]->name, space + 1);
        }
}

static void write_bash(struct out *o, const struct command *const *all, size_t n)
{
        out_puts(o, "# bash completion for steno, printed by: steno completion bash\n"
                    "_steno() {\n"
                    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "    local cmd= second= words= value= options= conv= i word\n"
                    "    COMPREPLY=()\n"
                    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                    "        word=${COMP_WORDS[i]}\n"
                    "        case $word in\n"
                    "        --store|--project|--color) ((i++)) ;;\n"
                    "        -*) ;;\n"
                    "        *) if [ -z \"$cmd\" ]; then cmd=$word\n"
                    "           elif [ -n \"$second\" ] && [ \"${cmd% *}\" = \"$cmd\" ]; then\n"
                    "               cmd=\"$cmd $word\"; fi ;;\n"
                    "        esac\n"
                    "        second=\n"
                    "        case $cmd in\n");
        bash_families(o, all, n);
        out_puts(o, "        esac\n    done\n    case \"$cmd $prev\" in\n");
        bash_values(o, "", cli_globals);
        for (size_t i = 0; i < n; i++)
                bash_values(o, all[i]->name, all[i]->opts);
        out_puts(o, "    esac\n    case $prev in\n"
                    "        --color) words=\"auto always never\" value=1 ;;\n"
                    "        --store|--project) value=1 ;;\n"
                    "    esac\n    case $cmd in\n");
        for (size_t i = 0; i < n; i++) {
                out_printf(o, "        \"%s\") options=\"", all[i]->name);
                bash_options(o, all[i]->opts);
                out_printf(o, "\" conv=%d ;;\n", takes_conversation(all[i]));
        }
        out_puts(o, "    esac\n"
                    "    if [ -n \"$value\" ] && [ -n \"$words\" ]; then\n"
                    "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                    "    elif [ -n \"$value\" ]; then\n"
                    "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                    "    elif [ \"${cur#-}\" != \"$cur\" ]; then\n"
                    "        COMPREPLY=($(compgen -W \"$options");
        bash_options(o, cli_globals);
        out_puts(o, "\" -- \"$cur\"))\n"
                    "    elif [ -z \"$cmd\" ]; then\n"
                    "        COMPREPLY=($(compgen -W \"help");
        put_first_words(o, all, n);
        out_puts(o, "\" -- \"$cur\"))\n"
                    "    elif [ -n \"$second\" ]; then\n"
                    "        COMPREPLY=($(compgen -W \"$second\" -- \"$cur\"))\n"
                    "    else\n"
                    "        [ \"$conv\" = 1 ] && COMPREPLY=($(compgen -W \"$(" LIST_CONVERSATIONS
                    ")\" -- \"$cur\"))\n"
                    "        [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                    "    fi\n"
                    "}\n"
                    "complete -o filenames -F _steno steno\n");
}

/* ---- zsh ---- */

/* Text inside single quotes of a shell, where zsh's own separators need a backslash as well. */
static void put_quoted(struct out *o, const char *text, const char *escaped)
{
        for (; *text != 0; text++) {
                if (*text == '\'')
                        out_puts(o, "'\\''");
                else if (*text == '\n')
                        out_puts(o, " ");
                else if (strchr(escaped, *text) != NULL)
                        out_printf(o, "\\%c", *text);
                else
                        out_put(o, text, 1);
        }
}

static void zsh_options(struct out *o, const struct opt *table)
{
        EACH_OPTION(opt, table)
        {
                out_printf(o, " \\\n            '%s--%s%s[", opt->type == OPT_LIST ? "*" : "",
                    opt->name, takes_value(opt) ? "=" : "");
                put_quoted(o, opt->help, "[]:");
                out_puts(o, "]");
                if (has_words(opt)) {
                        out_puts(o, ":value:(");
                        put_words(o, opt->arg);
                        out_puts(o, ")");
                } else if (takes_value(opt)) {
                        out_puts(o, ":value:_files");
                }
                out_puts(o, "'");
        }
}

static void write_zsh(struct out *o, const struct command *const *all, size_t n)
{
        out_puts(o, "#compdef steno\n# zsh completion for steno, printed by: steno completion zsh\n"
                    "_steno_conversations() {\n"
                    "    local -a ids; ids=(${(f)\"$(" LIST_CONVERSATIONS ")\"})\n"
                    "    compadd -a ids || _files\n"
                    "}\n"
                    "_steno() {\n"
                    "    local cmd= i skip=\n"
                    "    local -a commands seconds; commands=(\n");
        for (size_t i = 0; i < n; i++) {
                out_puts(o, "        '");
                put_quoted(o, all[i]->name, "");
                out_puts(o, ":");
                put_quoted(o, all[i]->summary, ":");
                out_puts(o, "'\n");
        }
        out_puts(o, "    )\n"
                    "    for ((i = 2; i < CURRENT; i++)); do\n"
                    "        [[ -n $skip ]] && { skip=; continue }\n"
                    "        case $words[i] in\n"
                    "        --store|--project|--color) skip=1 ;;\n"
                    "        -*) ;;\n"
                    "        *) if [[ -z $cmd ]]; then cmd=$words[i]\n"
                    "           elif (( ${commands[(I)$cmd $words[i]:*]} )); then cmd=\"$cmd "
                    "$words[i]\"; fi ;;\n"
                    "        esac\n"
                    "    done\n"
                    "    if [[ $PREFIX == -* ]]; then :\n"
                    "    elif [[ -z $cmd ]]; then\n"
                    "        local -a firsts; firsts=(${(u)${commands%%:*}%% *} help)\n"
                    "        compadd -a firsts; return\n"
                    "    elif (( ${commands[(I)$cmd [a-z]*:*]} )); then\n"
                    "        seconds=(${${${(M)commands:#$cmd [a-z]*:*}%%:*}#$cmd })\n"
                    "        compadd -a seconds; return\n"
                    "    fi\n"
                    "    case $cmd in\n");
        for (size_t i = 0; i < n; i++) {
                out_printf(o, "    '%s')\n        _arguments", all[i]->name);
                zsh_options(o, all[i]->opts);
                zsh_options(o, cli_globals);
                out_printf(o, " \\\n            '*:argument:%s' ;;\n",
                    takes_conversation(all[i]) ? "_steno_conversations" : "_files");
        }
        out_puts(o, "    *)\n        _arguments");
        zsh_options(o, cli_globals);
        out_puts(o, " ;;\n    esac\n}\n"
                    "if [ \"$funcstack[1]\" = _steno ]; then _steno \"$@\"; else compdef _steno "
                    "steno; fi\n");
}

/* ---- fish ---- */

static void fish_options(struct out *o, const char *condition, const struct opt *table)
{
        EACH_OPTION(opt, table)
        {
                out_printf(o, "complete -c steno %s -l %s", condition, opt->name);
                if (opt->letter)
                        out_printf(o, " -s %c", opt->letter);
                if (has_words(opt)) {
                        out_puts(o, " -x -a '");
                        put_words(o, opt->arg);
                        out_puts(o, "'");
                } else if (takes_value(opt)) {
                        out_puts(o, " -r");
                }
                out_puts(o, " -d '");
                put_quoted(o, opt->help, "\\");
                out_puts(o, "'\n");
        }
}

static void write_fish(struct out *o, const struct command *const *all, size_t n)
{
        out_puts(o, "# fish completion for steno, printed by: steno completion fish\n"
                    "function __steno_words\n"
                    "    set -l skip 0\n"
                    "    for word in (commandline -opc)[2..-1]\n"
                    "        if test $skip = 1; set skip 0; continue; end\n"
                    "        switch $word\n"
                    "            case --store --project --color; set skip 1\n"
                    "            case '-*'\n"
                    "            case '*'; echo $word\n"
                    "        end\n"
                    "    end\n"
                    "end\n"
                    "function __steno_is\n"
                    "    set -l words (__steno_words)\n"
                    "    set -l have $words[1..(count $argv)]\n"
                    "    test \"$have\" = \"$argv\"\n"
                    "end\n"
                    "function __steno_at\n"
                    "    set -l words (__steno_words)\n"
                    "    test \"$words\" = \"$argv\"\n"
                    "end\n"
                    "function __steno_conversations\n    " LIST_CONVERSATIONS "\nend\n");
        fish_options(o, "", cli_globals);
        for (size_t i = 0; i < n; i++) {
                const char *space = strchr(all[i]->name, ' ');
                out_printf(o, "complete -c steno -f -n '__steno_at%s%.*s' -a %s -d '",
                    space != NULL ? " " : "", space != NULL ? (int)(space - all[i]->name) : 0,
                    all[i]->name, space != NULL ? space + 1 : all[i]->name);
                put_quoted(o, all[i]->summary, "\\");
                out_puts(o, "'\n");
                if (space != NULL)
                        out_printf(o, "complete -c steno -f -n '__steno_at' -a %.*s\n",
                            (int)(space - all[i]->name), all[i]->name);
                char condition[96];
                snprintf(condition, sizeof(condition), "-n '__steno_is %s'", all[i]->name);
                fish_options(o, condition, all[i]->opts);
                if (takes_conversation(all[i]))
                        out_printf(
                            o, "complete -c steno %s -a '(__steno_conversations)'\n", condition);
        }
}

/* ---- the command ---- */

static const struct shell {
        const char *name;
        void (*write)(struct out *o, const struct command *const *all, size_t n);
} shells[] = {
    {"bash", write_bash},
    {"zsh", write_zsh},
    {"fish", write_fish},
};

static int run_completion(struct cli *c, const void *opts, int argc, char **argv)
{
        size_t n;
        const struct command *const *all = commands_all(&n);
        (void)opts, (void)argc;
        for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
                if (strcmp(argv[0], shells[i].name) == 0) {
                        shells[i].write(&c->out, all, n);
                        return EXIT_DONE;
                }
        }
        return cli_usage(c, "unknown shell \"%s\": use bash, zsh or fish", argv[0]);
}

const struct command cmd_completion = {
    .name = "completion",
    .group = GROUP_KEEP,
    .usage = "bash|zsh|fish",
    .summary = "prints a script with which a shell completes steno's command line",
    .detail =
        "A package installs these scripts. Otherwise, add a line to the start file of your shell,\n"
        "as the examples show for bash and fish.",
    .example = "source <(steno completion bash)\n"
               "steno completion fish >~/.config/fish/completions/steno.fish",
    .opts = NULL,
    .opts_size = 0,
    .min_args = 1,
    .max_args = 1,
    .run = run_completion,
};
