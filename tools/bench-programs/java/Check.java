// SPDX-License-Identifier: GPL-2.0-only

import java.util.Arrays;

/** Does each timer fire once, and when? As in check.c. */
final class Check {
  /** Times have to be long compared to what it takes to arm all timers. */
  private static final int SHORTER = 40;

  private static final long WAIT_NS = 30000000000L;

  private final Peer peer;
  private final long seed;

  /** By timer, when it has to fire at the earliest, or 0 if it is cancelled. */
  private long[] due;

  Check(Peer peer, long seed) {
    this.peer = peer;
    this.seed = seed;
  }

  void run(int size) {
    Work work = new Work(size, seed);
    due = new long[size];
    peer.create(size);
    peer.firedAt = new long[size];
    peer.begin(true);
    work.make(Work.Operation.ADD);
    arm(work, size, true);
    work.make(Work.Operation.REARM_LATER);
    arm(work, select(work, 3, 1), false);
    // To an earlier time than before: a third of it, which may have been moved by 30 s.
    work.make(Work.Operation.REARM_EARLIER);
    arm(work, select(work, 3, 2), false);
    int count = select(work, 7, 6);
    if (System.nanoTime() > Arrays.stream(due).min().getAsLong()) {
      throw new IllegalStateException("the machine is too busy to arm all timers in time");
    }
    peer.cancel(work.order, count);
    for (int i = 0; i < count; i++) {
      due[work.order[i]] = 0;
    }
    await(size - count);
    print(size);
    peer.destroy();
  }

  private void arm(Work work, int count, boolean add) {
    long now = System.nanoTime();
    work.delaysFrom(0, 0, SHORTER, count);
    for (int i = 0; i < count; i++) {
      due[work.order[i]] = now + work.delay[i];
    }
    if (add) {
      peer.add(work.order, work.delay, count);
    } else {
      peer.rearm(work.order, work.delay, count);
    }
  }

  /** Moves to the front those timers whose number divided by {@code of} leaves {@code rest}. */
  private static int select(Work work, int of, int rest) {
    int count = 0;
    for (int i = 0; i < work.size; i++) {
      int timer = work.order[i];
      if (timer % of == rest) {
        work.order[i] = work.order[count];
        work.order[count++] = timer;
      }
    }
    return count;
  }

  private void await(int expected) {
    long last = Arrays.stream(due).max().getAsLong();
    while (peer.totalFired < expected && System.nanoTime() < last + WAIT_NS) {
      peer.poll();
      Peer.sleep(1);
    }
    // Long enough for all that was cancelled, and for what fires again.
    while (System.nanoTime() < last + 300000000L) {
      peer.poll();
      Peer.sleep(1);
    }
  }

  private void print(int size) {
    long[] late = new long[size];
    int fired = 0;
    int early = 0;
    long earliest = 0;
    for (int i = 0; i < size; i++) {
      if (peer.fired[i] != (due[i] == 0 ? 0 : 1)) {
        throw new IllegalStateException(
            String.format(
                "timer %d%s has fired %d times",
                i, due[i] == 0 ? " was cancelled, and" : "", peer.fired[i]));
      }
      if (due[i] == 0) {
        continue;
      }
      long ns = peer.firedAt[i] - due[i];
      earliest = Math.max(earliest, -ns);
      early += ns < 0 ? 1 : 0;
      late[fired++] = Math.max(ns, 0);
    }
    if (earliest > peer.mayBeEarly()) {
      throw new IllegalStateException(
          String.format(
              "a timer has fired %d ns early; %d ns are known of", earliest, peer.mayBeEarly()));
    }
    Arrays.sort(late, 0, fired);
    String line = peer.name() + " " + size + " - ";
    System.out.printf("%sfired %d%n%searly %d%n", line, fired, line, early);
    System.out.printf("%searliest_us %.3f%n", line, earliest / 1e3);
    System.out.printf("%slate_us %.3f%n", line, late[fired / 2] / 1e3);
  }
}
