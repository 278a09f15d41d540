# SPDX-License-Identifier: Apache-2.0
"""Keeps docs/ in step with the program: makes it print every message of troubleshooting.md, and checks every command of the pages."""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

DIST = pathlib.Path(os.environ["MUSTER_DIST"])
DOCS = pathlib.Path(os.environ["MUSTER_SOURCE"]) / "docs"
MUSTER = DIST / "bin/muster"
PLANS = DIST / "share/muster/plans"
TOKEN, OTHER_TOKEN = "0123456789abcdef0123456789abcdef", "ffffffff0123456789abcdefffffffff"

HEAD = 'schema = 1\nname = "one"\nsku = "host"\nbackend = "host"\n[[stage]]\nname = "one"\n'
PAIR = HEAD + 'test = "collective.sweep"\nscope = "cluster"\nranks = 1\ntimeout = "20s"\nparams = { from = "8 B", to = "64 B", iterations = 1 }\n'
MEMORY = HEAD + 'test = "memory.bandwidth"\nparams = { bytes = "15 TiB" }\n'
HEALTH = HEAD + 'test = "env.health"\nscope = "node"\nranks = 1\nparams = { idle_window = "1s", kernel_log = "off" }\n'


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Place:
    """A folder in which the program runs with an environment of its own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def start(self, *arguments, token=TOKEN, path=os.environ["PATH"]):
        environment = {"PATH": path, "HOME": str(self.folder), "OMP_NUM_THREADS": "1"} | ({"MUSTER_TOKEN": token} if token else {})
        return subprocess.Popen([MUSTER, *arguments], cwd=self.folder, env=environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def said(self, *arguments, **options):
        return self.start(*arguments, **options).communicate(timeout=300)[0]

    def run(self, plan, *arguments, **options):
        (self.folder / "plan.toml").write_text(plan, encoding="utf-8")
        return self.said("run", "plan.toml", "--plain", "--out", "out", *arguments, **options)

    def simulated(self, scenario):
        return self.said("run", str(PLANS / "node-quick.toml"), "--plain", "--out", "out", "--simulate", str(PLANS / f"scenarios/{scenario}.toml"))


def other_token(place):
    address = f"127.0.0.1:{free_port()}"
    (place.folder / "plan.toml").write_text(PAIR, encoding="utf-8")
    start = lambda rank, token: place.start("run", "plan.toml", "--plain", "--out", f"out{rank}", "--nnodes", "2", "--node-rank", rank,
                                            "--rendezvous", address, "--arrival", "5s", token=token)
    both = [start("0", TOKEN), start("1", OTHER_TOKEN)]
    return "".join(process.communicate(timeout=300)[0] for process in both)


def busy(place):
    """Another program uses a CPU for as long as the plan runs."""
    with subprocess.Popen([sys.executable, "-c", "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"]) as other:
        try:
            return place.run(HEALTH)
        finally:
            other.kill()


def open_folder(place):
    plugins = place.folder / "plugins"
    plugins.mkdir()
    (plugins / "mine.so").write_bytes((DIST / "lib/muster/plugins/env.so").read_bytes())
    plugins.chmod(0o777)
    return place.said("plugins", "mine", "--plugins", str(plugins))


# What kubectl and helm answer in a cluster whose only node offers GPUS GPUs; tests/kube/ runs the real ones.
KUBECTL = """#!/bin/sh
case "$*" in
*"create "*) cat >/dev/null ;;
*version*) echo '{"serverVersion": {"minor": "31", "gitVersion": "v1.31.0"}}' ;;
*" nodes "*) echo '{"items": [{"metadata": {"name": "n1"}, "status": {"allocatable": {"nvidia.com/gpu": "GPUS"},
  "conditions": [{"type": "Ready", "status": "True"}]}}]}' ;;
*" pods "*) echo '{"items": [{"metadata": {"name": "muster-n1"}, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
  "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]}}]}' ;;
