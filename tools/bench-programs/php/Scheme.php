<?php

// SPDX-License-Identifier: GPL-2.0-only

declare(strict_types=1);

/** Finds connections that have been idle for TIMEOUT seconds. */
abstract class Scheme
{
    public const TIMEOUT = 60;

    /** By how many seconds a connection may be closed early. */
    public const EARLY = 0.0;

    public function __construct(protected readonly array $connections)
    {
    }

    /** A connection has sent something, or it is new. */
    abstract public function heartbeat(Connection $connection, float $now): void;

    /** The event loop has returned from waiting. */
    public function turn(float $now): void
    {
    }

    /** A second has passed. */
    public function second(float $now): void
    {
    }

    final protected function close(Connection $connection, float $now): void
    {
        $connection->closed++;
        $connection->closedAt = $now;
    }
}
