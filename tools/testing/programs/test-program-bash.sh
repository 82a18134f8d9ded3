#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# bash with job control on a pseudo terminal: jobs, foreground and background, ^Z and ^C, traps,
# pipe lines, and its exit status, each after it was moved out.
# timeout: 600

. "$(dirname "$0")/lib.sh"

need bash python3
input bash-pty.py
client bash "python3 bash-pty.py"
client_ends bash $'exit 0\nout 31 times'
on 1 rm -rf "$P"
check "nothing is out or in" nothing_out
finish_test
