package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

const diskLookEvery = 2 * time.Second

func diskWords(state mortise.DiskState) string {
	return map[mortise.DiskState]string{
		mortise.DiskFailed: "its disk has failed", mortise.DiskHung: "its disk does not answer",
		mortise.DiskRemoved: "its directory was removed or replaced", mortise.DiskLow: "its disk is almost full",
		mortise.DiskNoFiles: "its process has no free file descriptors",
	}[state]
}

type errorLines struct {
	slog.Handler
	mu    *sync.Mutex
	lines *[]string
	stray *bool // set if the log says that the voters answer and none is elected
}

func (h errorLines) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h errorLines) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	if r.Level >= slog.LevelError {
		*h.lines = append(*h.lines, r.Message)
	}
	*h.stray = *h.stray || strings.Contains(r.Message, "no leader has been elected")
	h.mu.Unlock()
	return h.Handler.Handle(ctx, r)
}

// faultyFleet is a durable fleet of three nodes whose disks can fail. It collects the error lines
// of each node.
type faultyFleet struct {
	*fleet
	root  string
	disks []*disk
	lines [3][]string
	stray [3]bool
	mu    sync.Mutex
}

func startFaulty(t *testing.T) *faultyFleet {
	f := &faultyFleet{fleet: newFleet(t), root: t.TempDir()}
	for i := range 3 {
		d := &disk{FS: storage.OSFS()}
		e, c := f.world(i), durableConfig(f.fleet, f.root, i, i)
		e.Files = d
		c.Logger = slog.New(errorLines{c.Logger.Handler(), &f.mu, &f.lines[i], &f.stray[i]})
		n, err := start(t.Context(), c, e)
		if err != nil {
			t.Fatal(err)
		}
		f.nodes, f.disks = append(f.nodes, n), append(f.disks, d)
	}
	f.ready()
	return f
}

// health calls Health on every node. It fails the test if an answer says that any one instance
// may be stopped, or if an answer does not contain all of the texts.
func (f *faultyFleet) health(texts ...string) {
	f.t.Helper()
	for i, n := range f.nodes {
		ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
		h, err := n.Health(ctx)
		cancel()
		if err != nil {
			f.t.Errorf("node %d: %v", i, err)
			continue
		}
		if strings.HasPrefix(h.Advice, "any one instance may be stopped") {
			f.t.Errorf("node %d says that any one instance may be stopped:\n%v", i, h)
		}
		for _, text := range texts {
			if !strings.Contains(h.String(), text) {
				f.t.Errorf("node %d does not say %q:\n%v", i, text, h)
			}
		}
	}
}

// breaks lists the faults of a disk, and the state and cause that Status must report for each.
var breaks = map[string]struct {
	fault func(d *disk)
	state mortise.DiskState
	cause string
}{
	"ENOSPC": {func(d *disk) { d.cause = syscall.ENOSPC; d.broken.Store(true) }, mortise.DiskFailed,
		"no space left on device"},
	"EPERM": {func(d *disk) { d.cause = syscall.EPERM; d.broken.Store(true) }, mortise.DiskFailed,
		"operation not permitted"},
	"EIO": {func(d *disk) { d.cause = syscall.EIO; d.broken.Store(true) }, mortise.DiskFailed, "input/output error"},
	"EMFILE": {func(d *disk) { d.cause = syscall.EMFILE; d.broken.Store(true) }, mortise.DiskNoFiles,
		"too many open files"},
	"hung": {func(d *disk) { d.delay.Store(int64(time.Minute)) }, mortise.DiskHung, ""},
}

// either returns both values, and at a merge only the one that belongs to the name.
func either[T any](name string, values ...T) []T {
	if testing.Short() {
		return values[len(name)%2:][:1]
	}
	return values
}

// TestABrokenDiskIsTold breaks the disk of one voter. Every instance must report the fault, the log
// must have one ERROR line, and no lock may be lost.
func TestABrokenDiskIsTold(t *testing.T) {
	slow.UnderRace(t)
	for name, b := range breaks {
		for _, who := range either(name, "leader", "follower") {
			t.Run(name+" "+who, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := startFaulty(t)
					victim := f.leader()
					if who == "follower" {
						victim = f.follower()
					}
					mine := f.lock(victim, "k")
					began := time.Now()
					b.fault(f.disks[victim])
					other := f.lock((victim+1)%3, "makes every voter write")
					time.Sleep(10 * time.Second)
					s := f.nodes[victim].Status()
					switch {
					case s.Disk == nil:
						t.Errorf("Status says nothing about the disk:\n%v", s)
					case s.Disk.State != b.state || !strings.Contains(s.Disk.Cause, b.cause) || s.Disk.Remedy == "":
						t.Errorf("Status says: %v", *s.Disk)
					case s.Disk.Since.Before(began) || s.Disk.Since.After(began.Add(7*time.Second)):
						t.Errorf("the disk is broken since %v, and Status says since %v", began, s.Disk.Since)
					case !strings.Contains(s.String(), s.Disk.String()):
						t.Errorf("the text of Status does not say it:\n%v", s)
					}
					f.health(fmt.Sprintf("node-%d answers and takes locks; %s", victim, diskWords(b.state)))
					if err := errors.Join(mine.Err(), other.Err()); err != nil {
						t.Errorf("a broken disk cost a lock: %v", err)
					}
					f.mu.Lock()
					if n := len(f.lines[victim]); n != 1 {
						t.Errorf("one failure is %d ERROR lines: %q", n, f.lines[victim])
					}
					f.mu.Unlock()
					f.disks[victim].broken.Store(false)
					f.disks[victim].delay.Store(0)
					unlock(t, mine)
					unlock(t, other)
					// The hung call has returned, and the old replica is removed.
					time.Sleep(4 * time.Minute)
					if s := f.nodes[victim].Status(); !s.Votes || s.Disk != nil || len(s.FaultyDisks) != 0 {
						t.Errorf("the disk is well, and the instance does not vote again by itself:\n%v", s)
					}
					f.nothingLeft()
				})
			})
		}
	}
}

