package mortisemigrate

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "TestNothingIsDoneAfterALoss TestWordsOfErrors",
		plugs.Sentinels:   "TestLock TestWordsOfErrors TestAMigrateThatHasGivenUp",
		plugs.GivenUp:     "TestAMigrateThatHasGivenUp TestALockInUseIsKept",
		plugs.Unscheduled: "TestThreeNodesMigrate TestAMigrateThatHasGivenUp",
		plugs.SameName:    "TestLock",
		plugs.Replaced:    "TestNothingIsDoneAfterALoss",
		plugs.Restarted:   plugs.None + "a lock has no identity of its process; TestAProcessIsKilled kills one",
		plugs.Words:       "TestWordsOfErrors",
	}.Check(t, ".")
}
