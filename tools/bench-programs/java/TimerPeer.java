// SPDX-License-Identifier: GPL-2.0-only

import java.util.Timer;
import java.util.TimerTask;

/**
 * java.util.Timer, a binary heap. A task can be scheduled once, so each operation needs a new one,
 * and a cancelled one stays in the heap until purge(), which is called once for each batch.
 */
final class TimerPeer extends Peer {
  private static final String THREAD = "bench-timer";

  private Timer timer;
  private Task[] tasks;

  private final class Task extends TimerTask {
    private final int number;

    Task(int number) {
      this.number = number;
    }

    @Override
    public void run() {
      fire(number);
    }
  }

  @Override
  String name() {
    return "java_timer";
  }

  /** Its times are milliseconds. */
  @Override
  int shorter() {
    return 1000;
  }

  /** The time to count from is that of the wall clock, rounded down to a millisecond. */
  @Override
  long mayBeEarly() {
    return 1000000;
  }

  @Override
  void create(int size) {
    super.create(size);
    timer = new Timer(THREAD, true);
    tasks = new Task[size];
  }

  private static long milliseconds(long delay) {
    return Math.max(0, (delay + 999999) / 1000000);
  }

  @Override
  void add(int[] order, long[] delay, int count) {
    for (int i = 0; i < count; i++) {
      int number = order[i];
      Task task = new Task(number);
      tasks[number] = task;
      timer.schedule(task, milliseconds(delay[i]));
    }
  }

  @Override
  void rearm(int[] order, long[] delay, int count) {
    for (int i = 0; i < count; i++) {
      tasks[order[i]].cancel();
    }
    timer.purge();
    add(order, delay, count);
  }

  @Override
  void cancel(int[] order, int count) {
    for (int i = 0; i < count; i++) {
      tasks[order[i]].cancel();
      tasks[order[i]] = null;
    }
    timer.purge();
  }

  @Override
  Thread worker() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals(THREAD) && thread.isAlive())
        .findAny()
        .orElseThrow();
  }

  @Override
  void destroy() {
    Thread thread = worker();
    timer.cancel();
    while (thread.isAlive()) {
      sleep(1);
    }
  }
}
