<?php

// SPDX-License-Identifier: GPL-2.0-only

/*
 * Connections that send a heartbeat each, and schemes that find those that are silent.
 *
 * Time is simulated: a second has 10 turns of the event loop, and a connection sends in one of the
 * turns of every 30 seconds. One connection in a hundred falls silent in the third minute. The
 * first two minutes, in which the connections are made and the schemes fill up, are not measured.
 */

declare(strict_types=1);

const SCHEMES = [
    'php_limit' => 'LimitScheme',
    'php_heap' => 'HeapScheme',
    'php_wheel' => 'WheelScheme',
    'php_scan' => 'ScanScheme',
];
const TURNS = 10;
const PERIOD = 30;
const WARM_UP = 120;
const MEASURED = 180;
const SILENT = 100;

// A sum of seconds may miss the last digits.
const ROUNDING = 1e-6;

require __DIR__ . '/Connection.php';
require __DIR__ . '/Scheme.php';
foreach (SCHEMES as $class) {
    require __DIR__ . "/$class.php";
}

function fail(string $message, int $status = 1): never
{
    fwrite(STDERR, $message . "\n");
    exit($status);
}

/** CPU time in ns. */
function cpuTime(): int
{
    $usage = getrusage();
    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1000000000 +
        ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) * 1000;
}

/** By turn of the period, the numbers of the connections that send then. */
function makeSchedule(int $size): array
{
    $schedule = array_fill(0, PERIOD * TURNS, []);
    $order = range(0, $size - 1);
    shuffle($order);
    foreach ($order as $position => $id) {
        $schedule[$position % (PERIOD * TURNS)][] = $id;
    }
    return $schedule;
}

/** Runs one second, and returns how many heartbeats there were. */
function runSecond(
    Scheme $scheme,
    array $connections,
    array $schedule,
    int $second,
    bool $silence
): int {
    $heartbeats = 0;
    for ($turn = 0; $turn < TURNS; $turn++) {
        $now = $second + $turn / TURNS;
        $scheme->turn($now);
        foreach ($schedule[$second % PERIOD * TURNS + $turn] as $id) {
            if ($silence && $id % SILENT === 0) {
                continue;
            }
            $scheme->heartbeat($connections[$id], $now);
            $heartbeats++;
        }
    }
    $scheme->second($second + 1.0);
    return $heartbeats;
}

/** Each silent connection has to be closed once, and no other. Returns how late, in seconds. */
function checkConnections(string $name, array $connections): array
{
    $late = [];
    foreach ($connections as $id => $connection) {
        $expected = $id % SILENT === 0 && $name !== 'php_limit' ? 1 : 0;
        if ($connection->closed !== $expected) {
            fail("$name: connection $id was closed $connection->closed times, and not $expected");
        }
        if ($expected === 1) {
            $late[] = $connection->closedAt - $connection->last - Scheme::TIMEOUT;
        }
    }
    sort($late);
    if ($late && -$late[0] > SCHEMES[$name]::EARLY + ROUNDING) {
        fail("$name: a connection was closed " . -$late[0] . ' s early');
    }
    return $late;
}

function printFigure(string $name, int $size, string $operation, float $value): void
{
    printf("%s %d - %s %.3f\n", $name, $size, $operation, $value);
}

function printCheck(string $name, int $size, array $late): void
{
    if (!$late) {
        return;
    }
    $early = array_filter($late, fn (float $seconds): bool => $seconds < -ROUNDING);
    printFigure($name, $size, 'fired', count($late));
    printFigure($name, $size, 'early', count($early));
    printFigure($name, $size, 'earliest_us', $early ? -$late[0] * 1e6 : 0.0);
    printFigure($name, $size, 'late_us', max(0.0, $late[intdiv(count($late), 2)] * 1e6));
}

function run(string $name, bool $check, int $size): void
{
    $schedule = makeSchedule($size);
    $connections = array_map(fn (int $id): Connection => new Connection($id), range(0, $size - 1));
    $before = memory_get_usage();
    $class = SCHEMES[$name];
    $scheme = new $class($connections);
    for ($second = 0; $second < WARM_UP; $second++) {
        runSecond($scheme, $connections, $schedule, $second, false);
    }
    $heartbeats = 0;
    $most = 0;
    $start = cpuTime();
    for (; $second < WARM_UP + MEASURED; $second++) {
        $heartbeats += runSecond($scheme, $connections, $schedule, $second, true);
        $most = max($most, memory_get_usage());
    }
    $ns = cpuTime() - $start;
    $late = checkConnections($name, $connections);
    if ($check) {
        printCheck($name, $size, $late);
        return;
    }
    printFigure($name, $size, 'heartbeat', $ns / $heartbeats);
    printFigure($name, $size, 'bytes', ($most - $before) / $size);
}

if ($argc !== 5 || !in_array($argv[2], ['measure', 'check'], true)) {
    fail('usage: heartbeat.php SCHEME measure|check CONNECTIONS SEED', 2);
}
if (!isset(SCHEMES[$argv[1]]) || (int) $argv[3] < 1) {
    fail("there is no scheme $argv[1], or no number of connections: $argv[3]", 2);
}
mt_srand((int) $argv[4]);
run($argv[1], $argv[2] === 'check', (int) $argv[3]);
