# SPDX-License-Identifier: GPL-2.0
"""bash-pty.py - bash with job control on a terminal, moved before each thing it is told

Prints what was not as it should be, and at the end how often bash went out.
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time

LIMIT = 120  # seconds
PROMPT = b"@ready@ "


class Shell:
    def __init__(self):
        self.moves = 0
        self.text = b""
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(PS1=PROMPT.decode(), TERM="dumb", HISTFILE="")
            os.execvp("bash", ["bash", "--norc", "--noediting", "-i"])
        attributes = termios.tcgetattr(self.fd)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(self.fd, termios.TCSANOW, attributes)

    def until(self, pattern):
        """Reads until there is @pattern; returns the match."""
        end = time.monotonic() + LIMIT
        while True:
            match = re.search(pattern, self.text, re.S)
            if match:
                self.text = self.text[match.end():]
                return match
            if not select.select([self.fd], [], [], end - time.monotonic())[0]:
                raise TimeoutError("no %r in %r" % (pattern, self.text))
            self.text += os.read(self.fd, 4096)

    def type(self, text):
        os.write(self.fd, text)

    def tell(self, line, pattern):
        """A command, what it must print, and the prompt."""
        self.type(line + b"\n")
        match = self.until(pattern)
        self.until(re.escape(PROMPT))
        return match

    def order(self, *words):
        return subprocess.run(["mattxctl", *words], capture_output=True, text=True)

    def out(self):
        """It goes out; if it has stayed out, it comes home first."""
        pid = str(self.pid)
        done = self.order("migrate", pid, "node2")
        if "already" in done.stderr:
            self.order("home", pid)
            done = self.order("migrate", pid, "node2")
        if done.returncode:
            raise RuntimeError(done.stderr)
        self.moves += 1


def state(pid):
    with open("/proc/%d/stat" % pid) as stat:
        return stat.read().rpartition(")")[2].split()[0]


def main():
    shell = Shell()
    shell.until(re.escape(PROMPT))
    for i in range(3):
        shell.out()
        shell.tell(b"echo $((6 * 7 + %d))" % i, b"%d\r\n" % (42 + i))
        shell.out()
        shell.tell(b"cd /tmp; pwd; cd - >/dev/null", b"/tmp\r\n")
        shell.out()
        job = int(shell.tell(b"sleep 1000 &", rb"\[1\] (\d+)\r\n").group(1))
        shell.out()
        shell.tell(b"jobs", rb"\[1\]\+\s+Running\s+sleep 1000 &\r\n")
        shell.out()
        # to the foreground, where ^Z stops it and the shell has its terminal back
        shell.type(b"fg\n")
        shell.until(rb"sleep 1000\r\n")
        end = time.monotonic() + LIMIT
        while os.tcgetpgrp(shell.fd) != job:
            if time.monotonic() > end:
                raise TimeoutError("the job is not in the foreground")
            time.sleep(0.05)
        shell.type(b"\x1a")
        shell.until(rb"\[1\]\+\s+Stopped\s+sleep 1000\r\n")
        shell.until(re.escape(PROMPT))
        assert state(job) == "T", state(job)
        assert os.tcgetpgrp(shell.fd) == shell.pid
        shell.out()
        shell.tell(b"bg", rb"\[1\]\+ sleep 1000 &\r\n")
        assert state(job) == "S", state(job)
        shell.out()
        shell.tell(b"kill -INT %1; wait %1; echo status $?", rb"status 130\r\n")
        shell.out()
        shell.tell(b"trap 'echo trapped' USR1", b"")
        shell.out()
        os.kill(shell.pid, signal.SIGUSR1)
        shell.tell(b":", b"trapped\r\n")
        shell.tell(b"echo one | cat | tr a-z A-Z", b"ONE\r\n")
        # ^C ends what is in the foreground, and not the shell
        shell.out()
        shell.type(b"echo begins; while :; do :; done\n")
        shell.until(b"begins\r\n")
        shell.type(b"\x03")
        shell.until(re.escape(PROMPT))
    shell.out()
    shell.type(b"exit 7\n")
    status = os.waitstatus_to_exitcode(os.waitpid(shell.pid, 0)[1])
    assert status == 7, status
    print("out %d times" % shell.moves)


try:
    main()
except (AssertionError, TimeoutError, RuntimeError, OSError) as error:
    print("%s: %s" % (type(error).__name__, error))
    sys.exit(1)
