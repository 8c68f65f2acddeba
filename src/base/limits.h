/*
 * limits.h - every maximum in one place. A number here has its reason beside it.
 */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stddef.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* JSON */
#define JSON_DEPTH_MAX 512                 /* far beyond any message, far below the stack */
#define JSON_SIZE_MAX ((size_t)0xF0000000) /* offsets in a tape are 32 bits */

/* Buffers without a smaller limit of their own */
#define BUF_MAX_DEFAULT (2 * GIB)

/* The model (model.md) */
#define MESSAGE_MAX (64 * MIB)
#define BATCH_MAX 1000
#define ID_MAX 256          /* bytes of a conversation, project or message id */
#define CALL_ID_MAX 1024    /* bytes of a tool call id; longer ones are refused */
#define CALL_STEPS_MAX 200  /* of a tool call, in its result */
#define PLAIN_NAME_MAX 64   /* an id of this many safe characters is its own file name */
#define PAIRING_WINDOW 1000 /* records that a result may lie behind its call */
/* If the time of the last record is ahead of the clock by at most this much, new records continue
 * from it. Imported records may be years ahead; then the clock counts. */
#define TIME_AHEAD_MS (24 * 3600 * 1000)
#define TITLE_MAX (4 * KIB)
#define META_MAX (1 * MIB) /* meta.json */
#define CALLS_MAX 1024     /* tool calls of one message */
/* The first steps of a tool call are written to the run's journal as they come. Later ones are
 * summarised ten times a second, so that a tool cannot fill the disk with them. */
#define CALL_STEPS_TOLD 1000
#define CALL_STEPS_BYTES (1 * MIB)
#define CALL_STEP_LATER_MS 100
#define CALL_STEP_LATER_BYTES 1000
/* In a view, a message costs a few hundred bytes for each part and a few dozen for each value.
 * Without these limits, a small body could take much memory. */
#define PARTS_MAX 10000            /* of one message, calls included */
#define MESSAGE_VALUES_MAX 1000000 /* JSON values of one message, keys included */
/* A view that holds all of its messages may take 16 times their bytes, and 32 MB where these are
 * few. Half of that is for the texts. The other half is for the parts, whose cost does not depend
 * on how long they are, and is charged before they are read. */
#define VIEW_PART_BYTES 768
#define VIEW_PARTS_SHARE 8 /* times the bytes */
#define VIEW_PARTS_FREE (32 * MIB / VIEW_PART_BYTES)

/* A log line; tokens beyond TOKEN_INLINE_MAX leave the line for artifacts/parts */
#define LINE_MAX_BYTES (1 * MIB)
#define TOKEN_INLINE_MAX (32 * KIB)

/* Tool outputs (outputs.md) */
#define INLINE_CHARS_DEFAULT 4000
#define INLINE_BYTES_DEFAULT 16384
#define INLINE_BYTES_FLOOR 2048 /* a stub needs this much to be of use */

/* What a command may print: far more than any log that somebody reads, and far less than a disk
 * holds. */
#define COMMAND_OUTPUT_MAX (1 * GIB)

/* The default quotas for one output, all outputs of a conversation and all outputs of a store. They
 * are far beyond normal use, and stop a runaway output before the disk is full. */
#define QUOTA_OUTPUT (4 * GIB)
#define QUOTA_CONVERSATION (64 * GIB)
#define QUOTA_STORE (512 * GIB)

/* Context operations (outputs.md) */
#define CONTEXT_LIST_DEFAULT 50
#define CONTEXT_LIST_MAX 1000
#define CONTEXT_READ_DEFAULT 8192
#define CONTEXT_READ_MAX 12288
#define CONTEXT_TAIL_LINES_DEFAULT 200
#define CONTEXT_TAIL_LINES_MAX 2000
#define CONTEXT_GREP_RESULTS_DEFAULT 50
#define CONTEXT_GREP_RESULTS_MAX 1000
#define CONTEXT_GREP_CONTEXT_MAX 20
#define CONTEXT_LONG_LINE 2000 /* characters of a matching line before it becomes a window */
#define CONTEXT_GREP_DEADLINE_MS 1500
#define CONTEXT_JSON_DEFAULT 100      /* children of one value */
#define CONTEXT_JSON_MAX 1000         /* the same, at most */
#define CONTEXT_JSON_HEAD 400         /* bytes of a child that come with it */
#define CONTEXT_JSON_KEY (64 * KIB)   /* bytes of a key, beyond any that somebody chose */
#define CONTEXT_JSON_ANSWER (1 * MIB) /* an answer that is larger ends with the child it is at */

/* This much of a log may have ids that a power cut would lose: reading it again takes less time
 * than a synced append. A conversation that is written without a pause is synced less often. */
#define IDS_SETTLE_BYTES (256 * KIB)
#define IDS_SETTLE_PAUSE_MS 5000

/* Open conversations a store handle keeps descriptors for */
#define OPEN_CONVERSATIONS_MAX 512

/* Bundles: limits for files from untrusted sources. */
#define BUNDLE_WINDOW_LOG 23 /* 8 MiB of memory for zstd */
#define BUNDLE_SMALL                                                                               \
        (256 * MIB)            /* may come from a few bytes; more must not expand further than     \
                                */
#define BUNDLE_RATIO 200       /* this: logs of builds and tests compress 10 to 50 times */
#define BUNDLE_FILES_MAX 32768 /* of one conversation: its manifest is held in memory */
#define BUNDLE_MANIFEST_MAX (8 * MIB)
#define BUNDLE_MANIFEST_VALUES 1000000 /* by their commas: each costs memory when it is read */
#define BUNDLE_CONVERSATIONS_MAX 1000000
#define BUNDLE_LINE_MAX (16 * MIB)    /* a record or event; larger ones need memory of their size */
#define BUNDLE_X_MAX (2 * MIB)        /* the description of a record is parsed */
#define BUNDLE_REF_LINE_MAX (4 * MIB) /* a record with refs is parsed, too */
#define BUNDLE_LISTED_MAX (64 * KIB)  /* a line of the manifest of artifacts */

/* Disks (steno_disk.h). A file is read whole, and a listing looks at each. */
#define DISK_FILE_MAX (16 * MIB)
#define DISK_FILES_MAX 10000
#define DISK_PATH_MAX 1024

/* A configuration file, and a value in it: what a person writes by hand is far smaller. */
#define CONFIG_FILE_MAX ((size_t)1 << 20)

/* Images and files in results: of each, and of all of a view. Providers take about so much of one
 * (Anthropic 5 MB an image) and of a request (Gemini 20 MB). */
#define RESULT_MEDIA_MAX (5 * 1000 * 1000)
#define VIEW_MEDIA_MAX (20 * 1000 * 1000)

/* Threads that read folders for the index, besides the one that writes it */
#define INDEX_THREADS_MAX 15

#endif
