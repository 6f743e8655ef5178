package process

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/proof"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

const (
	restartsEnv = "MORTISE_RESTARTS" // how often a process ends in each way, and how often it is stopped; default 1
	restartTTL  = time.Minute
	// The medians from the start of the next process to the grant to a waiter, if all instances
	// answer, and if one of them is silent.
	restartGoal       = 300 * time.Millisecond
	silentRestartGoal = 2 * time.Second
	memoryLimit       = 64 << 20 // of a process that needs more and more; what it has is not counted
)

func restartRounds() int {
	n, _ := strconv.Atoi(os.Getenv(restartsEnv))
	return max(n, 1)
}

// TestARestartEndsItsPredecessor ends the process of a holder in different ways and starts it
// again with the same directory, on a disk and in memory. The lock is granted long before the TTL
// has passed.
func TestARestartEndsItsPredecessor(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, dir string) { restarts(t, &fleet{dir: dir, ttl: restartTTL}) })
}

// TestARestartInMemoryEndsItsPredecessor does the same for instances in memory, with run
// directories.
func TestARestartInMemoryEndsItsPredecessor(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, dir string) { restarts(t, &fleet{dir: dir, run: true, ttl: restartTTL}) })
}

// eachFileSystem runs a test in a directory on a disk, and in one in memory.
func eachFileSystem(t *testing.T, test func(t *testing.T, dir string)) {
	for name, parent := range map[string]string{"disk": "", "tmpfs": "/dev/shm"} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp(cmp.Or(parent, t.TempDir()), "mortise")
			if err != nil {
				proof.Skip(t, "no directory: %v", err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			d, err := storage.OpenRun(filepath.Join(dir, "a"), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _ = d.Close(); !d.Proves() {
				proof.Skip(t, "the file system of %s proves nothing", dir)
			}
			test(t, dir)
		})
	}
}

// death is a way in which a process ends.
type death struct {
	name string
	end  func(f *fleet, n *instance) error
}

func deaths() []death {
	signal := func(s syscall.Signal) func(*fleet, *instance) error {
		return func(_ *fleet, n *instance) error { return n.cmd.Process.Signal(s) }
	}
	return []death{
		{"kill -9", signal(syscall.SIGKILL)}, {"SIGSEGV", signal(syscall.SIGSEGV)}, {"SIGABRT", signal(syscall.SIGABRT)},
		{"panic", func(_ *fleet, n *instance) error { n.ask(request{Op: "panic"}); return nil }},
		{"OOM kill", func(f *fleet, n *instance) error {
			_, err := limit(f.t, "memory", n.cmd.Process.Pid, [2]string{"memory.limit_in_bytes", fmt.Sprint(memoryLimit)})
			if err == nil {
				n.ask(request{Op: "memory"})
			}
			return err
		}},
	}
}

func restarts(t *testing.T, f *fleet) {
	startFleetWith(t, f)
	leads, last := f.leader(), uint64(0)
	holder, silent := (leads+1)%3, f.instances[(leads+2)%3]
	var all []time.Duration
	for _, d := range deaths() {
		var took []time.Duration
		for range restartRounds() {
			one, err := f.restart(holder, leads, d, &last)
			if err != nil {
				t.Logf("no %s here: %v", d.name, err)
				break
			}
			took = append(took, one)
		}
		if len(took) > 0 {
			t.Logf("%s: %s", d.name, quantiles(took))
		}
		all = append(all, took...)
	}
	var slow time.Duration
	if !f.run { // in memory the holder's vote has ended, and no majority answers
		silent.signal(syscall.SIGSTOP)
		slow, _ = f.restart(holder, leads, deaths()[0], &last)
		silent.signal(syscall.SIGCONT)
	}
	t.Logf("from the start of the next process to the grant: %s (goal of the median %v); with a silent voter %v "+
		"(goal %v, and 0 s in memory)", quantiles(all), restartGoal, slow, silentRestartGoal)
	if all[len(all)/2] > slack*restartGoal || slow > slack*silentRestartGoal {
		t.Error("that is more than five times the goal")
	}
}

// quantiles sorts times and describes them.
func quantiles(took []time.Duration) string {
	slices.Sort(took)
	at := func(part float64) time.Duration {
		return took[int(part*float64(len(took)-1)+0.5)].Round(time.Millisecond)
	}
	return fmt.Sprintf("of %d the median %v, 99%% at most %v, all at most %v", len(took), at(0.5), at(0.99), at(1))
}

// restart ends the process of a holder in one way, starts it again, and returns the time from that
// start to the grant to the instance that waits. If the process cannot end so here, it returns an
// error.
func (f *fleet) restart(holder, waits int, d death, last *uint64) (took time.Duration, err error) {
	f.t.Helper()
	n, waiter := f.instances[holder], f.instances[waits]
	mine := n.lock("k")
	if err := d.end(f, n); err != nil {
		mine.unlock()
		return 0, err
	}
	_, granted := waiter.ask(request{Op: "lock", Key: "k"})
	_ = n.cmd.Wait()
	began := time.Now()
	f.start(holder)
	next := get(f.t, "lock of the waiter", granted)
	took = time.Since(began)
	if next.Err != "" || mine.token <= *last || next.Token <= mine.token {
		f.t.Errorf("tokens %d and %d after %d: %s", mine.token, next.Token, *last, next.Err)
	}
	*last = next.Token
	if reason := waiter.audited(); !strings.Contains(reason, ended) {
		f.t.Errorf("%s: the audit log ends with %q", d.name, reason)
	}
	held{waiter, next.ID, next.Token}.unlock()
	return took, nil
}

// ended is in the reason of the end of a session that a later start has shown.
const ended = "its node has ended, as "

// audited returns the reason of the last event in the audit log.
func (n *instance) audited() string {
	n.t.Helper()
	_, audit := n.ask(request{Op: "audit"})
	return get(n.t, "audit", audit).Audited
}

// TestAStoppedProcessHasNotEnded stops the process of a holder, starts another one with its
// directory, and lets the holder go on. The other start is refused, and the lock stays held.
func TestAStoppedProcessHasNotEnded(t *testing.T) {
	for name, run := range map[string]bool{"with a directory": false, "with a run directory": true} {
		t.Run(name, func(t *testing.T) {
			eachFileSystem(t, func(t *testing.T, dir string) { stops(t, &fleet{dir: dir, run: run, ttl: restartTTL}) })
		})
	}
}

func stops(t *testing.T, f *fleet) {
	startFleetWith(t, f)
	leads, elsewhere := f.leader(), freeAddresses(t, 1)[0]
	holder, waiter := f.instances[(leads+1)%3], f.instances[leads]
	mine := holder.lock("k")
	_, granted := waiter.ask(request{Op: "lock", Key: "k"})
	for range restartRounds() {
		holder.signal(syscall.SIGSTOP)
		out, err := f.command(holder.name, elsewhere).CombinedOutput()
		holder.signal(syscall.SIGCONT)
		if err == nil || !strings.Contains(string(out), "is open in another process") {
			t.Fatalf("a second start with the directory: %v\n%s", err, out)
		}
		_, reply := holder.ask(request{Op: "err", Lock: mine.id})
		if a := get(t, "err", reply); a.Err != "" || len(granted) > 0 {
			t.Fatalf("the holder was stopped for a moment, and has lost its lock: %s", a.Err)
		}
	}
	if reason := waiter.audited(); strings.Contains(reason, ended) {
		t.Errorf("a session has ended: %s", reason)
	}
	mine.unlock()
	next := get(t, "lock of the waiter", granted)
	held{waiter, next.ID, next.Token}.unlock()
}
