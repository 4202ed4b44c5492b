<?php

// SPDX-License-Identifier: GPL-2.0-only

declare(strict_types=1);

/** A connection, without its socket. */
final class Connection
{
    /** When it last sent something, in seconds. */
    public float $last = 0.0;

    /** How often it has been closed for being idle. */
    public int $closed = 0;

    /** When that was. */
    public float $closedAt = 0.0;

    /** What the scheme has to remember: the number of a timer, or of a slot. */
    public int $place = -1;

    public function __construct(public readonly int $id)
    {
    }
}
