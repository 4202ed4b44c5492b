// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: rounds with shared contexts
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "shared.h"
#include "tcp_test.h"

#define ROUND_NS	(4 * SEC)

struct arena *arena;

/* The actors of a round, each a thread. Those that read continue until nobody arms any more. */
static const struct {
	const char	*name;
	void		(*act)(struct choices *choices);
} actors[] = {
	{ "reader", reader_actor },
	{ "bad-reader", bad_reader_actor },
	{ "ring", ring_actor },
	{ "handover", handover_actor },
	{ "timers", timers_actor },
	{ "timers", timers_actor },
	{ "watch", watch_actor },
	{ "watch", watch_actor },
	{ "peer", peer_actor },
	{ "rules", rules_actor },
	{ "alive", alive_actor },
	{ "system", system_actor },
	{ "look", look_actor },
};

#define READERS	3

/**
 * struct thread - a running actor
 * @thread:	the thread
 * @number:	its index in @actors
 */
struct thread {
	pthread_t	thread;
	unsigned int	number;
};

static void *run_actor(void *data)
{
	const struct thread *thread = data;
	struct choices choices;

	choices_random(&choices, mix_seed(arena->seed, thread->number));
	if (fuzz_with(actors[thread->number].name))
		actors[thread->number].act(&choices);
	return NULL;
}

static void open_arena(void)
{
	unsigned int i;

	for (i = 0; i < PLACES; i++) {
		arena->context[i].fd = wh_open(O_NONBLOCK);
		if (arena->context[i].fd < 0)
			fuzz_fail("open: %d", arena->context[i].fd);
		arena->context[i].exact = i < CHAOS;
		make_touch(&arena->context[i]);
	}
	make_ring(&arena->context[GARBAGE]);
}

static void close_arena(void)
{
	static const char * const names[] = { "read", "ring", "watch", "chaos", "garbage" };
	unsigned int i;

	for (i = 0; i < PLACES; i++)
		account_close(&arena->context[i], names[i]);
}

static pid_t begin_nursery(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_nursery(mix_seed(arena->seed, 100));
	_exit(0);
}

static void end_nursery(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		fuzz_fail("the nursery has ended with status %x", status);
}

/* Runs all actors at once. */
static void run_actors(void)
{
	struct thread threads[ARRAY_SIZE(actors)];
	__u64 end = now_ns() + ROUND_NS;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(actors); i++) {
		threads[i].number = i;
		if (pthread_create(&threads[i].thread, NULL, run_actor, &threads[i]))
			fuzz_fail("no thread: errno %d", errno);
	}
	while (!fuzz_over() && now_ns() < end)
		sleep_ns(10 * MSEC);
	__atomic_store_n(&arena->stop, 1, __ATOMIC_SEQ_CST);
	for (i = READERS; i < ARRAY_SIZE(actors); i++)
		pthread_join(threads[i].thread, NULL);
	__atomic_store_n(&arena->readers_stop, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < READERS; i++)
		pthread_join(threads[i].thread, NULL);
}

/* Runs one round, in a process and a network namespace of its own. */
static void run_round(__u64 seed)
{
	pid_t child;

	arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	if (arena == MAP_FAILED)
		fuzz_fail("no memory: errno %d", errno);
	arena->seed = seed;
	if (network())
		say_once("not here: network namespaces");
	signal(SIGPIPE, SIG_IGN);
	sockets_open();
	open_arena();
	child = fuzz_with("nursery") ? begin_nursery() : 0;
	run_actors();
	if (child)
		end_nursery(child);
	close_arena();
	add_count(&fuzz->rounds, 1);
}

/* Runs rounds until the end. */
void run_shared(void)
{
	__u64 i;

	/* With every other seed; otherwise what the module needs for rules comes and goes. */
	if (fuzz->seed % 2)
		rules_hold();
	for (i = 0; !fuzz_over(); i++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			run_round(mix_seed(fuzz->seed, i));
			_exit(0);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			fuzz_fail("round %llu has ended with status %x", i, status);
	}
}
