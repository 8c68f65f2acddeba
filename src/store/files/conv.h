/*
 * conv.h - an open conversation, as the files of this folder share it. Nobody else includes it.
 */
#ifndef STORE_FILES_CONV_H
#define STORE_FILES_CONV_H

#include <pthread.h>

#include "model/pairing.h"
#include "store/files/files.h"
#include "store/files/ids.h"
#include "store/files/log.h"
#include "store/files/quota.h"

struct files_project {
        struct files_project *next;
        char folder[65];
        int conversations; /* descriptor */
};

struct append_request;
struct log_seen;
struct index;
struct search;

struct files_conv {
        struct backend_conv base;
        struct files_store *store;
        struct files_project *project;
        /* Under the store's mutex. */
        struct files_conv *next;  /* in its row of the table */
        struct files_conv *older; /* among those that nobody holds */
        struct files_conv *newer;
        struct files_conv *syncing; /* in the syncer's list */
        unsigned refs;
        char *id;
        char *project_id;
        bool named; /* both are known, not only their folders (names.c) */
        char folder[65];
        int dir;
        dev_t dir_dev;
        ino_t dir_ino;

        /* The queue of the group commit. */
        pthread_mutex_t mutex;
        pthread_cond_t turn;
        struct append_request *queue;
        struct append_request **queue_end;
        bool busy; /* someone leads a group, or holds the conversation with files_conv_lock */

        /* Under the same mutex: what readers have found out. */
        struct log_seen *seen;   /* log_seen.h, or NULL */
        struct fs_stamp no_runs; /* the folder, when there was no `runs` in it */

        /* What the leader knows; touched only while `busy`, and trusted only under flock. */
        struct timespec dir_changed; /* the folder's, when the lock was taken, */
        struct timespec log_changed; /* and the log's */
        struct fs_stamp dir_seen;    /* when the names of folder and log were looked at */
        struct fs_stamp root_seen;   /* of the store's folder, when our name was in `recent` */
        int log;
        ino_t log_ino;
        bool known;              /* the four below describe the file */
        struct log_end at;       /* end, last_seq */
        uint64_t highest_seq;    /* that this handle has seen; of whatever file */
        char last_at[TIME_TEXT]; /* the time of the last record, */
        uint64_t timed;          /* which ended here */
        bool spare;              /* it may have blocks behind its end: give them back */
        struct ids ids;
        struct pairing *pairing; /* NULL: not loaded */
        bool meta_stale;         /* meta.json does not say the names */
        uint64_t recent;         /* the store's `recent` file that has our name, by its number */
        bool poisoned;
        bool gone;          /* removed for good; under the store's mutex */
        bool dirty;         /* process-durable appends wait for the store's syncer; atomic */
        bool tend_ids;      /* ids.idx is behind, or much of it would not last; atomic */
        int64_t ids_tended; /* when the syncer last did something about it, monotonic ms */
};

#define CONV_ROWS 1024

struct files_aside;
/* files_aside.c; NULL does nothing. */
void files_aside_free(struct files_aside *a);

struct files_store {
        struct backend_store base;
        const struct env *env;
        unsigned forks;       /* of the process that opened it (files_is_ours) */
        uint64_t boot;        /* ids_boot */
        uint64_t quarantined; /* bytes, by this handle; atomic */
        int64_t touched;      /* see conv_touch; atomic, in nanoseconds */
        char *path;
        int root;
        pthread_mutex_t mutex;               /* the table, the projects, the syncer */
        pthread_mutex_t sync_mutex;          /* who has a list by `syncing`; taken before `mutex` */
        struct files_conv *table[CONV_ROWS]; /* open conversations, by inode */
        unsigned conv_count;
        struct files_conv *oldest; /* of those that nobody holds, by when they were let go */
        struct files_conv *newest;
        unsigned open_max;
        struct files_project *projects;
        int projects_dir;

        /* `recent` as it was last seen. It stays open so that no other file can get its inode. */
        pthread_mutex_t recent_mutex;
        int recent;
        ino_t recent_ino;
        uint64_t recent_number; /* grows with every new file */

