//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

func TestRun(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	t.Run("the command's code is passed on", func(t *testing.T) {
		f := f.in(t)
		s := f.mortise("run", "jobs/1", "--", "sh", "-c", "echo $MORTISE_KEY $MORTISE_TOKEN; exit 7").wants(t, 7)
		var key string
		var token mortise.Token
		if _, err := fmt.Sscan(s.out, &key, (*uint64)(&token)); err != nil || key != "jobs/1" || token == 0 {
			t.Errorf("the command was told %q", s.out)
		}
		if s.errs != "" {
			t.Errorf("a code that is the command's own is no trouble of ours: %q", s.errs)
		}
	})
	t.Run("busy", func(t *testing.T) {
		f := f.in(t)
		holder := f.begin("exec sleep 1000", "jobs/2", "-value", "nightly")
		defer holder.end()
		f.mortise("run", "-n", "jobs/2", "--", "echo", "never").wants(t, exitBusy, "tester", "nightly")
		f.says([]string{"run", "-w", "1s", "jobs/2", "--", "echo", "never"}, exitBusy, "nightly")
		if s := f.mortise("run", "-w", "1s", "jobs/2", "--", "echo", "never"); strings.Contains(s.out, "never") {
			t.Error("the command ran without the lock")
		}
		f.mortise("run", "-n", "jobs/3", "--", "true").wants(t, exitOK)
	})
	t.Run("shared, and permits", func(t *testing.T) {
		f := f.in(t)
		defer f.begin("exec sleep 1000", "--mode", "shared", "jobs/4").end()
		f.mortise("run", "-n", "--mode", "shared", "jobs/4", "--", "true").wants(t, exitOK)
		f.mortise("run", "-n", "jobs/4", "--", "true").wants(t, exitBusy)
		defer f.begin("exec sleep 1000", "--mode", "2 of 3", "jobs/5").end()
		f.mortise("run", "-n", "--mode", "1 of 3", "jobs/5", "--", "true").wants(t, exitOK)
		f.mortise("run", "-n", "--mode", "2 of 3", "jobs/5", "--", "true").wants(t, exitBusy)
	})
	t.Run("signals are passed on", func(t *testing.T) {
		f := f.in(t)
		r := f.begin("trap 'exit 9' USR1; trap '' TERM; echo set; while :; do sleep 0.02; done", "jobs/6")
		defer r.end()
		if line, err := r.out.ReadString('\n'); line != "set\n" {
			t.Fatal(line, err)
		}
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		_ = r.cmd.Process.Signal(syscall.SIGUSR1)
		if code := r.code(t); code != 9 {
			t.Errorf("code %d", code)
		}
	})
	t.Run("ignored signals stay ignored", func(t *testing.T) { // by nohup, and in the background of a shell
		f := f.in(t)
		cmd := f.command("run", "jobs/ignored", "--", "sh", "-c",
			"kill -HUP $$; kill -INT $$; kill -HUP $PPID; kill -INT $PPID; echo goes on")
		cmd.Path = "/bin/sh"
		cmd.Args = append([]string{"sh", "-c", `trap '' HUP INT; exec "$0" "$@"`}, cmd.Args...)
		f.finish(cmd).wants(t, exitOK, "goes on")
	})
	t.Run("the command is killed", func(t *testing.T) {
		f := f.in(t)
		r := f.begin("exec sleep 1000", "jobs/7")
		defer r.end()
		_ = syscall.Kill(r.pid, syscall.SIGKILL)
		if code := r.code(t); code != exitSignal+9 {
			t.Errorf("code %d", code)
		}
		f.mortise("run", "-n", "jobs/7", "--", "true").wants(t, exitOK)
	})
	t.Run("run itself is killed", func(t *testing.T) {
		f := f.in(t)
		r := f.begin("sleep 1000 & echo $!; wait", "jobs/8")
		var grandchild int
		if _, err := fmt.Fscanln(r.out, &grandchild); err != nil {
			t.Fatal(err)
		}
		_ = r.cmd.Process.Kill()
		_ = r.cmd.Wait()
		f.mortise("run", "-n", "jobs/8", "--", "true").wants(t, exitBusy) // the lock is held until its lease expires
		eventually(t, "the command ends with it", func() error {
			if alive(r.pid) || alive(grandchild) {
				return errors.New("it runs without its lock")
			}
			return nil
		})
		f.mortise("run", "-w", patience.String(), "jobs/8", "--", "echo", "mine").wants(t, exitOK, "mine")
	})
	t.Run("a wait is given up by a signal", func(t *testing.T) {
		f := f.in(t)
		defer f.begin("exec sleep 1000", "jobs/9").end()
		w := f.command("run", "jobs/9", "--", "echo", "never")
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		f.waiting("jobs/9", 1)
		_ = w.Process.Signal(syscall.SIGTERM)
		if _ = w.Wait(); w.ProcessState.ExitCode() != exitSignal+15 {
			t.Error(w.ProcessState)
		}
		f.waiting("jobs/9", 0)
	})
	t.Run("what cannot be", func(t *testing.T) {
		f := f.in(t)
		f.mortise("run", "k").wants(t, exitUsage, "which command")
		f.mortise("run", "--", "true").wants(t, exitUsage, "which key")
		f.mortise("run", "-n", "-w", "1s", "k", "--", "true").wants(t, exitUsage)
		f.mortise("run", "--mode", "1", "k", "--", "true").wants(t, exitUsage)
		f.mortise("run", "--mode", "3 of 2", "k", "--", "true").wants(t, exitUsage)
		f.mortise("run", "a\tb", "--", "true").wants(t, exitUsage)
		f.mortise("run", "-nonsense", "k", "--", "true").wants(t, exitUsage)
		f.mortise("run", "k", "--", "no-such-command-anywhere").wants(t, exitNotFound)
		broken := filepath.Join(f.dir, "broken")
		if err := os.WriteFile(broken, []byte("\x7fELF nonsense"), 0o700); err != nil {
			t.Fatal(err)
		}
		f.mortise("run", "k", "--", broken).wants(t, exitCannotRun)
		f.mortise("nonsense").wants(t, exitUsage)
	})
	t.Run("guests count for nothing", func(t *testing.T) {
		f := f.in(t)
		defer f.begin("exec sleep 1000", "jobs/10").end()
		f.says([]string{"status"}, exitOK, "3 voters wanted of 3 eligible instances")
		s := f.mortise("status")
		if strings.Contains(s.out, "differs") || strings.Contains(s.out, "tester") {
			t.Errorf("a guest is counted:\n%s", s.out)
		}
		f.doctorSays(exitOK, "well: ")
	})
}

