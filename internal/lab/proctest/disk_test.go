//go:build linux

package proctest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

const (
	disksEnv = "MORTISE_DISKS" // rounds for each fault; default 2

	// The time within which Status names a fault, if data is written after the fault.
	diskNoticed = 5 * time.Second
	growFor     = time.Second / 4 // how long one request to grow runs
	noRoom      = "no space left on device"
	// Status promises a vote within this time after the repair of a disk.
	votesAgain = 2 * time.Minute
)

type disk struct {
	t          *testing.T
	dir, image string
	loop       string
}

type diskFault struct {
	name        string
	state       mortise.DiskState
	make        func(d *disk)
	spoil, mend func(d *disk)
	restart     bool   // whether the instance must be restarted, as its Status says
	cause       string // part of the text of Status
	// whether the test puts data and spoils the disk repeatedly until all instances report the fault
	grow bool
}

// diskFaults lists the five faults. The kernels of test machines often lack a device mapper, so a
// broken disk is a loop device whose image was truncated.
var diskFaults = []diskFault{
	{name: "full", state: mortise.DiskFailed, make: (*disk).small, spoil: (*disk).fill, mend: (*disk).empty,
		cause: noRoom, grow: true},
	{name: "read-only", state: mortise.DiskFailed, make: (*disk).device, spoil: (*disk).readOnly,
		mend: (*disk).repair, restart: true},
	{name: "removed", state: mortise.DiskRemoved, make: func(*disk) {}, spoil: (*disk).remove, mend: func(*disk) {},
		restart: true},
	{name: "hung", state: mortise.DiskHung, make: (*disk).device, spoil: (*disk).freeze, mend: (*disk).thaw},
	{name: "broken", state: mortise.DiskFailed, make: (*disk).device, spoil: (*disk).cut, mend: (*disk).replace,
		restart: true},
}

// TestDisks breaks the disk of one of three voters in each way. The other voters must continue,
// and all three must name the faulty disk. After the repair, and the restart if Status demands
// one, the faulty voter must vote again.
func TestDisks(t *testing.T) {
	begin(t, whole)
	for _, f := range diskFaults {
		t.Run(f.name, func(t *testing.T) {
			begin(t, whole)
			w, disks, fleet := diskWorld(t, f.make)
			for round := range times(t, disksEnv, 2) {
				ill := w.leader(fleet...)
				if round%2 == 1 {
					ill = without(fleet, ill)[0]
				}
				fleet = w.diskRound(f, disks[ill.name], ill, fleet)
			}
			w.verdict(slack * readyTime)
		})
	}
}

// TestAllDisksFull fills the disks of all voters. When two voters report full disks, no lock is
// granted. Every instance must then name both disks, and say that both voters have to be restarted.
func TestAllDisksFull(t *testing.T) {
	begin(t, whole)
	w, disks, fleet := diskWorld(t, (*disk).small)
	w.lose(fleet...)
	began := time.Now()
	stop := w.keepFull(fleet[0], slices.Collect(maps.Values(disks))...)
	defer stop()
	var full []*instance
	w.until(slack*diskNoticed, "a majority says that their disks are full", func() bool {
		full = slices.DeleteFunc(slices.Clone(fleet),
			func(in *instance) bool { return !in.faulty(mortise.DiskFailed, noRoom) })
		return len(full) >= 2
	})
	own := time.Since(began)
	for _, in := range fleet {
		w.until(slack*diskNoticed, in.life+" names both disks", func() bool {
			said := in.status().Waiting
			return strings.Contains(said, "disks that work") && in.names(full[0]) && in.names(full[1]) &&
				strings.Contains(said, "restart this instance")
		})
		if strings.Contains(in.log(), "no leader has been elected") {
			t.Errorf("%s logs that no voter is elected, and not that their disks are full: %s", in.life, in.logTail(20))
		}
	}
	all := time.Since(began)
	stop()
	full = slices.DeleteFunc(slices.Clone(fleet),
		func(in *instance) bool { return !in.faulty(mortise.DiskFailed, noRoom) })
	mended := time.Now()
	for _, d := range disks {
		d.empty()
	}
	for _, in := range full {
		in.stopNow()
		fleet = append(without(fleet, in), w.start(in.name, in.machine, "ORDERS_DIR_FREE_BYTES=1MiB"))
	}
	for _, in := range fleet {
		w.granted(in, slack*readyTime)
	}
	w.t.Logf("all full: a majority said so after %v, all named them after %v, locks are granted again %v after the repair",
		own.Round(time.Millisecond), all.Round(time.Millisecond), time.Since(mended).Round(time.Millisecond))
	w.verdict(slack * readyTime)
}

