// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules for idle connections: a peer whose window is closed is gone once it does not answer when it
 * is asked whether it still is.
 */
#include "stalled_test.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>

static void add_attribute(struct nlmsghdr *header, int type, const void *data, size_t size)
{
	struct rtattr *attribute = (void *)header + NLMSG_ALIGN(header->nlmsg_len);

	attribute->rta_type = type;
	attribute->rta_len = RTA_LENGTH(size);
	memcpy(RTA_DATA(attribute), data, size);
	header->nlmsg_len = NLMSG_ALIGN(header->nlmsg_len) + RTA_ALIGN(attribute->rta_len);
}

/* From now on, the host has no room for what it sends on lo, as if a queue were full; or has. */
static int set_lo_full(bool full)
{
	const struct tc_fifo_qopt no_room = { .limit = 0 };
	struct {
		struct nlmsghdr	header;
		struct tcmsg	qdisc;
		char		attributes[64];
	} request = {
		.header.nlmsg_len	= NLMSG_LENGTH(sizeof(struct tcmsg)),
		.header.nlmsg_type	= full ? RTM_NEWQDISC : RTM_DELQDISC,
		.header.nlmsg_flags	= NLM_F_REQUEST | NLM_F_ACK | (full ? NLM_F_CREATE : 0),
		.qdisc.tcm_ifindex	= if_nametoindex("lo"),
		.qdisc.tcm_parent	= TC_H_ROOT,
		.qdisc.tcm_handle	= full ? 0x10000 : 0,
	};
	struct {
		struct nlmsghdr	header;
		struct nlmsgerr	error;
	} answer = { .error.error = -EIO };
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	if (full) {
		add_attribute(&request.header, TCA_KIND, "pfifo", sizeof("pfifo"));
		add_attribute(&request.header, TCA_OPTIONS, &no_room, sizeof(no_room));
	}
	if (send(fd, &request, request.header.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < 0)
		answer.error.error = -errno;
	close(fd);
	return answer.error.error;
}

/* When the next window probe is due; its timer may be late by an eighth of the time, @late. */
static __u64 next_probe(int fd, __u64 *late)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	__u64 gap;

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
	gap = (info.tcpi_rto * 1000ULL) << info.tcpi_backoff;
	*late = gap / 8 + LATE;
	return now_ns() - info.tcpi_last_ack_recv * MSEC + gap;
}

/*
 * Window probes become rarer: soon the time between two of them is much longer than the limit. A
 * peer that answers each of them is spared, and has its time once it answers none.
 */
TEST_F_TIMEOUT(rules, a_peer_that_answers_probes_is_spared, TIMEOUT)
{
	const __u64 idle = 300 * MSEC, stalled = 2 * SEC;
	struct twheel_rule rule;
	__u64 probe, late, end;
	struct pair pair;
	int id;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_LT(0, fill_queue(pair.server));
	id = add_stalled(self->fd, 0, self->port, idle, stalled);
	ASSERT_LT(0, id);
	sleep_ns(15 * SEC);
	ASSERT_TRUE(is_open(&pair));
	rule = look(self->fd, id);
	EXPECT_LE(2, rule.waited);
	EXPECT_EQ(0, rule.closed);
	probe = next_probe(pair.server, &late);
	ASSERT_LT(now_ns() + 2 * stalled, probe);
	ASSERT_EQ(0, set_lo_up(false));
	sleep_ns(probe - now_ns());
	end = wait_closed(pair.server);
	EXPECT_LE(probe + stalled - LATE, end);
	EXPECT_GE(probe + stalled + late, end);
	EXPECT_EQ(1, look(self->fd, id).closed);
	ASSERT_EQ(0, set_lo_up(true));
}

/* With fewer retries, the time between two probes stops growing early. */
TEST_F_TIMEOUT(rules, probes_that_stay_as_frequent, TIMEOUT)
{
	const __u64 idle = 300 * MSEC, stalled = 2 * SEC, gap = 3200 * MSEC;
	int fd = open("/proc/sys/net/ipv4/tcp_retries2", O_WRONLY | O_CLOEXEC);
	__u64 probe, late, end;
	struct pair pair;

	ASSERT_EQ(1, write(fd, "4", 1));
	close(fd);
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_LT(0, fill_queue(pair.server));
	ASSERT_LT(0, add_stalled(self->fd, 0, self->port, idle, stalled));
	sleep_ns(8 * gap);
	ASSERT_TRUE(is_open(&pair));
	probe = next_probe(pair.server, &late);
	ASSERT_LT(now_ns(), probe);
	ASSERT_EQ(0, set_lo_up(false));
	sleep_ns(probe - now_ns());
	ASSERT_TRUE(is_open(&pair));
	end = wait_closed(pair.server);
	EXPECT_LE(probe + stalled - LATE, end);
	EXPECT_GE(probe + stalled + late, end);
	ASSERT_EQ(0, set_lo_up(true));
}

