# SPDX-License-Identifier: GPL-2.0
"""redis-check.py SOCKET - writes to redis, reads back, on one connection that must last

Counts its rounds in "rounds" until there is a file "enough".
"""
import hashlib
import os
import socket
import sys

BATCH = 20


class Redis:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def send(self, *commands):
        data = b""
        for words in commands:
            data += b"*%d\r\n" % len(words)
            for word in words:
                word = word if isinstance(word, bytes) else str(word).encode()
                data += b"$%d\r\n%s\r\n" % (len(word), word)
        self.socket.sendall(data)
        return [self.answer() for _ in commands]

    def answer(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the connection is closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return self.file.read(size + 2)[:-2] if size >= 0 else None
        raise ValueError(line)


def value(number):
    """From some bytes to some hundred KiB, and never the same."""
    seed = hashlib.sha256(b"%d" % number).hexdigest().encode()
    return seed * (1 + (number % 7) ** 4)


def main():
    redis = Redis(sys.argv[1])
    wrong = rounds = 0
    redis.send(["DEL", "counter"], ["DEL", "list"])
    while not os.path.exists("enough"):
        keys = range(rounds * BATCH, (rounds + 1) * BATCH)
        wrong += redis.send(*[["SET", "key:%d" % (key % 500), value(key)]
                              for key in keys]) != [b"OK"] * BATCH
        got = redis.send(*[["GET", "key:%d" % (key % 500)] for key in keys])
        wrong += got != [value(key) for key in keys]
        wrong += redis.send(["INCRBY", "counter", rounds]) != [
            rounds * (rounds + 1) // 2]
        wrong += redis.send(["RPUSH", "list", rounds]) != [rounds + 1]
        rounds += 1
        with open("rounds.new", "w") as out:
            out.write("%d\n" % rounds)
        os.rename("rounds.new", "rounds")
    print("%d wrong" % wrong)


main()
