/*
 * library.h - a shared library that only some commands need, opened when one does.
 *
 * libcurl and libmicrohttpd bring thirty others with them. Loading all of those takes longer than
 * most of what Steno is called for, and a program that only keeps records never needs them.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stddef.h>

#include "steno.h"

typedef void (*library_fn)(void);

/*
 * Opens the library (its soname) and looks up `count` functions by their names. All of them, or an
 * error that says what is missing. It stays open.
 */
int library_load(const char *soname, const char *const *names, library_fn *to, size_t count,
    struct steno_error *err);

#endif
