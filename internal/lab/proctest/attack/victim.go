//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/plan"
)

type victim struct {
	name, addr string
	dir        string // the directory of the log and the history
	cmd        *exec.Cmd
	in         io.WriteCloser
	ready      chan struct{} // closed when the instance is ready for the first time
	ended      chan struct{} // closed when the process has ended

	mu      sync.Mutex // guards the fields below
	next    int
	pending map[int]chan event
	limit   int // largest resident memory seen, in KiB
}

// request and event are the lines that the process reads and writes, see proctest/instance.
type request struct {
	ID      int
	Op, Key string
	Keys    []string
	Path    string
	As      string
	Within  time.Duration
}

type event struct {
	Kind   string
	ID     int
	Err    string
	Status *mortise.Status
}

// start starts the process. addrs contains the addresses of all instances. All pauses of the load
// are multiplied by the factor `slower`.
func (v *victim) start(program, secret string, addrs []string, slower int) error {
	v.ready, v.ended, v.pending = make(chan struct{}), make(chan struct{}), map[int]chan event{}
	log, err := os.Create(filepath.Join(v.dir, v.name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	v.cmd = exec.Command(program)
	v.cmd.Env = append(os.Environ(),
		"ORDERS_NAME="+v.name, "ORDERS_BIND="+v.addr, "ORDERS_JOIN="+strings.Join(addrs, ","),
		"ORDERS_REPLICAS="+strconv.Itoa(len(addrs)),
		"ORDERS_SECRET="+secret,
		"MT_HISTORY="+v.history(), "MT_HISTORY_WITHOUT="+strings.Join(plan.Outside(), ","),
		"MT_PROBE_EVERY=20ms", "MT_SLOWER="+strconv.Itoa(slower))
	v.cmd.Stderr = log
	// An interrupt from the keyboard must reach only the campaign, which then ends the instances.
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := v.cmd.StdoutPipe()
	if err == nil {
		v.in, err = v.cmd.StdinPipe()
	}
	if err == nil {
		err = v.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", v.name, err)
	}
	go v.read(out)
	return nil
}

func (v *victim) history() string { return filepath.Join(v.dir, v.name+".jsonl") }

func (v *victim) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if e.Kind == "ready" {
			close(v.ready)
			continue
		}
		v.mu.Lock()
		reply := v.pending[e.ID]
		delete(v.pending, e.ID)
		v.mu.Unlock()
		if reply != nil {
			reply <- e
		}
	}
	_ = v.cmd.Wait()
	close(v.ended)
}

func (v *victim) ask(r request) (event, error) {
	reply := make(chan event, 1)
	v.mu.Lock()
	v.next++
	r.ID = v.next
	v.pending[r.ID] = reply
	v.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return event{}, err
	}
	if _, err := v.in.Write(append(line, '\n')); err != nil {
		return event{}, fmt.Errorf("%s: %s: %w", v.name, r.Op, err)
	}
	select {
	case e := <-reply:
		return e, nil
	case <-v.ended:
		return event{}, fmt.Errorf("%s: %s: the process has ended: %v", v.name, r.Op, v.cmd.ProcessState)
	case <-time.After(r.Within + 5*time.Second):
		return event{}, fmt.Errorf("%s: %s: no answer within %v", v.name, r.Op, r.Within)
	}
}

// sample reads the resident memory of the process, if the process still runs.
func (v *victim) sample() {
	kib := resident(v.cmd.Process.Pid)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.limit = max(v.limit, kib)
}

// resident returns the largest resident memory of a process since its start, in KiB, or 0.
func resident(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kib, _ := strconv.Atoi(fields[1]) // 0 for what is no number
			return kib
		}
	}
	return 0
}

func (v *victim) mib() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.limit >> 10
}

type picture struct {
	votes  bool
	voters string
	leader string
	term   uint64
}

func (v *victim) look() (picture, error) {
	e, err := v.ask(request{Op: "status", Within: 10 * time.Second})
	if err != nil || e.Status == nil {
		return picture{}, fmt.Errorf("%s does not tell its status: %s %w", v.name, e.Err, err)
	}
	var voters []string
	for _, m := range e.Status.Voters {
		voters = append(voters, m.Instance+" at "+m.Address)
	}
	slices.Sort(voters)
	return picture{e.Status.Votes, strings.Join(voters, ", "), e.Status.Leader, e.Status.Term}, nil
}

func (v *victim) end() error {
	_, err := v.ask(request{Op: "quiet", Within: time.Minute})
	_ = v.in.Close() // this ends the process
	select {
	case <-v.ended:
		return err
	case <-time.After(time.Minute):
		_ = v.cmd.Process.Kill()
		return fmt.Errorf("%s does not stop", v.name)
	}
}
