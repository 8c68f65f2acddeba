"""A network for a test alone, with machines that can be cut off from it.

    if own_network():               # this program again, in a network namespace of its own
        net = Machine(0)
        subprocess.Popen([*net.enter, "steno", "serve", "--listen", net.address + ":0"])
        net.cut(); net.mend()       # the cable is pulled, and comes back
        net.close()

Only root may do that; for others, and where there is no iproute2, own_network() is false.
"""
import os
import shutil
import subprocess
import sys

MARK = "STENO_TEST_NETWORK"


def own_network():
    if os.environ.get(MARK) == str(os.getpid()):
        return True
    if os.getuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
        return False
    if subprocess.call(["unshare", "-n", "ip", "link", "add", "type", "veth"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        return False
    # exec keeps the process id, by which the program recognises itself; a program that it starts has
    # another one.
    os.environ[MARK] = str(os.getpid())
    script = os.path.abspath(sys.argv[0])
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", "ip link set lo up; exec \"$@\"", "sh",
                          sys.executable, script, *sys.argv[1:]])
    return False


class Machine:
    """A namespace with one cable to that of the test, and an address at each end of it."""

    def __init__(self, n):
        self.cable = "cable%d" % n
        self.gateway, self.address = ["10.7.%d.%d" % (n, k) for k in (1, 2)]
        # It reads from the test, and therefore ends with it.
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.holder.stdout.readline()  # the namespace is there
        pid = str(self.holder.pid)
        self.enter = ["nsenter", "-t", pid, "-n", "--"]
        self.ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", pid)
        self.ip("addr", "add", self.gateway + "/30", "dev", self.cable)
        self.mend()
        for args in (["addr", "add", self.address + "/30", "dev", "eth0"],
                     ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):
            subprocess.run([*self.enter, "ip", *args], check=True)

    @staticmethod
    def ip(*args):
        subprocess.run(["ip", *args], check=True)

    def cut(self):
        self.ip("link", "set", self.cable, "down")

    def mend(self):
        self.ip("link", "set", self.cable, "up")

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdin.close()
        self.holder.stdout.close()
        subprocess.call(["ip", "link", "del", self.cable], stderr=subprocess.DEVNULL)
