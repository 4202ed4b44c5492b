// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-programs: timers of Asio, a binary heap with back-pointers
 *
 * This is Boost.Asio, which Debian has without the rest of Boost, too. No threads, so no locks; a
 * clock that is only read when time passes, as by libev; an executor whose type is known; and a
 * handler's memory comes from a list of free blocks. Changing the time of a timer ends its wait, for
 * which the handler is called, as well: that is part of re-arming and of cancelling it.
 */
#include <asio/basic_waitable_timer.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <new>
#include <thread>

#include "program.h"

namespace
{

constexpr unsigned int shorter_expire = 1000;
constexpr std::chrono::milliseconds turn_length(1);
constexpr size_t block_bytes = 64;
constexpr size_t blocks_at_once = 1024;

struct loop_clock {
	using duration = std::chrono::nanoseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<loop_clock>;
	static constexpr bool is_steady = true;
	static inline time_point current;

	static time_point now() noexcept
	{
		return current;
	}

	static void read()
	{
		current = time_point(std::chrono::steady_clock::now().time_since_epoch());
	}
};

using timer_base = asio::basic_waitable_timer<loop_clock, asio::wait_traits<loop_clock>,
					      asio::io_context::executor_type>;

struct timer {
	timer_base waitable;
	bool armed;
};

static_assert(sizeof(timer) <= TIMER_BYTES, "a timer does not fit in an object");

union block {
	block *next;
	alignas(16) unsigned char bytes[block_bytes];
};

asio::io_context *io;
block *free_blocks;
loop_clock::time_point origin;
unsigned int divisor;

void more_blocks()
{
	block *blocks = new block[blocks_at_once];

	for (size_t i = 0; i < blocks_at_once; i++) {
		blocks[i].next = free_blocks;
		free_blocks = &blocks[i];
	}
}

template <typename T> struct block_allocator {
	using value_type = T;

	block_allocator() = default;
	template <typename U> block_allocator(const block_allocator<U> &) noexcept
	{
	}

	T *allocate(size_t nr)
	{
		static_assert(sizeof(T) <= block_bytes, "a handler does not fit in a block");
		if (nr != 1)
			throw std::bad_alloc();
		if (!free_blocks)
			more_blocks();

		block *first = free_blocks;

		free_blocks = first->next;
		return reinterpret_cast<T *>(first);
	}

	void deallocate(T *memory, size_t) noexcept
	{
		block *first = reinterpret_cast<block *>(memory);

		first->next = free_blocks;
		free_blocks = first;
	}

	template <typename U> bool operator==(const block_allocator<U> &) const noexcept
	{
		return true;
	}
};

timer *timer_in(struct object *object)
{
	return reinterpret_cast<timer *>(object->timer);
}

struct expiry {
	struct object *object;

	using allocator_type = block_allocator<void>;

	allocator_type get_allocator() const noexcept
	{
		return {};
	}

	void operator()(const asio::error_code &error) const
	{
		if (error)
			return;
		object->fired++;
		timer_in(object)->armed = false;
	}
};

void asio_create(size_t)
{
	io = new asio::io_context(ASIO_CONCURRENCY_HINT_UNSAFE);
}

void asio_destroy(void)
{
}

void asio_init(struct object *object)
{
	if (object->value)
		return;
	new (object->timer) timer { timer_base { *io }, false };
	object->value = 1;
}

void asio_begin(unsigned int shorter)
{
	clock_start();
	loop_clock::read();
	origin = loop_clock::current;
	divisor = shorter;
}

loop_clock::time_point time_of(const struct step *step)
{
	const uint64_t ns = (static_cast<uint64_t>(step->time) << TIME_SHIFT) / divisor;

	return origin + std::chrono::nanoseconds(ns + 1);
}

void asio_arm(struct object *objects, const struct step *steps, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct object *object = &objects[steps[i].object];
		timer *timer = timer_in(object);

		timer->waitable.expires_at(time_of(&steps[i]));
		timer->waitable.async_wait(expiry { object });
		timer->armed = true;
	}
	io->restart();
	io->poll();
}

void asio_cancel(struct object *objects, const struct step *steps, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		timer *timer = timer_in(&objects[steps[i].object]);

		timer->waitable.cancel();
		timer->armed = false;
	}
	io->restart();
	io->poll();
}

void asio_expire(uint32_t last)
{
	clock_sleep(last, divisor);
	loop_clock::read();
	io->restart();
	io->poll();
}

uint64_t asio_turn(void)
{
	std::this_thread::sleep_for(turn_length);
	loop_clock::read();
	io->restart();
	io->poll();
	return clock_elapsed();
}

bool asio_pending(const struct object *object)
{
	return reinterpret_cast<const timer *>(object->timer)->armed;
}

} // namespace

const struct scheme scheme_asio = {
	.name		= "asio",
	.timer_bytes	= sizeof(timer),
	.shorter	= shorter_expire,
	.create		= asio_create,
	.destroy	= asio_destroy,
	.init		= asio_init,
	.begin		= asio_begin,
	.add		= asio_arm,
	.rearm		= asio_arm,
	.cancel		= asio_cancel,
	.expire		= asio_expire,
	.turn		= asio_turn,
	.pending	= asio_pending,
	.memory		= nullptr,
};
