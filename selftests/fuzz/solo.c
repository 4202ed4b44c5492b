// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz-device: programs for a thread that has a context to itself
 *
 * Each program has a context of its own, and each of its calls is checked against the model.
 */
#include "solo.h"

#define PAGE		4096UL
#define BATCH_MAX	20
#define SIZE		sizeof(struct twheel_op)

/* The handle of a timer, one that was given out, one that is close to it, or any number. */
static __u64 choose_handle(struct solo *solo)
{
	const struct model *model = &solo->model;
	__u64 which = choose(&solo->choices, 16);

	if (which < 11 && model->nr)
		return model->timer[choose(&solo->choices, model->nr)].handle;
	if (which < 14 && model->nr_past)
		return model->past[choose(&solo->choices, model->nr_past)].handle;
	if (which < 15 && model->nr_past)
		return model->past[choose(&solo->choices, model->nr_past)].handle ^
		       1ULL << choose(&solo->choices, 64);
	return choose_garbage(&solo->choices);
}

/* One of a few, so that they collide. */
static __u64 choose_key(struct solo *solo)
{
	return one_of(&solo->choices, 16) ? choose_garbage(&solo->choices) :
					    choose(&solo->choices, 6);
}

static __u32 choose_clock(struct solo *solo)
{
	static const __u32 clocks[] = { CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME };

	if (one_of(&solo->choices, 32))
		return choose_garbage(&solo->choices);
	return clocks[one_of(&solo->choices, 3) ? choose(&solo->choices, 3) : 0];
}

/* A point in time near now, or a length of time. */
static void choose_op_time(struct solo *solo, struct twheel_op *op, __u32 clock)
{
	op->time = choose_time(&solo->choices);
	if (one_of(&solo->choices, 3)) {
		op->flags |= TWHEEL_TIME_ABS;
		if (!one_of(&solo->choices, 8))
			op->time = sum(clock_ns(clock), op->time) -
				   choose(&solo->choices, 2) * MSEC;
	}
	if (one_of(&solo->choices, 4))
		op->slack = choose_time(&solo->choices);
	if (one_of(&solo->choices, 6))
		op->spread = choose_time(&solo->choices);
}

static void choose_limits(struct solo *solo, struct twheel_op *op)
{
	op->clock = CLOCK_MONOTONIC;
	if (!one_of(&solo->choices, 3))
		op->idle = choose_time(&solo->choices);
	if (one_of(&solo->choices, 3))
		op->lifetime = choose_time(&solo->choices);
	if (one_of(&solo->choices, 2)) {
		op->time = TWHEEL_TIME_NONE;
		op->flags &= ~TWHEEL_TIME_ABS;
	}
	if (one_of(&solo->choices, 3)) {
		solo_choose_watch(solo, op);
	} else if (solo->model.nr_words && !one_of(&solo->choices, 3)) {
		op->flags |= TWHEEL_TOUCHED;
		op->touch = choose(&solo->choices, solo->model.nr_words + 1);
		if (!one_of(&solo->choices, 8))
			op->idle = sum(op->idle, TWHEEL_IDLE_MIN);
	}
}

static void choose_add(struct solo *solo, struct twheel_op *op)
{
	op->opcode = TWHEEL_OP_ADD;
	op->user_data = choose_bits(&solo->choices);
	op->clock = choose_clock(solo);
	choose_op_time(solo, op, op->clock <= CLOCK_BOOTTIME ? op->clock : CLOCK_MONOTONIC);
	if (one_of(&solo->choices, 3)) {
		op->flags |= TWHEEL_KEYED;
		op->key = choose_key(solo);
	}
	/* A ring's events cannot be distinguished from those of an earlier arming. */
	if (one_of(&solo->choices, 4) && !solo->ring)
		op->period = choose_time(&solo->choices);
	else if (one_of(&solo->choices, 3))
		choose_limits(solo, op);
}

static void choose_name(struct solo *solo, struct twheel_op *op)
{
	if (one_of(&solo->choices, 4)) {
		op->flags |= TWHEEL_BY_KEY;
		op->handle = choose_key(solo);
	} else {
		op->handle = choose_handle(solo);
	}
}

