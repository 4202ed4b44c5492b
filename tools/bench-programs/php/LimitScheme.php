<?php

// SPDX-License-Identifier: GPL-2.0-only

declare(strict_types=1);

/** The limit line: notes the time of each heartbeat, and closes nothing. */
final class LimitScheme extends Scheme
{
    public function heartbeat(Connection $connection, float $now): void
    {
        $connection->last = $now;
    }
}
