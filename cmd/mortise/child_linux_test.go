package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// begun is a command of run whose processes print their IDs.
type begun struct {
	*child
	lines *bufio.Reader
	pids  []int
}

// beginCommand runs a script that prints n process IDs.
func beginCommand(t *testing.T, script string, n int) *begun {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	k, err := start(&call{out: in, errs: os.Stderr, program: []string{"sh", "-c", script}}, "/bin/sh", os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.end)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	b := &begun{child: k, lines: bufio.NewReader(out)}
	for range n {
		var pid int
		if _, err := fmt.Fscanln(b.lines, &pid); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		b.pids = append(b.pids, pid)
	}
	return b
}

func (b *begun) ends(t *testing.T, want int) {
	t.Helper()
	select {
	case code := <-b.ended:
		if code != want {
			t.Errorf("the command ends with %d, want %d", code, want)
		}
	case <-time.After(patience):
		t.Fatal("the command does not end")
	}
}

// family has three processes: a command, a child in its group, and one in a session of its own.
const family = `echo $$; sleep 1000 & echo $!; setsid sh -c 'echo $$; exec sleep 1000' & wait`

// TestTheWatchdogPassesSignalsOn sends each signal to the parent of a command, as a terminal or an
// operator may. The command gets it, and the parent stays until the command has ended.
func TestTheWatchdogPassesSignalsOn(t *testing.T) {
	for _, s := range passedOn() {
		number := s.(syscall.Signal)
		script := fmt.Sprintf(`trap 'exit 7' %d; echo $$; while :; do sleep 0.1; done`, number)
		b := beginCommand(t, script, 1)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.pids[0]))
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(string(status), "\nPPid:")
		var parent int
		if _, err := fmt.Sscan(line, &parent); err != nil || parent == os.Getpid() {
			t.Fatalf("the parent of the command is %d, %v", parent, err)
		}
		if err := syscall.Kill(parent, number); err != nil {
			t.Fatal(err)
		}
		t.Logf("%v", s)
		b.ends(t, 7)
	}
}

// TestCommandEndsWithRun checks that no process of a command outlives run by a second, in whatever
// group or session it is, and that none is left to process 1 as a zombie.
func TestCommandEndsWithRun(t *testing.T) {
	b := beginCommand(t, family, 3)
	began := time.Now()
	b.orders.Close() // as the kernel does when run is killed
	b.ends(t, exitSignal+9)
	for _, pid := range b.pids {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v, a second is expected", took)
	}
}

// TestCommandEndsWithItsWatchdog checks that run ends a command whose watchdog was killed.
func TestCommandEndsWithItsWatchdog(t *testing.T) {
	b := beginCommand(t, "echo $PPID; "+family, 4)
	if err := syscall.Kill(b.pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.ends(t, exitSignal+9)
	allEnd(t, b.pids[1:])
}

// allEnd waits until processes have ended. This process may be the parent that does not wait for
// them.
func allEnd(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, "all processes end", func() error {
		for _, pid := range pids {
			if text, err := os.ReadFile(fmt.Sprint("/proc/", pid, "/stat")); err == nil &&
				!strings.Contains(string(text), ") Z") {
				return fmt.Errorf("process %d: %s", pid, text)
			}
		}
		return nil
	})
}

// TestCommandsDaemonOutlivesIt checks that a command that ends by itself may leave processes.
func TestCommandsDaemonOutlivesIt(t *testing.T) {
	b := beginCommand(t, `sleep 1000 & echo $!; exit 7`, 1)
	b.ends(t, 7)
	if b.end(); !alive(b.pids[0]) {
		t.Error("the process that the command has left was killed")
	}
}

// TestCommandThatLostItsLock checks that a command whose lock was lost has ended only when all its
// processes have, and that all are asked.
func TestCommandThatLostItsLock(t *testing.T) {
	b := beginCommand(t, `trap 'exit 3' TERM; (trap 'sleep 0.2; exit' TERM; echo set; while :; do sleep 0.01; done) &
echo $!; while :; do sleep 0.01; done`, 0)
	var pid int
	for range 2 {
		line, err := b.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Sscan(line, &pid)
	}
	b.lose()
	b.ends(t, 3)
	if text, err := os.ReadFile(fmt.Sprint("/proc/", pid, "/stat")); err == nil {
		t.Errorf("a process of the command is left: %s", text)
	}
}

