/*
 * conv_size.c - how much room the outputs and large tokens of a conversation take (files.h).
 *
 * Files are counted as they are, also those that are still being written. If the names in the
 * folders and the list of outputs have not changed, the files are not counted again.
 */
#include "store/files/conv.h"

#include <fcntl.h>

static const char *const FOLDERS[] = {"artifacts/tool", "artifacts/terminal", "artifacts/parts"};
#define FOLDER_COUNT (sizeof FOLDERS / sizeof *FOLDERS)

struct counting {
        const struct fs *fs;
        int dir;
        uint64_t bytes;
};

static int count_file(void *ctx, const char *name, unsigned char type)
{
        struct counting *c = ctx;
        struct stat st;
        (void)type;
        if (c->fs->stat(c->fs, c->dir, name, &st) == 0 && S_ISREG(st.st_mode))
                c->bytes += (uint64_t)st.st_size;
        return 0;
}

uint64_t files_outputs_size(struct files_conv *conv)
{
        struct counting c = {.fs = conv->store->env->fs};
        for (size_t i = 0; i < FOLDER_COUNT; i++) {
                c.dir = c.fs->open(c.fs, conv->dir, FOLDERS[i], O_RDONLY | O_DIRECTORY, 0);
                if (c.dir < 0)
                        continue; /* there is none, or it may not be read: nothing to count */
                c.fs->list(c.fs, c.dir, count_file, &c);
                c.fs->close(c.fs, c.dir);
        }
        return c.bytes;
}

static int64_t later(const struct fs *fs, int dir, const char *path, int64_t than)
{
        struct stat st;
        if (fs->stat(fs, dir, path, &st))
                return than;
        int64_t at = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        return at > than ? at : than;
}

int64_t files_outputs_changed(struct files_conv *conv)
{
        const struct fs *fs = conv->store->env->fs;
        int64_t at = later(fs, conv->dir, "artifacts/manifest.jsonl", 0);
        for (size_t i = 0; i < FOLDER_COUNT; i++)
                at = later(fs, conv->dir, FOLDERS[i], at);
        return at;
}
