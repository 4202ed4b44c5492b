// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtwheel's header for C++, with the device. Prints TAP.
 */
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <libtwheel.hpp>

using namespace std::chrono_literals;
using event = const struct twheel_event &;

/* A timeout that is longer than anything takes. */
static constexpr auto guard = 10s;

/*
 * Simulates an older module, in which an idle timer must give its clock, and say that it has no
 * deadline.
 */
extern "C" int __real_twheel_timer_add_sized(int fd, struct twheel_timer_add *add, size_t size);
extern "C" int __wrap_twheel_timer_add_sized(int fd, struct twheel_timer_add *add, size_t size)
{
	if (add->idle && (add->time != TWHEEL_TIME_NONE || add->clock != CLOCK_MONOTONIC))
		return -EINVAL;
	return __real_twheel_timer_add_sized(fd, add, size);
}

static bool ok;

#define EXPECT(condition) do {							\
	if (!(condition)) {							\
		std::printf("# %s:%d: %s is false\n", __func__, __LINE__, #condition); \
		ok = false;							\
	}									\
} while (0)

/* Dispatches until @nr callbacks were called. */
static void dispatch_calls(twheel::context &context, unsigned int nr)
{
	while (nr) {
		if (!context.wait(guard)) {
			std::printf("# nothing comes\n");
			ok = false;
			return;
		}
		unsigned int called = context.dispatch();

		EXPECT(called <= nr);
		nr -= called;
	}
	EXPECT(!context.wait(0ms));
}

static void test_once()
{
	twheel::context context;
	std::uint64_t named = 0;
	auto begin = twheel::clock::now();
	twheel::timer timer(context, [&](event e) {
		EXPECT(e.handle == named);
		EXPECT(e.fired >= e.deadline);
		EXPECT(e.deadline >= twheel::count(begin.time_since_epoch() + 20ms));
	});

	EXPECT(!timer.handle() && !timer.cancel());
	timer.start(20ms);
	named = timer.handle();
	EXPECT(named);
	dispatch_calls(context, 1);
	EXPECT(twheel::clock::now() >= begin + 20ms);
	EXPECT(!timer.handle() && !timer.cancel());

	/* An absolute time, and one that has passed. */
	begin = twheel::clock::now();
	timer.start(begin + 20ms);
	named = timer.handle();
	dispatch_calls(context, 1);
	begin -= 1h;
	timer.start(-1s);
	named = timer.handle();
	dispatch_calls(context, 1);
}

static void test_moved_and_cancelled()
{
	twheel::context context;
	int calls = 0;
	twheel::timer timer(context, [&](event) { calls++; });

	timer.start(5ms);
	std::uint64_t named = timer.handle();
	timer.start(1h);
	EXPECT(timer.handle() == named);
	EXPECT(!context.wait(20ms));
	EXPECT(timer.cancel());
	timer.start(1ms);
	EXPECT(context.wait(guard));
	EXPECT(timer.cancel());
	EXPECT(!context.wait(0ms) && !context.dispatch() && !calls);
	{
		twheel::timer other(context, [&](event) { calls++; });

		other.start(1ms);
	}
	EXPECT(!context.wait(20ms) && !calls);
}

/* A callback destroys, cancels or restarts timers whose events were read together with its own. */
static void test_by_each_other()
{
	twheel::context context;
	std::vector<std::unique_ptr<twheel::timer>> timers;
	unsigned int calls = 0, i;

	for (i = 0; i < 10; i++) {
		timers.push_back(std::make_unique<twheel::timer>(context, [&](event) {
			if (calls++)
				return;
			timers[1].reset();
			EXPECT(timers[2]->cancel());
			timers[3]->start(30ms);
			timers[0].reset();
		}));
		timers[i]->start(twheel::clock::time_point(1ns));
	}
	while (context.wait(guard) && calls < 8)
		context.dispatch();
	/*
	 * All but the two that were destroyed or cancelled; the one that was restarted comes last.
	 */
	EXPECT(calls == 8);
	EXPECT(!context.wait(50ms) && !context.dispatch());
}

