# SPDX-License-Identifier: GPL-2.0-only
"""The library's module for Python, with the device. Prints TAP."""

import errno
import gc
import os
import select
import socket
import sys
import time

import twheel

# Longer than anything takes.
GUARD = 10

NS = 10 ** 9


def expect(what):
    if not what:
        frame = sys._getframe(1)
        raise AssertionError(f"line {frame.f_lineno}")


def wait_for(context, nr):
    """Dispatches until so many were called."""
    while nr > 0:
        expect(context.wait(GUARD))
        nr -= context.dispatch()
    expect(nr == 0 and not context.wait(0))


def raises(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return True
    return False


def wait_events(context, nr):
    """Waits until so many have expired."""
    end = time.monotonic() + GUARD
    while context.info()["nr_events"] != nr:
        expect(time.monotonic() < end)
        time.sleep(0.001)


def once():
    """a timer calls once"""
    calls = []
    with twheel.Context() as context:
        begin = time.monotonic_ns()
        timer = context.add(0.02, calls.append, "x")
        expect(timer.handle and context.info()["nr_timers"] == 1)
        wait_for(context, 1)
        expect(calls == ["x"])
        event = timer.event
        expect(begin + 0.02 * NS <= event.deadline <= event.fired <= time.monotonic_ns())
        expect(event.reason == twheel.DEADLINE and event.overruns == 0)
        expect(not timer.handle and not timer.cancel() and not timer.rearm(1))
        expect(context.info()["nr_timers"] == 0)


def moved():
    """moved and cancelled"""
    calls = []
    with twheel.Context() as context:
        timer = context.add(0.005, calls.append, 1)
        expect(timer.rearm(3600) and not context.wait(0.02))
        expect(timer.rearm(0) and context.wait(GUARD))
        expect(timer.cancel() and not context.wait(0) and not context.dispatch())
        expect(not calls and not context._timers)


def by_each_other():
    """cancelled by each other, when their events have been read"""
    calls = []
    with twheel.Context() as context:
        timers = []

        def call(i):
            calls.append(i)
            if len(calls) == 1:
                expect(timers[1].cancel())
                expect(not timers[2].rearm(1))

        timers += [context.add(0, call, i) for i in range(10)]
        time.sleep(0.02)
        expect(context.dispatch() == 9)
        expect(calls == [0, 2, 3, 4, 5, 6, 7, 8, 9])


def forgotten():
    """cancelled, when the kernel has forgotten what was read"""
    calls = []
    with twheel.Context() as context:
        def call():
            context.add(3600, print)
            for _ in range(60):
                context.add(3600, print).cancel()
            calls.append(twheel._call("cancel", context.fileno(), other.handle))
            calls.append(other.cancel())

        context.add(0, call)
        wait_events(context, 1)
        other = context.add(0, calls.append, "called")
        wait_events(context, 2)
        expect(context.dispatch() == 1 and calls == [-errno.ENOENT, True])


def many():
    """many, by select()"""
    calls = []
    with twheel.Context() as context:
        for i in range(200):
            context.add(0.001, calls.append, i)
        while len(calls) < 200:
            expect(select.select([context], [], [], GUARD)[0])
            context.dispatch()
        expect(sorted(calls) == list(range(200)) and not context._timers)


def slow():
    """callbacks that take longer than it takes their timers to expire again"""
    calls = []

    def call():
        end = time.monotonic() + 0.00005
        while time.monotonic() < end:
            pass
        calls.append(1)
        if len(calls) == 1000:
            raise KeyboardInterrupt

    with twheel.Context() as context:
        for _ in range(100):
            context.every(0.001, call)
        wait_events(context, 100)
        try:
            expect(context.dispatch() == 64)
        except KeyboardInterrupt:
            expect(False)


def periods():
    """periods"""
    calls = []
    with twheel.Context() as context:
        timer = context.every(0.01, lambda: calls.append(1 + timer.event.overruns))
        while len(calls) < 5:
            expect(context.wait(GUARD))
            context.dispatch()
        expect(sum(calls) >= 5 and timer.handle and timer.cancel())
        expect(not context.wait(0.03))


def idle():
    """idle timeouts"""
    calls = []
    with twheel.Context() as context:
        timer = context.idle(0.05, calls.append, 1)
        for _ in range(5):
            expect(not context.wait(0.02) and timer.active())
        wait_for(context, 1)
        expect(timer.event.reason == twheel.IDLE and not timer.active())


def connections():
    """connections"""
    calls = []
    with twheel.Context() as context, socket.create_server(("127.0.0.1", 0)) as server:
        there = [socket.create_connection(server.getsockname()) for _ in range(2)]
        here = [server.accept()[0] for _ in range(2)]
        timer = context.watch(here[0], 0.1, twheel.RECEIVED | twheel.ABORT, calls.append, 0)
        ended = context.watch(here[1].fileno(), 0.1, 0, calls.append, 1)
        here[1].shutdown(socket.SHUT_RDWR)
        wait_for(context, 1)
        expect(calls == [0] and timer.event.reason == twheel.IDLE)
        expect(ended.handle and not ended.cancel() and not context._timers)
        try:
            here[0].recv(1)
            expect(False)
        except TimeoutError:
            pass
        for sock in here + there:
            sock.close()


def errors():
    """errors"""
    with twheel.Context() as context:
        for call, error in ((lambda: context.watch(0, 0, 0, print), errno.EINVAL),
                            (lambda: context.watch(context, 1, 0, print), errno.EOPNOTSUPP)):
            try:
                call()
                expect(False)
            except OSError as exception:
                expect(exception.errno == error)
        timer = context.add(3600, print)
        for call in (context.add, context.every, context.idle,
                     lambda seconds, *arguments: context.watch(0, seconds, 0, *arguments),
                     lambda seconds, *arguments: timer.rearm(seconds)):
            for seconds in -1, -1e-9, float("-inf"), float("nan"):
                expect(raises(ValueError, call, seconds, print))
            expect(raises(OverflowError, call, float("inf"), print))
        # It would have a deadline besides its idle timeout.
        others = [context.idle(3600, print), context.every(3600, print)]
        expect(all(raises(ValueError, other.rearm, 0) and other.cancel() for other in others))
        # If truncated, they would be standard input and no flags.
        expect(raises(OverflowError, context.watch, 2 ** 32, 1, 0, print))
        expect(raises(OverflowError, context.watch, 0, 1, 2 ** 32, print))
        expect(context.info()["nr_timers"] == 1 and timer.cancel() and not context._timers)
        expect(not context.wait(-1))
        # As far in the future as possible.
        expect(context.add(10 ** 12, print).cancel())


def not_opened():
    """no context"""
    class Unborn(twheel.Context):
        def __init__(self):
            raise KeyError

    ignored = []
    hook, sys.unraisablehook = sys.unraisablehook, ignored.append
    expect(raises(KeyError, Unborn))
    gc.collect()
    sys.unraisablehook = hook
    expect(not ignored)
    os.rename("/dev/twheel", "/dev/twheel.away")
    try:
        twheel.Context()
        expect(False)
    except FileNotFoundError as exception:
        expect(exception.filename == "/dev/twheel")
    finally:
        os.rename("/dev/twheel.away", "/dev/twheel")


def raised():
    """exceptions"""
    calls, ignored = [], []

    def call(i):
        calls.append(i)
        if i % 2:
            raise KeyError(i)

    hook, sys.unraisablehook = sys.unraisablehook, lambda args: ignored.append(args.exc_value)
    with twheel.Context() as context:
        for i in range(6):
            context.add(0, call, i)
        wait_events(context, 6)
        try:
            context.dispatch()
            expect(False)
        except KeyError as exception:
            expect(exception.args == (1,))
        finally:
            sys.unraisablehook = hook
        # The caller need not notice that there were more.
        expect(calls == [0, 1, 2, 3, 4, 5] and [e.args for e in ignored] == [(3,), (5,)])
        expect(not select.select([context], [], [], 0)[0] and context.dispatch() == 0)


def interrupted():
    """an interrupt"""
    calls = []

    def call(i):
        calls.append(i)
        if i == 1:
            raise KeyboardInterrupt

    with twheel.Context() as context:
        for i in range(3):
            context.add(0, call, i)
        wait_events(context, 3)
        try:
            context.dispatch()
            expect(False)
        except KeyboardInterrupt:
            expect(calls == [0, 1])
        expect(context.wait(0) and context.dispatch() == 1 and calls == [0, 1, 2])


def closed():
    """closed by a callback"""
    calls = []
    context = twheel.Context()
    timers = [context.add(0, context.close)]
    timers += [context.add(0, calls.append, i) for i in range(100)]
    timers.append(context.add(3600, print))
    wait_events(context, 101)
    expect(context.dispatch() == 1 and not calls and context.fileno() == -1)
    expect(not any(timer.handle or timer.cancel() for timer in timers))


TESTS = [once, moved, by_each_other, forgotten, many, slow, periods, idle, connections, errors,
         not_opened, raised, interrupted, closed]


def main():
    failed = 0
    print("TAP version 13", f"1..{len(TESTS)}", sep="\n")
    for number, test in enumerate(TESTS, 1):
        try:
            test()
            print("ok", number, test.__doc__)
        except Exception as exception:
            failed += 1
            print("#", type(exception).__name__, exception)
            print("not ok", number, test.__doc__)
        sys.stdout.flush()
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
