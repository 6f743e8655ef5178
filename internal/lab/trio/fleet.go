package trio

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for anything before it fails.
const patience = time.Minute

// Fleet is three processes.
type Fleet struct {
	t         testing.TB
	processes []*exec.Cmd
	lines     chan line
	seen      []line
}

type line struct {
	process int
	text    string
}

// Start starts the three processes, with additional variables of the form name=value in their
// environment. They end at the end of the test.
func Start(t testing.TB, env ...string) *Fleet {
	t.Helper()
	f := &Fleet{t: t, lines: make(chan line)}
	addresses := strings.Join(ports(t), " ")
	ended := make(chan struct{}) // closed when no test reads the lines any more
	for i := range size {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), append(env, fmt.Sprintf("%s=%d %s", variable, i, addresses))...)
		cmd.Stderr = t.Output()
		in, err1 := cmd.StdinPipe() // its end tells the child that this process has ended
		out, err2 := cmd.StdoutPipe()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			f.read(i, out, ended)
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-read // before Wait, which closes the pipe
			_ = cmd.Wait()
			in.Close()
		})
		f.processes = append(f.processes, cmd)
	}
	t.Cleanup(func() { close(ended) }) // runs first
	return f
}

// ports returns addresses whose ports are below the range for outgoing connections. All are taken
// before the first is released, so that they differ.
func ports(t testing.TB) (addresses []string) {
	t.Helper()
	for tries := 0; len(addresses) < size; tries++ {
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

func (f *Fleet) read(process int, out io.Reader, ended <-chan struct{}) {
	for s := bufio.NewScanner(out); s.Scan(); {
		select {
		case f.lines <- line{process, s.Text()}:
		case <-ended:
		}
	}
}

// Await waits until n processes have written the text as a line, and returns the processes in the
// order of their lines. It counts lines from before the call, too.
func (f *Fleet) Await(n int, text string) (processes []int) {
	f.t.Helper()
	deadline := time.After(patience)
	for {
		processes = nil
		for _, l := range f.seen {
			if l.text == text && !slices.Contains(processes, l.process) {
				processes = append(processes, l.process)
			}
		}
		if len(processes) >= n {
			return processes
		}
		select {
		case l := <-f.lines:
			f.t.Logf("process %d: %s", l.process, l.text)
			if strings.HasPrefix(l.text, failed) {
				f.t.Fatalf("process %d has %s", l.process, l.text)
			}
			f.seen = append(f.seen, l)
		case <-deadline:
			f.t.Fatalf("%d processes have written %q within %v, want %d; lines: %v", len(processes), text, patience, n,
				f.seen)
		}
	}
}

// Kill ends a process as kill -9 does, and waits until it has ended.
func (f *Fleet) Kill(process int) {
	f.t.Helper()
	if err := f.processes[process].Process.Kill(); err != nil {
		f.t.Fatal(err)
	}
	_, _ = f.processes[process].Process.Wait()
	f.t.Logf("process %d is killed", process)
}
