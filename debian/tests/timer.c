// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test that a timer of the library expires, not early, and less than a second late: any machine
 * should manage that.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>

#include <libtwheel.h>

#define MS	1000000ULL

int main(void)
{
	struct twheel_event event;
	uint64_t handle, late;
	int fd = twheel_open(0);
	int ret;

	if (fd < 0)
		errx(1, "twheel_open: %d", fd);
	ret = twheel_add(fd, 200 * MS, 0, 42, &handle);
	if (ret < 0)
		errx(1, "twheel_add: %d", ret);
	ret = twheel_read(fd, &event, 1);
	if (ret != 1)
		errx(1, "twheel_read: %d", ret);
	if (event.handle != handle || event.user_data != 42)
		errx(1, "the event is another timer's");
	if (event.fired < event.deadline)
		errx(1, "early by %llu ns", (unsigned long long)(event.deadline - event.fired));
	late = event.fired - event.deadline;
	if (late > 1000 * MS)
		errx(1, "late by %llu ns", (unsigned long long)late);
	printf("a timer expired, %llu ns late\n", (unsigned long long)late);
	return 0;
}
