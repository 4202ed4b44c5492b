// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program in a partition of a cpuset that becomes isolated, and ceases to be, while the program
 * runs: from then on its timers cause no work on the partition's CPU. Whatever changes meanwhile,
 * each timer expires exactly once, and none early.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "timers.h"

#define CGROUPS		"/sys/fs/cgroup/"
#define GROUP		CGROUPS "twheel-partition/"
#define CPU		3

#define TRACE_REARM	"/sys/kernel/tracing/events/twheel/twheel_timer_rearm/enable"

/* How long a CPU may arm timers before it notices that it is isolated, and a few ticks more. */
#define NOTICE		(150 * MSEC)

FIXTURE(partition)
{
	struct timers timers;
	int nohz_full;
};

/* Before 6.8 modules cannot learn of partitions. */
static bool supported(void)
{
	return kernel_is_at_least(6, 8) &&
	       text_write(CGROUPS "cgroup.subtree_control", "+cpuset");
}

/* Reads the group's file into @text, without the newline. */
static void group_read(const char *name, char text[128])
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), GROUP "%s", name);
	file = fopen(path, "r");
	if (!file || !fgets(text, 128, file))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Makes the group's CPU a partition of a kind. */
static bool set_partition(const char *kind)
{
	char text[128];

	if (!text_write(GROUP "cpuset.cpus.partition", kind))
		return false;
	group_read("cpuset.cpus.partition", text);
	return !strcmp(text, kind);
}

/* Keeps the CPU busy until it must have noticed a change. */
static void let_it_notice(void)
{
	__u64 end = now_ns() + NOTICE;

	while (now_ns() < end)
		;
}

FIXTURE_SETUP(partition)
{
	self->timers.fd = -1;
	if (!supported())
		SKIP(return, "this kernel does not tell modules about partitions");
	ASSERT_EQ(true, !mkdir(GROUP, 0755) || errno == EEXIST);
	/* A test that failed may have left it as it was. */
	ASSERT_EQ(true, set_partition("member"));
	ASSERT_EQ(true, text_write(GROUP "cpuset.cpus", "3"))
		TH_LOG("this guest takes 4 CPUs");
	self->nohz_full = file_number("/sys/devices/system/cpu/nohz_full");
	random_seed();
	memset(self->timers.records, 0, sizeof(self->timers.records));
	self->timers.fd = wh_open(O_NONBLOCK);
	ASSERT_GE(self->timers.fd, 0);
}

FIXTURE_TEARDOWN(partition)
{
	if (self->timers.fd < 0)
		return;
	EXPECT_EQ(true, set_partition("member"));
	EXPECT_EQ(true, text_write(CGROUPS "cgroup.procs", "0"));
	EXPECT_EQ(0, rmdir(GROUP));
	EXPECT_EQ(0, close(self->timers.fd));
}

/* From here on, this process runs on the group's CPU. */
static void enter_group(struct __test_metadata *_metadata)
{
	ASSERT_EQ(true, text_write(GROUP "cgroup.procs", "0"));
	ASSERT_EQ(CPU, sched_getcpu());
}

/* A CPU has numbers in debugfs once it has armed a timer. */
static void use_cpu(struct __test_metadata *_metadata, struct timers *timers, int cpu)
{
	ASSERT_EQ(0, pin(cpu));
	add_timer(_metadata, timers, 0, 0);
	drain_all(_metadata, timers);
}

/* A timer goes where it was last. From here on there are none that have been anywhere. */
static void forget_timers(struct __test_metadata *_metadata, struct timers *timers)
{
	ASSERT_EQ(0, close(timers->fd));
	timers->fd = wh_open(O_NONBLOCK);
	ASSERT_GE(timers->fd, 0);
}

/* None is due before it has got to the other CPU. */
static void add_timers(struct __test_metadata *_metadata, struct timers *timers)
{
	unsigned int i;

	for (i = 0; i < N; i++)
		add_timer(_metadata, timers, i, 10 * MSEC + random_below(100 * MSEC));
}

