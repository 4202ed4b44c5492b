// SPDX-License-Identifier: GPL-2.0-only
/*
 * connections: silent TCP connections, for tests of rules
 *
 * usage: connections 4|6 PORT NR
 *
 * Listens on PORT, and connects to it NR times. Prints "holding" when all are established, and
 * keeps them open until it is killed.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
	struct sockaddr_in	v4;
	struct sockaddr_in6	v6;
	struct sockaddr		any;
};

static socklen_t set_address(union address *address, int version, int port)
{
	if (version == 6) {
		address->v6 = (struct sockaddr_in6) {
			.sin6_family = AF_INET6,
			.sin6_port = htons(port),
			.sin6_addr = IN6ADDR_LOOPBACK_INIT,
		};
		return sizeof(address->v6);
	}
	address->v4 = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	return sizeof(address->v4);
}

int main(int argc, char **argv)
{
	union address address;
	int listener, one = 1, nr;
	socklen_t size;

	if (argc != 4)
		errx(2, "usage: connections 4|6 PORT NR");
	size = set_address(&address, atoi(argv[1]), atoi(argv[2]));
	listener = socket(address.any.sa_family, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, &address.any, size) || listen(listener, 128))
		err(1, "cannot listen on port %s", argv[2]);
	for (nr = atoi(argv[3]); nr; nr--)
		if (connect(socket(address.any.sa_family, SOCK_STREAM, 0), &address.any, size) ||
		    accept(listener, NULL, NULL) < 0)
			err(1, "cannot connect to port %s", argv[2]);
	puts("holding");
	fflush(stdout);
	pause();
	return 0;
}
