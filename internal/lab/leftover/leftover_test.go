package leftover

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// leaving is set in a test binary whose only test leaves processes.
const leaving = "TESTS_OF_MORTISE_LEAVE"

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// TestLeaves is no test, but what TestProcessesThatAreLeftAreNamed runs. One process is a child; of
// the other the parent has ended.
func TestLeaves(t *testing.T) {
	if os.Getenv(leaving) == "" {
		t.Skip("it runs in TestProcessesThatAreLeftAreNamed")
	}
	if err := exec.Command("sleep", "71").Start(); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("sh", "-c", "setsid sleep 72 >/dev/null 2>&1 & sleep 0.1").Run(); err != nil {
		t.Fatal(err)
	}
}

func TestProcessesThatAreLeftAreNamed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the processes")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(program, "-test.run", "^TestLeaves$")
	run.Env = append(os.Environ(), leaving+"=1")
	begun := time.Now()
	out, err := run.CombinedOutput()
	for _, command := range []string{"sleep 71", "sleep 72"} {
		if !strings.Contains(string(out), "still runs: "+command) {
			t.Errorf("%q is not named: %v\n%s", command, err, out)
		}
	}
	if took := time.Since(begun); err == nil || took > time.Minute {
		t.Errorf("after %v: %v", took, err)
	}
	for _, p := range find(fmt.Sprint(run.Process.Pid)) {
		t.Errorf("process %d still runs: %s", p.id, p.command)
	}
}

func TestNothingIsLeftOfEndedProcesses(t *testing.T) {
	if err := exec.Command("true").Run(); err != nil {
		t.Fatal(err)
	}
	if left := find(fmt.Sprint(os.Getpid())); len(left) > 0 {
		t.Errorf("%+v", left)
	}
}