// TestCommandGetsSignals checks that signals reach all processes of the command's group. The child
// of the first command tells its ID itself, because between fork and exec a shell still has the
// trap of its parent, so that a signal would be lost.
func TestCommandGetsSignals(t *testing.T) {
	b := beginCommand(t, `trap 'exit 9' USR1; sh -c 'echo $$; exec sleep 1000' & wait`, 1)
	b.tell(syscall.SIGUSR1)
	b.ends(t, 9)
	allEnd(t, b.pids)
	b = beginCommand(t, `echo $$; exec sleep 1000`, 1)
	b.tell(syscall.SIGTERM)
	b.ends(t, exitSignal+15)
}

// TestCommandIgnoresWhatRunIgnores starts a run that ignores HUP and INT, as after nohup, or in the
// background of a script. The command ignores them too, and the watchdog does not pass them on.
func TestCommandIgnoresWhatRunIgnores(t *testing.T) {
	if os.Getenv(ignoresSignals) != "" { // the run
		signal.Notify(make(chan os.Signal, 1), notIgnored(passedOn()...)...)
		k, err := start(&call{out: os.Stdout, errs: os.Stderr, program: []string{"sh", "-c",
			`for s in HUP INT; do kill -$s $$; kill -$s $PPID; done; echo goes on; exit 5`}}, "/bin/sh", os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("code", <-k.ended)
		return
	}
	cmd := exec.Command("/bin/sh", "-c", `trap '' HUP INT; exec "$0" "$@"`,
		os.Args[0], "-test.run=^TestCommandIgnoresWhatRunIgnores$")
	cmd.Env = append(os.Environ(), ignoresSignals+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "goes on\ncode 5\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestCommandReadsTheTerminal checks that a command reads from its terminal whatever its standard
// input is, and that Ctrl-C reaches it once.
func TestCommandReadsTheTerminal(t *testing.T) {
	if os.Getenv("TEST_AT_A_TERMINAL") != "" { // the process at the terminal
		signal.Notify(make(chan os.Signal, 1), passedOn()...)
		k, err := start(&call{out: os.Stdout, errs: os.Stderr, program: []string{"sh", "-c",
			`trap 'echo int; exit 5' INT; read p </dev/tty; echo got $p; read q </dev/tty`}}, "/bin/sh", os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("foreground", k.inForeground())
		fmt.Println("code", <-k.ended)
		return
	}
	for name, input := range map[string]string{"a pipe": "", "a file": os.DevNull, "the terminal": "/dev/tty"} {
		t.Run(name, func(t *testing.T) {
			person, program := terminal(t)
			cmd := exec.Command(os.Args[0], "-test.run=^TestCommandReadsTheTerminal$")
			cmd.Env = append(os.Environ(), "TEST_AT_A_TERMINAL=1")
			cmd.Stdout, cmd.Stderr = program, program
			cmd.Stdin = program
			if input != "/dev/tty" {
				cmd.Stdin = strings.NewReader(input)
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(patience, func() {
				_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
				_ = person.Close()
			})
			defer timer.Stop()
			program.Close()
			lines := bufio.NewReader(person)
			await := func(want string) {
				t.Helper()
				for {
					line, err := lines.ReadString('\n')
					if strings.Contains(line, want) {
						return
					}
					if err != nil {
						t.Fatalf("%q was not printed: %v", want, err)
					}
				}
			}
			await("foreground true")
			_, _ = io.WriteString(person, "secret\n")
			await("got secret")
			// Some shells lose a signal that comes just before they read, so the key is pressed again.
			seen := make(chan struct{})
			go func() {
				for {
					_, _ = io.WriteString(person, "\x03")
					select {
					case <-seen:
						return
					case <-time.After(time.Second):
					}
				}
			}()
			await("int")
			close(seen)
			await("code 5")
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
