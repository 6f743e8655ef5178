package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo stands for the go command: it builds the fake binary below, or fails like an anchor that
// does not fit.
const fakeGo = `#!/bin/sh
[ "$FAKE_GO" != fails ] || { echo "no anchor" >&2; exit 1; }
if [ "$FAKE_GO" = slow ]; then # until the script has said twice that it still builds, or for 20 s
  for i in $(seq 200); do
    [ "$(grep -c 'still building' "$FAKE_DIR/out")" -lt 2 ] || break
    sleep 0.1
  done
fi
if [ "$1" = build ]; then # the command that shows a seed
  printf '#!/bin/sh\necho "shows $*"\n' >"$3"
  chmod +x "$3"
  exit 0
fi
echo "$*" >"$FAKE_DIR/built"
echo "$FAKE_DIR/binary"
`

// fakeBinary stands for the tests. With the bug "planted" seed 4 does not end, and seed 3 fails
// when seed 4 runs, or after 10 s if there is only one processor. With the bug "differs" seed 40
// differs each time.
const fakeBinary = `#!/bin/sh
echo "$MORTISE_SEED" >>"$FAKE_DIR/ran"
env >>"$FAKE_DIR/environ"
hash=same
[ "$PLANTED_BUG$MORTISE_SEED" != differs40 ] || hash=$(wc -l <"$FAKE_DIR/ran")
echo "transcript of $MORTISE_SEED $hash" >"$MORTISE_TRANSCRIPT"
if [ "$PLANTED_BUG$MORTISE_SEED" = planted4 ]; then
  echo $$ >"$FAKE_DIR/endless"
  exec sleep 1000
fi
if [ "$PLANTED_BUG$MORTISE_SEED" = planted3 ]; then
  for i in $(seq 100); do
    [ ! -s "$FAKE_DIR/endless" ] || break
    sleep 0.1
  done
  echo "seed 3: 1 bugs, the first: two hold a lock"
  exit 1
fi
`

// TestScript runs scripts/whole with a fake Go.
func TestScript(t *testing.T) {
	for _, c := range []struct {
		name  string
		args  []string
		build string // what Go does: "fails", or "slow"
		code  int
		has   []string
		ran   int // processes
	}{
		{"all pass", []string{"-n", "50"}, "", 0, []string{"50 seeds passed", "from 1 on"}, 52},
		{"from another seed", []string{"-n", "5", "-seed", "41"}, "", 0, []string{"5 seeds passed", "from 41 on"}, 5},
		{"twice", []string{"-n", "5", "-twice"}, "", 0, []string{"5 seeds passed"}, 10},
		{"transcripts", []string{"-n", "1", "-v"}, "", 0, []string{"transcript of 1 same"}, 1},
		{"a bug is found", []string{"-n", "9", "-bug", "planted"}, "", 1, []string{"transcript of 3",
			"the first: two hold a lock", "scripts/whole -n 1 -seed 3 -v -bug planted repeats it"}, -1},
		{"a page of a bug", []string{"-n", "9", "-bug", "planted", "-p", "P.html"}, "", 1, []string{
			"-seed 3 -dir ", "/3.log -command ", "scripts/whole -n 1 -seed 3 -bug planted -p PAGE P.html"}, -1},
		{"a page of nothing", []string{"-n", "2", "-p", "P.html"}, "", 0, []string{"2 seeds passed"}, 2},
		{"a bug is not found", []string{"-n", "2", "-bug", "planted"}, "", 0, []string{"2 seeds passed"}, 2},
		{"a run differs", []string{"-n", "9", "-seed", "40", "-bug", "differs"}, "", 1,
			[]string{"seed 40 is not the same run twice", "< transcript of 40", "> transcript of 40"}, -1},
		{"unknown flag", []string{"-x"}, "", 2, []string{"scripts/whole [-n COUNT]", "-bug NAME", "is written."}, 0},
		{"no build", nil, "fails", 1, []string{"about a minute", "no anchor"}, 0},
		{"a slow build", []string{"-n", "1"}, "slow", 0,
			[]string{"about a minute", "still building, for", "1 seeds passed"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{"go": fakeGo, "binary": fakeBinary, "ran": ""} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			script := exec.Command("../../../../scripts/whole", c.args...)
			script.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "FAKE_DIR="+dir, "FAKE_GO="+c.build,
				"MORTISE_TELL=0.1")
			to, err := os.Create(filepath.Join(dir, "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			script.Stdout, script.Stderr = to, to
			_ = script.Run()
			out, err := os.ReadFile(to.Name())
			if err != nil {
				t.Fatal(err)
			}
			if code := script.ProcessState.ExitCode(); code != c.code {
				t.Errorf("ends with %d, want %d:\n%s", code, c.code, out)
			}
			for _, text := range c.has {
				if !strings.Contains(string(out), text) {
					t.Errorf("does not print %q:\n%s", text, out)
				}
			}
			ran, err := os.ReadFile(filepath.Join(dir, "ran"))
			if n := strings.Count(string(ran), "\n"); err != nil || c.ran >= 0 && n != c.ran {
				t.Errorf("%d processes, want %d; %v", n, c.ran, err)
			}
			environ, err := os.ReadFile(filepath.Join(dir, "environ"))
			for _, v := range Environ() {
				if err == nil && !strings.Contains(string(environ), v+"\n") {
					t.Errorf("a process has no %s", v)
				}
			}
			if pid, err := os.ReadFile(filepath.Join(dir, "endless")); err == nil {
				if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
					t.Errorf("process %s is left behind", pid)
				}
			}
			built, _ := os.ReadFile(filepath.Join(dir, "built"))
			planted := strings.Contains(string(built), "-planted")
			if bug := strings.Contains(strings.Join(c.args, " "), "-bug"); planted != bug {
				t.Errorf("built with %q", built)
			}
		})
	}
}