// TestADiskThatStaysFull keeps a disk full. Each minute the instance starts an empty replica, which
// must not count as the end of the fault.
func TestADiskThatStaysFull(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFaulty(t)
		victim := f.follower()
		mine := f.lock(victim, "k")
		f.disks[victim].cause = syscall.ENOSPC
		f.disks[victim].broken.Store(true)
		other := f.lock((victim+1)%3, "makes every voter write")
		time.Sleep(10 * time.Second)
		f.disks[victim].full.Store(true)
		// The disk has room for the log of a replica without state.
		f.disks[victim].broken.Store(false)
		first := f.nodes[victim].Status().Disk
		if first == nil {
			t.Fatalf("Status says nothing about the disk:\n%v", f.nodes[victim].Status())
		}
		for range 5 * 60 * 10 {
			time.Sleep(time.Second / 10)
			if d := f.nodes[victim].Status().Disk; d == nil || d.State != mortise.DiskFailed ||
				!d.Since.Equal(first.Since) {
				t.Fatalf("the disk is full since %v, and Status says: %v", first.Since, d)
			}
		}
		f.mu.Lock()
		if n := len(f.lines[victim]); n != 1 {
			t.Errorf("one failure is %d ERROR lines: %q", n, f.lines[victim])
		}
		f.mu.Unlock()
		f.disks[victim].full.Store(false)
		time.Sleep(4 * time.Minute)
		if s := f.nodes[victim].Status(); !s.Votes || s.Disk != nil || len(s.FaultyDisks) != 0 {
			t.Errorf("there is room again, and the instance does not vote again by itself:\n%v", s)
		}
		if err := errors.Join(mine.Err(), other.Err()); err != nil {
			t.Errorf("a full disk cost a lock: %v", err)
		}
		unlock(t, mine)
		unlock(t, other)
		f.nothingLeft()
	})
}

// TestAllDisksBroken breaks the disks of a majority. Every instance must name the broken disks as
// the reason why no leader is elected.
func TestAllDisksBroken(t *testing.T) {
	slow.UnderRace(t)
	for name, b := range breaks {
		if testing.Short() && b.state == mortise.DiskFailed && name != "ENOSPC" {
			continue // TestABrokenDiskIsTold has all
		}
		for _, healthy := range either(name, 0, 1) {
			t.Run(fmt.Sprintf("%s but %d", name, healthy), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := startFaulty(t)
					// The group can no longer write anything, so its history is not judged.
					f.unjudged = true
					for _, d := range f.disks[healthy:] {
						b.fault(d)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
					defer cancel()
					for i, n := range f.nodes {
						go func() { _, _ = n.Lock(ctx, fmt.Sprint("makes them write", i)) }()
					}
					<-ctx.Done()
					time.Sleep(5 * time.Second)
					told := 0
					for i, n := range f.nodes {
						s := n.Status()
						if s.Disk != nil && s.Disk.State == b.state && i >= healthy {
							told++
						}
						if !strings.Contains(s.Waiting, diskWords(b.state)) ||
							strings.Contains(s.Waiting, "no leader has been elected") {
							t.Errorf("node %d: %v", i, s.Waiting)
						}
					}
					f.mu.Lock()
					for i, said := range f.stray {
						if said {
							t.Errorf("node %d logs that no voter is elected, and not that their disks do not work", i)
						}
					}
					f.mu.Unlock()
					// An instance with nothing to write must report its disk too.
					if want := 3 - healthy; told != want {
						t.Errorf("%d instances say that their disk is broken, want %d", told, want)
					}
					for _, d := range f.disks {
						d.broken.Store(false)
						d.delay.Store(0)
					}
					time.Sleep(2 * time.Minute) // the hung calls have returned
				})
			})
		}
	}
}

