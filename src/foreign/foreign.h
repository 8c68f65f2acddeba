/*
 * foreign.h - reads the sessions of other tools, entry by entry.
 *
 * A kind is a tool and the way it keeps its sessions: a row of the table in foreign.c and a file of
 * its own. It recognises its files, knows where they usually are, and turns each entry into an
 * item: a message in one of Steno's formats, with the id and the time that the tool gave it. The
 * caller (the sink) decides what to do with items; nothing here knows a store.
 *
 *   LINES      one JSON value a line, read in constant memory. A kind sees one line at a time.
 *   DOCUMENT   one JSON value, read whole.
 *   DATABASE   SQLite, opened read-only.
 *
 * Entries come in the order of the source. An entry that comes again under the same id is a new
 * version of it: kinds hand out every version, and the sink decides. Where a tool writes everything
 * twice, its kind hands out one copy and skips the other. An entry that a kind does not understand
 * is handed out unchanged, with `other` set.
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

/* A session: what becomes a conversation. Strings are decoded; "" or NULL: not known. */
struct foreign_session {
        struct str id;
        struct str title;
        struct str model;
        struct str version; /* of the tool */
        struct str cwd;
        struct str parent;  /* the session that this one was started by, or forked from */
        struct str call;    /* the call of the parent that started it */
        const char *origin; /* "subagent", "fork" or "sidechain", where there is a parent */
        bool cut;           /* a fork has the entries of its parent before this ordinal */
        uint64_t cut_ordinal;
};

struct foreign_item {
        struct str id;      /* the entry's own; "": it has none */
        struct str at;      /* when, ISO 8601; "": not known */
        const char *format; /* of `json` */
        struct str json;    /* the message, on one line */
        struct str entry;   /* the bytes that distinguish this version from others; "": those of
                               json */
        bool other;         /* not understood, kept as it stands */
        bool weak;          /* used only where this id is not known yet */
        bool beside;        /* not an entry, but something that the model got in addition to the
                               messages; it has an id */
        uint32_t calls;     /* that it makes, and */
        uint32_t results;   /* that it holds */
};

struct foreign_sink {
        void *ctx;
        /* The following items belong to this session. In kinds of LINES a file has one session,
         * which begins automatically. */
        int (*begin)(void *ctx, const struct foreign_session *s);
        int (*item)(void *ctx, const struct foreign_item *item);
        /* The name of the format that a list of messages is in; NULL: none is certain. */
        const char *(*choose)(void *ctx, const struct json *j, json_ref list);
        /* Counts an entry of a known kind that is not a message. */
        void (*skipped)(void *ctx);
        /* Something that cannot be read: counted. */
        void (*damaged)(void *ctx);
};

/* What is known of a file before it is read. */
struct foreign_probe {
        const char *path;         /* absolute where it is a file */
        bool alone;               /* it came without its folder: the path is only a name */
        struct str head;          /* its first bytes */
        bool database;            /* it is SQLite */
        const struct json *first; /* the first line, or NULL: it is not JSON */
        const struct json *whole; /* the whole file, or NULL: it is not JSON, or too large */
        struct sqlite3 *db;       /* where it is a database; else NULL */
};

struct foreign_kind;

/* A reading of one source. */
struct foreign {
        const struct foreign_kind *kind;
        const char *path;
        bool alone; /* nothing beside it is looked at */
        struct foreign_sink sink;
        struct foreign_session session;
        struct arena arena; /* of the session's strings */
        struct arena line;  /* of what is read now: a line, or the whole document */
        struct json j;      /* the line, or the document */
        struct str raw;     /* its text */
        struct sqlite3 *db;
        bool unsettled; /* what was read since the last settled line must be read again next time */
        void *state;    /* the kind's own, state_size bytes, zero at the start */
        struct buf out; /* scratch: the message that is made */
        struct buf a, b, c; /* scratch for kinds */
        struct steno_error *err;
};

enum foreign_shape { FOREIGN_LINES, FOREIGN_DOCUMENT, FOREIGN_DATABASE };

/* Where a tool keeps its files: below the folder that `variable` names, else below home. */
struct foreign_place {
        const char *variable; /* NULL: none */
        const char *below;    /* the variable's value; may be "" */
        const char *home;     /* path below the home folder */
};

