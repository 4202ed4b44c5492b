<?php

// SPDX-License-Identifier: GPL-2.0-only

declare(strict_types=1);

/**
 * One timer for all: each second, all connections are looked at. This is how Workerman's manual
 * suggests to find those that are idle.
 */
final class ScanScheme extends Scheme
{
    public function heartbeat(Connection $connection, float $now): void
    {
        $connection->last = $now;
    }

    public function second(float $now): void
    {
        foreach ($this->connections as $connection) {
            if ($now - $connection->last >= self::TIMEOUT && $connection->closed === 0) {
                $this->close($connection, $now);
            }
        }
    }
}
