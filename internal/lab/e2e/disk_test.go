package e2e

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/raftlog/storage"
)

// disk is the file system of one node. It counts syncs. A test can make syncs fail or take longer.
type disk struct {
	storage.FS
	syncs  atomic.Int64
	broken atomic.Bool
	// full means that there is room only for the log, and not for a snapshot.
	full  atomic.Bool
	cause error        // the error of Sync on a broken disk; nil means errDisk
	room  atomic.Int64 // the remaining bytes; zero means no limit
	delay atomic.Int64 // duration of each sync, as a time.Duration
}

type diskFile struct {
	storage.File
	disk     *disk
	snapshot bool
}

var errDisk = errors.New("the disk is broken")

func (d *disk) Create(path string) (storage.File, error) { return d.wrap(path, d.FS.Create) }
func (d *disk) Open(path string) (storage.File, error)   { return d.wrap(path, d.FS.Open) }

func (d *disk) wrap(path string, open func(string) (storage.File, error)) (storage.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return diskFile{f, d, strings.HasPrefix(filepath.Base(path), "snap-")}, nil
}

func (f diskFile) WriteAt(p []byte, at int64) (int, error) {
	if f.snapshot && f.disk.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.WriteAt(p, at)
}

func (d *disk) Free(dir string) (uint64, bool) {
	if room := d.room.Load(); room != 0 {
		return uint64(room), true
	}
	return d.FS.Free(dir)
}

func (f diskFile) Sync() error {
	f.disk.syncs.Add(1)
	if f.disk.broken.Load() {
		return cmp.Or(f.disk.cause, errDisk)
	}
	time.Sleep(time.Duration(f.disk.delay.Load()))
	return f.File.Sync()
}

func startDurable(t *testing.T) (*fleet, []*disk) {
	root := t.TempDir()
	f := newFleet(t)
	var disks []*disk
	for i := range 3 {
		d := &disk{FS: storage.OSFS()}
		e := f.world(i)
		e.Files = d
		n, err := start(t.Context(), durableConfig(f, root, i, i), e)
		if err != nil {
			t.Fatal(err)
		}
		f.nodes, disks = append(f.nodes, n), append(disks, d)
	}
	f.ready()
	return f, disks
}

// TestDurableLockCostsOneSync checks that a lock costs one log entry, and one sync on each voter.
func TestDurableLockCostsOneSync(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, disks := startDurable(t)
		unlock(t, f.lock(f.follower(), "warm"))
		// By now every replica knows that the last entry is committed.
		time.Sleep(200 * time.Millisecond)
		for range 10 {
			var before [3]int64
			for i, d := range disks {
				before[i] = d.syncs.Load()
			}
			l := f.lock(f.follower(), "k")
			time.Sleep(200 * time.Millisecond)
			for i, d := range disks {
				if n := d.syncs.Load() - before[i]; n != 1 {
					t.Errorf("a Lock cost %d syncs on node %d, want 1", n, i)
				}
			}
			unlock(t, l)
			time.Sleep(200 * time.Millisecond)
		}
	})
}

func TestBrokenDiskCostsOnlyTheVote(t *testing.T) {
	slow.UnderRace(t)
	for _, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f, disks := startDurable(t)
				victim := f.leader()
				if who == "follower" {
					victim = f.follower()
				}
				mine := f.lock(victim, "k")
				disks[victim].broken.Store(true)
				other := f.lock((victim+1)%3, "makes every voter write")
				time.Sleep(10 * time.Second)
				disks[victim].broken.Store(false)
				if s := f.nodes[victim].Status(); s.Votes || s.Err != nil {
					t.Errorf("a voter whose disk has failed once must not vote, and the instance go on:\n%v", s)
				}
				if err := errors.Join(mine.Err(), other.Err()); err != nil {
					t.Errorf("a broken disk cost a lock: %v", err)
				}
				unlock(t, mine)
				unlock(t, other)
				unlock(t, f.lock(victim, "another"))
				f.nothingLeft()
			})
		})
	}
}

// TestHungDiskOfTheLeader checks that a leader whose disk hangs loses its leadership. Raft alone
// would not end the leadership: the followers commit entries, but the leader answers no requests.
func TestHungDiskOfTheLeader(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, disks := startDurable(t)
		leader := f.leader()
		mine := f.lock((leader+1)%3, "k")
		disks[leader].delay.Store(int64(time.Minute))
		hung := time.Now()
		other := f.lock((leader+2)%3, "another")
		took := time.Since(hung)
		t.Logf("from the hanging of the leader's disk to the next grant: %v", took)
		if took > 2*failoverLimit {
			t.Errorf("it took %v, more than two failovers", took)
		}
		if err := mine.Err(); err != nil {
			t.Errorf("a hung disk cost a lock: %v", err)
		}
		disks[leader].delay.Store(0)
		unlock(t, mine)
		unlock(t, other)
		time.Sleep(2 * time.Minute)
		f.nothingLeft()
	})
}

// A daemon starts with a relative directory, and then changes its working directory. The directory
// is checked every 2 s, and written to every 10 s.
func TestDirIsFoundAfterAChangeOfTheWorkingDirectory(t *testing.T) {
	slow.UnderRace(t)
	base, elsewhere := t.TempDir(), t.TempDir()
	t.Chdir(base)
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		c := f.config(0, 1)
		c.Dir = "data"
		f.start(0, c)
		f.ready()
		held := f.lock(0, "k")
		if err := os.Chdir(elsewhere); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if fault := f.nodes[0].Status().Disk; fault != nil {
			t.Errorf("the directory was lost: %v", fault)
		}
		if err := held.Err(); err != nil {
			t.Errorf("the lock was lost: %v", err)
		}
		unlock(t, held)
		f.close(0)
		f.start(0, c) // it resolves "data" again: this is another, empty directory
		f.ready()
	})
	for _, dir := range []string{base, elsewhere} {
		if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
			t.Error(err)
		}
	}
}