func diskWorld(t *testing.T, make func(*disk)) (*world, map[string]*disk, []*instance) {
	w := newWorld(t, settings{replicas: 3, durable: true, ttl: 2 * time.Second})
	disks := map[string]*disk{}
	// The directory becomes a shared mount, so each unmount in it takes effect for all processes.
	shared := &disk{t: t, dir: w.dir}
	shared.run("mount", "--bind", w.dir, w.dir)
	t.Cleanup(func() { _ = exec.Command("umount", "-l", w.dir).Run() })
	shared.run("mount", "--make-shared", w.dir)
	var fleet []*instance
	for i, m := range w.machinesFor(3) {
		d := &disk{t: t, dir: w.file("state-" + nameOf(i)), image: w.file("image-" + nameOf(i))}
		d.must(os.Mkdir(d.dir, 0o700))
		make(d)
		disks[nameOf(i)] = d
		fleet = append(fleet, w.start(nameOf(i), m, "ORDERS_DIR_FREE_BYTES=1MiB"))
	}
	w.waitReady(slack*readyTime, fleet...)
	w.waitVoters(slack*readyTime, fleet...)
	return w, disks, fleet
}

// diskRound causes one fault and repairs it. It returns the instances that run afterwards.
func (w *world) diskRound(f diskFault, d *disk, ill *instance, fleet []*instance) []*instance {
	w.t.Helper()
	rest := without(fleet, ill)
	w.lose(ill)
	errors := strings.Count(ill.log(), "level=ERROR")
	broken := time.Now()
	f.spoil(d)
	stop := func() {}
	if f.grow {
		stop = w.keepFull(rest[0], d)
	}
	defer stop()
	w.until(slack*diskNoticed, ill.life+" says that its disk has a fault",
		func() bool { return ill.faulty(f.state, f.cause) })
	own := time.Since(broken)
	for _, in := range rest {
		w.until(slack*diskNoticed, in.life+" names the disk of "+ill.life, func() bool { return in.names(ill) })
	}
	all := time.Since(broken)
	stop()
	for _, in := range rest {
		w.until(slack*diskNoticed, "Health on "+in.life+" names the disk of "+ill.life, func() bool {
			e, err := in.ask("health", "", diskNoticed)
			return err == nil && slices.ContainsFunc(e.Status.FaultyDisks,
				func(d mortise.DiskFault) bool { return d.Name == ill.name })
		})
		w.granted(in, slack*failover)
	}
	if n := strings.Count(ill.log(), "level=ERROR") - errors; n != 1 {
		w.t.Errorf("%s: one fault of the disk is %d lines of ERROR: %s", f.name, n, ill.logTail(20))
	}
	said := ill.status().Disk
	mended := time.Now()
	if f.restart {
		w.until(slack*diskNoticed, ill.life+" has no vote", func() bool { return !ill.status().Votes })
		ill.stopNow()
		f.mend(d)
		again := w.start(ill.name, ill.machine, "ORDERS_DIR_FREE_BYTES=1MiB")
		fleet = append(rest, again)
		ill = again
	} else {
		f.mend(d)
	}
	w.until(votesAgain+slack*readyTime, ill.life+" votes again", func() bool {
		s := ill.status()
		return s.Votes &&
			s.Disk == nil
	})
	w.t.Logf("%s: named after %v, by all after %v, votes again %v after the repair; it said: %v", f.name,
		own.Round(time.Millisecond), all.Round(time.Millisecond), time.Since(mended).Round(time.Millisecond), said)
	w.waitVoters(slack*readyTime, fleet...)
	return fleet
}

