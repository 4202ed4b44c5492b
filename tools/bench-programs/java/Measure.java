// SPDX-License-Identifier: GPL-2.0-only

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/**
 * What operations cost: the CPU time of the calling thread, of the peer's own, and of the garbage
 * collector, which knows it in milliseconds.
 */
final class Measure {
  /** The compiler is warmed up with so many timers, and so many times. */
  private static final int WARM_UP_TIMERS = 20000;

  private static final int WARM_UP_ROUNDS = 50;
  private static final int WARM_UP_EXPIRIES = 5;
  private static final long WAIT_NS = 60000000000L;
  private static final int TRIES = 5;

  private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
  private final Peer peer;
  private final long seed;

  Measure(Peer peer, long seed) {
    this.peer = peer;
    this.seed = seed;
  }

  void run(int size) {
    measureMemory(size);
    warmUp();
    runAll(size, true);
  }

  /** Letting timers expire takes long, as they are waited for, so it is done less often. */
  private void warmUp() {
    Work work = new Work(WARM_UP_TIMERS, seed);
    peer.create(WARM_UP_TIMERS);
    peer.begin(false);
    for (int i = 0; i < WARM_UP_ROUNDS; i++) {
      for (Work.Operation operation : Work.Operation.values()) {
        if (operation != Work.Operation.EXPIRE) {
          work.make(operation);
          call(work, operation);
        }
      }
    }
    peer.settle();
    peer.destroy();
    for (int i = 0; i < WARM_UP_EXPIRIES; i++) {
      runAll(WARM_UP_TIMERS, false);
    }
  }

  private void runAll(int size, boolean print) {
    Work work = new Work(size, seed);
    peer.create(size);
    runRound(work, print);
    work.sequential = true;
    runRound(work, print);
    peer.destroy();
  }

  /** Adds all timers for the first time, when nothing else has left garbage yet. */
  private void measureMemory(int size) {
    Work work = new Work(size, seed);
    peer.create(size);
    long before = liveBytes();
    work.make(Work.Operation.ADD);
    peer.begin(false);
    peer.add(work.order, work.delay, size);
    peer.settle();
    double bytes = liveBytes() - before;
    System.out.printf("%s %d - bytes %.3f%n", peer.name(), size, bytes / size);
    peer.destroy();
  }

  /** What the last collection has left: objects, not what the heap has taken from the system. */
  private static long liveBytes() {
    long bytes = 0;
    System.gc();
    for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
      if (pool.getType() == MemoryType.HEAP) {
        bytes += pool.getCollectionUsage().getUsed();
      }
    }
    return bytes;
  }

  private void runRound(Work work, boolean print) {
    peer.begin(false);
    for (Work.Operation operation : Work.Operation.values()) {
      double ns = operation == Work.Operation.EXPIRE ? expire(work) : operate(work, operation);
      checkTimers(operation == Work.Operation.EXPIRE ? 1 : 0, operation);
      if (print) {
        System.out.printf(
            "%s %d %s %s %.3f%n",
            peer.name(),
            work.size,
            work.sequential ? "sequential" : "random",
            operation.label(),
            ns / work.size);
      }
    }
  }

  private double operate(Work work, Work.Operation operation) {
    work.make(operation);
    long start = cpuOfAll();
    call(work, operation);
    peer.settle();
    return cpuOfAll() - start;
  }

  private void call(Work work, Work.Operation operation) {
    switch (operation) {
      case ADD:
        peer.add(work.order, work.delay, work.size);
        break;
      case CANCEL:
        peer.cancel(work.order, work.size);
        break;
      default:
        peer.rearm(work.order, work.delay, work.size);
    }
  }

  /** Arms all, re-arms all to a later time, and measures what the thread that fires them takes. */
  private double expire(Work work) {
    long lead = 300000000L + 6000L * work.size;
    for (int i = 0; i < TRIES; i++, lead *= 2) {
      long begin = System.nanoTime();
      peer.begin(true);
      armAll(work, begin, lead);
      if (System.nanoTime() - begin < lead) {
        return peer.worker() == null ? expireHere(lead) : expireThere(work.size);
      }
      // Some came due meanwhile. Once more, with more time.
      peer.cancel(work.order, work.size);
      peer.settle();
      Peer.sleep(20);
    }
    throw new IllegalStateException("the machine is too busy to arm all timers in time");
  }

  private void armAll(Work work, long begin, long lead) {
    Arrays.fill(peer.fired, 0);
    peer.totalFired = 0;
    work.make(Work.Operation.ADD);
    work.delaysFrom(System.nanoTime() - begin, lead, peer.shorter(), work.size);
    peer.add(work.order, work.delay, work.size);
    work.make(Work.Operation.REARM_LATER);
    work.delaysFrom(System.nanoTime() - begin, lead, peer.shorter(), work.size);
    peer.rearm(work.order, work.delay, work.size);
    peer.settle();
  }

  private double expireHere(long lead) {
    // From the last arming on, as to compute a million delays takes time; 150 s is the longest of all.
    long end = System.nanoTime() + lead + 150000000000L / peer.shorter();
    while (System.nanoTime() < end) {
      Peer.sleep(1);
    }
    long start = cpuOfAll();
    peer.poll();
    return cpuOfAll() - start;
  }

  private double expireThere(int size) {
    long start = threads.getThreadCpuTime(peer.worker().getId());
    long collected = collectorNs();
    long begin = System.nanoTime();
    while (peer.totalFired < size && System.nanoTime() - begin < WAIT_NS) {
      Peer.sleep(1);
    }
    double ns = threads.getThreadCpuTime(peer.worker().getId()) - start;
    // What fires too often does so soon.
    Peer.sleep(20);
    return ns + collectorNs() - collected;
  }

  private void checkTimers(int expected, Work.Operation operation) {
    for (int i = 0; i < peer.fired.length; i++) {
      if (peer.fired[i] != expected) {
        throw new IllegalStateException(
            String.format(
                "after %s, timer %d has fired %d times, and not %d",
                operation.label(), i, peer.fired[i], expected));
      }
    }
    Arrays.fill(peer.fired, 0);
  }

  private long cpuOfAll() {
    long ns = threads.getCurrentThreadCpuTime() + collectorNs();
    return peer.worker() == null ? ns : ns + threads.getThreadCpuTime(peer.worker().getId());
  }

  private static long collectorNs() {
    long milliseconds = 0;
    for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
      milliseconds += bean.getCollectionTime();
    }
    return milliseconds * 1000000;
  }
}
