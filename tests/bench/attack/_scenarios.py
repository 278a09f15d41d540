# SPDX-License-Identifier: Apache-2.0
"""Scenarios of healthy nodes that attack benches run on."""
import glob
import os
import re

SOCKET = "-socket.toml"  # appended to a scenario's path: the same nodes, whose devices talk through sockets


def name_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def connected(share, folder):
    """Healthy nodes of each GPU model that has a profile, with a network and RDMA devices as the shipped ones have them."""
    sections = {}
    for name, section in (("h100x8-cluster-healthy", "[network]"), ("h100x8-hca-healthy", "[rdma]")):
        with open(os.path.join(share, "plans", "scenarios", name + ".toml"), encoding="utf-8") as file:
            sections[section] = section + file.read().split("\n" + section)[1]
    made = []
    for path in sorted(glob.glob(os.path.join(share, "plans", "scenarios", "*x8-healthy.toml"))):
        model = name_of(path).split("x8")[0]
        (profile,) = glob.glob(os.path.join(share, "plans", "skus", model + "-*.toml")) or [os.path.join(share, "plans", "skus", model + ".toml")]
        with open(profile, encoding="utf-8") as file:
            limit = float(re.search(r'large_message_bus_bandwidth"\nwhere.*\nmin = "([0-9.]+) GB/s"', file.read()).group(1))
        network = re.sub('intra_bandwidth = ".*"', f'intra_bandwidth = "{limit * 1.06:.0f} GB/s"', sections["[network]"])
        made.append(os.path.join(folder, name_of(path) + ".toml"))
        with open(path, encoding="utf-8") as base, open(made[-1], "w", encoding="utf-8") as file:
            file.write(f"{base.read()}\n{network}\n{sections['[rdma]']}")
        # What a plan for CPUs asks of the transport.
        with open(made[-1], encoding="utf-8") as base, open(made[-1] + SOCKET, "w", encoding="utf-8") as file:
            file.write(re.sub('intra_transport = ".*"', 'intra_transport = "socket"', base.read()))
    return made
