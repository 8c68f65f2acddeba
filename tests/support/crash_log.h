/*
 * crash_log.h - the log that crashfs.c writes and crash_state.c reads; private to the two.
 *
 * Objects are files and directories, named by their index for ever, whatever their names and
 * inodes become. Object 0 is the root.
 */
#ifndef SUPPORT_CRASH_LOG_H
#define SUPPORT_CRASH_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/fs.h"

#define NO_OBJECT SIZE_MAX

enum crash_op_kind {
        OP_LINK,     /* a new object gets a name */
        OP_RENAME,   /* `object` leaves dir/name for to_dir/to_name */
        OP_UNLINK,   /* dir/name goes */
        OP_WRITE,    /* data at `at` */
        OP_TRUNCATE, /* to size `at` */
        OP_SYNC,
};

struct crash_op {
        enum crash_op_kind kind;
        const char *call; /* the slot's name, for descriptions */
        size_t object;
        size_t dir;
        size_t to_dir;
        char *name;
        char *to_name;
        char *data;
        size_t n;
        off_t at;
};

struct crash_object {
        bool is_dir;
        dev_t dev;
        ino_t ino;
        char *name; /* the last one it had, for descriptions */
};

struct crashfs {
        struct fs fs; /* first: a slot's `self` is the crashfs */
        const struct fs *under;
        char *root;
        int root_fd;
        pthread_mutex_t lock;
        struct crash_object *objects;
        size_t object_count;
        struct crash_op *ops;
        size_t count;
        size_t base; /* ops before this made what was there at the start: always durable */
};

#endif