func (f *fleet) waiting(key string, n int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprint(n, " waiting for ", key), func() error {
		if s := f.mortise("ls", key); !strings.Contains(s.out, fmt.Sprintf("  %d  ", n)) {
			return errors.New(s.out + s.errs)
		}
		return nil
	})
}

// The process of the holder does not release its lock. When an operator ends the hold, the command
// of the holder gets SIGTERM, then SIGKILL.
func TestAStuckHolder(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	notes := filepath.Join(f.dir, "notes")
	stuck := f.begin("trap 'echo asked >> "+notes+"' TERM; echo set; while :; do sleep 0.02; done", "-kill-after",
		"500ms", "orders/42")
	if line, err := stuck.out.ReadString('\n'); line != "set\n" {
		t.Fatal(line, err)
	}
	next := f.command("run", "orders/42", "--", "echo", "my", "turn")
	got := make(chan said, 1)
	go func() { got <- f.finish(next) }()
	f.waiting("orders/42", 1)

	f.says([]string{"doctor", "orders/42"}, exitOK, "orders/42: tester holds it for",
		"mortise unlock --force orders/42 --token ")
	s := f.mortise("get", "orders/42").wants(t, exitOK, "waits for 0", "mortise unlock --force orders/42 --token ")
	_, way, _ := strings.Cut(s.out, "mortise unlock ")
	words := strings.Fields(way) // way contains: --force orders/42 --token T --reason "..."
	token := words[3]
	f.mortise("unlock", "orders/42", "--token", token, "--reason", "x").wants(t, exitUsage, "--force is missing")
	f.mortise("unlock", "--force", "orders/42", "--reason", "x").wants(t, exitUsage, "--token is missing")
	f.mortise("unlock", "--force", "orders/42", "--token", token).wants(t, exitUsage, "--reason is missing")
	f.mortise("unlock", "--force", "orders/42", "--token", "7", "--reason", "a wrong one").wants(t, exitNo,
		"nothing was ended")
	f.mortise("unlock", "--force", "orders/42", "--token", token, "--reason", "stuck since noon").wants(t, exitOK,
		"has ended")

	if code := stuck.code(t); code != exitLost {
		t.Errorf("the stuck run ends with %d", code)
	}
	if text := stuck.errs.String(); !strings.Contains(text, "stuck since noon") || !strings.Contains(text, "killed") {
		t.Errorf("it says %q", text)
	}
	if text, err := os.ReadFile(notes); string(text) != "asked\n" {
		t.Errorf("its command was asked %q to end, %v", text, err)
	}
	if alive(stuck.pid) {
		t.Error("its command still runs")
	}
	(<-got).wants(t, exitOK, "my turn")
	f.mortise("get", "orders/42").wants(t, exitOK, "is free")
}

// Without a majority the lease expires, and run ends its command.
func TestTheLockIsLostWithTheCluster(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a", "b", "c")
	r := f.begin("trap 'exit 0' TERM; while :; do sleep 0.02; done", "jobs/1")
	for _, a := range f.agents {
		a.kill()
	}
	began := time.Now()
	if code := r.code(t); code != exitLost {
		t.Errorf("code %d", code)
	}
	t.Logf("the command was asked to end %v after the end of the cluster", time.Since(began).Round(time.Millisecond))
	if text := r.errs.String(); !strings.Contains(text, "the lock was lost") {
		t.Errorf("it says %q", text)
	}
	f.mortise("run", "-n", "jobs/1", "--", "echo", "never").wants(t, exitNotReady, "no process listens there")
	f.mortise("run", "-w", "200ms", "jobs/1", "--", "echo", "never").wants(t, exitNotReady)
}
