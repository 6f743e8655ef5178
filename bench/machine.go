package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type Machine struct {
	When       string
	CPU        string
	Cores      int
	Kernel, Go string
	Disk       string        // the kind of the file system
	Sync       time.Duration // median of an fdatasync of 256 bytes
	Quiet      bool          // other processes used at most quietCores at the beginning
	Busy       float64       // cores that other processes used at the beginning
	Waited     time.Duration // the time spent waiting for a quiet machine
}

func look(dir string) Machine {
	m := Machine{When: time.Now().UTC().Format("2 January 2006, 15:04 MST"), CPU: "unknown", Cores: runtime.NumCPU(),
		Go: runtime.Version()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, name, ok := strings.Cut(string(text), "model name\t: "); ok {
			m.CPU, _, _ = strings.Cut(name, "\n")
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = "Linux " + strings.TrimSpace(string(text))
	}
	m.Disk, m.Sync = disk(dir)
	return m
}

func disk(dir string) (kind string, sync time.Duration) {
	kind = "unknown"
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) == nil {
		known := map[int64]string{0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs",
			0x01021994: "tmpfs (not a disk)", 0x794c7630: "overlay"}
		if name, ok := known[int64(st.Type)]; ok {
			kind = name
		} else {
			kind = fmt.Sprintf("file system %#x", st.Type)
		}
	}
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return kind, 0
	}
	defer func() { _ = f.Close() }()
	var times []time.Duration
	for range 100 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 256)); err != nil {
			return kind, 0
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return kind, 0
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return kind, times[len(times)/2]
}

// busy returns the processor time that all processes on this machine have used, plus the time that
// the hypervisor gave to other machines.
func busy() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var total int64
	for i, field := range strings.Fields(line) {
		n, _ := strconv.ParseInt(field, 10, 64)
		if i == 1 || i == 2 || i == 3 || i == 6 || i == 7 || i == 8 { // user, nice, system, irq, softirq, steal
			total += n
		}
	}
	return time.Duration(total) * (time.Second / 100) // USER_HZ
}

func used(who int) time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(who, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// othersMeter measures the number of cores that other processes use. The time of a child of this
// process counts as the time of another process until the child has ended.
type othersMeter struct {
	began       time.Time
	busy, owned time.Duration
}

func newOthersMeter() othersMeter {
	return othersMeter{began: time.Now(), busy: busy(), owned: used(syscall.RUSAGE_SELF) +
		used(syscall.RUSAGE_CHILDREN)}
}

func (m othersMeter) cores() float64 {
	owned := used(syscall.RUSAGE_SELF) + used(syscall.RUSAGE_CHILDREN) - m.owned
	return max(0, float64(busy()-m.busy-owned)/float64(time.Since(m.began)))
}

const quietCores = 0.1

// awaitQuiet waits until other processes use at most quietCores, but not longer than atMost.
func awaitQuiet(atMost time.Duration) (quiet bool, cores float64, waited time.Duration) {
	began := time.Now()
	for {
		meter := newOthersMeter()
		time.Sleep(time.Second)
		cores = meter.cores()
		if waited = time.Since(began); cores <= quietCores || waited >= atMost {
			return cores <= quietCores, cores, waited.Round(time.Second)
		}
	}
}