/* Timers that are armed here cause no work here. */
static void expect_quiet(struct __test_metadata *_metadata, struct timers *timers)
{
	__u64 expiries, adds, ticks;

	let_it_notice();
	/* The CPU may have timers of its own until then. */
	drain_all(_metadata, timers);
	adds = cpu_number(CPU, "adds");
	expiries = cpu_number(CPU, "expiries");
	ticks = cpu_number(CPU, "ticks");
	add_timers(_metadata, timers);
	EXPECT_EQ(0, cpu_number(CPU, "pending"));
	drain_all(_metadata, timers);
	EXPECT_EQ(adds + N, cpu_number(CPU, "adds"));
	EXPECT_EQ(expiries, cpu_number(CPU, "expiries"));
	EXPECT_EQ(ticks, cpu_number(CPU, "ticks"));
}

/* Timers that are armed here expire here. */
static void expect_local(struct __test_metadata *_metadata, struct timers *timers)
{
	__u64 expiries;

	let_it_notice();
	expiries = cpu_number(CPU, "expiries");
	add_timers(_metadata, timers);
	drain_all(_metadata, timers);
	EXPECT_EQ(expiries + N, cpu_number(CPU, "expiries"));
}

TEST_F_TIMEOUT(partition, follows_every_change, 120)
{
	unsigned int round;

	enter_group(_metadata);
	expect_local(_metadata, &self->timers);
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(true, set_partition("isolated"));
		expect_quiet(_metadata, &self->timers);
		ASSERT_EQ(true, set_partition("root"));
		expect_local(_metadata, &self->timers);
		ASSERT_EQ(true, set_partition("isolated"));
		expect_quiet(_metadata, &self->timers);
		ASSERT_EQ(true, set_partition("member"));
		expect_local(_metadata, &self->timers);
	}
}

/* Two CPUs that are isolated do not choose the same one for their timers. */
TEST_F_TIMEOUT(partition, has_a_cpu_of_its_own, 60)
{
	__u64 expiries[2];
	unsigned int i;

	if (self->nohz_full != 2)
		SKIP(return, "for a guest with nohz_full=2");
	ASSERT_EQ(true, set_partition("isolated"));
	enter_group(_metadata);
	let_it_notice();
	for (i = 0; i < 2; i++)
		expiries[i] = cpu_number(i, "expiries");
	add_timers(_metadata, &self->timers);
	drain_all(_metadata, &self->timers);
	EXPECT_EQ(expiries[0], cpu_number(0, "expiries"));
	EXPECT_EQ(expiries[1] + N, cpu_number(1, "expiries"));
	forget_timers(_metadata, &self->timers);
	ASSERT_EQ(true, text_write(CGROUPS "cgroup.procs", "0"));
	ASSERT_EQ(0, pin(2));
	add_timers(_metadata, &self->timers);
	drain_all(_metadata, &self->timers);
	EXPECT_EQ(expiries[0] + N, cpu_number(0, "expiries"));
	EXPECT_EQ(expiries[1] + N, cpu_number(1, "expiries"));
}

/* While that CPU is offline they go to another one, and then to the same again. */
TEST_F_TIMEOUT(partition, has_its_cpu_back, 60)
{
	__u64 expiries[2];

	if (self->nohz_full != 2)
		SKIP(return, "for a guest with nohz_full=2");
	/* Timers due meanwhile wait until the CPU is offline. */
	punctual_off();
	use_cpu(_metadata, &self->timers, 0);
	use_cpu(_metadata, &self->timers, 1);
	forget_timers(_metadata, &self->timers);
	ASSERT_EQ(true, set_partition("isolated"));
	enter_group(_metadata);
	let_it_notice();
	ASSERT_EQ(0, set_cpu_online(1, 0));
	expiries[0] = cpu_number(0, "expiries");
	add_timers(_metadata, &self->timers);
	drain_all(_metadata, &self->timers);
	EXPECT_EQ(expiries[0] + N, cpu_number(0, "expiries"));
	ASSERT_EQ(0, set_cpu_online(1, 1));
	forget_timers(_metadata, &self->timers);
	expiries[1] = cpu_number(1, "expiries");
	add_timers(_metadata, &self->timers);
	drain_all(_metadata, &self->timers);
	EXPECT_EQ(expiries[0] + N, cpu_number(0, "expiries"));
	EXPECT_EQ(expiries[1] + N, cpu_number(1, "expiries"));
}

