"""Child processes of tests: they take signals as from a terminal, end with the tests, and are waited for within limits.

However the tests are started (in the background of a shell that lets SIGINT be ignored there, say), a child begins with
the default dispositions; and if the tests are killed, so is the child. Both are what this file does when it is run as a
program, before it becomes the command that was asked for: a function to run between fork and exec would be none for
processes with threads.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

LIMIT = 300  # seconds for a child to end; a hang would take for ever
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def command(words, descriptors=()):
    """The command line that becomes ``words``; ``descriptors`` are those it finds as its own 3, 4, …"""
    if os.name != "posix":
        return [str(word) for word in words]
    numbers = ",".join(map(str, descriptors))
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), numbers, *map(str, words)]


@contextmanager
def started(words, *, limit=LIMIT, **options):
    """A child that is dead at the end, whatever happens in between, or after ``limit`` seconds: no wait is endless."""
    with subprocess.Popen(command(words), **options) as child:
        watch = threading.Timer(limit, child.kill)
        watch.daemon = True
        watch.start()
        try:
            yield child
        finally:
            watch.cancel()
            child.kill()


def run(words, **options):
    """Like ``subprocess.run``, with a limit."""
    return subprocess.run(command(words), **({"timeout": LIMIT} | options))


def restore():
    """Take signals as a program does that a shell has started in the foreground."""
    for name in _SIGNALS:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def die_with(parent):
    """End this process when ``parent`` does, where the system can do that."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was too late
            os._exit(1)


def _main(parent, numbers, *words):
    restore()
    die_with(int(parent))
    copies = [os.dup(int(number)) for number in numbers.split(",") if number]
    for place, copy in enumerate(copies, start=3):
        os.dup2(copy, place)
        os.set_inheritable(place, True)  # dup2 does that unless the copy is in its place already
    os.execvp(words[0], words)


if __name__ == "__main__":
    _main(*sys.argv[1:])
