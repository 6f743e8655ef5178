//go:build linux

package proctest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise"
)

type instance struct {
	w       *world
	name    string
	life    string // prefix of the names of the process's files
	machine *machine
	cmd     *exec.Cmd
	in      io.WriteCloser
	began   time.Time
	ready   chan struct{} // closed when the process has reported that it can be granted locks, or has ended
	ended   chan struct{} // closed when the process has ended

	mu      sync.Mutex // guards the fields below
	next    int
	pending map[int]chan event
	left    *event
	readyAt time.Time // the zero time means that the process has not been ready
}

// request and event are the lines that the process reads and writes, see proctest/instance.
type request struct {
	ID      int
	Op, Key string
	Within  time.Duration
}

type event struct {
	Kind   string
	ID     int
	Err    string
	Token  uint64 `json:",string"`
	Status *mortise.Status
	Text   string
}

func newInstance(w *world, name, life string, m *machine) *instance {
	return &instance{w: w, name: name, life: life, machine: m, ready: make(chan struct{}), ended: make(chan struct{}),
		pending: map[int]chan event{}}
}

// run starts the process in its machine's namespace, with the world's name server. The program
// replaces the shell that starts it.
func (in *instance) run(program string, environment []string) {
	t := in.w.t
	t.Helper()
	in.cmd = exec.Command("ip", "netns", "exec", in.machine.space, "sh", "-c",
		`mount --bind "$0" /etc/resolv.conf && exec "$1"`, in.w.resolv, program)
	in.cmd.Env = environment
	// An interrupt from the keyboard must reach only the test, which then ends the instances.
	in.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(in.w.file(in.life + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	in.cmd.Stderr = log
	out, err := in.cmd.StdoutPipe()
	if err == nil {
		in.in, err = in.cmd.StdinPipe()
	}
	if err == nil {
		in.began = time.Now()
		err = in.cmd.Start()
	}
	if err != nil {
		t.Fatalf("start %s: %v", in.life, err)
	}
	go in.read(out)
}

func (in *instance) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	said := false
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		in.mu.Lock()
		reply := in.pending[e.ID]
		delete(in.pending, e.ID)
		switch e.Kind {
		case "gone":
			in.left = &e
		case "ready":
			in.readyAt, said = time.Now(), true
			close(in.ready)
		}
		in.mu.Unlock()
		if e.Kind == "answer" && reply != nil {
			reply <- e
		}
	}
	_ = in.cmd.Wait()
	if !said {
		close(in.ready)
	}
	close(in.ended)
}

func (in *instance) gone() bool {
	select {
	case <-in.ended:
		return true
	default:
		return false
	}
}

// ask sends a request and waits for the answer a little longer than the given time.
func (in *instance) ask(op, key string, within time.Duration) (event, error) {
	return in.send(op, key, within)()
}

// send sends a request. The function that it returns waits for the answer, as ask does.
func (in *instance) send(op, key string, within time.Duration) (answer func() (event, error)) {
	reply := make(chan event, 1)
	in.mu.Lock()
	in.next++
	r := request{ID: in.next, Op: op, Key: key, Within: within}
	in.pending[r.ID] = reply
	in.mu.Unlock()
	line, _ := json.Marshal(r)
	_, err := in.in.Write(append(line, '\n'))
	return func() (event, error) {
		if err != nil {
			return event{}, fmt.Errorf("%s: %s: %w", in.life, op, err)
		}
		select {
		case e := <-reply:
			if e.Err != "" {
				return e, fmt.Errorf("%s: %s %s: %s", in.life, op, key, e.Err)
			}
			return e, nil
		case <-in.ended:
			return event{}, fmt.Errorf("%s: %s: the process has ended: %s", in.life, op, in.logTail(5))
		case <-time.After(within + 5*time.Second):
			return event{}, fmt.Errorf("%s: %s: no answer", in.life, op)
		}
	}
}

// status returns the Status of the node, or the zero Status if the node does not answer.
func (in *instance) status() mortise.Status {
	e, err := in.ask("status", "", time.Second)
	if err != nil || e.Status == nil {
		return mortise.Status{}
	}
	return *e.Status
}

func (in *instance) describe() string {
	e, err := in.ask("status", "", time.Second)
	return strings.Join(strings.Fields(fmt.Sprint(e.Text, " ", errText(err))), " ")
}

func (in *instance) signal(s syscall.Signal) {
	if err := in.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		in.w.t.Errorf("%s: %v", in.life, err)
	}
}

func (in *instance) stopNow() {
	if in.cmd.Process == nil {
		return
	}
	_ = in.cmd.Process.Kill()
	<-in.ended
}

func (in *instance) logTail(lines int) string {
	text, _ := os.ReadFile(in.w.file(in.life + ".log"))
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "\t" + strings.Join(all[max(0, len(all)-lines):], "\n\t")
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
