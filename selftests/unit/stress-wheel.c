// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel's races, with threads: the owner advances time while others take nodes away.
 * Every arming must end exactly once, as fired, removed or taken; and when the owner and another
 * thread take the last two nodes of a chunk at the same time, one of them must see that it is
 * empty. Pages are released meanwhile, and freed once nobody can be reading them any more; a
 * sanitizer reports readers that are too late.
 *
 * Prints TAP. Built with -DSTRESS, for the delays of race_point().
 */
#include <getopt.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "model.h"
#include "random.h"

#define TIMERS		150
#define OTHERS		3

/* Operations per thread between two checks of everything; the minimum number of checks. */
#define ROUND		2000
#define ROUNDS_MIN	8

/*
 * @lock serialises the calls for a timer, except for what the owner's twheel_expire() does to it.
 * It guards all members except @fired, which the owner increments while it holds the node. A timer
 * that is @free belongs to its callback while that runs, without the lock; other threads must stop
 * it.
 */
struct shared {
	struct twheel_node node;
	pthread_mutex_t lock;
	struct shared *next;
	bool free, returned;
	unsigned long armed, fired, removed, taken;
};

static struct twheel wheel;
static struct shared timers[TIMERS];
static unsigned long pages_freed;

/* The node whose callback the owner called last. */
static struct twheel_node *running;

/* Timers that others have taken, for the owner to arm. */
static pthread_mutex_t returned_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared *returned;

static int test = 1;
static u64 seed;
static u64 now;
static unsigned long again, running_meanwhile;
static bool stop;
static pthread_barrier_t quiet;

void check_failed(const char *file, int line, const char *what)
{
	printf("# %s:%d: %s\n# seed %llu\nnot ok %d - owner and others\n",
	       file, line, what, seed, test);
	fflush(stdout);
	abort();
}

/*
 * Now and then, gives the others a chance to run in between. They run on other processors, or on
 * this one, in which case it may take long until this thread runs again.
 */
void race_point(void)
{
	unsigned int i, delay = draw_below(32) ? 0 : draw_bits(8);

	for (i = 0; i < delay; i++)
		__asm__ volatile("" ::: "memory");
	if (draw_below(1024) == 0)
		sched_yield();
}

/*
 * RCU: each thread increments its count when it starts and when it stops reading. So a thread is
 * reading while its count is odd, and if the count has changed since, that reader has finished.
 */
static unsigned long reads[1 + OTHERS];
static __thread unsigned int self;

void rcu_read_lock(void)
{
	/* Reads come after it. */
	__atomic_fetch_add(&reads[self], 1, __ATOMIC_SEQ_CST);
}

void rcu_read_unlock(void)
{
	__atomic_fetch_add(&reads[self], 1, __ATOMIC_SEQ_CST);
}

/* Pages that have been released, and the threads' counts at that time. */
struct grace {
	struct grace *next;
	struct twheel_page *pages;
	unsigned long reads[1 + OTHERS];
};

static struct grace *graces;

static void defer_free(struct twheel_page *pages)
{
	struct grace *grace = malloc(sizeof(*grace));
	unsigned int i;

	CHECK(grace);
	grace->pages = pages;
	smp_mb();
	for (i = 0; i <= OTHERS; i++)
		grace->reads[i] = __atomic_load_n(&reads[i], __ATOMIC_SEQ_CST);
	grace->next = graces;
	graces = grace;
}

static bool has_elapsed(const struct grace *grace)
{
	unsigned int i;

	for (i = 0; i <= OTHERS; i++)
		if (grace->reads[i] & 1 &&
		    grace->reads[i] == __atomic_load_n(&reads[i], __ATOMIC_SEQ_CST))
			return false;
	return true;
}

static void free_elapsed(void)
{
	struct grace **link = &graces, *grace;
	struct twheel_page *page;

	while ((grace = *link)) {
		if (!has_elapsed(grace)) {
			link = &grace->next;
			continue;
		}
		*link = grace->next;
		while ((page = grace->pages)) {
			grace->pages = page->next;
			/* For builds without a sanitizer: at least change the contents. */
			memset(page, 0xa5, TWHEEL_PAGE_BYTES);
			free(page);
			pages_freed++;
		}
		free(grace);
	}
}

