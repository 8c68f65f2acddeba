#!/usr/bin/env python3
"""bench/postgres.py BUILD: bench_postgres with a PostgreSQL of its own, which syncs."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from postgres import BIN, Postgres  # noqa: E402

program = os.path.join(sys.argv[1], "bench", "bench_postgres")
if os.path.exists(program) and os.path.exists(os.path.join(BIN, "initdb")):
    with Postgres("fsync=on") as pg:
        sys.exit(subprocess.call([program, pg.url]))