static void choose_rearm(struct solo *solo, struct twheel_op *op)
{
	struct timer *timer;

	op->opcode = TWHEEL_OP_REARM;
	choose_name(solo, op);
	timer = op->flags & TWHEEL_BY_KEY ? model_by_key(&solo->model, op->handle) :
					    model_by_handle(&solo->model, op->handle);
	if (timer && timer->limits) {
		op->limit = choose(&solo->choices, 3);
		if (op->limit == TWHEEL_LIMIT_IDLE && one_of(&solo->choices, 2)) {
			op->flags |= TWHEEL_ACTIVE;
			return;
		}
		if (one_of(&solo->choices, 6)) {
			op->time = TWHEEL_TIME_NONE;
			return;
		}
	}
	choose_op_time(solo, op, timer ? timer->added_on : CLOCK_MONOTONIC);
	if (op->limit == TWHEEL_LIMIT_IDLE) {
		if (timer && timer->flags & (TWHEEL_TOUCHED | TWHEEL_WATCHED) &&
		    !one_of(&solo->choices, 8))
			op->time = sum(op->time, TWHEEL_IDLE_MIN);
		op->flags &= ~TWHEEL_TIME_ABS;
		op->slack = 0;
		op->spread = 0;
	}
}

/* Changes one field, or a flag, to anything. */
static void spoil_op(struct solo *solo, struct twheel_op *op)
{
	static const __u8 longs[] = { 0, 1, 2, 5, 6, 7, 8, 9, 10 };
	__u64 value = choose_garbage(&solo->choices);
	__u64 *words = (__u64 *)op;

	switch (choose(&solo->choices, 6)) {
	case 0:
		words[longs[choose(&solo->choices, ARRAY_SIZE(longs))]] = value;
		break;
	case 1:
		op->opcode = value;
		break;
	case 2:
		op->flags ^= 1U << choose(&solo->choices, 32);
		break;
	case 3:
		op->clock = value;
		break;
	case 4:
		op->touch = value;
		break;
	default:
		op->limit = value;
	}
}

static void choose_op(struct solo *solo, struct twheel_op *op)
{
	*op = (struct twheel_op){ };
	switch (choose(&solo->choices, 8)) {
	case 0 ... 3:
		choose_add(solo, op);
		break;
	case 4 ... 5:
		op->opcode = TWHEEL_OP_CANCEL;
		choose_name(solo, op);
		break;
	default:
		choose_rearm(solo, op);
	}
	if (one_of(&solo->choices, 12))
		spoil_op(solo, op);
	/* Such an event could not be distinguished from the next, see choose_add(). */
	if (solo->ring)
		op->period = 0;
}

/* Can the ioctl for an operation express all of it? */
static bool is_single(const struct twheel_op *op)
{
	switch (op->opcode) {
	case TWHEEL_OP_ADD:
		return !op->limit;
	case TWHEEL_OP_CANCEL:
		return !op->time && !op->user_data && !op->clock && !op->key && !op->period &&
		       !op->slack && !op->spread && !op->idle && !op->lifetime && !op->touch &&
		       !op->limit;
	case TWHEEL_OP_REARM:
		return !op->user_data && !op->clock && !op->key && !op->period && !op->idle &&
		       !op->lifetime && !op->touch;
	default:
		return false;
	}
}

/* The minimum size of an operation that includes everything. */
static unsigned int least_size(const struct twheel_op *ops, unsigned int nr)
{
	const __u64 *words = (const __u64 *)ops;
	unsigned int i;

	for (i = 0; i < nr * SIZE / 8; i++)
		if (i % (SIZE / 8) >= TWHEEL_OP_SIZE_MIN / 8 && words[i])
			return SIZE;
	return TWHEEL_OP_SIZE_MIN;
}

/* An array was done up to @done: is that plausible? */
static void check_done(const struct twheel_op *told, unsigned int nr, int done, bool stop)
{
	unsigned int i;

	for (i = 0; (int)i < done; i++)
		if (stop && told[i].result < 0)
			break;
	if (done != (int)(i < nr ? i + 1 : nr))
		fuzz_fail("array of %u: %d are done, the last with %d", nr, done,
			  done > 0 ? told[done - 1].result : 0);
}

