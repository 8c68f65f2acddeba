"""Three PostgreSQL servers that Patroni keeps, each beside a member of etcd, on loopback ports: they
choose their primary by themselves, and a commit is confirmed when a standby has it.

    with Cluster() as cluster:
        cluster.url                      # all three hosts: whichever takes writes
        old = cluster.primary()          # its number
        cluster.kill_server(old)         # kill -9 of PostgreSQL; its Patroni lives
        cluster.kill_node(old)           # of Patroni and of etcd as well
        cluster.start_node(old)
        cluster.switch_over(old)         # as an operator asks for it
        cluster.wait_whole()             # one primary, and two standbys that follow it
"""
import http.client
import json
import os
import shutil
import signal
import subprocess
import time

from postgres import BIN, NOBODY, alive, free_port, place

NODES = 3
BIRTH = 120  # seconds until they have found each other; longer means never
CONFIG = """
scope: steno
name: n%(n)d
restapi: {listen: "127.0.0.1:%(rest)d", connect_address: "127.0.0.1:%(rest)d"}
etcd3: {hosts: "%(etcd)s"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    maximum_lag_on_failover: 1048576
    primary_start_timeout: 0
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters: {max_connections: 200, wal_level: replica, max_wal_senders: 10, max_replication_slots: 10, wal_keep_size: 512MB, hot_standby: "on"}
  initdb: [{encoding: UTF8}, data-checksums, {locale: C.UTF-8}]
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: 127.0.0.1:%(port)d
  connect_address: 127.0.0.1:%(port)d
  data_dir: %(data)s
  bin_dir: %(bin)s
  pgpass: %(folder)s/pgpass%(n)d
  authentication: {replication: {username: follower, password: x}, superuser: {username: steno, password: x}, rewind: {username: rewinder, password: x}}
  parameters: {unix_socket_directories: ""}
watchdog: {mode: "off"}
"""


def missing():
    return [p for p in ("patroni", "etcd") if not shutil.which(p)]


class Cluster:
    def __init__(self, patience):
        self.patience = patience
        self.nodes = range(NODES)

    def __enter__(self):
        self.folder = place()
        self.ports = [free_port() for _ in self.nodes]
        self.rest = [free_port() for _ in self.nodes]
        self.clients = [free_port() for _ in self.nodes]
        self.peers = [free_port() for _ in self.nodes]
        self.url = "postgres://steno@%s/postgres?target_session_attrs=read-write" % ",".join(
            "127.0.0.1:%d" % p for p in self.ports)
        self.etcds, self.patronis = {}, {}
        self.born = False
        try:
            for n in self.nodes:
                self.start_node(n)
            self.wait_whole()
            self.born = True
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *why):
        for n in self.nodes:
            self.kill_node(n)
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self):
        self.__exit__()

    def path(self, name):
        return os.path.join(self.folder, name)

    def spawn(self, log, *command):
        if os.getuid() == 0:
            command = (*NOBODY, *command)
        with open(self.path(log), "ab") as out:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/",
                start_new_session=True,
                env={"PATH": os.environ["PATH"], "HOME": self.folder, "ETCD_UNSUPPORTED_ARCH": ""})

    def start_etcd(self, n):
        here = "http://127.0.0.1:%d"
        members = ",".join("e%d=%s" % (k, here % self.peers[k]) for k in self.nodes)
        self.etcds[n] = self.spawn(
            "etcd%d.log" % n, "etcd", "--name", "e%d" % n, "--data-dir", self.path("etcd%d" % n),
            "--listen-client-urls", here % self.clients[n],
            "--advertise-client-urls", here % self.clients[n],
            "--listen-peer-urls", here % self.peers[n],
            "--initial-advertise-peer-urls", here % self.peers[n], "--initial-cluster", members,
            "--initial-cluster-state", "existing" if self.born else "new",
            "--heartbeat-interval", "200", "--election-timeout", "2000")

    def start_node(self, n):
        self.start_etcd(n)
        config = self.path("n%d.yml" % n)
        with open(config, "w", encoding="ascii") as f:
            f.write(CONFIG % {
                "n": n, "rest": self.rest[n], "port": self.ports[n], "bin": BIN,
                "folder": self.folder, "data": self.path("data%d" % n),
                "etcd": ",".join("127.0.0.1:%d" % p for p in self.clients)})
        self.patronis[n] = self.spawn("n%d.log" % n, "patroni", config)

    def kill_server(self, n):
        try:
            with open(self.path("data%d/postmaster.pid" % n), encoding="ascii") as f:
                pid = int(f.readline())
        except (OSError, ValueError):
            return
        # What is written there may belong to a dead server, and its number to another process.
        try:
            if os.readlink("/proc/%d/cwd" % pid) != self.path("data%d" % n):
                return
        except OSError:
            return
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)],
                                  stdout=subprocess.PIPE, check=False).stdout.split()
        pids = [pid, *map(int, children)]
        for one in pids:
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while any(map(alive, pids)):
            time.sleep(0.01)

    def kill_node(self, n):
        for process in (self.patronis.pop(n, None), self.etcds.pop(n, None)):
            if process:
                process.kill()
                process.wait()
        self.kill_server(n)

    def ask(self, n, method, path, body=None, timeout=60):
        c = http.client.HTTPConnection("127.0.0.1", self.rest[n], timeout=timeout)
        try:
            c.request(method, path, json.dumps(body) if body else None,
                      {"Content-Type": "application/json"})
            answer = c.getresponse()
            return answer.status, answer.read().decode()
        finally:
            c.close()

    def members(self):
        """{number: (role, state)} as a live node tells it."""
        for n in self.nodes:
            try:
                status, text = self.ask(n, "GET", "/cluster", timeout=5)
            except (OSError, http.client.HTTPException):
                continue
            if status == 200:
                return {int(m["name"][1:]): (m["role"], m["state"])
                        for m in json.loads(text)["members"]}
        return {}

    def wait(self, look, what):
        end = time.monotonic() + (self.patience if self.born else min(self.patience, BIRTH))
        while True:
            found = look()
            if found is not None:
                return found
            dead = ["%s %d" % (name, n) for name, those in (("etcd", self.etcds), ("patroni",
                    self.patronis)) for n, p in those.items() if p.poll() is not None]
            if not self.born and dead:
                raise OSError("these ended instead of starting: %s\n%s" % (dead, self.said()))
            if time.monotonic() > end:
                raise TimeoutError("no %s: %s\n%s" % (what, self.members(), self.said()))
            time.sleep(0.1)

    def said(self):
        """The last lines of every log."""
        text = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(self.path(name), encoding="utf-8", errors="replace") as f:
                    text += ["%s: %s" % (name, line.rstrip()[:300]) for line in f.readlines()[-8:]]
        return "\n".join(text)

    def primary(self, other_than=None):
        def look():
            for n, (role, state) in self.members().items():
                if role == "leader" and state == "running" and n != other_than:
                    return n
            return None
        return self.wait(look, "a primary")

    def wait_whole(self):
        """The number of its primary, when all members are there."""
        def look():
            members = self.members()
            roles = sorted(role for role, _ in members.values())
            up = [s for _, s in members.values() if s in ("running", "streaming")]
            if roles != ["leader", "replica", "sync_standby"] or len(up) != NODES:
                return None
            return next(n for n, (role, _) in members.items() if role == "leader")
        return self.wait(look, "a whole cluster")

    def switch_over(self, n):
        """An operator makes another server the primary."""
        sync = next(k for k, (role, _) in self.members().items() if role == "sync_standby")
        return self.ask(n, "POST", "/switchover", {"leader": "n%d" % n, "candidate": "n%d" % sync})
