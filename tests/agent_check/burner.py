"""A program that keeps CPUs busy in a known way and writes down what it did: `burner.py LOG MODE ARGUMENT...`.

Each line of LOG is one unit: its begin and end on the monotonic clock and the CPU time of the thread that did it.
Modes: `duty BUSY REST`, `lockstep BUSY PERIOD` (two processes), `fresh BUSY` (a new thread for every unit),
`pool BUSY` (three threads take turns), `child BUSY REST` (in a child, beside an idle parent), `helper BUSY REST` (in
a second thread, beside an idle first one), `detached BUSY REST` (after a line on stdin, in a process that its parent
leaves behind), `idle`.
"""

import os
import sys
import threading
import time

LOG = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def unit(busy_s: float) -> None:
    begin = time.monotonic()
    cpu = time.thread_time()
    while time.thread_time() < cpu + busy_s:
        pass
    # One write for a line: several processes share the file.
    os.write(LOG, b"%.6f %.6f %.6f\n" % (begin, time.monotonic(), time.thread_time() - cpu))


def duty(busy_s: float, rest_s: float) -> None:
    while True:
        unit(busy_s)
        time.sleep(rest_s)


def lockstep(busy_s: float, period_s: float) -> None:
    begin = time.monotonic() + 0.05
    os.fork()
    for number in range(1_000_000):
        time.sleep(max(0.0, begin + number * period_s - time.monotonic()))
        unit(busy_s)


def fresh(busy_s: float) -> None:
    while True:
        thread = threading.Thread(target=unit, args=(busy_s,))
        thread.start()
        thread.join()


def pool(busy_s: float) -> None:
    turns = [threading.Semaphore(0) for _ in range(3)]

    def work(place: int) -> None:
        while True:
            turns[place].acquire()
            unit(busy_s)
            turns[(place + 1) % 3].release()

    for place in range(3):
        threading.Thread(target=work, args=(place,)).start()
    turns[0].release()


def child(busy_s: float, rest_s: float) -> None:
    if os.fork() == 0:
        duty(busy_s, rest_s)
    time.sleep(3600)


def helper(busy_s: float, rest_s: float) -> None:
    threading.Thread(target=duty, args=(busy_s, rest_s)).start()
    time.sleep(3600)


def detached(busy_s: float, rest_s: float) -> None:
    sys.stdin.readline()
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            print(os.getpid(), flush=True)
            duty(busy_s, rest_s)
        os._exit(0)
    os.wait()
    time.sleep(3600)


def idle() -> None:
    os.write(LOG, b"0 0 0\n")
    time.sleep(3600)


globals()[sys.argv[2]](*map(float, sys.argv[3:]))
