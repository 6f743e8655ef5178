package mortisegoose

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "TestALostLockEndsTheSession TestUpAfterALoss",
		plugs.Sentinels:   plugs.None + "goose's errors of locks mean that its database has none; others it passes on",
		plugs.GivenUp:     "TestAProviderThatHasGivenUp TestUnlockWithoutLock",
		plugs.Unscheduled: "TestProvidersOfThreeNodes",
		plugs.SameName:    "TestProvidersShareALocker",
		plugs.Replaced:    "TestUpAfterALoss",
		plugs.Restarted:   plugs.None + "a lock has no identity of its process; TestAProcessIsKilledInAMigration kills one",
		plugs.Words:       "TestAProviderThatHasGivenUp TestUpAfterALoss",
	}.Check(t, ".")
}
