/*
 * library.h - a library that only some commands need: a shared one is opened when one does.
 *
 * libcurl and libmicrohttpd bring thirty others with them. Loading all of those takes longer than
 * most of what Steno is called for, and a program that only keeps records never needs them.
 *
 * A static program (the meson option "linked") contains them, and its entries hold their addresses.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stddef.h>

#include "steno.h"

typedef void (*library_fn)(void);

/* A function of a library; `linked` is NULL where the library is opened. */
struct library_entry {
        const char *name;
        library_fn linked;
};

#ifdef STENO_LINKED
#define LIBRARY_ENTRY(function) {#function, (library_fn)function},
#else
#define LIBRARY_ENTRY(function) {#function, NULL},
#endif

/*
 * Opens the library (its soname) and looks up `count` functions by their names. All of them, or an
 * error that says what is missing. It stays open.
 */
int library_load(const char *soname, const struct library_entry *entries, library_fn *to,
    size_t count, struct steno_error *err);

#endif