/* A probe for which the host has no room is none that the peer could have answered. */
TEST_F_TIMEOUT(rules, a_probe_that_is_not_sent_counts_for_nothing, TIMEOUT)
{
	const __u64 idle = 300 * MSEC, stalled = 3 * SEC;
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	__u64 probe, late;
	struct pair pair;
	int id;

	if (set_lo_full(false) == -EOPNOTSUPP)
		SKIP(return, "this kernel has no queues for devices");
	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_LT(0, fill_queue(pair.server));
	id = add_stalled(self->fd, 0, self->port, idle, stalled);
	ASSERT_LT(0, id);
	sleep_ns(8 * SEC);
	probe = next_probe(pair.server, &late);
	/* So long that half of it would be too long. */
	ASSERT_LT(now_ns() + 3 * SEC, probe);
	ASSERT_EQ(0, set_lo_full(true));
	do {
		sleep_ns(10 * MSEC);
		ASSERT_EQ(0, getsockopt(pair.server, IPPROTO_TCP, TCP_INFO, &info, &size));
	} while (!info.tcpi_probes && now_ns() < probe + late);
	EXPECT_EQ(1, info.tcpi_probes);
	ASSERT_EQ(0, set_lo_full(false));
	/* It is sent soon after, and answered. */
	sleep_ns(3 * stalled);
	EXPECT_TRUE(is_open(&pair));
	EXPECT_EQ(0, look(self->fd, id).closed);
}

/*
 * Some receivers close their window, or have no memory left, after data was sent: it is
 * retransmitted, ever more rarely, which asks the same as a window probe.
 */
TEST_F_TIMEOUT(rules, a_peer_that_shrinks_its_window_is_spared, TIMEOUT)
{
	const __u64 idle = 300 * MSEC, stalled = 2 * SEC;
	static const char data[30000];
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	int id, i, unsent, queued, smallest = 2304, nodelay = 1;
	struct pair pair;
	__u64 end;

	ASSERT_TRUE(connect_pair(self->listener, &pair));
	ASSERT_EQ(0, setsockopt(pair.server, IPPROTO_TCP, TCP_NODELAY, &nodelay, sizeof(nodelay)));
	ASSERT_EQ(sizeof(data), send(pair.server, data, sizeof(data), 0));
	sleep_ns(300 * MSEC);
	ASSERT_EQ(0, setsockopt(pair.client, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest)));
	for (i = 0; i < 200; i++) {
		while (send(pair.server, data, 1000, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			i = 0;
		sleep_ns(MSEC);
	}
	/* Retransmissions by now are answered, or not. */
	sleep_ns(1500 * MSEC);
	ASSERT_EQ(0, getsockopt(pair.server, IPPROTO_TCP, TCP_INFO, &info, &size));
	if (info.tcpi_last_ack_recv > info.tcpi_last_data_sent + 10)
		SKIP(return, "a receiver without memory does not answer");
	ASSERT_EQ(0, ioctl(pair.server, SIOCOUTQNSD, &unsent));
	ASSERT_EQ(0, ioctl(pair.server, SIOCOUTQ, &queued));
	ASSERT_LT(unsent, queued);
	id = add_stalled(self->fd, 0, self->port, idle, stalled);
	ASSERT_LT(0, id);
	sleep_ns(15 * SEC);
	EXPECT_TRUE(is_open(&pair));
	EXPECT_EQ(0, look(self->fd, id).closed);
	/* It is gone: it has its time, once it has been asked again. */
	ASSERT_EQ(0, set_lo_up(false));
	sleep_ns(2 * stalled);
	EXPECT_TRUE(is_open(&pair));
	for (i = 0, end = 0; i < 4 && !end; i++)
		end = wait_closed(pair.server);
	EXPECT_NE(0, end);
	EXPECT_EQ(1, look(self->fd, id).closed);
	ASSERT_EQ(0, set_lo_up(true));
}

TEST_HARNESS_MAIN
