//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/leftover"
)

// asMortise is an environment variable that makes this test binary act as the command mortise.
const asMortise = "THIS_TEST_IS_MORTISE"

// ignoresSignals is an environment variable with which this test binary keeps ignoring signals.
const ignoresSignals = "THIS_TEST_IGNORES_SIGNALS"

func TestMain(m *testing.M) {
	if os.Getenv(asMortise) != "" || os.Args[0] == watchdogName || os.Args[0] == devName {
		_ = os.Unsetenv(asMortise) // child processes must not inherit it
		main()
		return
	}
	if os.Getenv(ignoresSignals) == "" { // what the tests start gets signals, also if a script runs the tests
		for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
			if signal.Ignored(s) {
				signal.Notify(make(chan os.Signal, 1), s)
			}
		}
	}
	os.Exit(leftover.Run(m))
}

const (
	testSecret = "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c"
	patience   = 30 * time.Second // the time limit for short operations on a busy machine
)

type fleet struct {
	t      *testing.T
	dir    string
	peers  string // the file to which the field Join of the configuration refers
	common []string
	agents []*agentProcess
}

type agentProcess struct {
	name, dir string
	cmd       *exec.Cmd
	socket    string
	log       *os.File
	Address   string
}

func startFleet(t *testing.T, durable bool, names ...string) *fleet {
	t.Helper()
	dir, err := os.MkdirTemp("", "mortise") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, dir: dir, peers: filepath.Join(dir, "peers")}
	f.common = []string{"JOIN=file://" + f.peers, "SECRET=" + testSecret, "SESSION_TTL=5s", "GRACE=none",
		"REPLICAS=" + fmt.Sprint(len(names))}
	f.publish()
	t.Cleanup(f.end)
	for _, name := range names {
		a := &agentProcess{name: name}
		if durable {
			a.dir = filepath.Join(dir, name)
		}
		f.start(a)
		f.agents = append(f.agents, a)
	}
	f.publish()
	f.ready()
	return f
}

func (f *fleet) publish() {
	f.t.Helper()
	var text strings.Builder
	for _, a := range f.agents {
		fmt.Fprintln(&text, a.Address)
	}
	if err := os.WriteFile(f.peers+".new", []byte(text.String()), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.peers+".new", f.peers); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) in(t *testing.T) *fleet {
	other := *f
	other.t = t
	return &other
}

// environ returns the environment of a child process. The variables of mortise come from f.common
// and from the arguments, where they lack their prefix. The other variables come from the test's
// environment.
func (f *fleet) environ(more ...string) []string {
	var list []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "MORTISE_") {
			list = append(list, pair)
		}
	}
	for _, pair := range append(f.common, more...) {
		list = append(list, "MORTISE_"+pair)
	}
	return append(list, asMortise+"=1", "GORACE=atexit_sleep_ms=0")
}

func (f *fleet) start(a *agentProcess) {
	f.t.Helper()
	a.socket = filepath.Join(f.dir, a.name+".sock")
	var err error
	if a.log, err = os.OpenFile(filepath.Join(f.dir, a.name+".log"), os.O_CREATE|os.O_APPEND|os.O_RDWR,
		0o600); err != nil {
		f.t.Fatal(err)
	}
	a.cmd = exec.Command(os.Args[0], "agent", "-o", "json", "-listen", "unix:"+a.socket)
	a.cmd.Env, a.cmd.Stderr = f.environ("NAME="+a.name, "BIND=127.0.0.1:0", "DIR="+a.dir), a.log
	out, err := a.cmd.StdoutPipe()
	if err == nil {
		err = a.cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, a)
	}
	if err != nil || a.Address == "" {
		text, _ := os.ReadFile(a.log.Name())
		f.t.Fatalf("agent %s says %q, %v\n%s", a.name, line, err, text)
	}
}

func (f *fleet) end() {
	if testing.CoverMode() != "" {
		f.stop()
	}
	for _, a := range f.agents {
		a.kill()
		if f.t.Failed() {
			text, _ := os.ReadFile(a.log.Name())
			f.t.Logf("log of %s:\n%s", a.name, text)
		}
		_ = a.log.Close()
	}
	_ = os.RemoveAll(f.dir)
}

