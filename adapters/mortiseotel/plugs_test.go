package mortiseotel_test

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	const noLock = plugs.None + "OpenTelemetry takes no lock through this package"
	plugs.Answers{
		plugs.Loss:        "TestALossEndsTheHold",
		plugs.Sentinels:   noLock,
		plugs.GivenUp:     noLock,
		plugs.Unscheduled: noLock,
		plugs.SameName:    plugs.None + "nodes of one process differ by Options.Attributes",
		plugs.Replaced:    "TestALossEndsTheHold",
		plugs.Restarted:   plugs.None + "the SDK identifies the process; a hold ends with its span",
		plugs.Words:       noLock,
	}.Check(t, ".")
}
