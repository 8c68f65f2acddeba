/*
 * files_check_entry.c - what stands where a file should, and is none (check_work.h).
 */
#include "store/files/files_check_work.h"

#include "base/error.h"

static enum files_check_entry look(const struct check *k, const char *path)
{
        struct stat st;
        if (k->fs->stat(k->fs, k->conv->dir, path, &st) || S_ISREG(st.st_mode))
                return ENTRY_FINE;
        return S_ISLNK(st.st_mode) ? ENTRY_LINK : ENTRY_STAYS;
}

/* It may have become a file since it was looked at: under the lock, once more. */
static int move_aside(struct check *k, const char *path)
{
        int rc = files_conv_lock(k->conv, k->err);
        if (rc)
                return rc;
        if (look(k, path) == ENTRY_STAYS)
                rc = quarantine_entry(k->conv, path, "not a file", k->err);
        files_conv_unlock(k->conv);
        return rc;
}

int files_check_entry(struct check *k, const char *path, enum files_check_entry *out)
{
        int rc = 0;
        *out = look(k, path);
        if (*out == ENTRY_FINE)
                return 0;
        if (*out == ENTRY_LINK)
                return files_check_tell(
                    k, 0, CHECK_STAYS, "%s is a symbolic link, which is not followed", path);
        if (k->repair)
                rc = files_check_wrote(k, move_aside(k, path));
        if (rc == 0 && k->repair)
                *out = ENTRY_GONE;
        return rc ? rc
                  : files_check_tell(k, 0, files_check_repaired(k, true), "%s is not a file", path);
}