/* Timers from before stay. They are cancelled there, and those that are re-armed to earlier go. */
TEST_F_TIMEOUT(partition, timers_from_before, 60)
{
	struct timers *timers = &self->timers;
	__u64 spilled = cpu_number(CPU, "spilled");
	unsigned int i;

	enter_group(_metadata);
	for (i = 0; i < N; i++)
		add_timer(_metadata, timers, i, i & 1 ? 2 * HOUR : 2 * SEC);
	EXPECT_EQ(N, cpu_number(CPU, "pending"));
	ASSERT_EQ(true, set_partition("isolated"));
	let_it_notice();
	EXPECT_EQ(N, cpu_number(CPU, "pending"));
	for (i = 0; i < N; i += 4) {
		/* While they are traced, other functions do it. */
		if (i == N / 2)
			ASSERT_EQ(true, text_write(TRACE_REARM, "1"));
		cancel_timer(_metadata, timers, i + 1);
		rearm_timer(_metadata, timers, i + 2, 2500 * MSEC);
		rearm_timer(_metadata, timers, i + 3, HOUR);
	}
	ASSERT_EQ(true, text_write(TRACE_REARM, "0"));
	EXPECT_EQ(N / 2, cpu_number(CPU, "pending"));
	EXPECT_EQ(spilled == POISON ? 0 : spilled, cpu_number(CPU, "spilled"));
	for (i = 0; i < N; i += 4)
		rearm_timer(_metadata, timers, i + 3, 300 * MSEC);
	drain_all(_metadata, timers);
	EXPECT_EQ(0, cpu_number(CPU, "pending"));
	expect_quiet(_metadata, timers);
}

/* What an isolated CPU has armed is moved when the CPU that it went to goes offline. */
TEST_F_TIMEOUT(partition, cpu_goes_offline, 60)
{
	struct timers *timers = &self->timers;
	unsigned int i, round;

	/* Timers due meanwhile wait until the CPU is offline. */
	punctual_off();
	for (round = 0; round < 4; round++) {
		ASSERT_EQ(true, text_write(CGROUPS "cgroup.procs", "0"));
		ASSERT_EQ(0, pin(1));
		for (i = 0; i < N; i++)
			add_timer(_metadata, timers, i, random_below(300 * MSEC) + 50 * MSEC);
		ASSERT_EQ(true, set_partition("isolated"));
		enter_group(_metadata);
		let_it_notice();
		for (i = 0; i < N; i += 2)
			rearm_timer(_metadata, timers, i, random_below(400 * MSEC));
		EXPECT_EQ(0, cpu_number(CPU, "pending"));
		ASSERT_EQ(0, set_cpu_online(1, 0));
		EXPECT_EQ(0, cpu_number(1, "pending"));
		EXPECT_EQ(0, cpu_number(CPU, "pending"));
		/* Those that were on the CPU that has gone find another one. */
		for (i = 0; i < N; i += 2)
			rearm_timer(_metadata, timers, i, random_below(100 * MSEC));
		drain_all(_metadata, timers);
		ASSERT_EQ(0, set_cpu_online(1, 1));
		expect_quiet(_metadata, timers);
		ASSERT_EQ(true, set_partition("member"));
	}
}

/*
 * Where HK_TYPE_DOMAIN does not follow partitions, as on 6.12, CPU 0 takes the others offline,
 * isolated or not, and cleans up after them. It does not move their timers to itself.
 */
