// SPDX-License-Identifier: GPL-2.0-only

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;

/**
 * DelayQueue, a binary heap without back-pointers: its remove() searches the whole heap, so nothing
 * is ever removed. A timer that is re-armed to a later time only notes that time, and goes back
 * when its entry comes due; to an earlier time, it gets another entry. Entries of timers that were
 * cancelled stay until they are due.
 */
final class DelayQueuePeer extends Peer {
  private static final int BATCH = 1024;

  private DelayQueue<Entry> queue;
  private Owner[] owners;
  private final List<Entry> due = new ArrayList<>(BATCH);

  /** A timer: its deadline, and its entry in the queue, if any. */
  private static final class Owner {
    final int number;
    long deadline;
    Entry entry;

    Owner(int number) {
      this.number = number;
    }
  }

  private static final class Entry implements Delayed {
    final Owner owner;
    long key;

    Entry(Owner owner, long key) {
      this.owner = owner;
      this.key = key;
    }

    @Override
    public long getDelay(TimeUnit unit) {
      return unit.convert(key - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    @Override
    public int compareTo(Delayed other) {
      return Long.signum(key - ((Entry) other).key);
    }
  }

  @Override
  String name() {
    return "java_delayqueue";
  }

  @Override
  void create(int size) {
    super.create(size);
    owners = new Owner[size];
    for (int i = 0; i < size; i++) {
      owners[i] = new Owner(i);
    }
    queue = new DelayQueue<>();
  }

  /** The entries that earlier runs have left are no part of the next. */
  @Override
  void begin(boolean expire) {
    queue.clear();
  }

  private void enqueue(Owner owner, long deadline) {
    owner.deadline = deadline;
    owner.entry = new Entry(owner, deadline);
    queue.offer(owner.entry);
  }

  @Override
  void add(int[] order, long[] delay, int count) {
    long now = System.nanoTime();
    for (int i = 0; i < count; i++) {
      enqueue(owners[order[i]], now + delay[i]);
    }
  }

  @Override
  void rearm(int[] order, long[] delay, int count) {
    long now = System.nanoTime();
    for (int i = 0; i < count; i++) {
      Owner owner = owners[order[i]];
      long deadline = now + delay[i];
      if (deadline - owner.entry.key >= 0) {
        owner.deadline = deadline;
      } else {
        enqueue(owner, deadline);
      }
    }
  }

  @Override
  void cancel(int[] order, int count) {
    for (int i = 0; i < count; i++) {
      owners[order[i]].entry = null;
    }
  }

  @Override
  void poll() {
    while (queue.drainTo(due, BATCH) > 0) {
      for (Entry entry : due) {
        Owner owner = entry.owner;
        if (owner.entry != entry) {
          continue;
        }
        if (owner.deadline - entry.key > 0) {
          entry.key = owner.deadline;
          queue.offer(entry);
        } else {
          owner.entry = null;
          fire(owner.number);
        }
      }
      due.clear();
    }
  }
}
