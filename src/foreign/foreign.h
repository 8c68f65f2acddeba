/*
 * foreign.h - reads the sessions of other tools, entry by entry.
 *
 * A kind stands for one way in which a tool keeps its sessions. It has a row in the table of
 * foreign.c and a file of its own. It recognises its files, knows where they usually are, and turns
 * each entry into an item: a message in one of Steno's formats, with the id and the time that the
 * tool gave the entry. The caller (the sink) decides what to do with items; nothing here knows a
 * store.
 *
 *   LINES      one JSON value a line, read in constant memory. A kind sees one line at a time.
 *   DOCUMENT   one JSON value, read whole.
 *   DATABASE   SQLite, opened read-only.
 *
 * Entries come in the order of the source. If the same id comes again, this is a new version of the
 * entry: kinds hand out every version, and the sink decides which it keeps. If a tool writes
 * everything twice, its kind hands out one copy and skips the other. An entry that a kind does not
 * understand is handed out unchanged, with `other` set.
 *
 * A source is not trusted. No file that it names is opened, except outputs below the tool's own
 * folder (foreign_side). If it came without its folder (`alone`), no other file is opened at all,
 * so that a person who sends a source over the network cannot read files of this machine.
 */
#ifndef FOREIGN_TRANSCRIPT_H
#define FOREIGN_TRANSCRIPT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "steno.h"

struct sqlite3;

/* A session becomes a conversation. The strings are decoded; "" or NULL: not known. */
struct foreign_session {
        struct str id;
        struct str title;
        struct str model;
        struct str version; /* the version of the tool */
        struct str cwd;
        struct str parent;  /* the session that started this one, or that it was forked from */
        struct str call;    /* the call of the parent that started it */
        const char *origin; /* if there is a parent: "subagent", "fork" or "sidechain" */
        bool cut;           /* a fork has the entries of its parent before this ordinal */
        uint64_t cut_ordinal;
};

struct foreign_item {
        struct str id;      /* the entry's own id; "": it has none */
        struct str at;      /* the time, ISO 8601; "": not known */
        const char *format; /* the format of `json` */
        struct str json;    /* the message, on one line */
        struct str entry;   /* the bytes that distinguish this version from others; "": the bytes of
                               `json` */
        bool other;         /* the kind did not understand the entry and hands it out unchanged */
        bool weak;          /* used only if this id is not known yet */
        bool beside; /* not an entry, but other input that the model got beside the messages; it has
                        an id */
        uint32_t calls;   /* the number of calls that the message makes */
        uint32_t results; /* the number of results that it holds */
};

struct foreign_sink {
        void *ctx;
        /* The following items belong to this session. In kinds of LINES a file has one session,
         * which begins automatically. */
        int (*begin)(void *ctx, const struct foreign_session *s);
        int (*item)(void *ctx, const struct foreign_item *item);
        /* Returns the name of the format of a list of messages. NULL: no format is certain. */
        const char *(*choose)(void *ctx, const struct json *j, json_ref list);
        /* Counts an entry of a known kind that is not a message. */
        void (*skipped)(void *ctx);
        /* Counts an entry that cannot be read. */
        void (*damaged)(void *ctx);
};

/* What is known of a file before the file is read. */
struct foreign_probe {
        const char *path;         /* absolute where it is a file */
        bool alone;               /* it came without its folder, so the path is only a name */
        struct str head;          /* its first bytes */
        bool database;            /* it is SQLite */
        const struct json *first; /* the first line, or NULL: it is not JSON */
        const struct json *whole; /* the whole file, or NULL: it is not JSON, or too large */
        struct sqlite3 *db;       /* the database if the file is one; else NULL */
};

struct foreign_kind;

/* The reading of one source. */
struct foreign {
        const struct foreign_kind *kind;
        const char *path;
        bool alone; /* files beside the source are not looked at */
        struct foreign_sink sink;
        struct foreign_session session;
        struct arena arena; /* for the session's strings */
        struct arena line;  /* for what is read now: a line, or the whole document */
        struct json j;      /* the line, or the document */
        struct str raw;     /* its text */
        struct sqlite3 *db;
        bool unsettled;     /* the lines since the last settled one must be read again next time */
        void *state;        /* the kind's own state: state_size bytes, zero at the start */
        struct buf out;     /* scratch for the message that is being made */
        struct buf a, b, c; /* scratch for kinds */
        struct steno_error *err;
};

enum foreign_shape { FOREIGN_LINES, FOREIGN_DOCUMENT, FOREIGN_DATABASE };

