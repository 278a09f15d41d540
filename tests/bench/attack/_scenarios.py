# SPDX-License-Identifier: Apache-2.0
"""Scenarios of healthy nodes that attack benches run on."""
import glob
import os
import re
import tomllib

CPU_PLANS = ("environment", "quickstart", "collective-host", "train-host", "gemm-sweep")
SOCKET = "-socket.toml"  # appended to a scenario's path: the same nodes, whose devices talk through sockets


def name_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def profile_at(path):
    """Peaks and expectations of a profile with the files that it includes."""
    document = tomllib.loads(read(path))
    whole = {"peaks": {}, "expect": []}
    for part in [profile_at(os.path.join(os.path.dirname(path), name)) for name in document.get("include", [])] + [document]:
        whole["peaks"].update(part.get("peaks", {}))
        whole["expect"] += part.get("expect", [])
    return document | whole


def laid_over(above, below):
    both = {key: laid_over(value, below[key]) for key, value in above.items() if isinstance(value, dict) and isinstance(below.get(key), dict)}
    return below | above | both


def scenario_at(path):
    """A scenario with the files that it includes."""
    document = tomllib.loads(read(path))
    whole = {}
    for name in document.pop("include", []):
        whole = laid_over(scenario_at(os.path.join(os.path.dirname(path), name)), whole)
    return laid_over(document, whole)


def profile_of(share, scenario):
    """The shipped profile of a scenario's devices."""
    pci_id = scenario_at(scenario)["devices"]["pci_id"]
    profiles = [profile_at(path) for path in glob.glob(os.path.join(share, "plans", "skus", "*.toml"))]
    (found,) = [profile for profile in profiles if pci_id in profile["match"].get("pci_ids", []) and not profile["match"].get("only_by_name")]
    return found


def gigabytes(text):
    return float(text.removesuffix(" GB/s"))


def with_keys(section, keys):
    for key, value in keys.items():
        section = re.sub(f"^{key} = .*", f"{key} = {value}", section, flags=re.MULTILINE)
    return section


CARD_NETWORK = {"rails": 2, "rail_bandwidth": 25}  # of servers with cards, whose profiles state none


def options(share, scenario):
    """What a plan must be told of the network between nodes that have no reference design."""
    if "rail_bandwidth" in profile_of(share, scenario)["peaks"]:
        return []
    return ["--set", f"network.rails={CARD_NETWORK['rails']}", "--set", f"network.rail_bandwidth={CARD_NETWORK['rail_bandwidth']} GB/s"]


def suits(plan, scenario):
    """Whether the plan is for GPUs like these: some require that GPUs of a node reach each other faster than those of others, a4-gke
    the settings of A4, most plans bf16."""
    figures = scenario_at(scenario)["figures"]
    return not (plan in ("nccl", "cluster", "scaling") and "pcie_peer" in figures["copies"] or plan == "a4-gke" or plan not in ("compact", *CPU_PLANS) and "bf16" not in figures["gemm"])


def connected(share, folder):
    """Healthy nodes of each GPU model that has a profile, with the network and RDMA devices that the profile requires. What one
    includes is made beside it."""
    sections = {}
    for name, section in (("h100x8-cluster-healthy", "[network]"), ("h100x8-hca-healthy", "[rdma]")):
        sections[section] = section + read(os.path.join(share, "plans", "scenarios", name + ".toml")).split("\n" + section)[1]
    made = []
    for path in sorted(glob.glob(os.path.join(share, "plans", "scenarios", "*-healthy.toml"))):
        if {"network", "rdma"} & scenario_at(path).keys():
            continue  # what the sections come from
        profile = profile_of(share, path)
        limits = [gigabytes(e["min"]) for e in profile["expect"]
                  if e["metric"] == "collective.large_message_bus_bandwidth" and e["where"]["op"] == "all_reduce"]
        limit = limits[0] if limits else 20  # cards have none: about what PCIe carries
        rail, rails = CARD_NETWORK["rail_bandwidth"], CARD_NETWORK["rails"]
        if "rail_bandwidth" in profile["peaks"]:
            rail, network = (gigabytes(profile["peaks"][name]) for name in ("rail_bandwidth", "network_bandwidth"))
            rails = round(network / rail)
        network = with_keys(sections["[network]"], {"intra_bandwidth": f'"{limit * 1.06:.0f} GB/s"', "rails": rails, "rail_bandwidth": f'"{rail * 0.97:.1f} GB/s"'})
        rdma = with_keys(sections["[rdma]"], {"count": rails, "line_rate": f'"{rail:.1f} GB/s"', "bandwidth": f'"{rail * 0.978:.1f} GB/s"',
                                              "loopback_bandwidth": f'"{rail * 0.972:.1f} GB/s"'})
        made.append(os.path.join(folder, name_of(path) + ".toml"))
        # The second is what a plan for CPUs asks of the transport.
        for name, transport in ((made[-1], "nvlink" if limits else "pcie-p2p"), (made[-1] + SOCKET, "socket")):
            with open(name, "w", encoding="utf-8") as file:
                file.write("\n".join([read(path), with_keys(network, {"intra_transport": f'"{transport}"'}), rdma]))
    return made
