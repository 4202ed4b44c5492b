// SPDX-License-Identifier: GPL-2.0-only

import java.util.concurrent.TimeUnit;

/** A timer facility that is measured. Timers have numbers, and objects that are allocated once. */
abstract class Peer {
  /** By timer, how often it has fired. Only one thread fires timers. */
  int[] fired;

  /** By timer, when it has fired, as System.nanoTime(), if that is wanted. */
  long[] firedAt;

  /** How many have fired in all. */
  volatile int totalFired;

  /** The name in the tables. */
  abstract String name();

  /** The times of timers that are to expire are divided by this. */
  int shorter() {
    return 100000;
  }

  /** By how many ns a timer may be early. */
  long mayBeEarly() {
    return 0;
  }

  /** Allocates what can be kept, for a number of timers. */
  void create(int size) {
    fired = new int[size];
    totalFired = 0;
  }

  /** A run begins, whose timers are pending for minutes, or else expire. */
  void begin(boolean expire) {}

  /** Arms timers that are not armed, for so many ns from now. */
  abstract void add(int[] order, long[] delay, int count);

  /** Moves timers that are armed. */
  abstract void rearm(int[] order, long[] delay, int count);

  /** Disarms timers that are armed. */
  abstract void cancel(int[] order, int count);

  /** Waits until other threads have done what they do for the operations before. */
  void settle() {}

  /** Fires what is due, if no other thread does that. */
  void poll() {}

  /** The thread that fires timers, or null if poll() does. */
  Thread worker() {
    return null;
  }

  /** Ends all threads. */
  void destroy() {}

  /** Called for each timer that fires. */
  final void fire(int timer) {
    fired[timer]++;
    if (firedAt != null) {
      firedAt[timer] = System.nanoTime();
    }
    // Only one thread writes it.
    totalFired = totalFired + 1;
  }

  static void sleep(long milliseconds) {
    try {
      TimeUnit.MILLISECONDS.sleep(milliseconds);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
