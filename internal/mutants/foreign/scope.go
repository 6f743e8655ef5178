package main

import (
	"path"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise/internal/mutants"
)

// area is a part of the tree from which mutations are drawn.
type area struct {
	name string
	dirs []string
	// weight is the number of mutations that are drawn here in one round over all areas.
	weight int
}

// areas returns all areas: the shells of the cores, the code between the parts, the packages that
// use only the exported names of the root, the programs and the adapters. Cores are left out, since
// the simulations cover them.
func areas() []area {
	return []area{
		{name: "instance", dirs: []string{"internal/instance"}, weight: 4},
		{name: "transport", dirs: []string{"transport"}, weight: 3},
		{name: "replica", dirs: []string{"internal/replica"}, weight: 2},
		{name: "queries", dirs: []string{"internal/queries"}, weight: 2},
		{name: "session", dirs: []string{"session/client", "session/keeper"}, weight: 3},
		{name: "cluster", dirs: []string{"cluster", "cluster/gossip", "cluster/discovery"}, weight: 2},
		{name: "log", dirs: []string{"raftlog", "raftlog/storage"}, weight: 2},
		{name: "face", dirs: []string{".", "internal/credentials", "internal/guest", "internal/trace"}, weight: 2},
		{name: "satellites", dirs: []string{"election", "keep", "tick", "shard", "presence", "barrier", "counter", "keys",
			"flight", "stripe", "fence", "internal/hold"}, weight: 4},
		{name: "programs", dirs: []string{"cmd/mortise"}, weight: 3},
		{name: "adapters", dirs: []string{"adapters/mortiseotel", "adapters/mortisegocron",
			"adapters/mortisekubernetes", "adapters/mortisepair"}, weight: 1},
	}
}

// suite is a test binary with the tests that it runs against a mutation.
type suite struct {
	pkg, run, skip string
	env            string // the variables, with spaces between
}

// nodes selects the tests of whole nodes that run against every mutation that they reach: at least
// one of each subject.
const nodes = `^Test(` +
	`AGuestPutsData|AWaiterSeesItsPlace|CloseInEveryState|CloseEndsWaitsAndLocks|LeaveHandsOnAtOnce|` +
	`LeaveEndsWaitingCalls|PutComparesAndSets|DataStaysAndGoes|ABrokenDiskIsTold|AllDisksBroken|` +
	`ALockSurvivesAnOutageOfTheGroup|UnlockInDoubt|Downgrade|DurableGroupSurvivesTheLossOfAll|` +
	`DurableVoterVotesAgain|ContextEndsAWait|TryLockSaysWhoHolds|AGuardedPutNeedsTheHold|` +
	`HooksTellHowAcquireEnds|HooksTellWhyALockWasLost|HooksTellWhatBecomesOfTheNode|` +
	`HooksTellHowLongTheDiskTakes|HooksHearOfSessionsOfTheUsersOwn|RecordedHistoryIsRight|` +
	`CheckOfAKeptLock|ForceUnlockOfAKeptLock|ReadersShareAndWritersDoNot|SeveralKeysAtOnce|` +
	`MaxHoldEndsAHoldByTheClock|AHolderIsToldThatACallWaits|MembersAreTheLeadersTable|` +
	`PeekTellsTheQueue|CheckIsNeverOld|ForceUnlock|SessionsAreTold|LeaveHandsTheVoteOver|` +
	`LeaveSaysGoodbye|AMemberKeepsSpareLinks|GivingUpAtEveryStep|ReadyOfANodeThatEnds|` +
	`DurableVoterIsReplaced|PanicOfRaftCostsOnlyTheVote|RetirementAgainstRestart|` +
	`RightsAreCheckedTwice|ASessionOfOnesOwnHasItsOwnTTL|SessionsOutliveTheirLeader|` +
	`SessionsEndWithTheirNode|LeaderLeavesWithWaiters|ElectionHandsOver|` +
	`StickyIsLocalUntilItIsWanted|LaterInstanceUsesTheGroup|CrashedLeaderCostsOneFailover|` +
	`LocksOfSurvivorsOutliveTheLeader|ALiveHoldIsTakenOverOnlyWithForce|UnlockSoon|Upgrade|` +
	`AnUpgradeSurvivesAFailover|SetValue|WatchTellsEverything|WatchGoesOn|ANodeIsALocker` + `)$`

// notRun selects tests that judge the text of the sources or measure the machine.
const notRun = `Words|Allocations|GeneratedCode|TenThousand|Handoffs|Scale|Scaling|Benchmark|Chromium|Browser|Postgres`

// suitesFor returns the suites that test a package, the package's own tests first. The layers of
// the planted bugs say which other tests cover it.
func suitesFor(dir string) []suite {
	all := []suite{{pkg: dir, skip: notRun}}
	for _, l := range mutants.Layers() {
		if !slices.Contains(l.Packages, dir) || l.Package == "internal/e2e" || l.Package == dir {
			continue
		}
		skip := notRun
		if l.Skip != "" {
			skip += "|" + l.Skip
		}
		all = append(all, suite{l.Package, l.Run, skip, strings.Join(l.Env, " ")})
	}
	if path.Dir(dir) != "adapters" {
		all = append(all, suite{pkg: "internal/e2e", run: nodes, skip: notRun})
	}
	return all
}
