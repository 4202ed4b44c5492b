# SPDX-License-Identifier: GPL-2.0-only

Rules for idle TCP connections. twheel-idle.service loads those in all files here whose names end
in .conf, in order of name. Each line consists of options of 'twctl idle', for example

	# Close web clients after a minute without data.
	--name web --port 80,443 --timeout 60s

The first rule that matches a connection applies to it. twctl(1) describes all options. To check
the files, load them at each boot, and reload them after a change:

	twctl idle load --check /etc/twheel/idle.d
	systemctl enable --now twheel-idle.service
	systemctl reload twheel-idle.service