static void owner_release(unsigned long keep)
{
	struct twheel_return ret = { .keep = keep, .nr_to_scan = 1 + draw_below(8) };

	while (twheel_release_pages(&wheel, &ret))
		;
	if (ret.pages)
		defer_free(ret.pages);
	free_elapsed();
}

static struct shared *draw_timer(void)
{
	return &timers[draw_below(TIMERS)];
}

static u64 draw_deadline(void)
{
	return (READ_ONCE(now) << wheel.shift) + draw_bits(11);
}

static bool is_pending(const struct shared *t)
{
	return READ_ONCE(t->node.location);
}

/* The armings that have not ended. The node is not pending, or nobody else changes that. */
static unsigned long nr_open_armings(const struct shared *t)
{
	return t->armed - t->fired - t->removed - t->taken;
}

static void enqueue_timer(struct shared *t)
{
	CHECK(nr_open_armings(t) == 0);
	t->armed++;
	t->node.deadline = draw_deadline();
	twheel_enqueue(&wheel, &t->node, t->node.deadline);
}

static void owner_use(struct shared *t)
{
	u64 deadline = draw_deadline();

	if (!is_pending(t)) {
		enqueue_timer(t);
	} else if (draw_below(3) && twheel_may_defer(&t->node, deadline)) {
		t->node.deadline = deadline;
	} else if (draw_below(3)) {
		t->node.deadline = deadline;
		twheel_requeue(&wheel, &t->node, deadline);
	} else {
		twheel_dequeue(&wheel, &t->node);
		t->removed++;
		if (draw_below(2))
			enqueue_timer(t);
	}
}

/*
 * The owner does not wait for a lock: whoever holds it may be waiting for the owner to let go of
 * a node.
 */
static void owner_try_use(struct shared *t)
{
	if (pthread_mutex_trylock(&t->lock))
		return;
	owner_use(t);
	pthread_mutex_unlock(&t->lock);
}

/* Without its lock, any number of times. */
static void use_freely(struct shared *t)
{
	unsigned int i;

	for (i = draw_bits(4); i; i--)
		owner_use(t);
}

static void fire_timer(void *arg __attribute__((unused)), struct twheel_node *node, u64 late)
{
	struct shared *t = container_of(node, struct shared, node);

	CHECK(node->deadline <= now << wheel.shift);
	CHECK(late <= (now << wheel.shift) - node->deadline);
	t->fired++;
	if (draw_below(128) == 0)
		sched_yield();
	/* The previous callback is over: pairs with is_running(). */
	smp_store_release(&running, node);
	/* From here on the node belongs to the holder of the lock, or to this callback. */
	twheel_detach(node);
	if (stop)
		return;
	switch (draw_below(4)) {
	case 0:
		if (t->free)
			use_freely(t);
		else
			owner_try_use(t);
		break;
	case 1:
		owner_try_use(draw_timer());
	}
}

static void owner_arm_returned(void)
{
	struct shared *t, *next;

	pthread_mutex_lock(&returned_lock);
	t = returned;
	returned = NULL;
	pthread_mutex_unlock(&returned_lock);
	for (; t; t = next) {
		pthread_mutex_lock(&t->lock);
		next = t->next;
		t->returned = false;
		/* Another thread may have queued it remotely. */
		if (!is_pending(t))
			enqueue_timer(t);
		pthread_mutex_unlock(&t->lock);
	}
}

static void advance_time(u64 ticks)
{
	struct twheel_node *node;
	u64 due;

	WRITE_ONCE(now, now + ticks);
	while ((node = twheel_unqueue_remote(&wheel)))
		twheel_enqueue_from_remote(&wheel, node);
	while (twheel_advance(&wheel, now)) {
		due = twheel_due_until(&wheel, now << wheel.shift);
		while (twheel_expire(&wheel, 1 + draw_below(4), due, fire_timer, NULL))
			;
		twheel_expire_spilled(&wheel, due, fire_timer, NULL);
	}
	smp_store_release(&running, NULL);
}

static bool is_running(const struct twheel *wheel __attribute__((unused)),
		       const struct twheel_node *node)
{
	/* Pairs with the stores in fire_timer() and advance_time(). */
	return smp_load_acquire(&running) == node;
}

/* Dequeues a timer, from another CPU; or returns -EBUSY if it belongs to its running callback. */
static int try_dequeue(struct shared *t)
{
	return t->free ? twheel_dequeue_not_running(&wheel, &t->node, is_running) :
			 twheel_dequeue_remote(&wheel, &t->node);
}

