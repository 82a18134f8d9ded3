#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""criu-images.py DIR - what CRIU's images in DIR say about a process

One line for each fact: mappings, signal actions, timers, credentials,
descriptors, limits. What changes while a process only waits (registers, time
left, ids that CRIU makes up, contents of pages) is left out, and mappings that
differ in nothing are told as one. The images are protocol buffers; field
numbers are those of CRIU's images/*.proto, fields without a name are shown by
their number.
"""
import os
import struct
import sys

COMMON = 0x54564319
DROP = None

SIGSET = {1: ("low", None), 2: ("high", None)}
ITIMER = {1: ("isec", None), 2: ("iusec", None), 3: DROP, 4: DROP}
SIGACTION = {1: ("handler", None), 2: ("flags", None), 3: ("restorer", None),
             4: ("mask", None), 5: DROP, 6: DROP}
POSIX_TIMER = {1: ("id", None), 2: ("clock", None), 3: ("signo", None),
               4: ("notify", None), 5: ("value", None), 6: DROP,
               7: ("isec", None), 8: ("insec", None), 9: DROP, 10: DROP}
TIMERS = {1: ("real", ITIMER), 2: ("prof", ITIMER), 3: ("virt", ITIMER),
          4: ("posix", POSIX_TIMER)}
RLIMIT = {1: ("cur", None), 2: ("max", None)}
RLIMITS = {1: ("limit", RLIMIT)}
CREDS = {1: ("uid", None), 2: ("gid", None), 3: ("euid", None),
         4: ("egid", None), 5: ("suid", None), 6: ("sgid", None),
         7: ("fsuid", None), 8: ("fsgid", None), 9: ("cap_inh", None),
         10: ("cap_prm", None), 11: ("cap_eff", None), 12: ("cap_bnd", None),
         13: ("secbits", None), 14: ("groups", None)}
SAS = {1: ("sp", None), 2: ("size", None), 3: ("flags", None)}
TASK = {1: ("state", None), 2: DROP, 3: ("personality", None), 4: DROP,
        5: ("blocked", None), 6: ("comm", str), 7: ("timers", TIMERS),
        8: ("rlimits", RLIMITS), 9: DROP, 10: ("pending", None),
        13: ("loginuid", None), 14: ("oom_score_adj", None),
        15: ("sigaction", SIGACTION)}
THREAD = {1: ("robust_list", None), 2: ("robust_len", None),
          3: ("nice", None), 4: ("policy", None), 5: ("prio", None),
          6: ("blocked", None), 7: ("altstack", SAS), 8: ("pdeathsig", None),
          9: ("pending", None), 10: ("creds", CREDS), 13: ("comm", str)}
CORE = {1: DROP, 2: DROP, 3: ("task", TASK), 4: DROP, 5: ("thread", THREAD)}
MM = {1: ("start_code", None), 2: ("end_code", None), 3: ("start_data", None),
      4: ("end_data", None), 5: ("start_stack", None), 6: ("start_brk", None),
      7: ("brk", None), 8: ("arg_start", None), 9: ("arg_end", None),
      10: ("env_start", None), 11: ("env_end", None), 12: DROP,
      13: ("auxv", None), 14: DROP, 15: ("dumpable", None)}
FDINFO = {1: DROP, 2: ("flags", None), 3: ("type", None), 4: ("fd", None)}


def varint(data, at):
    shift = value = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def fields(data):
    """(number, value) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, = struct.unpack_from("<Q", data, at)
            at += 8
        elif kind == 5:
            value, = struct.unpack_from("<I", data, at)
            at += 4
        else:
            size, at = varint(data, at)
            value = data[at:at + size]
            at += size
        yield key >> 3, value


def entries(path):
    """The messages of an image."""
    with open(path, "rb") as image:
        data = image.read()
    magic, = struct.unpack_from("<I", data)
    at = 8 if magic == COMMON else 4
    while at + 4 <= len(data):
        size, = struct.unpack_from("<I", data, at)
        yield data[at + 4:at + 4 + size]
        at += 4 + size


def tell(name, data, known):
    """One line for each field that is not dropped."""
    counts = {}
    for number, value in fields(data):
        what = known.get(number, ("field%d" % number, None))
        if what is DROP:
            continue
        label, inner = what
        index = counts[number] = counts.get(number, -1) + 1
        label = "%s.%s" % (name, label)
        if isinstance(inner, dict):
            tell("%s[%d]" % (label, index), value, inner)
        elif isinstance(value, bytes):
            print(label, index, value.decode() if inner is str
                  else value.hex())
        else:
            print(label, index, "%#x" % value)


def tell_mappings(data):
    """Neighbours that differ in nothing are one."""
    mappings = []
    for number, value in fields(data):
        if number != 14:
            continue
        vma = dict(fields(value))
        facts = (vma.get(5, 0), vma.get(6, 0), vma.get(7, 0), vma.get(9, 0))
        file_backed = bool(vma.get(6, 0) & 0x20 == 0)
        start, end, offset = vma[1], vma[2], vma.get(3, 0)
        last = mappings[-1] if mappings else None
        if last and last[1] == start and last[2] == facts and (
                not file_backed or last[3] + start - last[0] == offset):
            last[1] = end
        else:
            mappings.append([start, end, facts,
                             offset if file_backed else 0])
    for start, end, facts, offset in mappings:
        print("mapping %x-%x prot %x flags %x status %x madvise %x offset %x"
              % (start, end, *facts, offset))


def main():
    top = sys.argv[1]
    for name in sorted(os.listdir(top)):
        path = os.path.join(top, name)
        base = name[:-len(".img")]
        if name.startswith("core-"):
            for entry in entries(path):
                tell(base, entry, CORE)
        elif name.startswith("mm-"):
            for entry in entries(path):
                tell("mm", entry, MM)
                tell_mappings(entry)
        elif name.startswith("fdinfo-"):
            for entry in entries(path):
                fd = dict(fields(entry))
                print("descriptor %d flags %#x type %d" % (
                    fd[4], fd.get(2, 0), fd[3]))


main()
