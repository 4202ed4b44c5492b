// SPDX-License-Identifier: GPL-2.0-only

// The timers of Go, called as the programs in C are: measure|check TIMERS SEED.
//
// A timer is created once, by time.AfterFunc, and moved by Reset: so neither a channel nor an
// allocation is needed per operation. Each expiry starts a goroutine.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"sort"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

const (
	name = "go"

	// The times of timers that are to expire are divided by these, when measured or checked.
	// In a check, they have to be long compared to what it takes to arm all timers.
	shorterExpire = 100000
	shorterCheck  = 40

	clockProcessCPU = 2
	tries           = 5

	// In expireAll, each timer moves later by more than this process may be held up between
	// reading the clock and Reset. Else a few move earlier; when such a timer is due, Go 1.19
	// looks through its heap once more for each timer it moves, a minute for a million timers.
	surelyLater = 100 * time.Millisecond

	waitForLost = 30 * time.Second
	exitUsage   = 2
)

type operation int

const (
	add operation = iota
	rearmLater
	rearmEarlier
	cancel
	expire
)

var operationNames = []string{"add", "rearm_later", "rearm_earlier", "cancel", "expire"}

// work is what has to be done; by timer, time is its time since the run began.
type work struct {
	size       int
	random     *rand.Rand
	sequential bool
	order      []int
	time       []time.Duration
	timers     []*time.Timer
	fired      []int
	firedAt    []time.Time
	total      int
	watch      bool
}

func newWork(size int, seed int64) *work {
	w := &work{
		size:    size,
		random:  rand.New(rand.NewSource(seed)),
		order:   make([]int, size),
		time:    make([]time.Duration, size),
		timers:  make([]*time.Timer, size),
		fired:   make([]int, size),
		firedAt: make([]time.Time, size),
	}
	for i := range w.order {
		w.order[i] = i
	}
	return w
}

// fire is called by the timer's own goroutine; there is one processor, so no two run at once.
func (w *work) fire(timer int) {
	w.fired[timer]++
	w.total++
	if w.watch {
		w.firedAt[timer] = time.Now()
	}
}

// create allocates the timers, none of which is armed.
func (w *work) create() {
	for i := range w.timers {
		timer := i
		w.timers[i] = time.AfterFunc(time.Hour, func() { w.fire(timer) })
		w.timers[i].Stop()
	}
}

func (w *work) newTime(op operation, last time.Duration) time.Duration {
	switch op {
	case add:
		return 60*time.Second + time.Duration(w.random.Int63n(int64(60*time.Second)))
	case rearmLater:
		return last + 30*time.Second
	case rearmEarlier:
		return last / 2
	}
	return last
}

// prepare makes an operation on all timers.
func (w *work) prepare(op operation) {
	if w.sequential {
		for i := range w.order {
			w.order[i] = i
		}
	} else {
		w.random.Shuffle(w.size, func(i, j int) {
			w.order[i], w.order[j] = w.order[j], w.order[i]
		})
	}
	for i := range w.time {
		w.time[i] = w.newTime(op, w.time[i])
	}
}

func (w *work) arm(order []int) {
	for _, timer := range order {
		w.timers[timer].Reset(w.time[timer])
	}
}

func (w *work) stop(order []int) {
	for _, timer := range order {
		w.timers[timer].Stop()
	}
}

// cpuTime returns what all threads have used, the garbage collector's too.
func cpuTime() time.Duration {
	var ts syscall.Timespec

	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPU,
		uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		fail("clock_gettime: %v", errno)
	}
	return time.Duration(ts.Nano())
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, name+": "+format+"\n", values...)
	os.Exit(1)
}

