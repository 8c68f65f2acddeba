"""A PostgreSQL server of the test's own, on a free loopback port.

    with Postgres(folder) as pg:
        pg.url                      # postgres://steno@127.0.0.1:PORT/postgres
        pg.sql("SELECT 1")
        pg.kill(); pg.start()       # as if the machine had died, without losing what was synced

    with Pair(folder) as pair:      # a primary and a synchronous standby
        pair.url                    # both hosts: whichever takes writes
        pair.primary.kill(); pair.fail_over()

As root it runs as an unprivileged user, because PostgreSQL refuses to run as root.
"""
import contextlib
import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BIN = "/usr/lib/postgresql/15/bin"
NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


# Ports that only this file has while it runs. Another test could get an arbitrary port from the kernel
# before the server is there, or while it is away.
PORTS = itertools.count(int(os.environ.get("STENO_TEST_PORTS") or 20000 + 256 * random.randrange(49)))


def free_port():
    for port in PORTS:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass  # a process that does not belong to these tests has it


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def place():
    """A folder that the server's user can reach."""
    for base in (os.environ.get("STENO_TEST_RAM"), os.environ.get("STENO_TEST_TMP"), "/var/tmp"):
        if not base:
            continue
        folder = tempfile.mkdtemp(prefix="steno-pg-", dir=base)
        if os.getuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
            if subprocess.call([*NOBODY, "test", "-w", folder]):
                shutil.rmtree(folder)
                continue
        return folder
    raise OSError("there is no folder for PostgreSQL")


class Postgres:
    wanted = None  # a port that clients already know

    def __init__(self, *settings, network=None):
        """`network`: whose machines may connect too, as 10.7.0.0/16."""
        self.network = network
        self.settings = ["fsync=off", "max_connections=200", "listen_addresses=127.0.0.1",
                         "unix_socket_directories=", *settings]
        if network:
            self.settings.append("listen_addresses=*")

    def __enter__(self):
        self.folder = place()
        self.data = os.path.join(self.folder, "data")
        self.port = self.wanted or free_port()
        self.url = "postgres://steno@127.0.0.1:%d/postgres" % self.port
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "steno", "--no-sync", "-E", "UTF8",
                 "--locale=C.UTF-8")
        if self.network:
            with open(os.path.join(self.data, "pg_hba.conf"), "a", encoding="ascii") as f:
                f.write("host all all %s trust\n" % self.network)
        self.start()
        return self

    def __exit__(self, *why):
        try:
            self.stop()
        except subprocess.CalledProcessError:
            pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, program, *args):
        command = [os.path.join(BIN, program), *args]
        if os.getuid() == 0:
            command = NOBODY + command
        return subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/",
                              env={"PATH": os.environ["PATH"], "HOME": self.folder})

    def start(self):
        options = " ".join("-c %s=%s" % (s.split("=", 1)[0], repr(s.split("=", 1)[1]))
                           for s in self.settings)
        self.run("pg_ctl", "-D", self.data, "-s", "-w", "-l", os.path.join(self.folder, "log"),
                 "-o", "-p %d %s" % (self.port, options), "start")

    def stop(self):
        self.run("pg_ctl", "-D", self.data, "-s", "-w", "-m", "immediate", "stop")

    def remember(self):
        """Notes what is committed now, for forget()."""
        self.run("pg_ctl", "-D", self.data, "-s", "-w", "-m", "fast", "stop")
        subprocess.run(["cp", "-a", self.data, self.data + ".older"], check=True)
        self.start()

    def forget(self):
        """Goes back to what remember() noted, as a standby that takes over without the rest."""
        self.run("pg_ctl", "-D", self.data, "-s", "-w", "-m", "fast", "stop")
        shutil.rmtree(self.data)
        os.rename(self.data + ".older", self.data)
        self.start()

    def kill(self):
        """kill -9 of the server and of everything it has started."""
        with open(os.path.join(self.data, "postmaster.pid"), encoding="ascii") as f:
            pid = int(f.readline())
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)],
                                  stdout=subprocess.PIPE, check=False).stdout.split()
        for one in [pid, *map(int, children)]:
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for one in [pid, *map(int, children)]:
            while alive(one):
                time.sleep(0.01)
        # The dead server may still be a zombie, and would be taken for a live one.
        os.unlink(os.path.join(self.data, "postmaster.pid"))

    def session(self):
        return Session(self.port)

    def sql(self, text):
        return subprocess.run([os.path.join(BIN, "psql"), "-h", "127.0.0.1", "-p", str(self.port),
                               "-U", "steno", "-d", "postgres", "-Atqc", text], check=True,
                              stdout=subprocess.PIPE).stdout.decode().strip()

    @contextlib.contextmanager
    def locked(self, statement):
        """What it locks stays locked as long as the context lasts."""
        session = Session(self.port)
        try:
            session.sql("BEGIN; " + statement)
            yield
        finally:
            session.close()


