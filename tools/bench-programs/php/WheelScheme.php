<?php

// SPDX-License-Identifier: GPL-2.0-only

declare(strict_types=1);

/**
 * A wheel of 60 slots of a second, each of which is an array of connections by their number. A
 * heartbeat moves the connection to the slot behind the hand, which is the last one to be reached.
 * That is 59 to 60 ticks away, and the first of these is only a part of a second.
 */
final class WheelScheme extends Scheme
{
    public const EARLY = 2.0;

    private const SLOTS = 60;

    private array $slots;
    private int $hand = 0;

    public function __construct(array $connections)
    {
        parent::__construct($connections);
        $this->slots = array_fill(0, self::SLOTS, []);
    }

    public function heartbeat(Connection $connection, float $now): void
    {
        $connection->last = $now;
        if ($connection->place >= 0) {
            unset($this->slots[$connection->place][$connection->id]);
        }
        $connection->place = ($this->hand + self::SLOTS - 1) % self::SLOTS;
        $this->slots[$connection->place][$connection->id] = $connection;
    }

    public function second(float $now): void
    {
        $this->hand = ($this->hand + 1) % self::SLOTS;
        foreach ($this->slots[$this->hand] as $connection) {
            $connection->place = -1;
            $this->close($connection, $now);
        }
        $this->slots[$this->hand] = [];
    }
}
