package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise"
)

// idle measures n unused instances: their processor time, their memory, and the bytes that they
// send over loopback. All instances are in this process. The processor time that the process needs
// without them is subtracted: libraries of the other peers have goroutines of their own.
func idle(n int) func(ctx context.Context, r *Run) (Result, error) {
	return func(ctx context.Context, r *Run) (Result, error) {
		if r.Quick && n > 100 {
			return Result{}, errTooLong
		}
		if err := roomFor(uint64(n)*memberSockets, uint64(n)*memberBytes); err != nil {
			return Result{}, err
		}
		debug.FreeOSMemory() // otherwise memory of earlier workloads would be returned during the measurement
		before := heap()
		during := max(5*time.Second, r.Duration)
		own := used(syscall.RUSAGE_SELF)
		time.Sleep(during)
		own = used(syscall.RUSAGE_SELF) - own
		nodes, err := openIdle(ctx, r.Peer, n)
		defer func() { _ = together(len(nodes), func(i int) error { return nodes[i].Close() }) }()
		if err != nil {
			return Result{}, err
		}
		time.Sleep(2*time.Second + time.Duration(n)*100*time.Millisecond) // until the nodes have finished starting
		cpu, wire, began := used(syscall.RUSAGE_SELF), loopbackBytes(), time.Now()
		time.Sleep(during)
		took := time.Since(began)
		result := Result{Count: float64(n), Took: took}
		result.CPU = time.Duration(float64(used(syscall.RUSAGE_SELF)-cpu-own) / took.Seconds())
		result.Wire = float64(loopbackBytes()-wire) / took.Seconds()
		result.Heap = float64(heap()-before) / float64(n)
		result.Sockets = float64(openSockets(os.Getpid())) / float64(n) // both ends of each connection
		return result, nil
	}
}

// idleAlone measures one unused instance in a process of its own. What that process needs without
// the instance is subtracted, as in idle.
func idleAlone(ctx context.Context, r *Run) (Result, error) {
	m, err := startSelf(ctx, "-alone", r.Peer.Name)
	if err != nil {
		return Result{}, err
	}
	defer m.kill()
	pid, during := m.cmd.Process.Pid, max(20*time.Second, r.Duration)
	ran := func() (time.Duration, error) { // in a second, after it has started whatever it starts
		time.Sleep(10 * time.Second)
		before, err := ranFor(pid)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		time.Sleep(during)
		after, err := ranFor(pid)
		return time.Duration(float64(after-before) / time.Since(began).Seconds()), err
	}
	own, err := ran()
	if err != nil {
		return Result{}, err
	}
	memory, err := m.ask("start")
	if err != nil {
		return Result{}, err
	}
	result := Result{Count: 1, Took: during}
	if result.Heap, err = strconv.ParseFloat(memory, 64); err != nil {
		return Result{}, err
	}
	wire, began := loopbackBytes(), time.Now()
	if result.CPU, err = ran(); err != nil {
		return Result{}, err
	}
	result.CPU -= own
	result.Wire = float64(loopbackBytes()-wire) / time.Since(began).Seconds()
	result.Sockets = float64(openSockets(pid))
	return result, nil
}

// serveAlone starts one instance when in has a line, and answers with the bytes of its heap.
func serveAlone(ctx context.Context, p Peer, in io.Reader, out io.Writer) error {
	var nodes []*mortise.Node
	err := answerLines(in, out, func(string) (string, error) {
		before := heap()
		started, err := openIdle(ctx, p, 1)
		nodes = append(nodes, started...)
		return strconv.FormatInt(heap()-before, 10), err
	})
	return errors.Join(err, together(len(nodes), func(i int) error { return nodes[i].Close() }))
}

// ranFor returns for how long the threads of another process have run.
func ranFor(pid int) (sum time.Duration, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the kernel does not tell for how long process %d has run", pid)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return 0, err
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			return 0, err
		}
		sum += time.Duration(ns)
	}
	return sum, err
}

// openSockets returns the number of sockets of a process.
func openSockets(pid int) (n int) {
	files := fmt.Sprintf("/proc/%d/fd/", pid)
	entries, err := os.ReadDir(files)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if to, err := os.Readlink(files + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// openIdle starts n nodes. The founders of the group are the first three, or only the first if n
// is less than three.
func openIdle(ctx context.Context, p Peer, n int) ([]*mortise.Node, error) {
	founders := membersOf
	if n < membersOf {
		founders = 1
	}
	addresses, err := freeAddresses(max(n, membersOf) * addressesEach)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(n)*100*time.Millisecond)
	defer cancel()
	var nodes []*mortise.Node
	for from := 0; from < n; from = len(nodes) { // the founders first, then a few at a time
		for i := from; i < min(n, max(founders, from+idleAtOnce*min(from, 1))); i++ {
			c := mortiseConfig(strings.HasSuffix(p.Name, "-tls"), addresses, i)
			c.Join = c.Join[:founders]
			for f := range founders {
				c.Founders = append(c.Founders, fmt.Sprintf("node-%d", f))
			}
			node, err := mortise.Start(ctx, c)
			if err != nil {
				return nodes, err
			}
			nodes = append(nodes, node)
		}
		if err := together(len(nodes)-from, func(i int) error { return nodes[from+i].Ready(ctx) }); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

// The limits for the sockets and the memory of a member without locks are twice the goals. Such a
// member has a link to the leader and connections for queries to a few other members; only founders
// have links to each other.
const (
	memberSockets = 20
	memberBytes   = 2400 << 10
)

func roomFor(sockets, bytes uint64) error {
	if free, ok := availableBytes(); ok && free < bytes {
		return fmt.Errorf("this needs some %s of memory, and %s are free", shortBytes(float64(bytes)),
			shortBytes(float64(free)))
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur >= sockets {
		return nil
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE,
		&syscall.Rlimit{Cur: sockets, Max: max(sockets, files.Max)}); err != nil {
		return fmt.Errorf("this needs some %d sockets, and the process may open %d files (ulimit -n)", sockets,
			files.Cur)
	}
	return nil
}

func availableBytes() (bytes uint64, ok bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(text), "MemAvailable:")
	var kib uint64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, false
	}
	return kib << 10, true
}

const idleAtOnce = 20

func loopbackBytes() uint64 {
	text, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "lo:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseUint(fields[0], 10, 64)
	return n
}
