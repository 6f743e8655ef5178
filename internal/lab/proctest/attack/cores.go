//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// The attackers have one processor, and so has everything that the quiet phase is measured beside.
//
// All processes of the campaign share one machine. If the attackers' process only took processor
// time, the legitimate clients would already lose a large part of the rate that they have alone: on
// two processors up to a half. That loss says nothing about the instances, because a real attacker
// has a machine of its own. So a neutral process runs in the quiet phase. It computes without end,
// on one processor at the priority of the attackers, and attacks nothing. The share of that quiet
// rate shows what the attacks make the instances and the agent do. The rate without the neutral
// process is measured before, and printed as well.
//
// With -own, the attackers have one processor for themselves, and all other processes share the
// others, also in the quiet phase, which then has no neutral process. This is stricter on a small
// machine: with two processors, the attackers have as much as three instances, an agent and the
// clients have together.

// cores are the processors of the machine that this process may use, divided.
type cores struct {
	all, attackers, others unix.CPUSet
}

// divide gives the last processor to the attackers. With one processor nothing is divided.
func divide() (c cores, err error) {
	if err := unix.SchedGetaffinity(0, &c.all); err != nil {
		return c, fmt.Errorf("the processors of this process: %w", err)
	}
	c.others = c.all
	if c.all.Count() < 2 {
		c.attackers = c.all
		return c, nil
	}
	last := 0
	for n := range len(c.all) * strconv.IntSize {
		if c.all.IsSet(n) {
			last = n
		}
	}
	c.attackers.Set(last)
	c.others.Clear(last)
	return c, nil
}

// confine makes the processes run on the given processors only, with all threads that they have and
// will have.
func confine(to *unix.CPUSet, pids ...int) error {
	for _, pid := range pids {
		done := map[string]bool{}
		for before := -1; before < len(done); { // a thread may have begun another meanwhile
			before = len(done)
			threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
			if err != nil {
				return err
			}
			for _, thread := range threads {
				id, _ := strconv.Atoi(thread.Name()) // a thread has a number
				if err := unix.SchedSetaffinity(id, to); err != nil && !errors.Is(err, unix.ESRCH) {
					return fmt.Errorf("confine process %d: %w", pid, err)
				}
				done[thread.Name()] = true
			}
		}
	}
	return nil
}

// spin computes until ctx ends.
func spin(ctx context.Context) error {
	for n := uint64(1); ctx.Err() == nil; {
		for range 100_000 {
			n = n*6364136223846793005 + 1442695040888963407
		}
	}
	return nil
}

// startOn calls start, which starts a process, so that the process runs on the given processors.
func startOn(on *unix.CPUSet, start func() error) error {
	runtime.LockOSThread() // a process inherits the processors of the thread that starts it
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, on); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }() // it was possible before
	return start()
}
