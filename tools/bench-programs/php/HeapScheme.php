<?php

// SPDX-License-Identifier: GPL-2.0-only

declare(strict_types=1);

/**
 * A timer for each connection, in a heap, as Workerman's event loop for select() keeps them: the
 * heap has numbers, and an array has what these stand for. A timer that is deleted leaves the
 * array; its number stays in the heap until it is due.
 */
final class HeapScheme extends Scheme
{
    private SplPriorityQueue $heap;

    /** By number of the timer, what it calls, with which arguments. */
    private array $timers = [];

    private int $next = 1;

    /** The same for all timers: a closure for each would take more than the timer. */
    private Closure $onExpire;

    public function __construct(array $connections)
    {
        parent::__construct($connections);
        $this->heap = new SplPriorityQueue();
        $this->heap->setExtractFlags(SplPriorityQueue::EXTR_BOTH);
        $this->onExpire = $this->expire(...);
    }

    private function add(float $due, callable $callback, array $arguments): int
    {
        $number = $this->next++;
        $this->heap->insert($number, -$due);
        $this->timers[$number] = [$callback, $arguments];
        return $number;
    }

    public function heartbeat(Connection $connection, float $now): void
    {
        $connection->last = $now;
        unset($this->timers[$connection->place]);
        $connection->place = $this->add($now + self::TIMEOUT, $this->onExpire, [$connection]);
    }

    private function expire(Connection $connection, float $now): void
    {
        $connection->place = -1;
        $this->close($connection, $now);
    }

    public function turn(float $now): void
    {
        while (!$this->heap->isEmpty()) {
            $top = $this->heap->top();
            if (-$top['priority'] > $now) {
                return;
            }
            $this->heap->extract();
            $number = $top['data'];
            if (!isset($this->timers[$number])) {
                continue;
            }
            [$callback, $arguments] = $this->timers[$number];
            unset($this->timers[$number]);
            $callback(...[...$arguments, $now]);
        }
    }
}