static void run_owner(void)
{
	unsigned int i;

	for (i = 0; i < ROUND; i++) {
		owner_try_use(draw_timer());
		if (draw_below(4) == 0)
			advance_time(draw_bits(5));
		if (draw_below(16) == 0)
			owner_arm_returned();
		if (draw_below(64) == 0)
			twheel_forward(&wheel, now);
		if (draw_below(64) == 0)
			owner_release(draw_below(TWHEEL_PAGE_CHUNKS));
		if (draw_below(64) == 0 && wheel.stats.chunks < 2 * TIMERS)
			twheel_add_page(&wheel, model_page(), true);
		/* Now and then, make all pages free. */
		if (draw_below(256) == 0)
			advance_time(1ULL << 10);
	}
}

/* What another CPU does to a timer. */
static void take_timer(struct shared *t)
{
	unsigned long flags, eagain = 0, ebusy = 0;
	int result;

	while ((result = try_dequeue(t)) < 0) {
		eagain += result == -EAGAIN;
		ebusy += result == -EBUSY;
		sched_yield();
	}
	__atomic_fetch_add(&again, eagain, __ATOMIC_RELAXED);
	__atomic_fetch_add(&running_meanwhile, ebusy, __ATOMIC_RELAXED);
	t->taken += result;
	CHECK(nr_open_armings(t) == 0);
	switch (draw_below(4)) {
	case 0:
		break;
	case 1:
		if (t->returned)
			break;
		t->returned = true;
		pthread_mutex_lock(&returned_lock);
		t->next = returned;
		returned = t;
		pthread_mutex_unlock(&returned_lock);
		break;
	default:
		t->armed++;
		t->node.deadline = draw_deadline();
		raw_spin_lock_irqsave(&wheel.lock, flags);
		twheel_queue_remote(&wheel, &t->node);
		raw_spin_unlock_irqrestore(&wheel.lock, flags);
	}
}

static void *run_other(void *arg)
{
	struct shared *t;
	unsigned int i;

	random_state = seed + (unsigned long)arg;
	self = (unsigned long)arg;
	while (!READ_ONCE(stop)) {
		for (i = 0; i < ROUND; i++) {
			t = draw_timer();
			pthread_mutex_lock(&t->lock);
			take_timer(t);
			pthread_mutex_unlock(&t->lock);
		}
		pthread_barrier_wait(&quiet);
		pthread_barrier_wait(&quiet);
	}
	return NULL;
}

/* Gives the wheel many chunks, or few, or none. All other threads are waiting. */
static void change_chunks(void)
{
	static struct model m = { .wheel = &wheel };

	model_withhold(&m);
	/* A page can only be released if the wheel has all of its chunks. */
	model_add_chunks(&m, draw_below(2) ? draw_bits(6) : ~0U);
}

/* All other threads are waiting. Returns the number of pending timers. */
static unsigned long check_account(void)
{
	unsigned long nodes = 0;
	unsigned int i;

	for (i = 0; i < TIMERS; i++) {
		CHECK(nr_open_armings(&timers[i]) == is_pending(&timers[i]));
		nodes += is_pending(&timers[i]);
	}
	check_wheel(&wheel, nodes);
	return nodes;
}

static void run_stress(unsigned int seconds)
{
	time_t end = time(NULL) + seconds;
	pthread_t thread[OTHERS];
	unsigned int rounds = 0;
	unsigned long i;

	for (i = 0; i < OTHERS; i++) {
		if (pthread_create(&thread[i], NULL, run_other, (void *)(i + 1))) {
			perror("stress-wheel: a thread");
			exit(2);
		}
	}
	do {
		run_owner();
		pthread_barrier_wait(&quiet);
		check_account();
		change_chunks();
		WRITE_ONCE(stop, ++rounds >= ROUNDS_MIN && time(NULL) >= end);
		pthread_barrier_wait(&quiet);
	} while (!stop);
	for (i = 0; i < OTHERS; i++)
		pthread_join(thread[i], NULL);
	advance_time(1ULL << 11);
	CHECK(check_account() == 0);
}