struct foreign_kind {
        const char *name;
        enum foreign_shape shape;
        size_t state_size;
        const struct foreign_place *places; /* ends with a row of NULLs; NULL: nowhere */
        /* Is it one of mine? */
        bool (*is)(const struct foreign_probe *p);
        /* Fills t->session from what is known before reading. NULL: the file's name is the id. */
        int (*identify)(struct foreign *t, const struct foreign_probe *p);
        /* LINES: t->j is the line, an object. */
        int (*line)(struct foreign *t);
        /* LINES, may be NULL: the end of what is there now. */
        int (*end)(struct foreign *t);
        void (*release)(struct foreign *t); /* of the state; may be NULL */
        /* DOCUMENT (t->j) and DATABASE (t->db). */
        int (*read)(struct foreign *t);
};

/* The i-th kind; NULL behind the last. */
const struct foreign_kind *foreign_at(size_t i);
/* The kind of a file; NULL: none of ours. */
const struct foreign_kind *foreign_find(const struct foreign_probe *p);

int foreign_open(struct foreign *t, const struct foreign_kind *kind, const struct foreign_probe *p,
    const struct foreign_sink *sink, struct steno_error *err);
void foreign_close(struct foreign *t);
/* LINES: the next line, without its line feed. Lines that are not JSON objects are counted as
 * damaged and kept. */
int foreign_line(struct foreign *t, struct str line);
/* LINES: the end is reached for now. */
int foreign_end(struct foreign *t);
/* DOCUMENT (its text) and DATABASE. */
int foreign_read(struct foreign *t, struct str text);

/* ---- for kinds ---- */

/* A copy that lives as long as the reading: for the session. */
struct str foreign_keep(struct foreign *t, struct str s);
/* A string member of the session, where it is not known yet. */
void foreign_learn(struct foreign *t, struct str *to, const struct json *j, json_ref v);
/* A string, decoded; "" where it is none. Lives until the next line. */
struct str foreign_text(struct foreign *t, const struct json *j, json_ref v);
/* Two strings joined, with the same lifetime. */
struct str foreign_join(struct foreign *t, struct str a, const char *b);
/* The name of the file without its folder and, where `suffix` is one, without that. */
struct str foreign_stem(const char *path, const char *suffix);
/* Hands out an item; fails with ENOMEM when scratch did. */
int foreign_item(struct foreign *t, const struct foreign_item *item);
/* An entry that is not understood. `json` is a whole JSON value. */
int foreign_other(struct foreign *t, struct str id, struct str at, struct str json);
/* The instructions that the model got in addition to the messages, a string: kept out of its
 * context, as the gateway keeps them. */
int foreign_instructions(struct foreign *t, struct str at, const struct json *j, json_ref text);
void foreign_skip(struct foreign *t);

/*
 * An output that the tool keeps in a file: `tail` (plain names with '/') below the folder that lies
 * `up` folders above the source's own. Only regular files there, no links. False: there is none.
 */
bool foreign_side(struct foreign *t, unsigned up, struct str tail, struct buf *out);
/* The same by an absolute path that the source names: only what follows the last `marker` in it is
 * used, below the same folder. */
bool foreign_side_named(
    struct foreign *t, unsigned up, const char *marker, struct str path, struct buf *out);

/* The sorted names in a folder; `tail` and `up` are as above. `each` returns 0 to continue. */
typedef int (*foreign_name_fn)(void *ctx, const char *name);
int foreign_side_list(
    struct foreign *t, unsigned up, const char *tail, foreign_name_fn each, void *ctx);

/* A file with this plain name in the folder for temporary files. */
bool foreign_temporary(struct foreign *t, const char *name, struct buf *out);

/* When something that belongs to the session at `path` last changed, besides that file itself; zero
 * for the tools that have all in one file. */
struct timespec foreign_changed(const char *path);

/* Milliseconds since 1970 as text; "" for anything that is not a number. `out` has TIME_TEXT bytes.
 */
struct str foreign_time(const struct json *j, json_ref ms, char *out);

#endif
