//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRunOfWorkThatHangs has commands with -max-idle, and locks with what else run can ask for.
func TestRunOfWorkThatHangs(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a")
	t.Run("it moves, then hangs", func(t *testing.T) {
		f := f.in(t)
		const idle = 2 * time.Second
		done := filepath.Join(f.dir, "done")
		// A child of the command touches the file.
		r := f.begin(`trap 'echo asked; exit 3' TERM; ls -l "$MORTISE_BEAT"; ls -ld "${MORTISE_BEAT%/*}"; echo "$MORTISE_BEAT"
while [ ! -e "`+done+`" ]; do sh -c 'touch "$MORTISE_BEAT"'; sleep 0.02; done
echo hangs; while :; do sleep 0.02; done`, "-max-idle", idle.String(), "-lock-delay", "1h", "works/1")
		defer r.end()
		line := func() string {
			t.Helper()
			text, err := r.out.ReadString('\n')
			if err != nil {
				t.Fatal(err, r.errs.String())
			}
			return strings.TrimSpace(text)
		}
		file, dir, path := line(), line(), line()
		if !strings.HasPrefix(file, "-rw------- ") || !strings.HasPrefix(dir, "drwx------ ") {
			t.Errorf("other users reach the file:\n%s\n%s", file, dir)
		}
		time.Sleep(idle + idle/2) // twice as long as the longest pause may last after its beginning
		f.mortise("run", "-n", "works/1", "--", "echo", "never").wants(t, exitBusy, "tester")
		if err := os.WriteFile(done, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, want := range []string{"hangs", "asked"} {
			if got := line(); got != want {
				t.Fatalf("it prints %q, want %q", got, want)
			}
		}
		t.Logf("with -max-idle %v the command was asked to end after %v", idle, time.Since(began))
		if code := r.code(t); code != exitLost {
			t.Errorf("code %d", code)
		}
		for _, want := range []string{"the lock was lost: the command has not touched the file in MORTISE_BEAT for 2s " +
			"(-max-idle): the command is asked to end, and killed in 5s",
			"the lock was lost, and the command has ended: exit code 3"} {
			if !strings.Contains(r.errs.String(), want) {
				t.Errorf("it says %q, want %q", r.errs.String(), want)
			}
		}
		if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is left: %v", err)
		}
		f.mortise("run", "-n", "works/1", "--", "echo", "never").wants(t, exitBusy) // for its lock delay
		f.mortise("audit").wants(t, exitOK, "works/1", "it was idle")
	})
	t.Run("it removes its file, and stays", func(t *testing.T) {
		f := f.in(t)
		f.mortise("run", "-max-idle", "2s", "-kill-after", "100ms", "works/2", "--", "sh", "-c",
			`rm "$MORTISE_BEAT"; trap '' TERM; while :; do sleep 0.02; done`).wants(t, exitLost,
			"(-max-idle), and the file is gone", "ended by signal 9")
		f.mortise("run", "-n", "works/2", "--", "true").wants(t, exitOK)
	})
	t.Run("it ends in time", func(t *testing.T) {
		f := f.in(t)
		s := f.mortise("run", "-max-idle", "1m", "-lock-delay", "1h", "works/3", "--", "sh", "-c",
			`rm -r "${MORTISE_BEAT%/*}"; exit 7`).wants(t, 7)
		if s.errs != "" {
			t.Errorf("it says %q", s.errs)
		}
		f.mortise("run", "-n", "works/3", "--", "true").wants(t, exitOK) // a lock delay is for a loss
	})
	t.Run("no file can be made", func(t *testing.T) {
		f := f.in(t)
		cmd := f.command("run", "-max-idle", "1m", "works/4", "--", "echo", "never")
		cmd.Env = append(cmd.Env, "TMPDIR="+filepath.Join(f.dir, "nowhere"))
		if s := f.finish(cmd).wants(t, exitFailed, "no file to touch for -max-idle", "set TMPDIR"); s.out != "" {
			t.Errorf("the command ran: %q", s.out)
		}
	})
	t.Run("several keys, and a tree", func(t *testing.T) {
		f := f.in(t)
		r := f.begin("echo $MORTISE_KEY ${MORTISE_BEAT-none}; exec sleep 1000", "-tree", "works/5/a", "-also",
			"works/6,mode=shared", "-also", "works/7")
		defer r.end()
		if line, err := r.out.ReadString('\n'); line != "works/5/a none\n" {
			t.Errorf("the command was told %q, %v", line, err)
		}
		for _, key := range []string{"works/5/a", "works/5", "works/6", "works/7"} {
			f.mortise("run", "-n", key, "--", "true").wants(t, exitBusy)
		}
		f.mortise("run", "-n", "-mode", "shared", "works/6", "--", "true").wants(t, exitOK)
		f.mortise("run", "-n", "-tree", "works/5/b", "--", "true").wants(t, exitOK)
	})
	t.Run("a run in a run", func(t *testing.T) {
		f := f.in(t)
		outer := filepath.Join(f.dir, "outer")
		if err := os.WriteFile(outer, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		long := time.Now().Add(-time.Hour)
		if err := os.Chtimes(outer, long, long); err != nil {
			t.Fatal(err)
		}
		cmd := f.command("run", "-max-idle", "1m", "works/8", "--", "sh", "-c", "echo $MORTISE_BEAT")
		cmd.Env = append(cmd.Env, "MORTISE_BEAT="+outer)
		if s := f.finish(cmd).wants(t, exitOK); strings.TrimSpace(s.out) == outer {
			t.Error("the command has the file of the outer run, and would not beat for its own")
		}
		cmd = f.command("run", "works/8", "--", "sh", "-c", "echo $MORTISE_BEAT")
		cmd.Env = append(cmd.Env, "MORTISE_BEAT="+outer)
		f.finish(cmd).wants(t, exitOK, outer+"\n")
	})
}

// beaten is a beatFile whose beats are counted.
func beaten(t *testing.T, environ ...string) *beatFile {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	b, err := newBeatFile(environ, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.remove(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func touch(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsATouch looks at the file after each change of it.
func TestWhatIsATouch(t *testing.T) {
	outer := filepath.Join(t.TempDir(), "outer")
	if err := os.WriteFile(outer, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := beaten(t, "A=b", beatName+"="+outer)
	now := time.Now()
	write := func(path string, at time.Time) func() {
		return func() {
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			touch(t, path, at)
		}
	}
	log := filepath.Join(t.TempDir(), "log")
	for _, row := range []struct {
		what   string
		change func()
		want   bool
	}{
		{"nothing", func() {}, false},
		{"a touch", func() { touch(t, b.path, now.Add(time.Second)) }, true},
		{"nothing since", func() {}, false},
		{"several touches at one time", func() {
			touch(t, b.path, now.Add(2*time.Second))
			touch(t, b.path, now.Add(2*time.Second))
		}, true},
		{"after the clock has stepped back", func() { touch(t, b.path, now.Add(-time.Hour)) }, true},
		{"removed", func() { _ = os.Remove(b.path) }, false},
		{"still missing", func() {}, false},
		{"created again", write(b.path, now.Add(3*time.Second)), true},
		{"removed with its directory", func() { _ = os.RemoveAll(filepath.Dir(b.path)) }, false},
		{"the directory alone", func() { _ = os.Mkdir(filepath.Dir(b.path), 0o700) }, false},
		{"a log in its place", func() {
			write(log, now)()
			if err := os.Symlink(log, b.path); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"the log grows", write(log, now.Add(time.Second)), true},
		{"the log rests", func() {}, false},
	} {
		touch(t, outer, now)
		row.change()
		got := b.touched()
		at, err := touchedAt(outer)
		if got != row.want || err != nil || at.Equal(now) == row.want {
			t.Errorf("%s: %v, want %v; the outer file was touched: %v, %v", row.what, got, row.want, !at.Equal(now), err)
		}
		if missing := strings.Contains(row.what, "missing") || strings.Contains(row.what, "removed") ||
			row.what == "the directory alone"; b.gone.Load() != missing {
			t.Errorf("%s: the file is gone: %v", row.what, b.gone.Load())
		}
	}
}

// TestTheEnvironmentOfACommand checks which variables a command gets.
func TestTheEnvironmentOfACommand(t *testing.T) {
	before := []string{"A=b", "MORTISE_TOKEN=1", "MORTISE_KEY=outer", "MORTISE_BEAT=/outer", "MORTISE_BEATS=x"}
	for own, want := range map[string]string{
		"MORTISE_TOKEN=7 MORTISE_KEY=k": "A=b MORTISE_BEAT=/outer MORTISE_BEATS=x MORTISE_TOKEN=7 MORTISE_KEY=k",
		"MORTISE_TOKEN=7 MORTISE_KEY=k MORTISE_BEAT=/own": "A=b MORTISE_BEATS=x MORTISE_TOKEN=7 MORTISE_KEY=k " +
			"MORTISE_BEAT=/own",
	} {
		if got := childEnviron(before, strings.Fields(own)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q, want %s", got, want)
		}
	}
}

// TestWatchEndsWithTheCommand counts the beats for a file, and checks that the goroutine ends.
func TestWatchEndsWithTheCommand(t *testing.T) {
	b := beaten(t)
	b.every = time.Millisecond
	beats := make(chan struct{}, 1)
	b.watch(func() { beats <- struct{}{} })
	for i := range 3 {
		touch(t, b.path, time.Now().Add(time.Duration(i+1)*time.Hour))
		select {
		case <-beats:
		case <-time.After(patience):
			t.Fatal("a touch is no beat")
		}
	}
	b.stop()
	b.watching.Wait() // else this test does not end
	touch(t, b.path, time.Now().Add(-time.Hour))
	if len(beats) > 0 {
		t.Error(fmt.Sprint("a beat after the end: ", len(beats)))
	}
}
