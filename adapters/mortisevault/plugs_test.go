package mortisevault

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "TestTheLoss",
		plugs.Sentinels:   plugs.None + "Vault's SDK has no errors of locks; a stopped Lock returns nil and nil",
		plugs.GivenUp:     "TestStopEndsTheWait TestAServerThatHasGivenUp",
		plugs.Unscheduled: plugs.None + "an active server has no schedule",
		plugs.SameName:    "TestASecondLock TestTheValue",
		plugs.Replaced:    "TestTheLoss TestANodeLeaves",
		plugs.Restarted:   plugs.None + "Vault makes a new value for each lock; TestTheActiveProcessIsKilled kills one",
		plugs.Words:       "TestAServerThatHasGivenUp",
	}.Check(t, ".")
}
