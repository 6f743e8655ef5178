package process

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	restartsEnv = "MORTISE_RESTARTS" // how often TestARestartEndsItsPredecessor ends a process; default 4
	restartTTL  = time.Minute
	// The medians from the start of the next process to the grant to a waiter, if all instances
	// answer, and if one of them is silent.
	restartGoal       = 300 * time.Millisecond
	silentRestartGoal = 2 * time.Second
)

// TestARestartEndsItsPredecessor ends the process of a holder in different ways and starts it
// again with the same directory, on a disk and in memory. The lock is granted long before the TTL
// has passed.
func TestARestartEndsItsPredecessor(t *testing.T) { restarts(t, false) }

// TestARestartInMemoryEndsItsPredecessor does the same for instances in memory, with run
// directories.
func TestARestartInMemoryEndsItsPredecessor(t *testing.T) { restarts(t, true) }

func restarts(t *testing.T, run bool) {
	rounds := 4
	if n, err := strconv.Atoi(os.Getenv(restartsEnv)); err == nil {
		rounds = n
	}
	for _, root := range []string{t.TempDir(), memoryDir(t)} {
		var file unix.Statfs_t
		if err := unix.Statfs(root, &file); err != nil {
			t.Fatal(err)
		}
		f := startFleetWith(t, &fleet{dir: root, run: run, ttl: restartTTL})
		leads, last := f.leader(), uint64(0)
		holder, silent := (leads+1)%3, f.instances[(leads+2)%3]
		var took []time.Duration
		for i := range rounds {
			took = append(took, f.restart(holder, leads, i, &last))
		}
		var slow time.Duration
		if !run { // in memory the holder's vote has ended, and no majority answers
			silent.signal(syscall.SIGSTOP)
			slow = f.restart(holder, leads, 0, &last)
			silent.signal(syscall.SIGCONT)
		}
		slices.Sort(took)
		t.Logf("file system %x: from the start of the next process to the grant: median %v, at most %v (goal %v); with a "+
			"silent voter %v (goal %v, and 0 s in memory)", file.Type, took[len(took)/2], took[len(took)-1], restartGoal, slow,
			silentRestartGoal)
		if took[len(took)/2] > slack*restartGoal || slow > slack*silentRestartGoal {
			t.Error("that is more than five times the goal")
		}
	}
}

// restart ends the process of a holder in the way with number how, starts it again, and returns the
// time from that start to the grant to the instance that waits.
func (f *fleet) restart(holder, waits, how int, last *uint64) time.Duration {
	f.t.Helper()
	n, waiter := f.instances[holder], f.instances[waits]
	mine := n.lock("k")
	_, granted := waiter.ask(request{Op: "lock", Key: "k"})
	switch how % 4 {
	case 0:
		n.signal(syscall.SIGKILL)
	case 1:
		n.signal(syscall.SIGSEGV)
	case 2:
		n.signal(syscall.SIGABRT)
	case 3:
		n.ask(request{Op: "panic"})
	}
	_ = n.cmd.Wait()
	began := time.Now()
	f.start(holder)
	next := get(f.t, "lock of the waiter", granted)
	took := time.Since(began)
	if next.Err != "" || mine.token <= *last || next.Token <= mine.token {
		f.t.Errorf("tokens %d and %d after %d: %s", mine.token, next.Token, *last, next.Err)
	}
	*last = next.Token
	_, audit := waiter.ask(request{Op: "audit"})
	if a := get(f.t, "audit", audit); !strings.Contains(a.Audited, "its node has ended, as ") {
		f.t.Errorf("the audit log ends with %q", a.Audited)
	}
	held{waiter, next.ID, next.Token}.unlock()
	return took
}

// memoryDir returns a directory in memory. It fails the test if this machine has none, because a
// proof that is not tested is none.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "mortise")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
