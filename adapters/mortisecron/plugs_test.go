package mortisecron

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "TestALossDuringARun",
		plugs.Sentinels:   plugs.None + "cron gets no error of a job",
		plugs.GivenUp:     "TestACallThatHasGivenUp",
		plugs.Unscheduled: "TestACallByHand",
		plugs.SameName:    "TestTwoJobsOfOneName",
		plugs.Replaced:    "TestALossDuringARun",
		plugs.Restarted:   plugs.None + "a run has no identity of its process; TestAProcessIsKilled kills one",
		plugs.Words:       "TestTwoJobsOfOneName TestACallThatHasGivenUp TestSchedulesThatAreRefused",
	}.Check(t, ".")
}