static void run_ops(struct solo *solo)
{
	struct twheel_op ops[BATCH_MAX], told[BATCH_MAX];
	unsigned int nr = 1, size, i, flags;
	struct span span;
	int done, way;

	way = choose(&solo->choices, 4);
	if (way > 1)
		nr += choose(&solo->choices, BATCH_MAX);
	if (solo->model.nr + nr > MOST_TIMERS || solo->model.nr_past + nr > MOST_HANDLES)
		return;
	for (i = 0; i < nr; i++)
		choose_op(solo, &ops[i]);
	memcpy(told, ops, sizeof(told));
	size = least_size(ops, nr);
	if (size == SIZE || one_of(&solo->choices, 2))
		size = SIZE + 8 * choose(&solo->choices, 3);
	flags = choose(&solo->choices, 4);
	span = span_begin();
	if (way <= 1 && is_single(ops))
		done = (call_single(solo->fd, told), 1);
	else if (way == 3 && solo->uring)
		done = call_uring(solo->uring, solo->fd, told, nr, size, flags);
	else
		done = call_submit(solo->fd, told, nr, size, flags & TWHEEL_SUBMIT_STOP);
	span_end(&span);
	for (i = 0; (int)i < done; i++) {
		trace("op %llu of %llx flags %llx time %llu", ops[i].opcode, told[i].handle,
		      ops[i].flags, ops[i].time, told[i].result);
		model_op(&solo->model, &ops[i], &told[i], &span);
	}
	if (way > 1)
		check_done(told, nr, done, flags & TWHEEL_SUBMIT_STOP);
}

static void run_query(struct solo *solo)
{
	struct twheel_timer_query query;
	struct twheel_op op = { };
	struct span span;
	int ret;

	choose_name(solo, &op);
	if (one_of(&solo->choices, 16))
		op.flags ^= 1U << choose(&solo->choices, 32);
	span = span_begin();
	ret = wh_query_flags(solo->fd, op.handle, op.flags, &query);
	span_end(&span);
	trace("query %llx flags %llx: state %llu deadline %llu", op.handle, op.flags, query.state,
	      query.deadline, ret);
	model_query(&solo->model, op.handle, op.flags, &query, ret, &span);
}

static void run_read(struct solo *solo)
{
	struct twheel_event events[64];
	unsigned int room = choose(&solo->choices, 65);
	struct span span;
	int ret, i;

	span = span_begin();
	ret = wh_read(solo->fd, events, room);
	span_end(&span);
	trace("read %llu", room, 0, 0, 0, ret);
	model_read(&solo->model, ret, room, &span);
	for (i = 0; i < ret; i++)
		model_event(&solo->model, &events[i], &span);
}

static void run_poll(struct solo *solo)
{
	struct pollfd pollfd = { .fd = solo->fd, .events = POLLIN };
	struct twheel_info info;
	struct span span;
	int ret;

	span = span_begin();
	ret = poll(&pollfd, 1, choose(&solo->choices, 4));
	ret = ret < 0 ? -errno : ret;
	memset(&info, 0xa5, sizeof(info));
	if (wh_info(solo->fd, &info))
		fuzz_fail("info: errno %d", errno);
	span_end(&span);
	trace("poll, %llu timers, %llu events", info.nr_timers, info.nr_events, 0, 0, ret);
	model_info(&solo->model, &info, &span);
	/* Events stay there: nobody else takes them. */
	if (!solo->ring && ret > 0 && !info.nr_events)
		fuzz_fail("poll says that there are events, and there are none");
	if (ret < 0 || (ret > 0 && pollfd.revents != POLLIN))
		fuzz_fail("poll: %d, %x", ret, pollfd.revents);
}

static void run_stats(struct solo *solo)
{
	struct twheel_context_stats stats;
	struct span span = span_begin();
	int ret = wh_stats(solo->fd, &stats);

	span_end(&span);
	trace("stats: %llu timers, %llu events", stats.nr_timers, stats.nr_events, 0, 0, ret);
	if (ret)
		fuzz_fail("stats: %d", ret);
	model_stats(&solo->model, &stats, &span);
}

static void run_drain(struct solo *solo)
{
	static struct twheel_timer_query records[MOST_TIMERS];
	unsigned int most = 1 + choose(&solo->choices, MOST_TIMERS), i;
	__u64 cursor = 0, least;
	struct span span;
	int ret;

	span = span_begin();
	ret = wh_drain(solo->fd, records, most, sizeof(*records), &cursor);
	span_end(&span);
	trace("drain %llu", most, 0, 0, 0, ret);
	least = model_nr(&solo->model, &span.after).lo;
	if (ret < (int)(most < least ? most : least) || ret > (int)most)
		fuzz_fail("drain of up to %u of %llu timers: %d", most, least, ret);
	for (i = 0; (int)i < ret; i++)
		model_record(&solo->model, &records[i], &span);
}

