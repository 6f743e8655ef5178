package mortiseserver_test

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss:        "httplock.TestALostLockEndsTheHandler grpclock.TestALostLockEndsTheHandler",
		plugs.Sentinels:   "httplock.TestAnswersWithoutTheLock grpclock.TestCodes",
		plugs.GivenUp:     "httpleader.TestStreamsAndCancellation httplock.TestARequestThatHasGivenUp grpclock.TestCodes",
		plugs.Unscheduled: plugs.None + "requests have no schedule",
		plugs.SameName:    "httplock.TestOneRequestAtATime grpclock.TestOneCallAtATime",
		plugs.Replaced:    "httplock.TestARequestIsRepeatedAfterALoss httplock.TestAnUnreachableGroup",
		plugs.Restarted:   plugs.None + "a lock has no identity of its process; TestAProcessIsKilledInItsHandler kills one",
		plugs.Words:       "httplock.TestARequestThatHasGivenUp httplock.TestAnswersWithoutTheLock grpclock.TestCodes",
	}.Check(t, ".")
}
