# SPDX-License-Identifier: GPL-2.0-only
# The dkms of Debian 12 calls "make clean" here before and after it builds with Kbuild, and
# complains if that fails. There is nothing to clean: it builds in a copy, which it removes itself.
clean:
	@:

.PHONY: clean