static void print_report(void)
{
	unsigned long fired = 0, removed = 0, taken = 0;
	unsigned int i;

	for (i = 0; i < TIMERS; i++) {
		fired += timers[i].fired;
		removed += timers[i].removed;
		taken += timers[i].taken;
	}
	printf("# %lu fired, %lu removed, %lu taken, %lu in the owner's hands meanwhile, ", fired,
	       removed, taken, again);
	printf("%lu running\n", running_meanwhile);
	printf("# %lu cascades, %lu spilled, %lu pages given back\n", wheel.stats.cascades,
	       wheel.stats.spilled, pages_freed);
	/* What has not happened has not been tested. */
	CHECK(fired && removed && taken && again && running_meanwhile);
	CHECK(wheel.stats.cascades && wheel.stats.spilled && pages_freed);
}

/*
 * A wheel with two nodes in one chunk, whose page is released when they go. @begun and @ended count
 * the rounds: the owner has enqueued both nodes, and the other thread has taken the second. @begun
 * is set to 0 after the last round.
 */
static struct {
	struct twheel wheel;
	struct twheel_node node[2];
	unsigned long begun, ended;
} two;

/* Waits until another thread has changed a count; that thread may not have a processor. */
static unsigned long await_change(const unsigned long *count, unsigned long old)
{
	unsigned long new;
	unsigned int i;

	for (i = 1; (new = smp_load_acquire(count)) == old; i++)
		if (i % 1024 == 0)
			sched_yield();
	return new;
}

static void *take_second(void *arg __attribute__((unused)))
{
	unsigned long round = 0;

	self = 1;
	while ((round = await_change(&two.begun, round))) {
		CHECK(twheel_dequeue_remote(&two.wheel, &two.node[1]) == 1);
		smp_store_release(&two.ended, round);
	}
	return NULL;
}

/* Releases what the wheel can release: the other thread may just be emptying the page. */
static struct twheel_page *release_two(void)
{
	struct twheel_return ret = { .nr_to_scan = 1 };

	while (twheel_release_pages(&two.wheel, &ret))
		;
	return ret.pages;
}

/* Returns the number of rounds. */
static unsigned long race_last_two(unsigned int seconds)
{
	struct twheel_page *pages;
	time_t end = time(NULL) + seconds;
	unsigned long round = 0;
	u64 deadline = 1 << 20;
	pthread_t thread;
	unsigned int i;

	twheel_init(&two.wheel, 1, 0, 0);
	if (pthread_create(&thread, NULL, take_second, NULL)) {
		perror("stress-wheel: a thread");
		exit(2);
	}
	do {
		if (!two.wheel.stats.chunks)
			twheel_add_page(&two.wheel, model_page(), true);
		for (i = 0; i < 2; i++) {
			two.node[i].deadline = deadline;
			twheel_enqueue(&two.wheel, &two.node[i], deadline);
		}
		smp_store_release(&two.begun, ++round);
		for (i = round % 512; i; i--)
			__asm__ volatile("" ::: "memory");
		twheel_dequeue(&two.wheel, &two.node[0]);
		pages = release_two();
		await_change(&two.ended, round - 1);
		/* The other thread is done with it. */
		free(pages);
		check_wheel(&two.wheel, 0);
	} while (round % 1024 || time(NULL) < end);
	smp_store_release(&two.begun, 0);
	pthread_join(thread, NULL);
	return round;
}

int main(int argc, char **argv)
{
	unsigned int seconds = 3, i;
	int opt;

	while ((opt = getopt(argc, argv, "t:")) != -1) {
		if (opt != 't') {
			fprintf(stderr, "usage: stress-wheel [-t SECONDS]\n");
			return 2;
		}
		seconds = atoi(optarg);
	}
	seed = time(NULL);
	random_state = seed;
	printf("TAP version 13\n1..2\n");
	fflush(stdout);
	twheel_init(&wheel, 2, 0, 0);
	for (i = 0; i < TIMERS; i++) {
		pthread_mutex_init(&timers[i].lock, NULL);
		timers[i].free = i % 2;
	}
	pthread_barrier_init(&quiet, NULL, 1 + OTHERS);
	/* A broken wheel may loop for ever. */
	alarm(seconds + 120);
	run_stress(seconds);
	print_report();
	printf("ok 1 the owner and others, for %u s\n", seconds);
	fflush(stdout);
	test++;
	printf("# %lu times\n", race_last_two(seconds));
	printf("ok 2 the last two nodes of a chunk, for %u s\n", seconds);
	return 0;
}
