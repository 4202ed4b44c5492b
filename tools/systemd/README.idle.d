# SPDX-License-Identifier: GPL-2.0-only

Rules for idle TCP connections, which twheel-idle.service loads: those of each file here whose
name ends in .conf, in the order of their names. A line has the options of 'twctl idle', for
example

	# Web clients go after a minute without data.
	--name web --port 80,443 --timeout 60s

The first rule that matches a connection applies. See twctl(1) for all options, and try

	twctl idle load --check /etc/twheel/idle.d
	systemctl enable --now twheel-idle.service
	systemctl reload twheel-idle.service
