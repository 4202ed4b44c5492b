# SPDX-License-Identifier: MIT
"""Timeouts by the million, in the kernel: libtwheel for Python.

    import twheel

    with twheel.Context() as context:
        timer = context.add(2.0, print, "late")
        while context.wait():
            context.dispatch()

Times are in seconds, as int or float. One thread at a time may use a context and its timers.
Failures raise OSError; an invalid time raises ValueError, and one that is too large OverflowError.
See twheel_python(7).
"""

import collections
import ctypes
import errno
import math
import os

__all__ = ["Context", "Timer", "Event", "DEADLINE", "IDLE", "LIFETIME",
           "RECEIVED", "SENT", "SHUTDOWN", "ABORT"]

# Values of an event's reason.
DEADLINE, IDLE, LIFETIME = 0, 1, 2

# For Context.watch(): what counts as activity, and what is done to an idle connection.
RECEIVED, SENT, SHUTDOWN, ABORT = 1 << 6, 1 << 7, 1 << 8, 1 << 9

_TIME_MAX = 2 ** 63 - 1
_WATCHED = 1 << 5
_MONOTONIC = 1
_TIME_NONE = 2 ** 64 - 1
_TOO_LATE = (errno.EALREADY, errno.ENOENT, errno.ENOTCONN)
_BATCH = 64

_u32, _i32, _u64 = ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64


# As in <linux/twheel.h>. Calls pass their sizes, so these may be older than the library.
class Event(ctypes.Structure):
    """One expiry: deadline and fired are nanoseconds of time.CLOCK_MONOTONIC."""
    _fields_ = [("handle", _u64), ("user_data", _u64), ("deadline", _u64), ("fired", _u64),
                ("seq", _u64), ("overruns", _u32), ("reason", _u32)]


class _Activity(ctypes.Union):
    _fields_ = [("touch", _u32), ("sock_fd", _i32)]


class _Add(ctypes.Structure):
    _anonymous_ = ["activity"]
    _fields_ = [("time", _u64), ("user_data", _u64), ("handle", _u64), ("flags", _u32),
                ("clock", _u32), ("key", _u64), ("period", _u64), ("slack", _u64),
                ("spread", _u64), ("idle", _u64), ("lifetime", _u64),
                ("activity", _Activity), ("reserved", _u32)]


class _Info(ctypes.Structure):
    _fields_ = [("features", _u64), ("tick_ns", _u64), ("max_timers", _u64),
                ("nr_timers", _u64), ("nr_events", _u64), ("event_size", _u32),
                ("reserved", _u32)]


def _load():
    library = ctypes.CDLL("libtwheel.so.0")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for name, *arguments in (
            ("open", _i32),
            ("wait", _i32, _i32),
            ("info_sized", _i32, pointer, size),
            ("timer_add_sized", _i32, pointer, size),
            ("read_sized", _i32, pointer, _u32, size),
            ("rearm", _i32, _u64, _u64, _u32),
            ("active", _i32, _u64),
            ("cancel", _i32, _u64)):
        getattr(library, "twheel_" + name).argtypes = arguments
    return library


_library = None


def _call(name, *arguments):
    """Calls the library, which is loaded on first use. Returns a number or -errno."""
    global _library
    if _library is None:
        _library = _load()
    return getattr(_library, "twheel_" + name)(*arguments)


def _check(ret, *allowed, path=None):
    if ret < 0 and -ret not in allowed:
        raise OSError(-ret, os.strerror(-ret), path)
    return ret


def _ns(seconds):
    if seconds < 0:
        raise ValueError("a time cannot be negative")
    # An int is exact, however large. round() raises for infinity and NaN.
    ns = seconds * 10 ** 9 if isinstance(seconds, int) else round(seconds * 1e9)
    return min(ns, _TIME_MAX)


def _no_deadline(**fields):
    return _Add(time=_TIME_NONE, clock=_MONOTONIC, **fields)


class Timer:
    """A timer of a context, returned by its add(), every(), idle() and watch().

    event is the event of the current or the latest callback.
    """

    def __init__(self, context, callback, arguments):
        self._context = context
        self._callback = callback
        self._arguments = arguments
        self._repeats = False
        self._once = False
        self._number = 0
        self._handle = 0
        self.event = None

    @property
    def handle(self):
        """Names the timer in the kernel; 0 if it has expired for good, or was cancelled."""
        return self._handle

    def rearm(self, seconds):
        """Re-arms a timer from add() to expire this time from now. False if it is too late."""
        if not self._once:
            raise ValueError("only a timer from add() can be re-armed")
        return self._move("rearm", _ns(seconds), 0)

    def active(self):
        """Restarts the timeout of a timer from idle(). Returns False if it is too late."""
        return self._move("active")

    def cancel(self):
        """From now on the callback is not called. Returns whether it would have been."""
        handle, self._handle = self._handle, 0
        if not handle:
            return False
        del self._context._timers[self._number]
        ret = _check(_call("cancel", self._context.fileno(), handle), *_TOO_LATE)
        # Its event may have been read, but not dispatched.
        return ret >= 0 or any(e.user_data == self._number for e in self._context._events)

    def _move(self, name, *arguments):
        if not self._handle:
            return False
        ret = _call(name, self._context.fileno(), self._handle, *arguments)
        return _check(ret, *_TOO_LATE) >= 0


