"""What Python on Windows lacks of what it has here."""

from __future__ import annotations

import posix
import signal
import time

__all__ = ["LACKING", "MISSING"]

MISSING = frozenset("curses fcntl grp nis posix pty pwd readline resource spwd syslog termios tty".split())
"""Modules."""

_IN_NT = frozenset(
    """abort access chdir chmod close closerange cpu_count device_encoding dup dup2 environ error execv execve fspath
    fstat fsync ftruncate get_handle_inheritable get_inheritable get_terminal_size getcwd getcwdb getlogin getpid
    getppid isatty kill link listdir lseek lstat mkdir open pipe putenv read readlink remove rename replace rmdir
    scandir set_handle_inheritable set_inheritable spawnv spawnve stat stat_result statvfs_result strerror symlink
    system terminal_size times times_result truncate umask unlink unsetenv urandom utime waitpid
    waitstatus_to_exitcode write DirEntry F_OK R_OK W_OK X_OK P_DETACH P_NOWAIT P_NOWAITO P_OVERLAY P_WAIT TMP_MAX
    O_APPEND O_CREAT O_EXCL O_RDONLY O_RDWR O_TRUNC O_WRONLY""".split()
)
"""The names of the module `nt` (Python 3.11); `os` has more, which it defines in Python on every system."""

_SIGNALS = frozenset("SIGABRT SIGFPE SIGILL SIGINT SIGSEGV SIGTERM SIG_DFL SIG_IGN".split())

LACKING: dict[str, frozenset[str]] = {
    "os": frozenset(name for name in vars(posix) if name not in _IN_NT and not name.startswith("_")),
    "signal": frozenset(
        {name for name in vars(signal) if name.startswith(("SIG", "ITIMER", "pthread_")) and name not in _SIGNALS}
        | {"alarm", "pause", "siginterrupt", "setitimer", "getitimer"}
    ),
    "time": frozenset({name for name in vars(time) if name.startswith(("CLOCK_", "clock_"))} | {"tzset"}),
    "select": frozenset({"poll", "epoll", "kqueue"}),
    "socket": frozenset({"AF_UNIX", "socketpair"}),
}
"""Names of modules that are there."""