// stop ends the agents with SIGTERM, since a process that is killed does not write which of its
// statements were reached.
func (f *fleet) stop() {
	var all sync.WaitGroup
	for _, a := range f.agents {
		if a.cmd.ProcessState == nil {
			_ = a.cmd.Process.Signal(syscall.SIGCONT)
			_ = a.cmd.Process.Signal(syscall.SIGTERM)
			late := time.AfterFunc(5*time.Second, func() { _ = a.cmd.Process.Kill() })
			all.Go(func() { _ = a.cmd.Wait(); late.Stop() })
		}
	}
	all.Wait()
}

func (a *agentProcess) kill() {
	if a.cmd.ProcessState == nil {
		_ = a.cmd.Process.Signal(syscall.SIGCONT)
		_ = a.cmd.Process.Kill()
		_ = a.cmd.Wait()
	}
}

func (a *agentProcess) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", a.socket)
	}}}
}

func (f *fleet) ready() {
	f.t.Helper()
	for _, a := range f.agents {
		if a.cmd.ProcessState != nil {
			continue
		}
		eventually(f.t, a.name+" is ready", func() error {
			answer, err := a.client().Get("http://localhost/readyz")
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				var p problem
				_ = json.NewDecoder(answer.Body).Decode(&p)
				return fmt.Errorf("%s: %s", answer.Status, p.Error)
			}
			return nil
		})
	}
}

func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

type said struct {
	out, errs string
	code      int
	took      time.Duration
}

func (f *fleet) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = f.environ("NAME=tester")
	// A process that still has the output open must not block Wait.
	cmd.WaitDelay = time.Second
	return cmd
}

func (f *fleet) mortise(args ...string) said {
	f.t.Helper()
	return f.finish(f.command(args...))
}

func (f *fleet) finish(cmd *exec.Cmd) (s said) {
	f.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	if cmd.ProcessState == nil {
		f.t.Fatal(err)
	}
	s = said{out.String(), errs.String(), cmd.ProcessState.ExitCode(), time.Since(began)}
	f.t.Logf("$ mortise %s\n%s%s[code %d after %v]", strings.Join(cmd.Args[1:], " "), s.out, s.errs, s.code,
		s.took.Round(time.Millisecond))
	return s
}

// wants checks the exit code, and that each text is in the output or in the errors.
func (s said) wants(t *testing.T, code int, texts ...string) said {
	t.Helper()
	if s.code != code {
		t.Errorf("exit code %d, want %d: %s%s", s.code, code, s.out, s.errs)
	}
	for _, text := range texts {
		if !strings.Contains(s.out+s.errs, text) {
			t.Errorf("%q is not in\n%s%s", text, s.out, s.errs)
		}
	}
	return s
}

type running struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	errs bytes.Buffer
	pid  int
}

// begin starts the command run with a shell script. The script first prints its process ID.
func (f *fleet) begin(script string, args ...string) *running {
	f.t.Helper()
	cmd := f.command(append(append([]string{"run"}, args...), "--", "sh", "-c", "echo $$; "+script)...)
	r := &running{cmd: cmd}
	cmd.Stderr = &r.errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { r.end() })
	r.out = bufio.NewReader(out)
	if _, err := fmt.Fscanln(r.out, &r.pid); err != nil {
		_ = cmd.Wait()
		f.t.Fatalf("the command has not begun: %v: %s", err, r.errs.String())
	}
	return r
}

func (r *running) end() {
	if r.cmd.ProcessState == nil {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(patience, func() { _ = r.cmd.Process.Kill() })
		defer timer.Stop()
		_ = r.cmd.Wait()
	}
}

func (r *running) code(t *testing.T) int {
	t.Helper()
	timer := time.AfterFunc(patience, func() { _ = r.cmd.Process.Kill() })
	defer timer.Stop()
	_ = r.cmd.Wait()
	t.Logf("a run has ended: %v\n%s", r.cmd.ProcessState, r.errs.String())
	return r.cmd.ProcessState.ExitCode()
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