class _Ignored:
    """Passes an exception to sys.unraisablehook, as Python does with one raised in __del__."""

    def __init__(self, exception):
        self._exception = exception

    def __del__(self):
        raise self._exception


class Context:
    """An open file of /dev/twheel, with its own timers. Closing it cancels them.

    An event loop that watches it must stop to do so before: the number of its file descriptor
    may be that of the next one.
    """

    # close() is called even if a subclass does not come to __init__().
    _fd = -1

    def __init__(self):
        self._timers = {}
        self._next = 0
        self._events = collections.deque()
        self._buffer = (Event * _BATCH)()
        self._fd = _check(_call("open", os.O_NONBLOCK), path="/dev/twheel")

    def close(self):
        """Cancels all timers. Nothing of the context may be used afterwards."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
            for timer in self._timers.values():
                timer._handle = 0
            self._timers.clear()
            self._events.clear()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __del__(self):
        self.close()

    def fileno(self):
        """For select, selectors and asyncio: readable when there is something to dispatch."""
        return self._fd

    def info(self):
        """Returns a dictionary of what the kernel reports: features, tick_ns, nr_timers, ..."""
        info = _Info()
        _check(_call("info_sized", self._fd, ctypes.byref(info), ctypes.sizeof(info)))
        return {name: getattr(info, name) for name, _ in info._fields_ if name != "reserved"}

    def add(self, seconds, callback, *arguments):
        """Returns a Timer that expires once, after this time."""
        return self._start(_Add(time=_ns(seconds), clock=_MONOTONIC), callback, arguments)

    def every(self, seconds, callback, *arguments):
        """Returns one that expires repeatedly. Its event.overruns is how many periods it missed."""
        # 0 would mean no period; and no idle timeout, in idle().
        period = max(_ns(seconds), 1)
        add = _Add(time=period, period=period, clock=_MONOTONIC)
        return self._start(add, callback, arguments)

    def idle(self, seconds, callback, *arguments):
        """Returns one that expires after this time without a call of its active()."""
        return self._start(_no_deadline(idle=max(_ns(seconds), 1)), callback, arguments)

    def watch(self, sock, seconds, flags, callback, *arguments):
        """Returns one that expires after this time without data on a TCP connection.

        sock is a socket or a file descriptor. flags are RECEIVED or SENT, where neither means
        both, and SHUTDOWN or ABORT, where neither means that nothing is done. If the connection
        ends before that, the callback is not called; cancel the timer when you close the socket.
        """
        fd = sock if isinstance(sock, int) else sock.fileno()
        # ctypes would truncate them.
        if not -2 ** 31 <= fd < 2 ** 31 or not 0 <= flags < 2 ** 32:
            raise OverflowError("a file descriptor or flags out of range")
        add = _no_deadline(idle=_ns(seconds), flags=flags | _WATCHED)
        add.sock_fd = fd
        return self._start(add, callback, arguments)

    def wait(self, seconds=None):
        """Waits for something to dispatch. Returns False after a timeout or a signal."""
        if self._events:
            return True
        ms = -1 if seconds is None else min(max(math.ceil(seconds * 1000), 0), 2 ** 31 - 1)
        return _check(_call("wait", self._fd, ms), errno.EINTR) > 0

    def dispatch(self):
        """Calls the callbacks of up to 64 expired timers, without waiting. Returns their number.

        If a callback raises an exception, it is raised here after the others have been called. If
        several do, the first one is raised, and the others go to sys.unraisablehook.
        """
        called, first = 0, None
        # Only once: with slow callbacks, timers that expire meanwhile could keep it here.
        self._read()
        while self._events:
            event = self._events.popleft()
            timer = self._timers.get(event.user_data)
            # It may have been cancelled since its event was read.
            if timer is None:
                continue
            if not timer._repeats:
                timer._handle = 0
                del self._timers[event.user_data]
            timer.event = event
            called += 1
            try:
                timer._callback(*timer._arguments)
            except Exception as exception:
                if first is None:
                    first = exception
                else:
                    _Ignored(exception)
        if first is None:
            return called
        try:
            raise first
        finally:
            # Its traceback refers to this frame.
            del first

    def _read(self):
        ret = _call("read_sized", self._fd, self._buffer, _BATCH, ctypes.sizeof(Event))
        _check(ret, errno.EAGAIN, errno.EINTR)
        for i in range(max(ret, 0)):
            self._events.append(Event.from_buffer_copy(self._buffer[i]))

    def _start(self, add, callback, arguments):
        timer = Timer(self, callback, arguments)
        self._next += 1
        add.user_data = timer._number = self._next
        _check(_call("timer_add_sized", self._fd, ctypes.byref(add), ctypes.sizeof(add)))
        timer._handle = add.handle
        timer._repeats = add.period != 0
        timer._once = add.period == add.idle == 0
        self._timers[timer._number] = timer
        return timer
