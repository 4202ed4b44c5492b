// SPDX-License-Identifier: GPL-2.0-only

import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * ScheduledThreadPoolExecutor with one thread, a binary heap. What is cancelled is removed at once,
 * which it can do without a search: otherwise, all that is re-armed would stay in the heap.
 */
final class ExecutorPeer extends Peer {
  private ScheduledThreadPoolExecutor executor;
  private Thread thread;
  private Runnable[] tasks;
  private ScheduledFuture<?>[] futures;

  @Override
  String name() {
    return "java_executor";
  }

  @Override
  void create(int size) {
    super.create(size);
    executor =
        new ScheduledThreadPoolExecutor(
            1,
            runnable -> {
              thread = new Thread(runnable, "bench-executor");
              thread.setDaemon(true);
              return thread;
            });
    executor.setRemoveOnCancelPolicy(true);
    executor.prestartAllCoreThreads();
    tasks = new Runnable[size];
    futures = new ScheduledFuture<?>[size];
    for (int i = 0; i < size; i++) {
      int number = i;
      tasks[i] = () -> fire(number);
    }
  }

  @Override
  void add(int[] order, long[] delay, int count) {
    for (int i = 0; i < count; i++) {
      int number = order[i];
      futures[number] = executor.schedule(tasks[number], delay[i], TimeUnit.NANOSECONDS);
    }
  }

  @Override
  void rearm(int[] order, long[] delay, int count) {
    for (int i = 0; i < count; i++) {
      int number = order[i];
      futures[number].cancel(false);
      futures[number] = executor.schedule(tasks[number], delay[i], TimeUnit.NANOSECONDS);
    }
  }

  @Override
  void cancel(int[] order, int count) {
    for (int i = 0; i < count; i++) {
      futures[order[i]].cancel(false);
      futures[order[i]] = null;
    }
  }

  @Override
  Thread worker() {
    return thread;
  }

  @Override
  void destroy() {
    executor.shutdownNow();
    while (!executor.isTerminated()) {
      sleep(1);
    }
  }
}
