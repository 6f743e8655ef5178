package mortisekubernetes

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "TestALostLockIsNotTakenAgain TestIsLeaderEndsWithTheLock TestTheNextLeader",
		plugs.Sentinels:   "TestErrors TestWordsOfErrors",
		plugs.GivenUp:     "TestACandidateThatHasGivenUp",
		plugs.Unscheduled: plugs.None + "an election has no schedule",
		plugs.SameName:    "TestTwoPodsOfOneIdentity",
		plugs.Replaced:    "TestALostLockIsNotTakenAgain TestIsLeaderEndsWithTheLock",
		plugs.Restarted:   "TestARestartedPodDoesNotLeadBeforeItHasTheLock",
		plugs.Words:       "TestWordsOfErrors TestOtherErrors",
	}.Check(t, ".")
}