// keepFull lets an instance put new data, and fills the disks, until the returned function is
// called. Each new snapshot is larger than the old one, so a write fails within seconds.
func (w *world) keepFull(in *instance, disks ...*disk) (stop func()) {
	ended := make(chan struct{})
	prefix := fmt.Sprintf("data/%d", time.Now().UnixNano())
	var all sync.WaitGroup
	goOn := func(step func()) {
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					step()
				}
			}
		})
	}
	goOn(func() { _, _ = in.ask("grow", prefix, growFor) }) // fails while the group has no leader
	goOn(func() {
		for _, d := range disks {
			d.fill()
		}
		time.Sleep(time.Millisecond)
	})
	return sync.OnceFunc(func() {
		close(ended)
		all.Wait()
	})
}

// faulty reports whether the Status of an instance says that its own disk is in the given state,
// for the given cause, and names a remedy.
func (in *instance) faulty(state mortise.DiskState, cause string) bool {
	d := in.status().Disk
	return d != nil && d.State == state && d.Cause != "" && strings.Contains(d.Cause, cause) && d.Remedy != ""
}

func (in *instance) names(other *instance) bool {
	return slices.ContainsFunc(in.status().FaultyDisks, func(d mortise.DiskFault) bool { return d.Name == other.name })
}

func (in *instance) log() string {
	text, _ := os.ReadFile(in.w.file(in.life + ".log"))
	return string(text)
}

func (d *disk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) run(name string, args ...string) string {
	d.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// small makes a file system in memory with room for the logs of these tests.
func (d *disk) small() {
	d.run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", d.dir)
	d.t.Cleanup(func() { _ = exec.Command("umount", "-l", d.dir).Run() })
}

// device makes a file system on a loop device. It becomes read-only when it detects an error.
func (d *disk) device() {
	d.format()
	d.loop = d.run("losetup", "-f", "--show", d.image)
	d.t.Cleanup(func() {
		// A process that uses a frozen file system cannot end.
		_ = exec.Command("fsfreeze", "-u", d.dir).Run()
		_ = exec.Command("umount", "-l", d.dir).Run()
		_ = exec.Command("losetup", "-d", d.loop).Run()
	})
	d.mount()
}

func (d *disk) format() {
	d.must(os.WriteFile(d.image, nil, 0o600))
	d.must(os.Truncate(d.image, 48<<20))
	d.run("mkfs.ext4", "-q", "-F", d.image)
}

func (d *disk) mount() { d.run("mount", "-o", "errors=remount-ro", d.loop, d.dir) }

func (d *disk) fill() {
	f, err := os.OpenFile(filepath.Join(d.dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	d.must(err)
	defer f.Close()
	for _, size := range []int{1 << 16, 1 << 9} {
		for block := make([]byte, size); ; {
			if _, err := f.Write(block); err != nil {
				break
			}
		}
	}
}

func (d *disk) empty() { d.must(os.Remove(filepath.Join(d.dir, "filler"))) }

func (d *disk) readOnly() {
	d.must(os.WriteFile(fmt.Sprintf("/sys/fs/ext4/%s/trigger_fs_error", filepath.Base(d.loop)), []byte("1"), 0o200))
}

func (d *disk) repair() {
	d.run("umount", d.dir)
	_ = exec.Command("e2fsck", "-fy", d.loop).Run() // the exit code describes the repairs
	d.mount()
}

func (d *disk) remove() { d.must(os.RemoveAll(d.dir)) }

func (d *disk) freeze() { d.run("fsfreeze", "-f", d.dir) }
func (d *disk) thaw()   { d.run("fsfreeze", "-u", d.dir) }

// cut removes most of the device: reads and writes of the removed part fail.
func (d *disk) cut() {
	d.must(os.Truncate(d.image, 1<<16))
	d.run("losetup", "-c", d.loop)
}

func (d *disk) replace() {
	d.run("umount", d.dir)
	d.run("losetup", "-d", d.loop)
	d.format()
	d.loop = d.run("losetup", "-f", "--show", d.image)
	d.mount()
}
