// SPDX-License-Identifier: GPL-2.0-only

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.util.concurrent.TimeUnit;

/**
 * Netty's HashedWheelTimer, with a wheel that a timeout fits in, so that none is passed by in vain.
 * A timeout cannot be moved: it is cancelled, and there is a new one. Its thread puts timeouts into
 * the wheel, and takes cancelled ones out, at the next tick, which is waited for.
 */
final class NettyPeer extends Peer {
  private static final int TICKS = 4096;

  /** The thread takes no more new timeouts than this in a tick. */
  private static final int TRANSFERS = 100000;

  private HashedWheelTimer slow;
  private HashedWheelTimer fast;
  private HashedWheelTimer timer;
  private Thread slowThread;
  private Thread fastThread;
  private TimerTask[] tasks;
  private Timeout[] timeouts;

  @Override
  String name() {
    return "java_netty";
  }

  /** The fast one's ticks are a hundredth of the slow one's, which are 100 ms. */
  @Override
  int shorter() {
    return 1000;
  }

  @Override
  void create(int size) {
    super.create(size);
    slow =
        new HashedWheelTimer(
            runnable -> slowThread = daemon(runnable), 100, TimeUnit.MILLISECONDS, TICKS, false);
    fast =
        new HashedWheelTimer(
            runnable -> fastThread = daemon(runnable), 1, TimeUnit.MILLISECONDS, TICKS, false);
    slow.start();
    fast.start();
    timer = slow;
    timeouts = new Timeout[size];
    tasks = new TimerTask[size];
    for (int i = 0; i < size; i++) {
      int number = i;
      tasks[i] = timeout -> fire(number);
    }
  }

  private static Thread daemon(Runnable runnable) {
    Thread thread = new Thread(runnable, "bench-netty");
    thread.setDaemon(true);
    return thread;
  }

  @Override
  void begin(boolean expire) {
    timer = expire ? fast : slow;
  }

  @Override
  void add(int[] order, long[] delay, int count) {
    for (int i = 0; i < count; i++) {
      int number = order[i];
      timeouts[number] = timer.newTimeout(tasks[number], delay[i], TimeUnit.NANOSECONDS);
    }
  }

  @Override
  void rearm(int[] order, long[] delay, int count) {
    for (int i = 0; i < count; i++) {
      int number = order[i];
      timeouts[number].cancel();
      timeouts[number] = timer.newTimeout(tasks[number], delay[i], TimeUnit.NANOSECONDS);
    }
  }

  @Override
  void cancel(int[] order, int count) {
    for (int i = 0; i < count; i++) {
      timeouts[order[i]].cancel();
      timeouts[order[i]] = null;
    }
  }

  @Override
  void settle() {
    int ticks = fired.length / TRANSFERS + 2;
    sleep(ticks * (timer == slow ? 100 : 1) + 20);
  }

  @Override
  Thread worker() {
    return timer == slow ? slowThread : fastThread;
  }

  @Override
  void destroy() {
    slow.stop();
    fast.stop();
  }
}
