#!/usr/bin/env python3
"""Writes the backend of tests/support/probe.h: make_probe.py BACKEND_H OUTPUT_C

For every slot of struct steno_backend a function that counts the call, fails it when its turn has
come, and hands it on to the kind below. Handles that come back get the probe's table.
"""
import re
import sys

HANDLES = ("store", "conv", "claim", "run", "artifact", "reader", "lookup", "bundle", "incoming",
           "lock", "watcher")

text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1], encoding="utf-8").read(), flags=re.S)
table = re.search(r"struct steno_backend \{\n(.*?)\n\};", text, re.S).group(1)
slots = re.findall(r"^\s*([\w ]+?[ *]+)\(\*(\w+)\)\((.*?)\);", table, re.S | re.M)
out = ['#include "support/probe.h"\n#include "support/probe_state.h"\n']
names, rows = [], []
for returns, name, params in slots:
    params = " ".join(params.split())
    split = re.findall(r"(?:[^,()]|\([^()]*(?:\([^()]*\)[^()]*)*\))+", params)
    split = [p.strip() for p in split]
    args = [re.search(r"\(\*(\w+)\)", p) or re.search(r"(\w+)(?:\[[^]]*\])?$", p) for p in split]
    args = [a.group(1) for a in args]
    handed = [a for p, a in zip(split, args)
              if re.match(r"struct backend_(%s) \*\*" % "|".join(HANDLES), p)]
    returns = returns.strip()
    fails = returns in ("int", "ssize_t") and args[-1] == "err"
    body = ["        probe_enter(%d);" % len(names)]
    if fails:
        body += ["        if (probe_fails(err)) {", "                probe_leave();",
                 "                return STENO_EIO;", "        }"]
    call = "probe_below->%s(%s)" % (name, ", ".join(args))
    if returns == "void":
        body += ["        %s;" % call, "        probe_leave();"]
    else:
        body += ["        %s rc = %s;" % (returns, call)]
        body += ["        if (rc >= 0 && *%s)\n                (*%s)->ops = &probe_backend;" % (a, a)
                 for a in handed if returns == "int"]
        body += ["        probe_leave();", "        return rc;"]
    space = "" if returns.endswith("*") else " "
    out.append("static %s%sdo_%s(%s)\n{\n%s\n}\n" % (returns, space, name, params, "\n".join(body)))
    names.append('    "%s",' % name)
    rows.append("    .%s = do_%s," % (name, name))
out.append("const char *const probe_names[] = {\n%s\n};" % "\n".join(names))
out.append("const size_t probe_count = %d;" % len(names))
out.append('const struct steno_backend probe_backend = {\n    .name = "probe",\n%s\n};'
           % "\n".join(rows))
open(sys.argv[2], "w", encoding="utf-8").write("\n".join(out) + "\n")
