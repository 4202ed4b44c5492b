// SPDX-License-Identifier: GPL-2.0-only

import java.util.Random;

/** The work that all peers do: times and orders, as in the programs in C. */
final class Work {
  private static final long SECOND = 1000000000L;

  final int size;

  /** The timers of the next operation, and the delay of each of these. */
  final int[] order;

  final long[] delay;

  /** By timer, its time since the run began, before it is divided. */
  final long[] time;

  boolean sequential;
  private final Random random;

  enum Operation {
    ADD,
    REARM_LATER,
    REARM_EARLIER,
    CANCEL,
    EXPIRE;

    String label() {
      return name().toLowerCase(java.util.Locale.ROOT);
    }
  }

  Work(int size, long seed) {
    this.size = size;
    order = new int[size];
    delay = new long[size];
    time = new long[size];
    random = new Random(seed);
    for (int i = 0; i < size; i++) {
      order[i] = i;
    }
  }

  private void shuffle() {
    for (int i = size - 1; i > 0; i--) {
      int other = random.nextInt(i + 1);
      int timer = order[i];
      order[i] = order[other];
      order[other] = timer;
    }
  }

  private long newTime(Operation operation, long last) {
    switch (operation) {
      case ADD:
        return 60 * SECOND + (long) (random.nextDouble() * 60 * SECOND);
      case REARM_LATER:
        return last + 30 * SECOND;
      case REARM_EARLIER:
        return last / 2;
      default:
        return last;
    }
  }

  /** Makes an operation on all timers. */
  void make(Operation operation) {
    if (sequential) {
      for (int i = 0; i < size; i++) {
        order[i] = i;
      }
    } else {
      shuffle();
    }
    for (int i = 0; i < size; i++) {
      time[order[i]] = newTime(operation, time[order[i]]);
      delay[i] = time[order[i]];
    }
  }

  /** Sets the delays of the first timers, for a run that began {@code since} ns before now. */
  void delaysFrom(long since, long lead, int shorter, int count) {
    for (int i = 0; i < count; i++) {
      delay[i] = lead + time[order[i]] / shorter - since;
    }
  }
}
