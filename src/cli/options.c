/*
 * options.c - the command line taken apart by a table of options.
 *
 * Knows tables and words, no command. "--name value", "--name=value", "-n value", "-nvalue" and
 * "--" are understood; options may stand before, between and behind the arguments.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

#define OPTION_NAME_MAX 32 /* no mistyped option is longer */

const struct opt cli_globals[] = {
    {"store", 0, OPT_TEXT, "URL", offsetof(struct cli, store_url),
        "the store: a path or URL ($STENO_STORE, else $XDG_DATA_HOME/steno)"},
    {"project", 0, OPT_TEXT, "P", offsetof(struct cli, project),
        "the project ($STENO_PROJECT, else \"default\")"},
    {"json", 0, OPT_FLAG, NULL, offsetof(struct cli, json), "answer in JSON, with stable names"},
    {"color", 0, OPT_CHOICE, "auto|always|never", offsetof(struct cli, color),
        "colours; auto is on a terminal without $NO_COLOR"},
    {"quiet", 0, OPT_FLAG, NULL, offsetof(struct cli, quiet), "print no progress and no remarks"},
    {"raw", 0, OPT_FLAG, NULL, offsetof(struct cli, raw), "print control characters unchanged"},
    {"yes", 'y', OPT_FLAG, NULL, offsetof(struct cli, yes), "answer yes to every question"},
    {"help", 'h', OPT_FLAG, NULL, offsetof(struct cli, help), "print this help"},
    {"version", 'V', OPT_FLAG, NULL, offsetof(struct cli, version), "print the version"},
    {"help-man", 0, OPT_FLAG, NULL, offsetof(struct cli, help_man), NULL},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

/* One option as it was found, and where its value goes. */
struct found {
        const struct opt *opt;
        void *into;
        const char *value; /* what stood behind '=' or the letter, else NULL */
};

static const struct opt *find(const struct opt *table, struct str name, char letter)
{
        for (; table != NULL && table->name != NULL; table++) {
                if (letter ? table->letter == letter : str_is(name, table->name))
                        return table;
        }
        return NULL;
}

static bool is_choice(const char *words, const char *value)
{
        size_t n = strlen(value);

        for (const char *w = words; n > 0 && (w = strstr(w, value)) != NULL; w++) {
                if ((w == words || w[-1] == '|') && (w[n] == 0 || w[n] == '|'))
                        return true;
        }
        return false;
}

static int store_number(struct cli *c, const struct opt *o, const char *value, void *field)
{
        struct opt_number *num = field;
        char *end;

        errno = 0;
        unsigned long long v = strtoull(value, &end, 10);
        if (value[0] < '0' || value[0] > '9' || *end != 0 || errno != 0)
                return cli_usage(c, "--%s: \"%s\" is not a number", o->name, value);
        num->set = true;
        num->v = v;
        return 0;
}

static int store_value(struct cli *c, const struct found *f, const char *value)
{
        void *field = (char *)f->into + f->opt->at;
        struct opt_list *list = field;

        switch (f->opt->type) {
        case OPT_FLAG:
                *(bool *)field = true;
                return 0;
        case OPT_NUMBER:
                return store_number(c, f->opt, value, field);
        case OPT_LIST:
                if (list->n == OPT_LIST_MAX)
                        return cli_usage(
                            c, "--%s is given more than %d times", f->opt->name, OPT_LIST_MAX);
                list->v[list->n++] = value;
                return 0;
        case OPT_CHOICE:
                if (!is_choice(f->opt->arg, value))
                        return cli_usage(
                            c, "--%s: \"%s\" is not one of %s", f->opt->name, value, f->opt->arg);
                *(const char **)field = value;
                return 0;
        case OPT_TEXT:
                *(const char **)field = value;
                return 0;
        }
        return 0;
}

/* `n`: how much of the word is the option, without its value. */
static int unknown_option(
    struct cli *c, const struct opt *globals, const struct opt *opts, const char *word, size_t n)
{
        char name[OPTION_NAME_MAX];
        const char *nearest = NULL;

        if (n > 2 && n - 2 < sizeof(name)) {
                snprintf(name, sizeof(name), "%.*s", (int)(n - 2), word + 2);
                nearest = help_nearest_option(opts, globals, name);
        }
        if (nearest != NULL)
                return cli_usage(c, "no option %.*s; did you mean --%s?", (int)n, word, nearest);
        return cli_usage(c, "no option %.*s", (int)n, word);
}

/* Which option a word is. 0 or an exit code. */
static int identify(struct cli *c, const struct opt *globals, const struct opt *opts, void *into,
    const char *word, struct found *f)
{
        struct str name = str_of(word + 1);
        char letter = word[1];

        f->value = NULL;
        if (word[1] == '-') {
                const char *eq = strchr(word, '=');
                letter = 0;
                name = str_of(word + 2);
                if (eq != NULL) {
                        name.n = (size_t)(eq - word) - 2;
                        f->value = eq + 1;
                }
        } else if (word[2] != 0) {
                f->value = word + 2;
        }
        f->into = into;
        f->opt = find(opts, name, letter);
        if (f->opt == NULL) {
                f->into = c;
                f->opt = find(globals, name, letter);
        }
        if (f->opt == NULL)
                return unknown_option(c, globals, opts, word, letter ? 2 : name.n + 2);
        if (f->opt->type == OPT_FLAG && f->value != NULL)
                return cli_usage(c, "--%s takes no value", f->opt->name);
        return 0;
}

int options_parse(struct cli *c, const struct opt *globals, const struct opt *opts, void *into,
    bool stop_at_word, int *argc, char **argv)
{
        int n = 0;
        bool only_words = false;

        for (int i = 0; i < *argc; i++) {
                char *word = argv[i];
                if (!only_words && strcmp(word, "--") == 0) {
                        only_words = true;
                        continue;
                }
                if (only_words || word[0] != '-' || word[1] == 0) {
                        /* From here on everything is the command's, in order. */
                        if (stop_at_word) {
                                memmove(argv, argv + i, sizeof(*argv) * (size_t)(*argc - i));
                                n = *argc - i;
                                break;
                        }
                        argv[n++] = word;
                        continue;
                }
                struct found f;
                int rc = identify(c, globals, opts, into, word, &f);
                if (rc != 0)
                        return rc;
                const char *value = f.value;
                if (f.opt->type != OPT_FLAG && value == NULL) {
                        if (++i == *argc)
                                return cli_usage(
                                    c, "--%s needs a value: %s", f.opt->name, f.opt->arg);
                        value = argv[i];
                }
                rc = store_value(c, &f, value);
                if (rc != 0)
                        return rc;
        }
        *argc = n;
        return 0;
}
