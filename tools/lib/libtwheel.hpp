/* SPDX-License-Identifier: MIT */
/*
 * libtwheel for C++17 and later: timers that call, and are cancelled when they go out of scope
 *
 *	twheel::context context;
 *	twheel::timer timer(context, [](const twheel_event &) { puts("late"); });
 *
 *	timer.start(2s);
 *	while (context.wait())
 *		context.dispatch();
 *
 * A context and its timers are for one thread at a time. What fails throws std::system_error.
 * The page twheel_cpp(7) tells more.
 */
#ifndef LIBTWHEEL_HPP
#define LIBTWHEEL_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <libtwheel.h>

namespace twheel {

using nanoseconds = std::chrono::nanoseconds;
/* CLOCK_MONOTONIC, with each C++ library of Linux. */
using clock = std::chrono::steady_clock;

/* Returns what a call of libtwheel did, unless that was an error: it is thrown. */
inline int check(int ret, const char *what)
{
	if (ret < 0)
		throw std::system_error(-ret, std::generic_category(), what);
	return ret;
}

/* A time that has passed is as good as now. */
inline std::uint64_t count(nanoseconds time)
{
	return time.count() > 0 ? static_cast<std::uint64_t>(time.count()) : 0;
}

class timer;

/* An open of /dev/twheel. It outlives its timers. */
class context {
public:
	context() : fd_(check(twheel_open(O_NONBLOCK), "/dev/twheel")) {}
	~context() { close(fd_); }
	context(const context &) = delete;
	context &operator=(const context &) = delete;

	/*
	 * For poll() and its like: readable as long as there is something to dispatch. Timers are
	 * added to it by twheel::timer alone.
	 */
	int fd() const { return fd_; }

	/* Sleeps until there is. Returns whether there is: false after the time, or a signal. */
	bool wait(std::chrono::milliseconds time = std::chrono::milliseconds(-1)) const
	{
		using rep = std::chrono::milliseconds::rep;
		const rep longest = std::numeric_limits<int>::max();
		int ret;

		ret = twheel_wait(fd_, static_cast<int>(std::clamp(time.count(), rep(-1), longest)));
		return ret != -EINTR && check(ret, "twheel_wait");
	}

	/*
	 * Calls up to 64 timers that have expired, and does not wait. Returns how many that were. If a
	 * callback throws the others are called, and then it comes out here; the first, if more do.
	 */
	unsigned int dispatch();

private:
	friend class timer;
	struct running;

	/* What has been read of a timer is not to be called any more. Returns whether there is. */
	bool forget(const timer *expired)
	{
		bool found = false;

		for (unsigned int i = next_; i < nr_; i++) {
			if (events_[i].user_data != reinterpret_cast<std::uintptr_t>(expired))
				continue;
			events_[i].user_data = 0;
			found = true;
		}
		return found;
	}

	void read();
	bool call(const struct twheel_event &event);

	static constexpr unsigned int most = 64;
	struct twheel_event events_[most];
	unsigned int next_ = 0, nr_ = 0;
	timer *running_ = nullptr;
	int fd_;
};

/*
 * A timer, and what it calls. It stays where it is in memory. What it calls may start, cancel
 * and destroy this timer and others of the context, and must not call dispatch().
 */
class timer {
public:
	using callback = std::function<void(const struct twheel_event &)>;

	timer(context &owner, callback call) : context_(owner), call_(std::move(call)) {}
	~timer()
	{
		cancel();
		if (context_.running_ == this)
			context_.running_ = nullptr;
	}
	timer(const timer &) = delete;
	timer &operator=(const timer &) = delete;

	/* What names it in calls of libtwheel; 0 if it is not started. */
	std::uint64_t handle() const { return handle_; }

	/* Expires after so long, or at this time. Nothing that it was started for before counts. */
	void start(nanoseconds after) { start_once(count(after), 0); }
	void start(clock::time_point at)
	{
		start_once(count(at.time_since_epoch()), TWHEEL_TIME_ABS);
	}

	/* Expires again and again. The event's overruns are the periods that went by unseen. */
	void start_every(nanoseconds period)
	{
		struct twheel_timer_add add = {};

		/* None is no period, and no timeout below. */
		add.period = std::max(count(period), std::uint64_t(1));
		add.time = add.period;
		add.clock = CLOCK_MONOTONIC;
		start(add);
	}

