// SPDX-License-Identifier: GPL-2.0-only
/*
 * In-kernel connections, for tests that rules leave them alone
 *
 * They are in the network namespace of the process that writes to these parameters:
 *
 *	connect		a port of 127.0.0.1: connects to it, once for each kind in enum owner
 *	listen		a port: listens on it
 *	accept		anything: accepts a connection, which must be waiting
 *	close		anything: closes all of them
 *
 * A write fails with the error of the operation.
 */
#include <linux/file.h>
#include <linux/in.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <net/sock.h>

/**
 * enum owner - what such a socket looks like
 * @WITHOUT_FILE: like those of the iSCSI target and OCFS2
 * @WITH_CALLBACK: it has a file, and an in-kernel callback for state changes, like those of NVMe
 * @KERN_SOCK: it has a file, and was created for the kernel, like those of NFS and 9p
 * @OTHER_MEMORY: it has a file, and allocates memory as those do that a program has given to nbd
 * @NR_OWNERS: the number of kinds
 */
enum owner {
	WITHOUT_FILE,
	WITH_CALLBACK,
	KERN_SOCK,
	OTHER_MEMORY,
	NR_OWNERS,
};

#define MOST	16

/* Protects the following. Taken in process context. */
static DEFINE_MUTEX(lock);
static struct socket *socks[MOST];
static unsigned int nr_socks;
static struct socket *listener;

static void release_one(struct socket *sock)
{
	if (sock->file)
		fput(sock->file);
	else
		sock_release(sock);
}

static void close_all(void)
{
	while (nr_socks)
		release_one(socks[--nr_socks]);
	if (listener)
		sock_release(listener);
	listener = NULL;
}

static void ignore_state_change(struct sock *sk)
{
}

static int set_owner(struct socket *sock, enum owner owner)
{
	struct file *file;

	if (owner == WITHOUT_FILE)
		return 0;
	file = sock_alloc_file(sock, O_CLOEXEC, NULL);
	if (IS_ERR(file))
		return PTR_ERR(file);
	lock_sock(sock->sk);
	if (owner == WITH_CALLBACK)
		sock->sk->sk_state_change = ignore_state_change;
	else if (owner == KERN_SOCK)
		sock->sk->sk_kern_sock = 1;
	else
		sock->sk->sk_allocation = GFP_NOIO | __GFP_MEMALLOC;
	release_sock(sock->sk);
	return 0;
}

static int connect_as(enum owner owner, u16 port)
{
	struct sockaddr_in to = {
		.sin_family	 = AF_INET,
		.sin_port	 = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct socket *sock;
	int ret;

	if (nr_socks == MOST)
		return -ENOSPC;
	ret = sock_create(AF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (ret)
		return ret;
	ret = kernel_connect(sock, (void *)&to, sizeof(to), 0);
	if (ret) {
		sock_release(sock);
		return ret;
	}
	ret = set_owner(sock, owner);
	/* On an error the socket is gone: there was no file for it. */
	if (!ret)
		socks[nr_socks++] = sock;
	return ret;
}

static int connect_to(u16 port)
{
	enum owner owner;
	int ret = 0;

	for (owner = 0; owner < NR_OWNERS && !ret; owner++)
		ret = connect_as(owner, port);
	return ret;
}

static int listen_at(u16 port)
{
	struct sockaddr_in at = {
		.sin_family	 = AF_INET,
		.sin_port	 = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int ret;

	if (listener)
		return -EBUSY;
	ret = sock_create(AF_INET, SOCK_STREAM, IPPROTO_TCP, &listener);
	if (ret)
		return ret;
	ret = kernel_bind(listener, (void *)&at, sizeof(at)) ?:
	      kernel_listen(listener, MOST);
	if (ret) {
		sock_release(listener);
		listener = NULL;
	}
	return ret;
}

static int accept_one(u16 unused)
{
	int ret;

	if (!listener || nr_socks == MOST)
		return -EINVAL;
	ret = kernel_accept(listener, &socks[nr_socks], O_NONBLOCK);
	if (!ret)
		nr_socks++;
	return ret;
}

static int close_sockets(u16 unused)
{
	close_all();
	return 0;
}

static int set_param(const char *value, const struct kernel_param *kp)
{
	int (*act)(u16 port) = kp->arg;
	u16 port;
	int ret = kstrtou16(value, 0, &port);

	if (ret)
		return ret;
	mutex_lock(&lock);
	ret = act(port);
	mutex_unlock(&lock);
	return ret;
}

static const struct kernel_param_ops ops = { .set = set_param };
module_param_cb(connect, &ops, connect_to, 0200);
MODULE_PARM_DESC(connect, "connect to this port");
module_param_cb(listen, &ops, listen_at, 0200);
MODULE_PARM_DESC(listen, "listen at this port");
module_param_cb(accept, &ops, accept_one, 0200);
MODULE_PARM_DESC(accept, "accept a connection");
module_param_cb(close, &ops, close_sockets, 0200);
MODULE_PARM_DESC(close, "close all");

static int __init twheel_sockets_init(void)
{
	return 0;
}
module_init(twheel_sockets_init);

static void __exit twheel_sockets_exit(void)
{
	close_all();
}
module_exit(twheel_sockets_exit);

MODULE_DESCRIPTION("Connections of the kernel's own, for tests of twheel");
MODULE_AUTHOR("The twheel developers");
MODULE_LICENSE("GPL");
