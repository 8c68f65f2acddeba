/*
 * format.h - the table of message formats. Adding one is adding a file and a line here.
 *
 * (The engineer of this module extends this header with reading and writing; `describe` is what
 * an append needs.)
 */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "base/arena.h"
#include "base/json.h"
#include "model/about.h"

struct format {
  const char *name;
  /*
   * Checks one message of this format (a JSON object at `msg`) and says what it is: role,
   * calls, answers, own id, marks. 0, or STENO_EPROTO with what is wrong with it ("role
   * \"robot\" is not one of ...", "no role"). Strings live in `arena`.
   */
  int (*describe)(const struct json *j, json_ref msg, struct arena *arena, struct about *out,
      struct steno_error *err);
};

/* NULL: no such format. */
const struct format *format_find(const char *name);

extern const struct format format_openai;

#endif
