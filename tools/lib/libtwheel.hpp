/* SPDX-License-Identifier: MIT */
/*
 * libtwheel for C++17 and later: timers that call a function when they expire, and are cancelled
 * when they go out of scope
 *
 *	twheel::context context;
 *	twheel::timer timer(context, [](const twheel_event &) { puts("late"); });
 *
 *	timer.start(2s);
 *	while (context.wait())
 *		context.dispatch();
 *
 * One thread at a time may use a context and its timers. Failures throw std::system_error.
 * See twheel_cpp(7).
 */
#ifndef LIBTWHEEL_HPP
#define LIBTWHEEL_HPP

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <libtwheel.h>

namespace twheel {

using nanoseconds = std::chrono::nanoseconds;
/* CLOCK_MONOTONIC in every C++ library on Linux. */
using clock = std::chrono::steady_clock;

/* Returns what a call of libtwheel returned, or throws its error. */
inline int check(int ret, const char *what)
{
	if (ret < 0)
		throw std::system_error(-ret, std::generic_category(), what);
	return ret;
}

/* Rounds up, so that nothing is early; what is too long, as hours::max(), is as long as can be. */
template <class To, class Rep, class Period>
constexpr To clamped(std::chrono::duration<Rep, Period> time)
{
	/* To::max() becomes the power of 2 above it. */
	const double longest = static_cast<double>(To::max().count());
	const double units = std::chrono::duration<double, typename To::period>(time).count();

	if (units <= -longest)
		return To::min();
	/* Not if it is no number. */
	return units < longest ? std::chrono::ceil<To>(time) : To::max();
}

/* A time in the past is the same as now. */
template <class Rep, class Period>
constexpr std::uint64_t count(std::chrono::duration<Rep, Period> time)
{
	const nanoseconds::rep ns = clamped<nanoseconds>(time).count();

	return ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
}

class timer;

/* An open file of /dev/twheel. It must outlive its timers. */
class context {
public:
	context() : fd_(check(twheel_open(O_NONBLOCK), "/dev/twheel")) {}
	~context() { close(fd_); }
	context(const context &) = delete;
	context &operator=(const context &) = delete;

	/*
	 * For poll() and the like: readable as long as there is something to dispatch. Only
	 * twheel::timer may add timers to it.
	 */
	int fd() const { return fd_; }

	/* Waits for something to dispatch. Returns false after a timeout or a signal. */
	bool wait() const { return wait_ms(-1); }

	/* A negative time is for ever. */
	template <class Rep, class Period>
	bool wait(std::chrono::duration<Rep, Period> time) const
	{
		using milliseconds = std::chrono::duration<int, std::milli>;

		return wait_ms(time < time.zero() ? -1 : clamped<milliseconds>(time).count());
	}

	/*
	 * Calls the callbacks of up to 64 timers that have expired, without waiting. Returns their
	 * number. If callbacks throw, the others are still called, and then the first exception is
	 * rethrown.
	 */
	unsigned int dispatch();

private:
	friend class timer;
	struct running;

	bool wait_ms(int time) const
	{
		const int ret = twheel_wait(fd_, time);

		return ret != -EINTR && check(ret, "twheel_wait");
	}

	/* Drops the events of a timer that have been read. Returns whether there were any. */
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

	static constexpr unsigned int max_events = 64;
	struct twheel_event events_[max_events];
	unsigned int next_ = 0, nr_ = 0;
	timer *running_ = nullptr;
	int fd_;
};

/*
 * A timer and its callback. It cannot be moved. The callback may start, cancel and destroy this
 * timer and others of the context, and must not call dispatch().
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

	/* Names the timer in calls of libtwheel; 0 if it is not started. */
	std::uint64_t handle() const { return handle_; }

