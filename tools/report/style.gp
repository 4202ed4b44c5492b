# SPDX-License-Identifier: GPL-2.0-only
#
# What all plots have in common; gnuplot reads it before each.
set encoding utf8
set border 3 lc rgb '#555555' lw 0.8
set tics nomirror out scale 0.6 textcolor rgb '#222222'
set grid y lt 1 lc rgb '#dddddd' lw 0.6
unset key