	/* Expires after so long without a call of active(). */
	void start_idle(nanoseconds idle)
	{
		start(no_deadline(std::max(count(idle), std::uint64_t(1))));
	}

	/* Returns false if it is too late, or was not started. */
	bool active()
	{
		int ret;

		if (!handle_)
			return false;
		ret = twheel_active(context_.fd_, handle_);
		/* The last is what a connection's timer says that has expired. */
		if (ret == -EALREADY || ret == -ENOENT || ret == -ENOTCONN)
			return false;
		check(ret, "twheel_active");
		return true;
	}

	/*
	 * Expires after so long without data on a TCP connection, see twheel_watch(). If the
	 * connection ends before that, nothing is called.
	 */
	void watch(int sock, nanoseconds idle, unsigned int flags = 0)
	{
		struct twheel_timer_add add = no_deadline(count(idle));

		add.flags = flags | TWHEEL_WATCHED;
		add.sock_fd = sock;
		start(add);
	}

	/* All that twheel_timer_add() can do, but for user_data, which is to be 0. */
	void start(struct twheel_timer_add add)
	{
		check(add.user_data ? -EINVAL : 0, "user_data");
		cancel();
		add.user_data = reinterpret_cast<std::uintptr_t>(this);
		check(twheel_timer_add(context_.fd_, &add), "twheel_timer_add");
		handle_ = add.handle;
		repeats_ = add.period;
		once_ = false;
	}

	/* Nothing is called any more. Returns whether something would have been. */
	bool cancel()
	{
		std::uint64_t handle = std::exchange(handle_, 0);
		int ret;

		if (!handle)
			return false;
		ret = twheel_cancel(context_.fd_, handle);
		return context_.forget(this) || ret >= 0;
	}

private:
	friend class context;

	/* In the words that each version of the kernel's module knows. */
	static struct twheel_timer_add no_deadline(std::uint64_t idle)
	{
		struct twheel_timer_add add = {};

		add.time = TWHEEL_TIME_NONE;
		add.clock = CLOCK_MONOTONIC;
		add.idle = idle;
		return add;
	}

	/* In most programs a timer is moved, which takes one call. */
	void start_once(std::uint64_t time, unsigned int flags)
	{
		struct twheel_timer_add add = {};

		if (handle_ && once_ && twheel_rearm(context_.fd_, handle_, time, flags) >= 0)
			return;
		add.time = time;
		add.flags = flags;
		add.clock = CLOCK_MONOTONIC;
		start(add);
		once_ = true;
	}

	context &context_;
	callback call_;
	std::uint64_t handle_ = 0;
	bool repeats_ = false, once_ = false;
};

/* A callback on its way, which is given back unless it has destroyed its timer. */
struct context::running {
	running(context &owner, timer &expired) : context_(owner), call(std::move(expired.call_))
	{
		context_.running_ = &expired;
	}
	~running()
	{
		if (context_.running_)
			context_.running_->call_ = std::move(call);
		context_.running_ = nullptr;
	}
	running(const running &) = delete;
	running &operator=(const running &) = delete;

	context &context_;
	timer::callback call;
};

inline bool context::call(const struct twheel_event &event)
{
	auto address = static_cast<std::uintptr_t>(event.user_data);
	auto *expired = reinterpret_cast<timer *>(address);

	if (!expired)
		return false;
	if (!expired->repeats_)
		expired->handle_ = 0;
	running(*this, *expired).call(event);
	return true;
}

inline void context::read()
{
	int n = twheel_read(fd_, events_, most);

	next_ = 0;
	nr_ = n > 0 ? static_cast<unsigned int>(n) : 0;
	if (n != -EAGAIN && n != -EINTR)
		check(n, "twheel_read");
}

inline unsigned int context::dispatch()
{
	std::exception_ptr thrown;
	unsigned int called = 0;

	/* Once: what expires meanwhile would keep a program here if its callbacks are slow. */
	read();
	while (next_ < nr_) {
		try {
			called += call(events_[next_++]);
		} catch (...) {
			if (!thrown)
				thrown = std::current_exception();
		}
	}
	if (thrown)
		std::rethrow_exception(thrown);
	return called;
}

} /* namespace twheel */

#endif /* LIBTWHEEL_HPP */