	/*
	 * Expires after a duration, or at a time. An earlier start no longer has any effect. If any
	 * start throws, the earlier one has its effect.
	 */
	template <class Rep, class Period>
	void start(std::chrono::duration<Rep, Period> after)
	{
		start_once(count(after), 0);
	}
	template <class Duration>
	void start(std::chrono::time_point<clock, Duration> at)
	{
		start_once(count(at.time_since_epoch()), TWHEEL_TIME_ABS);
	}

	/* Expires repeatedly. The event's overruns are the periods missed. */
	template <class Rep, class Period>
	void start_every(std::chrono::duration<Rep, Period> period)
	{
		struct twheel_timer_add add = {};

		/* 0 would mean no period; and no idle timeout, in start_idle(). */
		add.period = std::max(count(period), std::uint64_t(1));
		add.time = add.period;
		add.clock = CLOCK_MONOTONIC;
		start(add);
	}

	/* Expires after this time without a call of active(). */
	template <class Rep, class Period>
	void start_idle(std::chrono::duration<Rep, Period> idle)
	{
		start(no_deadline(std::max(count(idle), std::uint64_t(1))));
	}

	/* Returns false if it is too late, or the timer was not started. */
	bool active()
	{
		int ret;

		if (!handle_)
			return false;
		ret = twheel_active(context_.fd_, handle_);
		/* -ENOTCONN: the timer of a connection, which has expired. */
		if (ret == -EALREADY || ret == -ENOENT || ret == -ENOTCONN)
			return false;
		check(ret, "twheel_active");
		return true;
	}

	/*
	 * Expires after this time without data on a TCP connection, see twheel_watch(). If the
	 * connection ends before that, the callback is not called.
	 */
	template <class Rep, class Period>
	void watch(int sock, std::chrono::duration<Rep, Period> idle, unsigned int flags = 0)
	{
		struct twheel_timer_add add = no_deadline(count(idle));

		add.flags = flags | TWHEEL_WATCHED;
		add.sock_fd = sock;
		start(add);
	}

	/* Everything that twheel_timer_add() can do, except user_data and keys. */
	void start(struct twheel_timer_add add)
	{
		int ret;

		check(add.user_data ? -EINVAL : 0, "user_data");
		check(add.flags & TWHEEL_KEYED ? -EINVAL : 0, "TWHEEL_KEYED");
		add.user_data = reinterpret_cast<std::uintptr_t>(this);
		ret = twheel_timer_add(context_.fd_, &add);
		if (is_in_its_way(ret)) {
			cancel();
			ret = twheel_timer_add(context_.fd_, &add);
		}
		check(ret, "twheel_timer_add");
		cancel();
		handle_ = add.handle;
		repeats_ = add.period;
		watches_ = add.flags & TWHEEL_WATCHED;
		once_ = false;
	}

	/* From now on the callback is not called. Returns whether it would have been. */
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

	/* Works with every version of the kernel module. */
	static struct twheel_timer_add no_deadline(std::uint64_t idle)
	{
		struct twheel_timer_add add = {};

		add.time = TWHEEL_TIME_NONE;
		add.clock = CLOCK_MONOTONIC;
		add.idle = idle;
		return add;
	}

	/* A new start failed as the earlier one has the last place, or watches the same connection. */
	bool is_in_its_way(int ret) const
	{
		return handle_ && (ret == -ENOSPC || (ret == -EBUSY && watches_));
	}

	/* Most programs move a timer, which takes one call. */
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
	bool repeats_ = false, watches_ = false, once_ = false;
};

/* A running callback, which is returned to its timer unless it has destroyed it. */
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
	int n = twheel_read(fd_, events_, max_events);

	next_ = 0;
	nr_ = n > 0 ? static_cast<unsigned int>(n) : 0;
	if (n != -EAGAIN && n != -EINTR)
		check(n, "twheel_read");
}

inline unsigned int context::dispatch()
{
	std::exception_ptr thrown;
	unsigned int called = 0;

	/* Only once: with slow callbacks, timers that expire meanwhile could keep it here. */
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