func TestAnIdleVoterNoticesItsDisk(t *testing.T) {
	slow.UnderRace(t)
	for name, b := range breaks {
		if b.state == mortise.DiskNoFiles {
			continue // a voter that writes nothing needs no descriptor, and its disk is well
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFaulty(t)
				victim := f.follower()
				mine := f.lock(victim, "k")
				time.Sleep(time.Minute)
				term := f.nodes[victim].Status().Term
				b.fault(f.disks[victim])
				time.Sleep(7 * diskLookEvery) // a check that writes begins within 10 s, and counts as hung after 3 s
				s := f.nodes[victim].Status()
				if s.Disk == nil || s.Disk.State != b.state || !strings.Contains(s.Disk.Cause, b.cause) ||
					strings.Contains(s.Disk.Cause, "raftlog") || !s.Votes {
					t.Errorf("an idle voter with a broken disk says:\n%v", s)
				}
				f.health(fmt.Sprintf("node-%d answers and takes locks; %s", victim, diskWords(b.state)))
				f.disks[victim].broken.Store(false)
				f.disks[victim].delay.Store(0)
				time.Sleep(time.Minute + 2*diskLookEvery) // the hung call has returned
				if s = f.nodes[victim].Status(); s.Disk != nil || !s.Votes || s.Term != term {
					t.Errorf("the disk is well, and the voter says:\n%v", s)
				}
				f.mu.Lock()
				if n := len(f.lines[victim]); n != 1 {
					t.Errorf("one fault is %d ERROR lines: %q", n, f.lines[victim])
				}
				f.mu.Unlock()
				unlock(t, mine)
				f.nothingLeft()
			})
		})
	}
}

// TestARemovedDirectoryIsNoticed checks that a voter without its directory hands over its
// leadership and its vote if the other voters are a majority.
func TestARemovedDirectoryIsNoticed(t *testing.T) {
	slow.UnderRace(t)
	for _, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFaulty(t)
				victim := f.leader()
				if who == "follower" {
					victim = f.follower()
				}
				mine, other := f.lock(victim, "k"), f.lock((victim+1)%3, "l")
				dir := f.nodes[victim].config.Dir
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				time.Sleep(6 * time.Second) // a check and its consequences
				s := f.nodes[victim].Status()
				if s.Disk == nil || s.Disk.State != mortise.DiskRemoved || strings.Contains(s.Disk.Cause, "raftlog") {
					t.Errorf("Status does not say that the directory is gone:\n%v", s)
				}
				if s.Votes || s.Leading {
					t.Errorf("an instance without its directory votes on:\n%v", s)
				}
				f.health(fmt.Sprintf("node-%d answers and takes locks; its directory was removed", victim))
				if err := errors.Join(mine.Err(), other.Err()); err != nil {
					t.Errorf("a removed directory cost a lock: %v", err)
				}
				unlock(t, mine)
				f.close(victim)
				f.nodes[victim] = f.restart(victim)
				f.ready()
				time.Sleep(3 * time.Minute)
				if s := f.nodes[victim].Status(); !s.Votes || s.Disk != nil {
					t.Errorf("after a restart it does not vote again:\n%v", s)
				}
				unlock(t, other)
				f.nothingLeft()
			})
		})
	}
}

func (f *faultyFleet) restart(i int) *node {
	n, err := start(f.t.Context(), durableConfig(f.fleet, f.root, i, i), f.world(i))
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// TestTwoRemovedDirectories removes the directories of two of three voters. Both must keep their
// votes.
func TestTwoRemovedDirectories(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFaulty(t)
		mine := f.lock(0, "k")
		for _, i := range []int{1, 2} {
			if err := os.RemoveAll(f.nodes[i].config.Dir); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			time.Sleep(3 * time.Second)
			f.health("node-1 answers and takes locks", "node-2 answers and takes locks")
		}
		if err := mine.Err(); err != nil {
			t.Error(err)
		}
		for i := range f.nodes {
			unlock(t, f.lock(i, "another"))
		}
		unlock(t, mine)
		f.nothingLeft()
	})
}

func TestAFullDiskIsForetold(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFaulty(t)
		f.disks[1].room.Store(10 << 20)
		time.Sleep(5 * time.Second)
		if s := f.nodes[1].Status(); s.Disk == nil || s.Disk.State != mortise.DiskLow || !s.Votes ||
			!strings.Contains(s.Disk.Cause, "10 MiB") {
			t.Errorf("Status does not warn:\n%v", s)
		}
		for i, n := range f.nodes {
			if h, err := n.Health(t.Context()); err != nil ||
				!strings.Contains(h.String(), "disk of node-1: its disk is almost full") {
				t.Errorf("node %d: %v\n%v", i, err, h)
			} else if !strings.HasPrefix(h.Advice, "make room before you stop any other instance: node-1: 10 MiB") {
				t.Errorf("node %d: the next safe step is %q", i, h.Advice)
			}
		}
		f.disks[1].room.Store(1 << 30)
		time.Sleep(5 * time.Second)
		for i, n := range f.nodes {
			if s := n.Status(); s.Disk != nil || len(s.FaultyDisks) != 0 {
				t.Errorf("node %d still warns:\n%v", i, s)
			}
		}
	})
}