        struct files_aside *aside; /* whose files these are; NULL: they are on the disk */

        struct quota quota;
        quota_warn_fn quota_warn; /* may be NULL */
        void *quota_ctx;

        uint64_t settle_ids; /* so much of a log may have ids that would not last a power cut */

        /* What is derived, opened when first needed (files_catalogue.c). */
        pthread_mutex_t derived_mutex;
        struct index *index;
        struct search *search; /* that is added to */
        struct search *asked;  /* the same files, for questions */

        pthread_cond_t wake;
        pthread_t syncer;
        bool syncer_runs;
        bool closing;
};

/*
 * Opens a conversation's folder that is not yet in its place, below `parent`, which must stay open,
 * to fill or check it. It is in no table, so close it with files_conv_close_aside.
 */
int files_conv_open_aside(struct files_store *store, int parent, const char *folder,
    struct str project, struct str id, struct files_conv **out, struct steno_error *err);
void files_conv_close_aside(struct files_conv *conv);

/* The conversation in this folder was removed for good: its files are closed as soon as its last
 * user releases it, because an open file keeps its space on the disk. */
void files_conv_is_gone(struct files_store *store, const struct stat *dir);

/* Another reference, given back with files_conv_release. Under the store's mutex. */
void files_conv_hold(struct files_conv *conv);

/* Takes the turn in this process (waits), without flock. */
void conv_enter(struct files_conv *conv);
void conv_leave(struct files_conv *conv);

/* The latest change time of a log that was seen in this store: the `later` of fs_stamp_of. */
void conv_touch(struct files_store *store, struct timespec changed);
struct timespec conv_touched(const struct files_store *store);

/* flock and S2. STENO_ENOTFOUND: it was removed. */
int conv_flock(struct files_conv *conv, struct steno_error *err);
void conv_funlock(struct files_conv *conv);

/* Opens what ids.idx knows about the log and finds its end; -1: there is none. `known` (may be
 * NULL) may have a later mark than the file. Needs no lock. */
int conv_find_end(struct files_conv *conv, int log, const struct ids *known, struct ids *ids,
    struct log_end *out, struct steno_error *err);
/* There is no log: STENO_ECORRUPT where there should be one, because Steno made the folder, and no
 * seq of it is known. */
int conv_lacks_log(struct files_conv *conv, uint64_t last_seq, struct steno_error *err);
/*
 * STENO_ECORRUPT for a log that was changed. Where no batch is whole, it may be the first span,
 * torn: then its first line is a record, or has lost its line feed or whole blocks. Else it had
 * records, and must not be taken for an empty one.
 */
int conv_refuse_changed(struct files_conv *conv, int log, const struct ids *ids,
    const struct log_end *at, struct steno_error *err);
/* Under flock: brings log, at, ids up to date; moves a torn tail to the quarantine. */
int conv_refresh(struct files_conv *conv, struct steno_error *err);
/* The same where that refuses: a log that is missing begins anew, and one of which nothing can be
 * read goes to the quarantine. */
int conv_repair(struct files_conv *conv, struct steno_error *err);
/* Under flock and fresh: all ids before the end can be found. */
int conv_cover_ids(struct files_conv *conv, struct steno_error *err);
/* Under flock and fresh: so much is missing in ids.idx that conv_cover_ids would make others wait
 * long for the lock. */
bool conv_ids_are_behind(const struct files_conv *conv);
/* Without the lock: reads what is missing while others write, except for a little at the end. Other
 * callers wait for the result. */
int conv_catch_up_ids(struct files_conv *conv, struct steno_error *err);
/* Without the lock: syncs ids.idx, so that it lasts over a power cut. */
int conv_settle_ids(struct files_conv *conv, struct steno_error *err);
/* conv_cover_ids, then ids_lookup; a damaged index is rebuilt first. CONV_EBEHIND: the caller must
 * do that without the lock. */
#define CONV_EBEHIND (-1000)
int conv_lookup(struct files_conv *conv, uint64_t hash, int (*each)(void *ctx, uint64_t at),
    void *ctx, struct steno_error *err);