class Session:
    """A session that stays open, with its locks."""

    def __init__(self, port):
        self.psql = subprocess.Popen([os.path.join(BIN, "psql"), "-h", "127.0.0.1", "-p", str(port),
                                      "-U", "steno", "-d", "postgres", "-Atq", "-v",
                                      "ON_ERROR_STOP=1"],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def sql(self, text):
        """Returns when the server has answered."""
        self.psql.stdin.write(text.encode() + b";\n\\echo answered\n")
        self.psql.stdin.flush()
        lines = []
        for line in self.psql.stdout:
            if line == b"answered\n":
                return b"".join(lines).decode().strip()
            lines.append(line)
        raise ConnectionError("psql has ended")

    def close(self):
        self.psql.stdin.close()
        self.psql.wait()
        self.psql.stdout.close()


class Standby(Postgres):
    """A server whose data are a copy of another server's, which it follows."""

    def __init__(self, primary, *settings):
        super().__init__(*settings)
        self.primary = primary

    def __enter__(self):
        self.folder = place()
        self.data = os.path.join(self.folder, "data")
        self.port = self.wanted or free_port()
        self.url = "postgres://steno@127.0.0.1:%d/postgres" % self.port
        self.run("pg_basebackup", "-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "steno",
                 "-D", self.data, "-X", "stream", "-R", "-c", "fast", "--no-sync")
        self.start()
        return self

    def start(self):
        """Returns when the primary waits for this standby, and not as soon as the standby answers."""
        begun = self.primary.sql("SELECT clock_timestamp()")
        super().start()
        while self.primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
                               " AND backend_start > '%s'" % begun) == "0":
            time.sleep(0.02)

    def promote(self):
        self.run("pg_ctl", "-D", self.data, "-s", "-w", "promote")


class Pair:
    """A standby, and a primary that confirms a commit when the standby has it."""

    SETTINGS = ["synchronous_standby_names=*", "wal_keep_size=512MB", "max_wal_senders=10",
                "hot_standby=on", "wal_receiver_status_interval=1"]

    def __init__(self, *settings):
        self.settings = [*self.SETTINGS, *settings]

    def __enter__(self):
        self.primary = Postgres(*self.settings)
        # Without a standby no commit would end, so the commits of initdb and the first ones do not wait
        # for it.
        self.primary.__enter__()
        try:
            self.follow()
        except BaseException:
            self.primary.__exit__()
            raise
        return self

    def __exit__(self, *why):
        for server in (self.standby, self.primary):
            if server:
                server.__exit__(*why)

    @property
    def url(self):
        return self.url_of(self.primary, self.standby)

    @staticmethod
    def url_of(*servers):
        """Both hosts, always in the same order, so that the URL stays the same as long as they live."""
        ports = sorted(s.port for s in servers if s)
        return "postgres://steno@%s/postgres?target_session_attrs=read-write" % ",".join(
            "127.0.0.1:%d" % p for p in ports)

    def follow(self, port=None):
        """A new standby of the primary."""
        self.standby = Standby(self.primary, *self.settings)
        if port:
            self.standby.wanted = port
        self.standby.__enter__()

    def fail_over(self):
        """The primary is dead: its standby takes its place, and a new standby takes its port."""
        port, folder = self.primary.port, self.primary.folder
        self.standby.promote()
        self.primary = self.standby
        shutil.rmtree(folder, ignore_errors=True)
        self.follow(port)
