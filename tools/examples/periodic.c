// SPDX-License-Identifier: MIT
/*
 * periodic: a job that runs once per period, and knows which periods it has missed
 *
 * Every third run takes three and a half periods. The timer keeps running meanwhile, and stays in
 * phase: the next event says how many periods were missed.
 *
 * usage: periodic [PERIOD_MS [RUNS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <libtwheel.h>

static void check(int ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "periodic: %s: %s\n", what, strerror(-ret));
		exit(1);
	}
}

static void run_job(int run, uint64_t period)
{
	struct timespec work = {
		.tv_sec		= (time_t)(period * 7 / 2 / 1000000000),
		.tv_nsec	= (long)(period * 7 / 2 % 1000000000),
	};

	if (run % 3 == 0)
		nanosleep(&work, NULL);
}

int main(int argc, char **argv)
{
	uint64_t period = 1000000ULL * (argc > 1 ? strtoul(argv[1], NULL, 10) : 100);
	int runs = argc > 2 ? atoi(argv[2]) : 10;
	struct twheel_timer_add add;
	unsigned long long missed = 0;
	struct twheel_event event;
	uint64_t due = 0;
	int fd, run;

	if (argc > 3 || !period || runs < 1) {
		fputs("usage: periodic [PERIOD_MS [RUNS]]\n", stderr);
		return 2;
	}
	fd = twheel_open(0);
	check(fd, "/dev/twheel");
	memset(&add, 0, sizeof(add));
	add.time = period;
	add.period = period;
	add.clock = CLOCK_MONOTONIC;
	check(twheel_timer_add(fd, &add), "add");
	for (run = 1; run <= runs; run++) {
		check(twheel_read(fd, &event, 1), "read");
		if (due && event.deadline != due) {
			fprintf(stderr, "periodic: run %d: a period is lost\n", run);
			return 1;
		}
		/* The event covers the period of its deadline, and those missed since. */
		due = event.deadline + period * (1ULL + event.overruns);
		missed += event.overruns;
		printf("run %d: %u missed\n", run, event.overruns);
		run_job(run, period);
	}
	check(twheel_cancel(fd, add.handle), "cancel");
	close(fd);
	printf("%d runs and %llu missed in %llu periods\n", runs, missed,
	       (unsigned int)runs + missed);
	return 0;
}
