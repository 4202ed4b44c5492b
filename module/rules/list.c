// SPDX-License-Identifier: GPL-2.0-only
/*
 * twheel: lists the connections that a rule applies to
 *
 * The cursor of a listing consists of a bucket of the kernel's table and the cookie of the last
 * connection listed from it. The connections of a bucket are listed in the order of their cookies,
 * so that none is left out when others come and go.
 */
#include <linux/cred.h>
#include <linux/in6.h>
#include <linux/minmax.h>
#include <linux/sock_diag.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <net/inet_sock.h>

#include "conn.h"
#include "enforce.h"
#include "lib/ioctl.h"
#include "list.h"
#include "rules.h"
#include "socks.h"

/* How many bits of a cookie fit into the cursor. */
#define COOKIE_BITS	40
#define COOKIE_MASK	GENMASK_ULL(COOKIE_BITS - 1, 0)

static void copy_address(u8 *to, const struct sockaddr_in6 *address)
{
	if (address->sin6_family == AF_INET6)
		memcpy(to, &address->sin6_addr, sizeof(address->sin6_addr));
	else
		memcpy(to, &((struct sockaddr_in *)address)->sin_addr, sizeof(struct in_addr));
}

static void describe_addresses(const struct sock *sk, struct twheel_connection *connection)
{
	struct sockaddr_in6 local, remote;

	twheel_connection_addresses(sk, &local, &remote);
	connection->family = sk->sk_family;
	connection->local_port = ntohs(local.sin6_port);
	connection->remote_port = ntohs(remote.sin6_port);
	copy_address(connection->local_address, &local);
	copy_address(connection->remote_address, &remote);
}

/* Describes a connection. Returns whether the rule with this id applies to it. */
static bool describe_connection(struct sock *sk, u32 id, struct twheel_connection *connection)
{
	memset(connection, 0, sizeof(*connection));
	if (!twheel_enforce_describe(sk, id, connection))
		return false;
	connection->cookie = twheel_connection_cookie(sk);
	connection->uid = from_kuid_munged(current_user_ns(), twheel_uid_of(sk));
	describe_addresses(sk, connection);
	return true;
}

static u64 cookie_order(const void *socks)
{
	return twheel_connection_cookie(*(struct sock **)socks) & COOKIE_MASK;
}

static int compare_cookies(const void *a, const void *b)
{
	u64 one = cookie_order(a), other = cookie_order(b);

	return one < other ? -1 : one > other;
}

/* Lists the connections of a bucket, and advances the cursor. Returns how many, or -EFAULT. */
static long list_bucket(struct twheel_connections *list, const struct twheel_socks *found,
			u32 bucket, void __user *user, u32 max)
{
	u64 last = list->cursor >> COOKIE_BITS == bucket ? list->cursor & COOKIE_MASK : 0, order;
	struct twheel_connection connection;
	long done = 0;
	u32 i;

	sort(found->socks, found->nr, sizeof(*found->socks), compare_cookies, NULL);
	for (i = 0; i < found->nr; i++) {
		order = cookie_order(&found->socks[i]);
		if (order <= last || !describe_connection(found->socks[i], list->id, &connection))
			continue;
		if (done == max)
			return done;
		if (twheel_copy_record(user + (size_t)done * list->record_size, &connection,
				       sizeof(connection), list->record_size))
			return done ?: -EFAULT;
		list->cursor = (u64)bucket << COOKIE_BITS | order;
		done++;
	}
	list->cursor = (u64)(bucket + 1) << COOKIE_BITS;
	return done;
}

/**
 * twheel_connections_list - list connections that a rule applies to
 * @net:	the rule's namespace
 * @list:	the request; its @cursor advances behind the connections listed
 *
 * Context: process; may sleep.
 * Return: how many were listed, 0 if there are no more; or
 * * %-EFAULT	- the records cannot be written
 * * %-EINTR	- a signal has killed the caller
 * * %-ENOMEM	- no memory
 */
long twheel_connections_list(struct net *net, struct twheel_connections *list)
{
	void __user *user = u64_to_user_ptr(list->records);
	u32 bucket = list->cursor >> COOKIE_BITS;
	struct twheel_socks found = { };
	long done = 0, ret = 0;

	while (done < list->nr_records) {
		ret = twheel_socks_next(net, &bucket, U32_MAX, &found);
		if (ret > 0)
			ret = list_bucket(list, &found, bucket,
					  user + (size_t)done * list->record_size,
					  list->nr_records - done);
		else if (!ret)
			break;
		if (ret < 0)
			break;
		twheel_socks_put(&found);
		done += ret;
		bucket = list->cursor >> COOKIE_BITS;
	}
	twheel_socks_free(&found);
	return done ?: ret;
}