TEST_F_TIMEOUT(partition, takes_a_cpu_offline, 60)
{
	struct timers *timers = &self->timers;
	unsigned int i, round;
	__u64 expiries;

	/* Timers due meanwhile wait until the CPU is offline. */
	punctual_off();
	use_cpu(_metadata, timers, 0);
	ASSERT_EQ(true, text_write(GROUP "cpuset.cpus", "0"));
	ASSERT_EQ(true, set_partition("isolated"));
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(0, pin(1));
		for (i = 0; i < N; i++)
			add_timer(_metadata, timers, i, HOUR);
		EXPECT_EQ(N, cpu_number(1, "pending"));
		ASSERT_EQ(true, text_write(GROUP "cgroup.procs", "0"));
		ASSERT_EQ(0, sched_getcpu());
		let_it_notice();
		expiries = cpu_number(0, "expiries");
		ASSERT_EQ(0, set_cpu_online(1, 0));
		EXPECT_EQ(0, cpu_number(1, "pending"));
		EXPECT_EQ(0, cpu_number(0, "pending"));
		for (i = 0; i < N; i++)
			rearm_timer(_metadata, timers, i, random_below(100 * MSEC));
		drain_all(_metadata, timers);
		EXPECT_EQ(expiries, cpu_number(0, "expiries"));
		ASSERT_EQ(0, set_cpu_online(1, 1));
		ASSERT_EQ(true, text_write(CGROUPS "cgroup.procs", "0"));
	}
}

/* A partition that would take the last CPU is invalid, and isolates none. */
TEST_F_TIMEOUT(partition, invalid, 60)
{
	static const char invalid[] = "isolated invalid";
	char text[128];

	ASSERT_EQ(true, text_write(GROUP "cpuset.cpus", "0-3"));
	ASSERT_EQ(true, text_write(GROUP "cpuset.cpus.partition", "isolated"));
	group_read("cpuset.cpus.partition", text);
	EXPECT_EQ(0, strncmp(invalid, text, strlen(invalid))) TH_LOG("%s", text);
	ASSERT_EQ(true, text_write(GROUP "cgroup.procs", "0"));
	ASSERT_EQ(0, pin(CPU));
	expect_local(_metadata, &self->timers);
	ASSERT_EQ(true, set_partition("member"));
	expect_local(_metadata, &self->timers);
}

/*
 * In a process of its own, outside of the group: changes the partition at random times, once it
 * has been told to begin. While a process moves to another group, 6.12 cannot start the kernel
 * threads that a change waits for, and the move may wait for the change.
 */
static void change_partition(__u64 seed, int start)
{
	static const char *const kinds[] = { "isolated", "root", "isolated", "member" };
	unsigned int i;

	/* The test may fail. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || read(start, &i, 1) != 1)
		_exit(1);
	random_thread(seed, 1);
	for (i = 0; ; i++) {
		if (pin(0) || !set_partition(kinds[i % 4]))
			_exit(1);
		sleep_ns(random_below(250 * MSEC));
	}
}

TEST_F_TIMEOUT(partition, changes_meanwhile, 120)
{
	__u64 end, expiries = cpu_number(CPU, "expiries"), all = total("expiries");
	unsigned int i, n, ops = 0;
	int status, start[2];
	pid_t pid;

	/* While the partition changes, the kernel stops CPUs. */
	punctual_off();
	ASSERT_EQ(0, pipe(start));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		change_partition(random_u64(), start[0]);
	enter_group(_metadata);
	ASSERT_EQ(1, write(start[1], "", 1));
	for (end = now_ns() + 6 * SEC; now_ns() < end; ops++) {
		i = random_below(64);
		if (!(ops & 7))
			drain_events(_metadata, &self->timers);
		if (!self->timers.records[i].pending)
			add_timer(_metadata, &self->timers, i, random_below(4 * MSEC));
		else if (random_below(4))
			rearm_timer(_metadata, &self->timers, i, random_below(4 * MSEC));
		else
			cancel_timer(_metadata, &self->timers, i);
		for (n = random_below(200); n; n--)
			asm volatile("");
	}
	EXPECT_EQ(0, waitpid(pid, &status, WNOHANG));
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	drain_all(_metadata, &self->timers);
	for (i = 0; i < N; i++)
		EXPECT_EQ(false, self->timers.records[i].pending);
	if (expiries == POISON)
		expiries = 0;
	expiries = cpu_number(CPU, "expiries") - expiries;
	all = total("expiries") - all;
	printf("# %u operations; %llu timers expired, %llu of them on this CPU\n", ops, all,
	       expiries);
	EXPECT_LT(0, expiries);
	EXPECT_LT(expiries, all);
}

TEST_HARNESS_MAIN
