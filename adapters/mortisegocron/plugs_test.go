package mortisegocron

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "TestALossDuringARun",
		plugs.Sentinels:   plugs.None + "gocron compares no error of a Locker or an Elector",
		plugs.GivenUp:     "TestACallThatHasGivenUp",
		plugs.Unscheduled: "TestAManualRunTakesNoTick TestTurns",
		plugs.SameName:    "TestTwoJobsOfOneName",
		plugs.Replaced:    "TestALossDuringARun TestTheLeaderRunsTheJobs",
		plugs.Restarted:   plugs.None + "a run has no identity of its process; TestAProcessIsKilled kills one",
		plugs.Words:       "TestACallThatHasGivenUp TestAJobOfAnotherPeriod TestTwoJobsOfOneName",
	}.Check(t, ".")
}
