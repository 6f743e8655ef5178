package mortisecollector

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "TestTheLoss TestNoStartBeforeTheFormerStop",
		plugs.Sentinels:   plugs.None + "the callbacks of k8sleaderelector have no errors",
		plugs.GivenUp:     "TestReceiversRegisterAtAnyTime TestTwoExtensionsOfOneKey",
		plugs.Unscheduled: plugs.None + "a receiver has no schedule here; TestReceiversRegisterAtAnyTime has a second Ready",
		plugs.SameName:    "TestTwoExtensionsOfOneKey",
		plugs.Replaced:    "TestTheLoss TestTheNodeLeaves",
		plugs.Restarted:   "TestARestartWithTheSameName",
		plugs.Words:       "TestANodeOfItsOwn TestConfig TestTheOtherConfig",
	}.Check(t, ".")
}
