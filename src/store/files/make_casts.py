#!/usr/bin/env python3
"""Writes the casts that files_backend.c includes: make_casts.py BACKEND_H FILES_BACKEND_C OUTPUT_H

For every row CALL(SLOT, FUNCTION) a function cast_SLOT with the type of that slot of struct
steno_backend, which hands its arguments on to FUNCTION, with the handles of backend.h cast to those
that the files of this folder know.
"""
import re
import sys

HANDLES = {"store": "files_store", "conv": "files_conv", "claim": "run_claim", "run": "run_log",
           "artifact": "artifact", "reader": "files_reader", "lookup": "files_lookup",
           "bundle": "files_bundle", "incoming": "files_incoming", "lock": "files_lock",
           "watcher": "presence"}
HANDLE = re.compile(r"(const )?struct backend_(%s) (\*+)" % "|".join(HANDLES))
# A parameter: commas within parentheses, of a callback's own, do not end it.
PARAMETER = re.compile(r"(?:[^,()]|\([^()]*(?:\([^()]*\)[^()]*)*\))+")


def slots(header):
    """Name of a slot -> what it returns, and its parameters."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    table = re.search(r"struct steno_backend \{\n(.*?)\n\};", text, re.S).group(1)
    found = re.findall(r"^\s*([\w ]+?[ *]+)\(\*(\w+)\)\((.*?)\);", table, re.S | re.M)
    return {name: (returns.strip(), " ".join(params.split())) for returns, name, params in found}


def argument(param):
    """A parameter as it is handed on."""
    name = re.search(r"\(\*(\w+)\)", param) or re.search(r"(\w+)(?:\[[^]]*\])?$", param)
    handle = HANDLE.match(param)
    if not handle:
        return name.group(1)
    return "(%sstruct %s %s)%s" % (handle.group(1) or "", HANDLES[handle.group(2)],
                                   handle.group(3), name.group(1))


def cast(slot, function, returns, params):
    call = "%s(%s)" % (function, ", ".join(argument(p.strip()) for p in PARAMETER.findall(params)))
    if HANDLE.match(returns):
        call = "(%s)%s" % (returns, call)
    space = "" if returns.endswith("*") else " "
    return "static %s%scast_%s(%s)\n{\n        %s%s;\n}\n" % (
        returns, space, slot, params, "" if returns == "void" else "return ", call)


known = slots(open(sys.argv[1], encoding="utf-8").read())
rows = re.findall(r"^ +CALL\((\w+), (\w+)\),$", open(sys.argv[2], encoding="utf-8").read(), re.M)
with open(sys.argv[3], "w", encoding="utf-8") as out:
    out.write("/* Written by make_casts.py. */\n\n")
    out.write("\n".join(cast(slot, function, *known[slot]) for slot, function in rows))
