//go:build unix

package process

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for anything before it fails.
const patience = time.Minute

type fleet struct {
	t         *testing.T
	addresses []string
	dir       string // contains the instances' directories; empty means in memory
	run       bool   // these are run directories
	ttl       time.Duration
	instances []*instance
}

type instance struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser

	mu      sync.Mutex // guards all below
	next    int
	pending map[int]chan answer
}

func startFleet(t *testing.T) *fleet { return startFleetIn(t, "") }

func startFleetIn(t *testing.T, dir string) *fleet {
	return startFleetWith(t, &fleet{dir: dir, ttl: leaseTTL})
}

// startFleetWith starts f, whose dir, run and ttl are set.
func startFleetWith(t *testing.T, f *fleet) *fleet {
	t.Helper()
	f.t = t
	f.addresses = freeAddresses(t, 3)
	f.instances = make([]*instance, 3)
	for i := range f.instances {
		f.start(i)
	}
	t.Cleanup(func() {
		for i := range f.instances {
			f.kill(i)
		}
	})
	return f
}

// freeAddresses returns addresses of this machine that no program uses.
func freeAddresses(t *testing.T, count int) (addresses []string) {
	t.Helper()
	// All ports are taken before the first is released, so that they differ.
	for tries := 0; len(addresses) < count; tries++ {
		// These ports are below the range for outgoing connections. An outgoing connection could
		// take a port of that range before the child binds it.
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if err == nil {
			addresses = append(addresses, l.Addr().String())
			defer l.Close()
		} else if tries > 100 {
			t.Fatal(err)
		}
	}
	return addresses
}

// start starts instance i, or restarts it with the same command if it was killed.
func (f *fleet) start(i int) *instance {
	f.t.Helper()
	n := &instance{t: f.t, name: fmt.Sprintf("node-%d", i), pending: map[int]chan answer{}}
	n.cmd = f.command(n.name, f.addresses[i])
	n.cmd.Stderr = f.t.Output()
	in, err := n.cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	n.in = in
	go n.read(out)
	f.instances[i] = n
	return n
}

// command returns the command of the instance with this name and its directory, at an address.
func (f *fleet) command(name, address string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", childEnv, name, address, strings.Join(f.addresses, " ")),
		fmt.Sprintf("%s=%v", ttlEnv, f.ttl))
	if f.dir != "" {
		variable := dirEnv
		if f.run {
			variable = runEnv
		}
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s", variable, filepath.Join(f.dir, name)))
	}
	return cmd
}

func (f *fleet) kill(i int) {
	_ = f.instances[i].cmd.Process.Kill()
	_ = f.instances[i].cmd.Wait()
}

func (n *instance) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		n.mu.Lock()
		reply := n.pending[a.ID]
		delete(n.pending, a.ID)
		n.mu.Unlock()
		if reply != nil {
			reply <- a
		}
	}
}

func (n *instance) ask(r request) (int, <-chan answer) {
	reply := make(chan answer, 1)
	n.mu.Lock()
	n.next++
	r.ID = n.next
	n.pending[r.ID] = reply
	n.mu.Unlock()
	line, _ := json.Marshal(r)
	_, _ = n.in.Write(append(line, '\n'))
	return r.ID, reply
}

func get(t *testing.T, what string, reply <-chan answer) answer {
	t.Helper()
	select {
	case a := <-reply:
		return a
	case <-time.After(patience):
		t.Fatalf("%s: no answer within %v", what, patience)
		return answer{}
	}
}

type held struct {
	n     *instance
	id    int
	token uint64
}

func (n *instance) lock(key string) held {
	n.t.Helper()
	id, reply := n.ask(request{Op: "lock", Key: key})
	a := get(n.t, n.name+": lock", reply)
	if a.Err != "" {
		n.t.Fatalf("%s: lock %q: %s", n.name, key, a.Err)
	}
	return held{n, id, a.Token}
}

// leaseEnds returns a time at which the lease of the instance, as it believes, still runs for a
// moment. On a busy machine its last renewal may be old.
func (n *instance) leaseEnds() time.Time {
	n.t.Helper()
	asked := time.Now()
	_, reply := n.ask(request{Op: "status"})
	return asked.Add(get(n.t, n.name+": status", reply).Left)
}

func (h held) unlock() {
	h.n.t.Helper()
	_, reply := h.n.ask(request{Op: "unlock", Lock: h.id})
	if a := get(h.n.t, h.n.name+": unlock", reply); a.Err != "" {
		h.n.t.Fatalf("%s: unlock: %s", h.n.name, a.Err)
	}
}

func (f *fleet) leader() int {
	f.t.Helper()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		for i, n := range f.instances {
			if _, reply := n.ask(request{Op: "status"}); get(f.t, "status", reply).Leading {
				return i
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	f.t.Fatalf("there is no leader after %v", patience)
	return -1
}

func (n *instance) signal(s syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
}
