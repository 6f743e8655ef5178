package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// starve limits a process to a twentieth of one processor until the end of the test. If that is
// impossible it skips the test.
func starve(t *testing.T, pid int) {
	t.Helper()
	group, err := limit(t, "cpu", pid, [2]string{"cpu.cfs_period_us", "100000"}, [2]string{"cpu.cfs_quota_us", "5000"})
	if err != nil {
		t.Skipf("SKIPPED, NOTHING WAS TESTED: the processor cannot be limited by a cgroup (v1): %v", err)
	}
	t.Cleanup(func() {
		b, _ := os.ReadFile(filepath.Join(group, "cpu.stat"))
		t.Logf("the starved process: %s", strings.Join(strings.Fields(string(b)), " "))
	})
}

// limit puts a process into a new cgroup (v1) with limits: pairs of a file and a value. At the end
// of the test the process must have been killed.
func limit(t *testing.T, controller string, pid int, limits ...[2]string) (group string, err error) {
	t.Helper()
	group, err = os.MkdirTemp(filepath.Join("/sys/fs/cgroup", controller), "mortise-test-")
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { // the process has been killed before, but may still exist
		for range 100 {
			if os.Remove(group) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s is left behind", group)
	})
	for _, file := range append(limits, [2]string{"cgroup.procs", strconv.Itoa(pid)}) {
		if err := os.WriteFile(filepath.Join(group, file[0]), []byte(file[1]), 0o644); err != nil {
			return group, err
		}
	}
	return group, nil
}

// TestStarvedLeaderLosesNoSession runs a leader with almost no CPU time while other instances
// request locks as fast as they can. No session may be lost. The limit of starve alone causes gaps
// of a tenth of a second. If the machine adds gaps of a second, the test begins again, at most
// twice, because a lease of two seconds does not survive that.
func TestStarvedLeaderLosesNoSession(t *testing.T) {
	const attempts, mostGaps = 3, time.Second
	for attempt := 1; !t.Failed(); attempt++ {
		var lost []string
		var gaps time.Duration
		t.Run(fmt.Sprint("attempt ", attempt), func(t *testing.T) { lost, gaps = starvedLeader(t) })
		if len(lost) == 0 {
			return
		}
		if attempt == attempts || gaps < mostGaps {
			t.Fatalf("%s; the machine gave no processor for %v", strings.Join(lost, "; "), gaps)
		}
		t.Logf("%s, but the machine gave no processor for %v: again", strings.Join(lost, "; "), gaps)
	}
}

// starvedLeader returns the sentences about locks that were lost, and the most time for which an
// instance says that the machine gave it no processor.
func starvedLeader(t *testing.T) (lost []string, gaps time.Duration) {
	f := startFleet(t)
	leader := f.leader()
	var mine []held
	for i, n := range f.instances {
		mine = append(mine, n.lock(fmt.Sprint("held by ", i)))
	}
	starve(t, f.instances[leader].cmd.Process.Pid)
	t.Cleanup(func() { f.kill(leader) })
	var grants atomic.Int64
	end := time.Now().Add(3 * leaseTTL)
	var load sync.WaitGroup
	for worker := range 8 {
		load.Go(func() {
			n := f.instances[(leader+1+worker%2)%3]
			for time.Now().Before(end) {
				n.lock(fmt.Sprint("load ", worker)).unlock()
				grants.Add(1)
			}
		})
	}
	load.Wait()
	t.Logf("%d grants in %v; the leader was node-%d, now it is node-%d", grants.Load(), 3*leaseTTL, leader, f.leader())
	for i, h := range mine {
		_, reply := h.n.ask(request{Op: "err", Lock: h.id})
		if a := get(t, "err", reply); a.Err != "" {
			lost = append(lost, fmt.Sprintf("node-%d (the starved one is node-%d) has lost its lock: %s", i, leader, a.Err))
		}
		_, reply = h.n.ask(request{Op: "status"})
		gaps = max(gaps, get(t, "status", reply).Starved)
	}
	if grants.Load() == 0 {
		t.Error("nothing was granted")
	}
	return lost, gaps
}
