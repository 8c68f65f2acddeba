"""An S3 server of the test's own: Ceph's radosgw over one object store in memory, on free loopback
ports. Debian's packages are enough (tools/deps long).

    with S3() as s3:
        s3.environment("bucket/prefix")     # what Steno needs
        s3.stop(); s3.go_on()               # it does not answer for a while

As root only what it starts runs as root; nothing outside of its folder is written.
"""
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid

from postgres import free_port

PROGRAMS = ("ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "curl")
CONF = """[global]
fsid = {fsid}
mon_initial_members = a
mon_host = [v2:127.0.0.1:{v2},v1:127.0.0.1:{v1}]
public_network = 127.0.0.0/8
keyring = {folder}/keyring
auth_allow_insecure_global_id_reclaim = false
osd_pool_default_size = 1
osd_pool_default_min_size = 1
mon_allow_pool_size_one = true
osd_crush_chooseleaf_type = 0
osd_pool_default_pg_num = 8
mon_max_pg_per_osd = 1000
run_dir = {folder}/run
admin_socket = {folder}/run/$name.asok
log_file = {folder}/log/$name.log
pid_file = {folder}/run/$name.pid
mon_cluster_log_file = {folder}/log/cluster.log
mon_data_avail_warn = 2
mon_data_avail_crit = 1
crash_dir = {folder}/crash
[mon]
mon_data = {folder}/mon
[mgr]
mgr_data = {folder}/mgr
mgr_initial_modules =
[osd]
osd_data = {folder}/osd
osd_objectstore = memstore
memstore_device_bytes = 4294967296
osd_memory_target = 1073741824
[client.rgw.a]
rgw_data = {folder}/rgw
rgw_frontends = beast endpoint=127.0.0.1:{port}
rgw_dns_name = localhost
rgw_thread_pool_size = 32
"""


def missing():
    return [p for p in PROGRAMS if not shutil.which(p)]


class S3:
    KEY, SECRET = "STENOTESTKEY", "steno-test-secret"

    def __init__(self, patience=300):
        self.patience = patience
        self.processes = []

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="steno-s3-", dir="/var/tmp")
        for name in ("mon", "mgr", "osd", "run", "log", "rgw", "crash"):
            os.mkdir(os.path.join(self.folder, name))
        self.port = free_port()
        v2, v1 = free_port(), free_port()
        fsid = str(uuid.uuid4())
        self.conf = os.path.join(self.folder, "ceph.conf")
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(CONF.format(fsid=fsid, folder=self.folder, v1=v1, v2=v2, port=self.port))
        try:
            self.bring_up(fsid, v1, v2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *why):
        for p in reversed(self.processes):
            p.send_signal(signal.SIGCONT)
            p.kill()
            p.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command):
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=self.patience).stdout

    def start(self, *command):
        log = open(os.path.join(self.folder, "log", command[0] + ".out"), "wb")
        with log:
            self.processes.append(subprocess.Popen(
                [*command, "-f"], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return self.processes[-1]

    def bring_up(self, fsid, v1, v2):
        keyring, conf = os.path.join(self.folder, "keyring"), ("-c", self.conf)
        monmap = os.path.join(self.folder, "monmap")
        self.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a",
                 "[v2:127.0.0.1:%d,v1:127.0.0.1:%d]" % (v2, v1), monmap)
        self.run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap",
                 "mon", "allow *")
        for who in ("client.admin", "mgr.x", "osd.0", "client.rgw.a"):
            self.run("ceph-authtool", keyring, "--gen-key", "-n", who, "--cap", "mon", "allow *",
                     "--cap", "osd", "allow *", "--cap", "mgr", "allow *")
        self.run("ceph-mon", *conf, "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", keyring)
        self.start("ceph-mon", *conf, "-i", "a")
        ceph = ("ceph", *conf, "--connect-timeout", "60")
        self.run(*ceph, "auth", "import", "-i", keyring)
        osd = str(uuid.uuid4())
        self.run(*ceph, "osd", "new", osd)
        self.start("ceph-mgr", *conf, "-i", "x")
        self.run("ceph-osd", *conf, "-i", "0", "--mkfs", "--osd-uuid", osd)
        self.start("ceph-osd", *conf, "-i", "0")
        self.run(*ceph, "osd", "crush", "add", "osd.0", "1.0", "root=default", "host=h1")
        self.gateway = self.start("radosgw", *conf, "-n", "client.rgw.a")
        end = time.monotonic() + self.patience
        while not self.answers():
            if time.monotonic() > end or self.gateway.poll() is not None:
                raise TimeoutError("radosgw does not come up")
            time.sleep(0.1)
        self.run("radosgw-admin", *conf, "user", "create", "--uid=steno", "--display-name=steno",
                 "--access-key=" + self.KEY, "--secret-key=" + self.SECRET)

    @property
    def endpoint(self):
        return "http://127.0.0.1:%d" % self.port

    def answers(self):
        try:
            urllib.request.urlopen(self.endpoint, timeout=5).close()
            return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def curl(self, path, *options):
        """What curl's own signature gets: the body."""
        return self.run("curl", "-sS", "-f", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user",
                        self.KEY + ":" + self.SECRET, "-H",
                        "x-amz-content-sha256: UNSIGNED-PAYLOAD", *options, self.endpoint + path)

    def objects(self, bucket):
        text = self.curl("/%s?list-type=2" % bucket).decode()
        return [part.split("</Key>")[0] for part in text.split("<Key>")[1:]]

    def unfinished(self, bucket):
        text = self.curl("/%s?uploads=" % bucket).decode()
        return [part.split("</UploadId>")[0] for part in text.split("<UploadId>")[1:]]

    def environment(self, where, **more):
        return dict({"STENO_BLOBS": "s3://%s?endpoint=%s" % (where, self.endpoint),
                     "AWS_ACCESS_KEY_ID": self.KEY, "AWS_SECRET_ACCESS_KEY": self.SECRET}, **more)

    def stop(self):
        """It takes connections and answers nothing."""
        self.gateway.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.gateway.send_signal(signal.SIGCONT)
