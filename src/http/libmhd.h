/*
 * libmhd.h - libmicrohttpd, loaded when a server starts: libmhd.start_daemon() is
 * MHD_start_daemon(), and so on.
 */
#ifndef HTTP_LIBMHD_H
#define HTTP_LIBMHD_H

#include <microhttpd.h>

#include "steno.h"

#define LIBMHD_CALLS(X)                                                                            \
        X(add_response_header)                                                                     \
        X(create_post_processor)                                                                   \
        X(create_response_from_buffer)                                                             \
        X(create_response_from_callback)                                                           \
        X(destroy_post_processor)                                                                  \
        X(destroy_response)                                                                        \
        X(get_connection_info)                                                                     \
        X(get_connection_values)                                                                   \
        X(get_daemon_info)                                                                         \
        X(lookup_connection_value)                                                                 \
        X(post_process)                                                                            \
        X(queue_response)                                                                          \
        X(quiesce_daemon)                                                                          \
        X(resume_connection)                                                                       \
        X(set_response_options)                                                                    \
        X(start_daemon)                                                                            \
        X(stop_daemon)                                                                             \
        X(suspend_connection)

struct libmhd {
#define X(name) __typeof__(MHD_##name) *name;
        LIBMHD_CALLS(X)
#undef X
};

extern struct libmhd libmhd;

/* Loads it. Nothing above may be called before. */
int libmhd_load(struct steno_error *err);

#endif
