/*
 * command.h - the table of commands, and the functions that commands share.
 *
 * A command is a row: its name, its options, an example, and a function of about fifty lines that
 * makes one call of the library and prints the answer. Help, option parsing, usage errors and the
 * manual page are made from the row. Adding a command is adding a file with its row and one line
 * to commands.c.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cli/out.h"
#include "cli/term.h"
#include "steno.h"

enum exit_code {
        EXIT_DONE = 0,
        EXIT_NOT_FOUND = 1, /* an unknown conversation or ref, or no match */
        EXIT_USAGE = 2,
        EXIT_REFUSED = 3, /* permission, conflict, protocol */
        EXIT_CORRUPT = 4,
        EXIT_IO = 5,
        EXIT_INTERRUPTED = 130,
};

/* ---- options ---- */

enum opt_type {
        OPT_FLAG,   /* bool */
        OPT_TEXT,   /* const char * */
        OPT_CHOICE, /* const char *, one of the words in `arg` */
        OPT_NUMBER, /* struct opt_number */
        OPT_LIST,   /* struct opt_list: may be given again */
};

struct opt_number {
        bool set;
        uint64_t v;
};

#define OPT_LIST_MAX 32
struct opt_list {
        const char *v[OPT_LIST_MAX];
        size_t n;
};

struct opt {
        const char *name; /* without the dashes; NULL ends a table */
        char letter;      /* or 0 */
        enum opt_type type;
        const char *arg; /* how help names the value: "ID", "full|process" */
        size_t at;       /* offsetof the field in the command's struct of options */
        const char *help;
};

/* ---- commands ---- */

struct cli;

enum command_group {
        GROUP_RECORD,
        GROUP_READ,
        GROUP_CONTEXT,
        GROUP_RUN,
        GROUP_SERVE,
        GROUP_KEEP,
        GROUP_COUNT,
};

struct command {
        const char *name; /* one word, or two: "context read" */
        enum command_group group;
        const char *usage;      /* the arguments: "CONV [FILE...]" */
        const char *summary;    /* one line, no full stop */
        const char *detail;     /* paragraphs, or NULL */
        const char *example;    /* lines that work as they stand */
        const struct opt *opts; /* NULL: none */
        size_t opts_size;       /* sizeof the struct that the table fills, zeroed before */
        int min_args;
        int max_args; /* -1: any number */
        /* `opts` points to the filled struct. Returns an exit code. */
        int (*run)(struct cli *c, const void *opts, int argc, char **argv);
};

/* The table, in the order of the help; *n rows. commands.c */
const struct command *const *commands_all(size_t *n);

/* ---- what a command works with ---- */

struct cli {
        const struct command *cmd; /* NULL before one is known */
        const char *store_url;
        const char *project;
        const char *color;
        bool json;
        bool quiet;
        bool raw;
        bool yes;
        bool help;
        bool version;
        bool help_man;
        bool sealing;   /* the store is opened with the key that seals */
        bool warned;    /* something is not in order, and was told of */
        struct out out; /* standard output */
        struct steno_store *store;
        struct steno_conv *conv;
        struct term_progress bar; /* of the store */
        char *default_url;        /* owned */
        char *store_path;         /* owned; of a file: URL */
        char *store_folder;       /* owned */
        char *run;                /* owned; that cli_run_of() has found */
};

/* Splits argv into the struct of options and the positional arguments, which are moved to the
 * front of argv; *argc becomes their number. Flags of `globals` are accepted everywhere. 0 or
 * EXIT_USAGE, reported. `stop_at_word` ends at the first positional. */
int options_parse(struct cli *c, const struct opt *globals, const struct opt *opts, void *into,
    bool stop_at_word, int *argc, char **argv);
extern const struct opt cli_globals[];

/* Help on `out`: general, and of one command. */
void help_general(struct out *o);
void help_command(struct out *o, const struct command *cmd);
/* For the first word of commands of two words; false when there is none. `out` NULL: only asks. */
bool help_family(struct out *o, const char *word);
/* A summary is a phrase in the list and a sentence on its own. */
void help_sentence(struct out *o, const char *phrase);
extern const char help_exit_codes[];
/* A manual page: of the program (NULL), or of one command by its page's name, "context-read".
 * False when there is no such command. */
bool man_page(struct out *o, const char *name);
/* The command whose name comes closest to a misspelt one, or NULL. */
const char *help_nearest(const char *word);
/* The same among the commands of two words that begin with `family`. */
const char *help_nearest_of_family(const char *family, const char *word);
/* "list, read, tail, grep": the second words of such commands. */
void help_put_family(struct buf *b, const char *family);
/* The option whose name is closest to a misspelt one, without its dashes, or NULL. */
const char *help_nearest_option(
    const struct opt *opts, const struct opt *globals, const char *word);

/* ---- reporting; all to standard error ---- */

/* "steno: append: ..." from an error of the library. Returns the exit code that belongs to it. */
int cli_fail(struct cli *c, const struct steno_error *err);
int cli_exit_code(int steno_code);
/* The same line from a sentence, with the exit code given. */
int cli_refuse(struct cli *c, int exit_code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int cli_usage(struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same line as a warning that does not stop the command; printed also with --quiet. */
void cli_warn(struct cli *c, const char *what);
/* For a person, unless --quiet. */
void cli_say(struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- doors to the library ---- */

/* --store, else $STENO_STORE, else the default one's path; NULL when memory is out. */
const char *cli_store_url(struct cli *c);
/* The project where none is named; cli_told_project() is NULL then. */
extern const char cli_default_project[];
const char *cli_told_project(const struct cli *c);
/* The same as a path, without file:. */
const char *cli_store_path(struct cli *c);
/* The folder on this machine that has what belongs to the store: the store itself, or of one in a
 * database what Steno keeps beside it. NULL: there is none. */
const char *cli_store_folder(struct cli *c);

enum cli_open {
        CLI_MUST_EXIST, /* reading makes no store */
        CLI_CREATE,
        CLI_REPAIR, /* must exist, but its store.json may be damaged */
};
/* Into c->store and c->conv; main closes them. 0, or an exit code, reported. */
int cli_open_store(struct cli *c, enum cli_open how);
int cli_open_conv(struct cli *c, const char *id);
/* Finds the run that a name means: the run with this id, or, if it is the id of a conversation, its
 * live run or else its newest one, because people remember conversations. The store must be
 * open. */
const char *cli_run_of(struct cli *c, const char *name);
/* The same, but makes the store and the conversation if they do not exist. */
int cli_make_conv(struct cli *c, const char *id);

/* Confirms a destructive step: asks on a terminal, needs --yes elsewhere. Returns 0 to continue, or
 * an exit code. */
int cli_confirm(struct cli *c, const char *question, ...) __attribute__((format(printf, 2, 3)));

/* Prints a JSON answer and a line feed; frees it. Returns EXIT_DONE. */
int cli_print_json(struct cli *c, char *json);

/* Ends messages that were written with out_sink, and prints their report (which may be NULL) on
 * standard error. */
void cli_end_view(struct cli *c, const char *report);
/* Says in one line that a view or a conversion left out calls or results, if its report says so. */
void cli_say_lost(struct cli *c, const char *report);

#endif