/* Under flock and fresh: the pairing window is loaded. */
int conv_load_pairing(struct files_conv *conv, struct steno_error *err);
/* Forgets what is known, so that the next conv_refresh looks again. */
void conv_forget(struct files_conv *conv);
/* Before a handle is closed: writes ids that wait in memory and releases unused blocks, if no other
 * process has the lock. */
void conv_settle(struct files_conv *conv);

/* Under flock, before a commit: the name is in `recent` (recent.c). */
int recent_note(struct files_conv *conv, struct steno_error *err);

/* The same for a folder that nobody has open. Best effort. */
void recent_note_name(struct files_store *store, const char *project_folder, const char *folder);

/* Is this the folder of that id? */
bool conv_folder_is_of(const char *folder, struct str id);
/* Fills id and project of a new handle. `project` and `id` are the caller's, or empty. */
int conv_learn_names(
    struct files_conv *conv, struct str project, struct str id, struct steno_error *err);
/* The same where the folder says nothing: in the trash. */
int conv_take_names(
    struct files_conv *conv, struct str project, struct str id, struct steno_error *err);

/* Under flock, before a commit: meta.json says the names, if that is possible (meta.c). */
void meta_refresh(struct files_conv *conv);
/* The `uid` of meta.json, a ULID that no other conversation ever has, made where it is missing. The
 * caller holds the lock. */
#define META_UID 27
int meta_uid(struct files_conv *conv, char out[META_UID], struct steno_error *err);
/* Gives the meta.json of a folder that nobody has open another id and project, and a new uid; 0 or
 * a negative errno. */
int meta_rename(const struct env *env, int dir, const char *id, const char *project);
/* When the first record was written. False: it cannot be read. */
bool meta_created(const struct fs *fs, int dir, char out[TIME_TEXT]);
/* The same as meta_refresh for a folder that nobody has open; 0 or a negative errno. One that is
 * not an object stays. */
int meta_set_names(const struct fs *fs, int dir, const char *id, const char *project);

/* Moves bytes [from, to) of the log aside, with a note (quarantine.c). Synced. */
int quarantine_log(
    struct files_conv *conv, uint64_t from, uint64_t to, const char *why, struct steno_error *err);
/* The same for another file of the conversation, open as `fd`. */
int quarantine_bytes(struct files_conv *conv, int fd, const char *file, uint64_t from, uint64_t to,
    const char *why, struct steno_error *err);

/* Moves a file or folder of the conversation aside, whole and with a note; `file` may be below one
 * of its folders. */
int quarantine_entry(
    struct files_conv *conv, const char *file, const char *why, struct steno_error *err);

/* The same for a whole file of the store's root, which goes there itself. */
int quarantine_file(
    struct files_store *store, const char *file, const char *why, struct steno_error *err);
/* Is there something of this name that is not a file? */
bool conv_has_strange(const struct files_conv *conv, const char *name);

/* Makes projects/ where it is missing. */
int files_open_projects(struct files_store *store, struct steno_error *err);
/* The folder of a project's conversations, made and synced where it is missing; a descriptor or a
 * negative errno. */
int files_open_conversations(struct files_store *store, const char *project_folder);
/* STENO_ECORRUPT: the store was opened for a repair, and has no projects/. */
int files_lacks_projects(const struct files_store *store, struct steno_error *err);

/* Makes store.json for a new store; an existing store keeps what it has. */
int settings_prepare(struct files_store *store, bool create, struct steno_error *err);

/* Does this errno mean that the entry is something that a person put there (a file, a link), or
 * that it is gone? */
bool files_is_foreign(int sys);
/* Is it a symbolic link? Links are never followed; callers that expect a folder report them. */
bool files_is_link(const struct fs *fs, int dir, const char *path);

/* Syncs process-durable appends of all conversations from now on (syncer.c). */
void syncer_want(struct files_store *store);
void syncer_stop(struct files_store *store);
/* Syncs one conversation's log and moves its mark. Takes turn and flock itself. */
int syncer_sync(struct files_conv *conv, struct steno_error *err);

#endif
