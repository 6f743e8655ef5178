//go:build linux

package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// What scripts/proctest says in the environment.
const (
	// "part", what every merge runs, or "all"; without it nothing is run, since this takes minutes
	wantEnv     = "MORTISE_PROCTEST"
	programsEnv = "MORTISE_PROCTEST_INSTANCES" // a directory with the program of the instances, and its next version
)

// The programs that instances run.
const (
	present = "instance"
	next    = "instance-next" // the same tree with the build tag nextrules: the version after this one
)

func TestMain(m *testing.M) {
	if os.Getenv(wantEnv) != "" {
		sweep()
	}
	os.Exit(m.Run())
}

// scope says in which runs a scenario takes part.
type scope int

const (
	always scope = iota // in every run
	whole               // not where time is short
)

// begin skips a scenario that is not asked for, or cannot be run here, and otherwise lets it run
// beside others.
func begin(t *testing.T, s scope) {
	t.Helper()
	switch want := os.Getenv(wantEnv); {
	case want == "":
		t.Skip("process tests run by scripts/proctest")
	case want == "part" && s == whole:
		t.Skip("left out of scripts/proctest -part")
	}
	if missing := missing(); missing != "" {
		t.Skipf("*** SKIPPED: process tests need root, the command ip and network namespaces: %s ***", missing)
	}
	t.Parallel()
}

// missing says what this machine lacks, or nothing.
func missing() string {
	if os.Getuid() != 0 {
		return "not root"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "no ip: apt-get install -y --no-install-recommends iproute2"
	}
	probe := fmt.Sprintf("%s-probe", runName())
	if out, err := exec.Command("ip", "netns", "add", probe).CombinedOutput(); err != nil {
		return fmt.Sprintf("ip netns add: %s", out)
	}
	_ = exec.Command("ip", "netns", "del", probe).Run()
	return ""
}
