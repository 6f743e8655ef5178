package mortisedropin_test

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/plugs"
)

func TestTheHostsContract(t *testing.T) {
	plugs.Answers{
		plugs.Loss: "concurrency.TestALoopThatReplacesLostSessions redsync.TestGivingUpAndGoingOn " +
			"redislock.TestWordsOfErrors",
		plugs.Sentinels: "concurrency.TestMutexesExclude concurrency.TestElections concurrency.TestCloseAfterALoss " +
			"redsync.TestWordsOfErrors redislock.TestWordsOfErrors redislock.TestTheTTLFreesTheLock",
		plugs.GivenUp: "concurrency.TestACallerThatHasGivenUp redsync.TestGivingUpAndGoingOn " +
			"redislock.TestWordsOfErrors",
		plugs.Unscheduled: plugs.None + "the libraries have no schedule",
		plugs.SameName:    "concurrency.TestMutexesExclude redsync.TestWordsOfErrors redislock.TestWordsOfErrors",
		plugs.Replaced:    "concurrency.TestALoopThatReplacesLostSessions concurrency.TestASessionThatIsLost",
		plugs.Restarted:   plugs.None + "a lock has no identity of its process; TestAProcessIsKilled kills one",
		plugs.Words: "redsync.TestWordsOfErrors redislock.TestWordsOfErrors concurrency.TestACallerThatHasGivenUp " +
			"concurrency.TestTheWarningOfAShorterLease",
	}.Check(t, ".")
}
