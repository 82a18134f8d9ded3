# SPDX-License-Identifier: GPL-2.0
"""Asks the server again and again, over connections that stay and new ones, and
writes down each answer: http-client.py REQUESTS"""
import http.client
import os
import sys
import time

while not os.path.exists("port"):
    time.sleep(0.1)
with open("port", encoding="ascii") as file:
    port = int(file.read())


def connect():
    """A connection to the server."""
    return http.client.HTTPConnection("127.0.0.1", port, timeout=120)


kept = connect()
with open("answers", "w", encoding="ascii", buffering=1) as log:
    for number in range(1, int(sys.argv[1]) + 2):
        if number > int(sys.argv[1]) or os.path.exists("enough"):
            number = "end"
        one = kept if number == "end" or number % 2 else connect()
        one.request("GET", "/%s" % number)
        log.write("%s %s" % (number, one.getresponse().read().decode()))
        if one is not kept:
            one.close()
        if number == "end":
            break
