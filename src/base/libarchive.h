/*
 * libarchive.h - libarchive, loaded when a bundle is written or read for the first time:
 * libarchive.read_new() is archive_read_new(), and so on.
 */
#ifndef BASE_LIBARCHIVE_H
#define BASE_LIBARCHIVE_H

#include <archive.h>
#include <archive_entry.h>

#include "steno.h"

#define LIBARCHIVE_CALLS(X)                                                                        \
        X(entry_clear)                                                                             \
        X(entry_filetype)                                                                          \
        X(entry_free)                                                                              \
        X(entry_hardlink)                                                                          \
        X(entry_new)                                                                               \
        X(entry_pathname)                                                                          \
        X(entry_set_filetype)                                                                      \
        X(entry_set_mtime)                                                                         \
        X(entry_set_pathname)                                                                      \
        X(entry_set_perm)                                                                          \
        X(entry_set_size)                                                                          \
        X(entry_size)                                                                              \
        X(entry_size_is_set)                                                                       \
        X(entry_sparse_reset)                                                                      \
        X(entry_symlink)                                                                           \
        X(error_string)                                                                            \
        X(read_data)                                                                               \
        X(read_free)                                                                               \
        X(read_new)                                                                                \
        X(read_next_header)                                                                        \
        X(read_open)                                                                               \
        X(read_open_memory)                                                                        \
        X(read_support_filter_gzip)                                                                \
        X(read_support_format_raw)                                                                 \
        X(read_support_format_tar)                                                                 \
        X(set_error)                                                                               \
        X(write_close)                                                                             \
        X(write_data)                                                                              \
        X(write_free)                                                                              \
        X(write_header)                                                                            \
        X(write_new)                                                                               \
        X(write_open)                                                                              \
        X(write_set_format_pax_restricted)

struct libarchive {
#define X(name) __typeof__(archive_##name) *name;
        LIBARCHIVE_CALLS(X)
#undef X
};

extern struct libarchive libarchive;

/* Loads it, once; from any thread. Nothing above may be called before. */
int libarchive_need(struct steno_error *err);

#endif
