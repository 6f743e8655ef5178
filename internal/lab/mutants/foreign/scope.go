package main

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise/internal/lab/mutants"
	"github.com/mortise-lock/mortise/internal/lab/mutants/binaries"
)

// area is a part of the tree from which mutations are drawn.
type area struct {
	name string
	dirs []string
}

// areas returns all areas, from which equally many mutations are drawn: the shells of the cores,
// the code between the parts, the packages over the root, the programs and the adapters. Cores are
// left out, since the simulations cover them.
func areas() []area {
	return []area{
		{name: "shells", dirs: []string{"transport", "session/client", "session/keeper", "cluster",
			"cluster/gossip/swim", "cluster/discovery", "raftlog", "raftlog/storage", "internal/credentials",
			"internal/guest", "internal/trace"}},
		{name: "glue", dirs: []string{"internal/instance", "internal/replica", "internal/queries", "."}},
		{name: "satellites", dirs: []string{"election", "keep", "tick", "shard", "presence", "barrier", "counter",
			"keys", "flight", "stripe", "fence", "fence/grpcfence", "locker", "mortisetest", "internal/hold"}},
		{name: "programs", dirs: []string{"cmd/mortise", "console", "judge", "judge/cmd/mortise-judge"}},
		{name: "adapters", dirs: []string{"adapters/mortisecertmagic", "adapters/mortisecollector",
			"adapters/mortisecron",
			"adapters/mortisedropin/concurrency",
			"adapters/mortisedropin/internal/hold", "adapters/mortisedropin/redislock",
			"adapters/mortisedropin/redsync", "adapters/mortisegocron", "adapters/mortisegoose",
			"adapters/mortisekubernetes", "adapters/mortisemigrate", "adapters/mortiseotel",
			"adapters/mortisepair", "adapters/mortiseserver/grpclock", "adapters/mortiseserver/httpleader",
			"adapters/mortiseserver/httplock", "adapters/mortiseserver/internal/serial",
			"adapters/mortisetusd", "adapters/mortisevault", "adapters/mortisevet/rules"}},
	}
}

// suite is a test binary with the tests that it runs against a mutation.
type suite struct {
	pkg, run, skip string
	env            string // the variables, with spaces between
	wide           bool   // it runs only against what the tests of the mutated package miss
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
	`AnUpgradeSurvivesAFailover|SetValue|WatchTellsEverything|WatchGoesOn|ANodeIsALocker|AMarkTravelsWithTheLock|` +
	`UpgradesThatOnlySeemToCross` + `)$`

// notRun selects tests that judge the text of the sources or measure the machine.
const notRun = `^Test(Words|Scale|Scaling)$|Allocations|GeneratedCode|TenThousand|Handoffs|Benchmark|Chromium|` +
	`Browser|Postgres`

// suitesFor returns the suites that test a package, the package's own tests first. In the root
// module the layers of the planted bugs say which other tests cover it; in a nested module all
// other tests of the module do.
func suitesFor(dir string) []suite {
	all := []suite{{pkg: dir, skip: notRun}}
	if module := binaries.Module(dir); module != "." {
		for _, pkg := range tested(module) {
			if pkg != dir {
				all = append(all, suite{pkg: pkg, skip: notRun, wide: true})
			}
		}
		return all
	}
	for _, l := range mutants.Layers() {
		if !slices.Contains(l.Packages, dir) || l.Package == "internal/lab/e2e" || l.Package == dir {
			continue
		}
		skip := notRun
		if l.Skip != "" {
			skip += "|" + l.Skip
		}
		all = append(all, suite{l.Package, l.Run, skip, strings.Join(l.Env, " "), true})
	}
	if dir == "console" || dir == "internal/guest" {
		all = append(all, suite{pkg: "cmd/mortise", skip: notRun, wide: true})
	}
	if dir == "console" || dir == "cmd/mortise" { // no test of whole nodes imports them
		return all
	}
	return append(all, suite{pkg: "internal/lab/e2e", run: nodes, skip: notRun, wide: true})
}

// tested returns the packages with tests in the directory of a nested module.
func tested(module string) (all []string) {
	_ = filepath.WalkDir(module, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && binaries.Module(name) == module && hasTests(name) {
			all = append(all, name)
		}
		return nil // a directory that cannot be read has no tests
	})
	return all
}

func hasTests(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return err == nil && len(files) > 0
}