*) echo '{"items": []}' ;;
esac
"""


def kubernetes(place, gpus, *commands):
    """What `muster k8s` says in that cluster."""
    programs = place.folder / "programs"
    programs.mkdir()
    for name, script in (("kubectl", KUBECTL.replace("GPUS", str(gpus))), ("helm", "#!/bin/sh\ncat >/dev/null\n")):
        (programs / name).write_text(script, encoding="utf-8")
        (programs / name).chmod(0o755)
    return "".join(place.said("k8s", *words, path=f"{programs}:{os.environ['PATH']}") for words in commands)


def pending(place):
    plan = str(PLANS / "node-quick.toml")
    return kubernetes(place, 8, ("submit", plan, "--nodes", "n1", "--gpus", "8", "--image", "muster:1", "--out", "run"), ("status", "run"))


# Beginning of a message in troubleshooting.md -> what makes the program print it.
PROVOKED = {
    "could not reach the store at": lambda p: p.run(PAIR, "--nnodes", "2", "--node-rank", "1", "--rendezvous", f"127.0.0.1:{free_port()}", "--arrival", "1s"),
    "did not arrive": lambda p: p.run(PAIR, "--nnodes", "2", "--node-rank", "0", "--rendezvous", f"127.0.0.1:{free_port()}", "--arrival", "1s"),
    "MUSTER_TOKEN is not the same": other_token,
    "MUSTER_TOKEN is not set": lambda p: p.run(PAIR, "--nnodes", "2", "--node-rank", "0", "--rendezvous", f"127.0.0.1:{free_port()}", token=""),
    "no launcher was found": lambda p: p.run(PAIR, "--nnodes", "2"),
    "is Slurm's client installed": lambda p: p.said("slurm", "submit", str(PLANS / "node-quick.toml"), "--nodes", "all", "--out", "slurm", path="/nowhere"),
    "Unschedulable: ": pending,
    "check the device plugin's pod": lambda p: kubernetes(p, 0, ("verify", "--nodes", "n1")),
    "made no progress": lambda p: p.simulated("h100x8-hang"),
    "out of memory": lambda p: p.run(MEMORY),
    "no NVIDIA driver": lambda p: p.said("run", str(PLANS / "node-quick.toml"), "--plain", "--out", "out"),
    "Check for a device": lambda p: p.simulated("h100x8-missing-gpu"),
    "IMEX of a fabric": lambda p: p.said("plugins", "env"),
    "no profile matches": lambda p: p.simulated("h100x8-unknown-sku"),
    "is writable by others": open_folder,
    "Check clocks": lambda p: p.simulated("h100x8-one-slow-gpu"),
    "Stop the process": busy,
}


def messages():
    return re.findall(r"^> (.+)$", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE)


def provoker(message):
    return [make for beginning, make in PROVOKED.items() if message.startswith(beginning)]


def printed(message):
    """What the program says when it is made to print the message, in one line."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("MUSTER_BUILD")) as folder:
        return " ".join(provoker(message)[0](Place(folder)).split())


class Docs(unittest.TestCase):
    def test_every_message_is_printed(self):
        listed = messages()
        self.assertEqual([], [message for message in listed if len(provoker(message)) != 1], "no way, or several, to make Muster print it")
        self.assertEqual(len(PROVOKED), len(listed), "a message that no page has is provoked")
        if os.path.exists("/proc/driver/nvidia/version"):
            listed.remove("no NVIDIA driver was found")
            print("not checked, as this machine has a driver: no NVIDIA driver was found")
        with ThreadPoolExecutor(2) as pool:
            for message, said in zip(listed, pool.map(printed, listed)):
                with self.subTest(message=message):
                    self.assertIn(message, said)

    def test_every_command_and_option_exists(self):
        commands = [line for page in sorted(DOCS.glob("*.md"))
                    for line in re.findall(r"^ {4,}.*?\bmuster ((?!import\b)[a-z].*)$", page.read_text(encoding="utf-8"), re.MULTILINE)]
        self.assertGreater(len(commands), 10)
        for command in commands:
            words = command.split("#")[0].split()
            groups = ("slurm", "k8s", "history", "baseline")
            with self.subTest(command=command):
                help_text = subprocess.run([MUSTER, *words[:2 if words[0] in groups else 1], "--help"], check=True, capture_output=True, text=True).stdout
                for option in re.findall(r"(?<=\s)--[a-z-]+", command.split("#")[0]):
                    self.assertIn(f"  {option} ", help_text)
                for plan in re.findall(r"plans/[a-z-]+\.toml", command):
                    self.assertTrue((DIST / "share/muster" / plan).is_file(), plan)


if __name__ == "__main__":
    unittest.main()
