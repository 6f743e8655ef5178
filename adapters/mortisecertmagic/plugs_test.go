package mortisecertmagic

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "TestALossBetweenTwoAttempts TestALostLockIsNotUnlockedTwice",
		plugs.Sentinels:   plugs.None + "CertMagic has no errors of locks; TestTryLock shows a lock that is held",
		plugs.GivenUp:     "TestACallerThatHasGivenUp",
		plugs.Unscheduled: "TestALossBetweenTwoAttempts",
		plugs.SameName:    "TestTwoCallersOfOneName TestOneHolderAtATime",
		plugs.Replaced:    "TestALossBetweenTwoAttempts",
		plugs.Restarted:   plugs.None + "a lock has no identity of its process; TestAProcessIsKilledInAnOrder kills one",
		plugs.Words:       "TestWordsOfErrors",
	}.Check(t, ".")
}
