// SPDX-License-Identifier: GPL-2.0-only

/** A program for each peer in Java, that is called like those in C: measure|check TIMERS SEED. */
final class Bench {
  private static final int USAGE = 2;

  private Bench() {}

  private static Peer newPeer(String name) {
    switch (name) {
      case "java_timer":
        return new TimerPeer();
      case "java_executor":
        return new ExecutorPeer();
      case "java_delayqueue":
        return new DelayQueuePeer();
      case "java_netty":
        return new NettyPeer();
      default:
        throw new IllegalArgumentException("there is no peer " + name);
    }
  }

  public static void main(String[] args) {
    if (args.length != 4 || !(args[1].equals("measure") || args[1].equals("check"))) {
      System.err.println("usage: Bench PEER measure|check TIMERS SEED");
      System.exit(USAGE);
    }
    try {
      Peer peer = newPeer(args[0]);
      int size = Integer.parseInt(args[2]);
      long seed = Long.parseLong(args[3]);
      if (args[1].equals("measure")) {
        new Measure(peer, seed).run(size);
      } else {
        new Check(peer, seed).run(size);
      }
    } catch (IllegalStateException | IllegalArgumentException e) {
      System.err.println(args[0] + ": " + e.getMessage());
      System.exit(1);
    }
    // Threads of timers may be left.
    System.exit(0);
  }
}