// liveBytes returns what is in use after a collection.
func liveBytes() float64 {
	var stats runtime.MemStats

	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func (w *work) checkTimers(op operation, expected int) {
	for i, fired := range w.fired {
		if fired != expected {
			fail("after %s, timer %d has fired %d times, and not %d", operationNames[op], i,
				fired, expected)
		}
		w.fired[i] = 0
	}
	w.total = 0
}

func (w *work) operate(op operation) time.Duration {
	w.prepare(op)
	start := cpuTime()
	if op == cancel {
		w.stop(w.order)
	} else {
		w.arm(w.order)
	}
	return cpuTime() - start
}

// expireAll arms all timers and re-arms them to a later time; then it waits until all have fired.
func (w *work) expireAll() time.Duration {
	lead := 300*time.Millisecond + time.Duration(w.size)*3*time.Microsecond
	for try := 0; try < tries; try++ {
		begin := time.Now()
		last := w.armAll(begin, lead)
		if time.Since(begin) < lead {
			return w.awaitAll(begin, last)
		}
		// Some came due meanwhile. Once more, with more time.
		lead *= 2
		w.stop(w.order)
		time.Sleep(20 * time.Millisecond)
		w.total = 0
		for i := range w.fired {
			w.fired[i] = 0
		}
	}
	fail("the machine is too busy to arm all timers in time")
	return 0
}

// armAll returns the time of the last timer, from begin.
func (w *work) armAll(begin time.Time, lead time.Duration) time.Duration {
	last := time.Duration(0)

	for _, op := range []operation{add, rearmLater} {
		w.prepare(op)
		if op == rearmLater {
			lead += surelyLater
		}
		for _, timer := range w.order {
			due := lead + w.time[timer]/shorterExpire
			if last < due {
				last = due
			}
			w.timers[timer].Reset(due - time.Since(begin))
		}
	}
	return last
}

// awaitAll sleeps until all timers are due, so that they are fired in one go.
func (w *work) awaitAll(begin time.Time, last time.Duration) time.Duration {
	start := cpuTime()
	time.Sleep(last - time.Since(begin))
	// To fire a million may take it a minute, all of it processor time.
	patience := waitForLost + time.Duration(w.size)*200*time.Microsecond
	for w.total < w.size && time.Since(begin) < last+patience {
		time.Sleep(time.Millisecond)
	}
	ns := cpuTime() - start
	// What fires too often does so soon.
	time.Sleep(20 * time.Millisecond)
	return ns
}

func (w *work) round(print bool) {
	order := "random"

	if w.sequential {
		order = "sequential"
	}
	for op := add; op <= expire; op++ {
		var ns time.Duration

		runtime.GC()
		if op == expire {
			ns = w.expireAll()
			w.checkTimers(op, 1)
		} else {
			ns = w.operate(op)
			w.checkTimers(op, 0)
		}
		if print {
			fmt.Printf("%s %d %s %s %.3f\n", name, w.size, order, operationNames[op],
				float64(ns)/float64(w.size))
		}
	}
}

func measure(size int, seed int64) {
	w := newWork(size, seed)
	before := liveBytes()
	w.create()
	w.prepare(add)
	w.arm(w.order)
	fmt.Printf("%s %d - bytes %.3f\n", name, size, (liveBytes()-before)/float64(size))
	w.stop(w.order)
	w.round(false)
	w.round(true)
	w.sequential = true
	w.round(true)
}

// choose returns those timers whose number divided by of leaves rest.
func (w *work) choose(of, rest int) []int {
	var chosen []int

	for _, timer := range w.order {
		if timer%of == rest {
			chosen = append(chosen, timer)
		}
	}
	return chosen
}

// armUntil arms timers for a check, and notes when they are due.
func (w *work) armUntil(op operation, order []int, due []time.Time) {
	w.prepare(op)
	for _, timer := range order {
		w.time[timer] /= shorterCheck
		due[timer] = time.Now().Add(w.time[timer])
		w.timers[timer].Reset(w.time[timer])
		w.time[timer] *= shorterCheck
	}
}

// check is check.c in Go: does each timer fire once, and when?
func check(size int, seed int64) {
	w := newWork(size, seed)
	due := make([]time.Time, size)

	w.watch = true
	w.create()
	w.armUntil(add, w.order, due)
	w.armUntil(rearmLater, w.choose(3, 1), due)
	w.armUntil(rearmEarlier, w.choose(3, 2), due)
	cancelled := w.choose(7, 6)
	w.stop(cancelled)
	for begin := time.Now(); w.total < size-len(cancelled) && time.Since(begin) < waitForLost; {
		time.Sleep(time.Millisecond)
	}
	// Long enough for all that was cancelled, and for what fires again.
	time.Sleep(time.Second)
	w.report(due)
}

func (w *work) report(due []time.Time) {
	var late []time.Duration
	var earliest time.Duration
	early := 0

	for i, fired := range w.fired {
		cancelled := i%7 == 6
		if cancelled && fired != 0 {
			fail("timer %d was cancelled, and has fired %d times", i, fired)
		} else if !cancelled && fired != 1 {
			fail("timer %d has fired %d times", i, fired)
		}
		if cancelled {
			continue
		}
		after := w.firedAt[i].Sub(due[i])
		if after < 0 {
			early++
			if earliest < -after {
				earliest = -after
			}
			after = 0
		}
		late = append(late, after)
	}
	if early > 0 {
		fail("a timer has fired %v early", earliest)
	}
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	fmt.Printf("%s %d - fired %d\n%s %d - early %d\n", name, w.size, len(late), name, w.size, early)
	fmt.Printf("%s %d - earliest_us 0.000\n", name, w.size)
	fmt.Printf("%s %d - late_us %.3f\n", name, w.size, float64(late[len(late)/2].Nanoseconds())/1e3)
}

func main() {
	runtime.GOMAXPROCS(1)
	if len(os.Args) != 4 || (os.Args[1] != "measure" && os.Args[1] != "check") {
		fmt.Fprintln(os.Stderr, "usage: go-timer measure|check TIMERS SEED")
		os.Exit(exitUsage)
	}
	size, err := strconv.Atoi(os.Args[2])
	if err != nil || size < 1 {
		fail("%q is no number of timers", os.Args[2])
	}
	seed, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err != nil {
		fail("%q is no seed", os.Args[3])
	}
	if os.Args[1] == "measure" {
		measure(size, seed)
	} else {
		check(size, seed)
	}
}
