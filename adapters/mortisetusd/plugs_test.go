package mortisetusd

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "TestALostLock TestRequestsAfterAnEnd",
		plugs.Sentinels:   "TestTheTimeout",
		plugs.GivenUp:     "TestTheTimeout TestRequestsAfterAnEnd",
		plugs.Unscheduled: plugs.None + "uploads have no schedule",
		plugs.SameName:    "TestTheHolderUnlocksOnRequest TestAQueueOfCallers",
		plugs.Replaced:    "TestRequestsAfterAnEnd TestANodeLeaves",
		plugs.Restarted:   plugs.None + "a lock has no identity of its process; TestAProcessIsKilledInAnUpload kills one",
		plugs.Words:       "TestRequestsAfterAnEnd TestTheTimeout",
	}.Check(t, ".")
}
