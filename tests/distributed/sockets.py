"""Which addresses the processes of a test listen at, from /proc."""

import ipaddress
import os
from pathlib import Path

_LISTENING = "0A"


def descendants(pid=None):
    """This process and all that it started, and they in turn."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    found, new = set(), {pid or os.getpid()}
    while new:
        found |= new
        new = {child for child, parent in parents.items() if parent in new} - found
    return found


def listening(pids):
    """The addresses at which any of these processes listens for TCP connections, as text."""
    inodes = set()
    for pid in pids:
        try:
            links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
        except OSError:
            continue
        inodes |= {link[8:-1] for link in links if link.startswith("socket:[")}
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and fields[9] in inodes:
                host, port = fields[1].split(":")
                found.add((_address(host), int(port, 16)))
    return found


def _address(text):
    # Each word of four bytes is in the machine's order.
    words = [bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    return getattr(address, "ipv4_mapped", None) or address