/* Where a tool keeps its files: below the folder that the environment variable names, or below the
 * home folder if the variable is not set. */
struct foreign_place {
        const char *variable; /* NULL: none */
        const char *below;    /* path below the variable's value; may be "" */
        const char *home;     /* path below the home folder */
};

struct foreign_kind {
        const char *name;
        enum foreign_shape shape;
        size_t state_size;
        const struct foreign_place *places; /* ends with a row of NULLs; NULL: none known */
        /* Does this kind recognise the file? */
        bool (*is)(const struct foreign_probe *p);
        /* Fills t->session from what is known before the file is read. NULL: the file's name is the
         * id. */
        int (*identify)(struct foreign *t, const struct foreign_probe *p);
        /* LINES: takes one line. t->j is the line, which is an object. */
        int (*line)(struct foreign *t);
        /* LINES, may be NULL: called at the end of what the file has now. */
        int (*end)(struct foreign *t);
        void (*release)(struct foreign *t); /* releases the state; may be NULL */
        /* DOCUMENT and DATABASE: reads all of t->j or t->db. */
        int (*read)(struct foreign *t);
};

/* The i-th kind; NULL behind the last one. */
const struct foreign_kind *foreign_at(size_t i);
/* The kind that recognises a file; NULL: no kind does. */
const struct foreign_kind *foreign_find(const struct foreign_probe *p);

int foreign_open(struct foreign *t, const struct foreign_kind *kind, const struct foreign_probe *p,
    const struct foreign_sink *sink, struct steno_error *err);
void foreign_close(struct foreign *t);
/* LINES: takes the next line, without its line feed. A line that is not a JSON object is counted as
 * damaged and kept. */
int foreign_line(struct foreign *t, struct str line);
/* LINES: the end of the file is reached for now. */
int foreign_end(struct foreign *t);
/* DOCUMENT and DATABASE: reads the whole source. `text` is the text of a document. */
int foreign_read(struct foreign *t, struct str text);

/* ---- for kinds ---- */

/* Returns a copy that lives as long as the reading. Used for strings of the session. */
struct str foreign_keep(struct foreign *t, struct str s);
/* Sets a string of the session from a member, if the string is not known yet. */
void foreign_learn(struct foreign *t, struct str *to, const struct json *j, json_ref v);
/* Returns the decoded text of a string, or "" if `v` is no string. It lives until the next line. */
struct str foreign_text(struct foreign *t, const struct json *j, json_ref v);
/* Returns two strings joined, with the same lifetime. */
struct str foreign_join(struct foreign *t, struct str a, const char *b);
/* Returns the name of a file without its folder, and without `suffix` if the name ends with it. */
struct str foreign_stem(const char *path, const char *suffix);
/* Hands out an item. Fails with ENOMEM if a scratch buffer did. */
int foreign_item(struct foreign *t, const struct foreign_item *item);
/* Hands out an entry that the kind does not understand. `json` is a whole JSON value. */
int foreign_other(struct foreign *t, struct str id, struct str at, struct str json);
/* Hands out the instructions that the model got beside the messages. They are a string, and stay
 * out of the context, as the gateway keeps them. */
int foreign_instructions(struct foreign *t, struct str at, const struct json *j, json_ref text);
void foreign_skip(struct foreign *t);

/*
 * Reads an output that the tool keeps in a file. `tail` (plain names with '/') is a path below the
 * folder `up` levels above the source's own folder. Only regular files are read, no links. Returns
 * false if there is none.
 */
bool foreign_side(struct foreign *t, unsigned up, struct str tail, struct buf *out);
/* Does the same for an absolute path that the source names: only the part after the last `marker`
 * is used, below the same folder. */
bool foreign_side_named(
    struct foreign *t, unsigned up, const char *marker, struct str path, struct buf *out);

/* Calls `each` with the sorted names in a folder; `tail` and `up` are as above. `each` returns 0 to
 * continue. */
typedef int (*foreign_name_fn)(void *ctx, const char *name);
int foreign_side_list(
    struct foreign *t, unsigned up, const char *tail, foreign_name_fn each, void *ctx);

/* Reads the file with this plain name in the folder for temporary files. */
bool foreign_temporary(struct foreign *t, const char *name, struct buf *out);

/* Returns when the files that belong to the session at `path` last changed, not counting that file
 * itself. Zero for tools that keep a session in one file. */
struct timespec foreign_changed(const char *path);

/* Returns milliseconds since 1970 as text, or "" if `ms` is not a number. `out` has TIME_TEXT
 * bytes. */
struct str foreign_time(const struct json *j, json_ref ms, char *out);

#endif
