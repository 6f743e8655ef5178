//go:build linux

package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/leftover"
)

// scripts/proctest sets these variables.
const (
	// "part" runs the scenarios that run on every merge, and "all" runs all scenarios. Without a
	// value no scenario runs.
	wantEnv     = "MORTISE_PROCTEST"
	programsEnv = "MORTISE_PROCTEST_INSTANCES" // directory of the programs below
)

// The programs that instances run.
const (
	present = "instance"
	next    = "instance-next" // built with the tag nextrules, as the next version
)

func TestMain(m *testing.M) {
	if os.Getenv(wantEnv) != "" {
		sweep()
	}
	os.Exit(leftover.Run(m))
}

type scope int

const (
	always scope = iota // in every run
	whole               // only in runs of all scenarios
	alone               // like whole, and while no other scenario runs
)

// begin skips a scenario that is not selected, or that this machine cannot run. All others run in
// parallel.
func begin(t *testing.T, s scope) {
	t.Helper()
	switch want := os.Getenv(wantEnv); {
	case want == "":
		t.Skip("process tests run by scripts/proctest")
	case want == "part" && s != always:
		t.Skip("left out of scripts/proctest -part")
	}
	if missing := missing(); missing != "" {
		t.Skipf("*** SKIPPED: process tests need root, the command ip and network namespaces: %s ***", missing)
	}
	if s != alone {
		t.Parallel()
	}
}

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