/* Waits until @nr timers have expired. */
static void await_events(twheel::context &context, std::uint64_t nr)
{
	struct twheel_info info = {};
	auto end = twheel::clock::now() + guard;

	while (!twheel_info(context.fd(), &info) && info.nr_events < nr && twheel::clock::now() < end)
		usleep(1000);
	EXPECT(info.nr_events == nr);
}

/* The kernel forgets what it has delivered when the memory is reused; the library does not. */
static void test_forgotten()
{
	twheel::context context;
	unsigned int calls = 0;
	twheel::timer other(context, [&](event) { calls++; });
	twheel::timer timer(context, [&](event) {
		twheel::timer many(context, [](event) {});

		timer.start(1h);
		for (int i = 0; i < 60; i++) {
			many.start(1h);
			many.cancel();
		}
		EXPECT(twheel_cancel(context.fd(), other.handle()) == -ENOENT);
		EXPECT(other.cancel() && !other.cancel());
	});

	timer.start(twheel::clock::time_point(1ns));
	await_events(context, 1);
	other.start(twheel::clock::time_point(1ns));
	await_events(context, 2);
	EXPECT(context.dispatch() == 1 && !calls);
}

/* Keys in events do not matter. Timers themselves have none: two with the same would be one. */
static void test_keys()
{
	twheel::context context;
	struct twheel_setup setup = {};
	struct twheel_timer_add add = {};
	unsigned int calls = 0;
	int code = 0;
	twheel::timer timer(context, [&](event) { calls++; });

	setup.flags = TWHEEL_SETUP_EVENT_KEYS;
	EXPECT(!twheel_setup(context.fd(), &setup));
	timer.start(1ms);
	add.clock = CLOCK_MONOTONIC;
	add.flags = TWHEEL_KEYED;
	try {
		timer.start(add);
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
	EXPECT(code == EINVAL);
	dispatch_calls(context, 1);
	EXPECT(calls == 1);
}

/* More timers than events fit in an array, each of which restarts itself once. */
static void test_many()
{
	twheel::context context;
	std::vector<std::unique_ptr<twheel::timer>> timers(1000);
	unsigned int calls = 0;

	for (auto &timer : timers) {
		auto *place = &timer;

		timer = std::make_unique<twheel::timer>(context, [&calls, place](event) {
			if (++calls <= 1000)
				(*place)->start(1ms);
		});
		timer->start(1ms);
	}
	dispatch_calls(context, 2000);
	EXPECT(calls == 2000);
}

/* Callbacks that take longer than the periods of their timers. */
static void test_slow()
{
	struct over {};
	twheel::context context;
	std::vector<std::unique_ptr<twheel::timer>> timers(100);
	unsigned int calls = 0, returned = 0;

	for (auto &timer : timers) {
		timer = std::make_unique<twheel::timer>(context, [&](event) {
			auto end = twheel::clock::now() + 50us;

			while (twheel::clock::now() < end)
				;
			if (++calls == 1000)
				throw over();
		});
		timer->start_every(1ms);
	}
	await_events(context, 100);
	try {
		returned = context.dispatch();
	} catch (over) {
	}
	EXPECT(returned == 64 && calls == 64);
}

static void test_periods()
{
	twheel::context context;
	unsigned int calls = 0;
	std::uint64_t seen = 0;
	twheel::timer timer(context, [&](event e) {
		calls++;
		seen += 1 + e.overruns;
	});

	timer.start_every(10ms);
	while (calls < 5 && context.wait(guard))
		context.dispatch();
	EXPECT(calls == 5 && seen >= 5);
	EXPECT(timer.handle());
	/* Restarted with a deadline, it has no period any more. */
	timer.start(5ms);
	dispatch_calls(context, 1);
	EXPECT(!context.wait(30ms));
}

static void test_idle()
{
	twheel::context context;
	unsigned int reason = 99;
	twheel::timer timer(context, [&](event e) { reason = e.reason; });

	EXPECT(!timer.active());
	timer.start_idle(50ms);
	for (int i = 0; i < 5; i++) {
		EXPECT(!context.wait(20ms));
		EXPECT(timer.active());
	}
	dispatch_calls(context, 1);
	EXPECT(reason == TWHEEL_LIMIT_IDLE);
	EXPECT(!timer.active());
	/* Starting it with a deadline ends the idle timeout. */
	timer.start_idle(5ms);
	timer.start(30ms);
	dispatch_calls(context, 1);
	EXPECT(reason == TWHEEL_LIMIT_DEADLINE);
}

/* Two ends of a connection. */
struct connection {
	connection()
	{
		struct sockaddr_in address = {};
		socklen_t length = sizeof(address);
		int listener = socket(AF_INET, SOCK_STREAM, 0);

		address.sin_family = AF_INET;
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		there = socket(AF_INET, SOCK_STREAM, 0);
		EXPECT(!bind(listener, reinterpret_cast<sockaddr *>(&address), length) &&
		       !listen(listener, 1) &&
		       !getsockname(listener, reinterpret_cast<sockaddr *>(&address), &length) &&
		       !connect(there, reinterpret_cast<sockaddr *>(&address), length));
		here = accept(listener, nullptr, nullptr);
		close(listener);
	}
	~connection()
	{
		close(here);
		close(there);
	}

	int here, there;
};

static void test_watched()
{
	twheel::context context;
	connection one, other;
	unsigned int calls = 0;
	twheel::timer first(context, [&](event) { calls++; });
	twheel::timer second(context, [&](event) { calls += 10; });
	char byte;

	first.watch(one.here, 100ms, TWHEEL_WATCH_RECEIVED | TWHEEL_WATCH_SHUTDOWN);
	second.watch(other.here, 100ms);
	/* This timer ends with its connection. */
	shutdown(other.here, SHUT_RDWR);
	await_events(context, 1);
	EXPECT(!first.active());
	dispatch_calls(context, 1);
	EXPECT(calls == 1 && !first.active());
	EXPECT(recv(one.there, &byte, 1, 0) == 0);
	EXPECT(second.handle() && !second.cancel());
}

/* Times that do not fit, and parts of a nanosecond. */
static void test_durations()
{
	using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
	using std::chrono::hours;
	twheel::context context;
	unsigned int calls = 0;
	twheel::timer timer(context, [&](event) { calls++; });
	const std::chrono::duration<double> forever(std::numeric_limits<double>::infinity());

	static_assert(twheel::count(hours::max()) == TWHEEL_TIME_MAX);
	static_assert(twheel::count(twheel::nanoseconds::max()) == TWHEEL_TIME_MAX);
	static_assert(twheel::count(hours(24 * 365 * 293)) == TWHEEL_TIME_MAX);
	static_assert(twheel::count(hours(24 * 365 * 292)) == 9208512000000000000u);
	static_assert(twheel::count(hours::min()) == 0 && twheel::count(-1ns) == 0);
	static_assert(twheel::count(1.5s) == 1500000000 && twheel::count(picoseconds(1)) == 1);
	timer.start(hours::max());
	EXPECT(!context.wait(20ms));
	timer.start(forever);
	timer.start(std::chrono::time_point<twheel::clock, hours>::max());
	EXPECT(!context.wait(20000us));
	timer.start_every(hours::max());
	EXPECT(!context.wait(0.02s));
	timer.start_idle(std::chrono::minutes::max());
	EXPECT(!context.wait(20ms) && timer.cancel() && !calls);
	timer.start(hours::min());
	EXPECT(context.wait(hours::max()) && context.dispatch() == 1);
}

/* A start that fails changes nothing; one that succeeds is not hindered by the earlier one. */
static void test_restarted()
{
	twheel::context context;
	struct twheel_setup setup = {};
	connection one;
	unsigned int calls = 0;
	int code = 0;
	twheel::timer timer(context, [&](event) { calls++; });

	timer.start(5ms);
	try {
		timer.watch(-1, 1s);
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
	EXPECT(code == EBADF && timer.handle());
	dispatch_calls(context, 1);
	timer.watch(one.here, 1h);
	timer.watch(one.here, 50ms);
	dispatch_calls(context, 1);
	/* The only timer that is allowed. */
	setup.max_timers = 1;
	EXPECT(!twheel_setup(context.fd(), &setup));
	timer.start_idle(1h);
	timer.start_every(1h);
	timer.start(5ms);
	dispatch_calls(context, 1);
	EXPECT(calls == 3);
}

static void test_errors()
{
	twheel::context context;
	twheel::timer timer(context, [](event) {});
	int code = 0;

	try {
		timer.watch(-1, 1s);
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
	EXPECT(code == EBADF && !timer.handle());
	code = 0;
	try {
		timer.watch(STDIN_FILENO, 0s);
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
	EXPECT(code == EINVAL);
	code = 0;
	timer.start(1h);
	try {
		struct twheel_timer_add add = {};

		add.user_data = 1;
		add.clock = CLOCK_MONOTONIC;
		timer.start(add);
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
	EXPECT(code == EINVAL && timer.cancel());
	/* Very short and very long times that are valid. */
	timer.start(twheel::nanoseconds::max());
	timer.start_every(0ns);
	EXPECT(context.wait(guard));
	timer.start_idle(0ns);
	dispatch_calls(context, 1);
}

/*
 * An exception is thrown after the other callbacks were called: the caller need not know that there
 * were more.
 */
static void test_thrown()
{
	twheel::context context;
	unsigned int calls = 0;
	int caught = 0;
	auto call = [&](event) {
		if (++calls % 2)
			throw calls;
	};
	twheel::timer a(context, call), b(context, call), c(context, call);

	for (auto *timer : { &a, &b, &c })
		timer->start(twheel::clock::time_point(1ns));
	await_events(context, 3);
	try {
		context.dispatch();
	} catch (unsigned int first) {
		caught++;
		EXPECT(first == 1);
	}
	EXPECT(calls == 3 && caught == 1);
	EXPECT(!context.wait(0ms) && !context.dispatch());
	/* The callback still works. */
	b.start(1ms);
	dispatch_calls(context, 1);
	EXPECT(calls == 4);
}

/*
 * With an edge-triggered epoll, events that a throwing dispatch() left behind must not hide new
 * ones.
 */
static void test_edge_triggered()
{
	twheel::context context;
	unsigned int calls = 0, caught = 0;
	twheel::timer a(context, [&](event) { throw std::runtime_error("first"); });
	twheel::timer b(context, [&](event) { calls++; });
	twheel::timer c(context, [&](event) { calls++; });
	int epoll = epoll_create1(0);
	struct epoll_event woken = {};

	woken.events = EPOLLIN | EPOLLET;
	EXPECT(!epoll_ctl(epoll, EPOLL_CTL_ADD, context.fd(), &woken));
	a.start(twheel::clock::time_point(1ns));
	await_events(context, 1);
	b.start(twheel::clock::time_point(1ns));
	await_events(context, 2);
	EXPECT(epoll_wait(epoll, &woken, 1, 0) == 1);
	try {
		context.dispatch();
	} catch (const std::runtime_error &) {
		caught++;
	}
	EXPECT(caught == 1 && calls == 1 && !b.cancel());
	c.start(1ms);
	EXPECT(epoll_wait(epoll, &woken, 1, 10000) == 1);
	EXPECT(context.dispatch() == 1 && calls == 2 && !context.dispatch());
	close(epoll);
}

static const struct {
	const char *name;
	void (*run)();
} tests[] = {
	{ "a timer calls once", test_once },
	{ "moved and cancelled", test_moved_and_cancelled },
	{ "taken away by each other", test_by_each_other },
	{ "cancelled, and forgotten by the kernel", test_forgotten },
	{ "keys", test_keys },
	{ "many", test_many },
	{ "slow", test_slow },
	{ "periods", test_periods },
	{ "idle", test_idle },
	{ "connections", test_watched },
	{ "durations", test_durations },
	{ "started again", test_restarted },
	{ "errors", test_errors },
	{ "exceptions", test_thrown },
	{ "exceptions, and edge-triggered epoll", test_edge_triggered },
};

int main()
{
	unsigned int number = 0, failed = 0;

	std::printf("TAP version 13\n1..%zu\n", sizeof(tests) / sizeof(tests[0]));
	for (const auto &test : tests) {
		ok = true;
		try {
			test.run();
		} catch (const std::exception &error) {
			std::printf("# %s\n", error.what());
			ok = false;
		}
		failed += !ok;
		std::printf("%s %u %s\n", ok ? "ok" : "not ok", ++number, test.name);
	}
	return failed != 0;
}