/* Something is due: it must arrive, however long that takes. */
static void run_wait(struct solo *solo)
{
	struct pollfd pollfd = { .fd = solo->fd, .events = POLLIN };
	struct moment now = read_clocks();
	bool due = false;
	unsigned int i;

	for (i = 0; i < solo->model.nr; i++)
		due |= solo->model.timer[i].owed ||
		       has_to_expire(&solo->model, &solo->model.timer[i], &now);
	if (!due) {
		sleep_ns(choose(&solo->choices, 256) * (one_of(&solo->choices, 6) ? 200 : 16) *
			 USEC);
		return;
	}
	trace("wait", 0, 0, 0, 0, 0);
	if (poll(&pollfd, 1, 2 * GUARD_MS) != 1)
		fuzz_fail("a timer does not expire, of %u", solo->model.nr);
}

static void run_step(struct solo *solo)
{
	switch (choose(&solo->choices, 27)) {
	case 0 ... 8:
		return run_ops(solo);
	case 9 ... 10:
		return run_query(solo);
	case 11 ... 12:
		return run_read(solo);
	case 13:
		return run_poll(solo);
	case 14:
		return run_stats(solo);
	case 15:
		return run_drain(solo);
	case 16 ... 17:
		return run_wait(solo);
	case 18:
		return solo_setup(solo);
	case 19:
		return solo_touch(solo);
	case 20:
		return solo_bad_call(solo);
	case 21:
		return solo_bad_read(solo);
	case 22:
		return solo_map(solo);
	case 23 ... 25:
		return solo_sockets(solo);
	default:
		return solo_ring(solo);
	}
}

/* Runs a program in a context of its own. Returns how much it has reached that is new. */
static unsigned int run_program(struct solo *solo, const __u8 *program, size_t length)
{
	struct twheel_info info;

	traces_forget();
	fuzz_program(program, length);
	choices_program(&solo->choices, program, length);
	coverage_begin();
	solo->fd = wh_open(O_NONBLOCK);
	if (solo->fd < 0 || wh_info(solo->fd, &info))
		fuzz_fail("open: %d", solo->fd);
	model_init(&solo->model, info.max_timers);
	while (choices_left(&solo->choices) && !fuzz_over()) {
		run_step(solo);
		coverage_step();
	}
	solo_sockets_close(solo);
	run_stats(solo);
	solo_unmap(solo);
	if (close(solo->fd))
		fuzz_fail("close: errno %d", errno);
	fuzz_program(NULL, 0);
	return coverage_end();
}

static void *guarded_pages(void)
{
	char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + PAGE, PAGE, PROT_NONE))
		fuzz_fail("no memory: errno %d", errno);
	return memory;
}

static struct solo *make_solo(void)
{
	static struct solo solo;

	solo.memory = guarded_pages();
	solo.uring = call_uring_open();
	coverage_open();
	return &solo;
}

/* Does the actor run another program after @done programs? */
static bool runs_another(__u64 done)
{
	return !fuzz_over() && (!fuzz->programs || done < fuzz->programs);
}

/* Runs programs until the end, those of the corpus first; or only these, to keep the best. */
void run_solo(unsigned int number, bool merge, const char *keep)
{
	__u64 seed = mix_seed(fuzz->seed, 1000 + number), i;
	struct solo *solo = make_solo();
	__u8 program[PROGRAM_MAX];
	const __u8 *old;
	size_t length, n = corpus_size();

	for (i = 0; i < n && runs_another(i); i++) {
		old = corpus_program(i, &length);
		memcpy(program, old, length);
		if (run_program(solo, program, length) && merge)
			corpus_keep(program, length, keep);
	}
	for (i = 0; !merge && runs_another(n + i); i++) {
		length = corpus_draw(mix_seed(seed, i), program);
		if (run_program(solo, program, length) && !fuzz_over())
			corpus_keep(program, length, keep);
	}
}

/* Reads a program in the printed form: pairs of digits, and anything between them. */
static size_t read_digits(const char *path, __u8 *program)
{
	FILE *file = fopen(path, "r");
	size_t length = 0;
	unsigned int byte;

	if (!file)
		return 0;
	while (length < PROGRAM_MAX && fscanf(file, "%*[^0-9a-f]") != EOF &&
	       fscanf(file, "%2x", &byte) == 1)
		program[length++] = byte;
	fclose(file);
	return length;
}

/* Runs the program in a file, again and again. */
void solo_replay(const char *path)
{
	__u8 program[PROGRAM_MAX];
	size_t length = read_digits(path, program);
	struct solo *solo = make_solo();

	if (!length)
		fuzz_fail("%s: no program is there", path);
	while (!fuzz_over())
		run_program(solo, program, length);
}
