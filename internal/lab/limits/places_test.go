package limits

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What limits bound whose places nothing takes.
const (
	size  = "the size of one message, text, value or answer"
	kept  = "what is remembered: an older or further one is forgotten, and nothing is refused"
	group = "the state of the group: the tests of package lockfsm compare it with a model"
	shape = "a configuration or a plan, which is refused as a whole"
	paces = "the work of one turn, which goes on in the next"
)

// givenBack names for each limit a test of the same package that fills the limit, ends what it has
// taken, and sees that there is room again.
var givenBack = map[string]string{
	"cluster.maxAsks":                  "TestQuestionPlacesAreGivenBack",
	"cluster/gossip/swim.maxMembers":   "TestRosterGivesPlacesBack",
	"cmd/mortise.maxConns":             "TestWaitingConnectionsAreDisplaced",
	"cmd/mortise.maxLeases":            "TestLeasesAreGivenBack",
	"cmd/mortise.maxPrograms":          "TestPlacesComeBack",
	"cmd/mortise.maxPuts":              "TestRequestsToPutAreForgotten",
	"cmd/mortise.maxWatchers":          "TestWaitingConnectionsAreDisplaced",
	"cmd/mortise.turnsEach":            "TestRequestsAreBoundedForEachClient",
	"internal/instance.maxDiskReports": "TestDiskReportsAreGivenBack",
	"internal/instance.maxOwnSessions": "TestSessionsAreGivenBack",
	"internal/replica.asking":          "TestQuestionPlacesAreGivenBack",
	"internal/replica.waiters":         "TestQuestionPlacesAreGivenBack",
	"raftlog.maxStepBytes":             "TestStepIsBounded",
	"raftlog.maxStepMessages":          "TestStepIsBounded",
	"session/client.maxKeyBytes":       "TestOverload",
	"session/client.maxUnfinished":     "TestOverload",
	"session/keeper.maxAskers":         "TestAskersAreBounded",
	"session/stay.maxKeyBytes":         "TestStayRules",
	"session/stay.maxWaiting":          "TestCancelStorm",
	"transport.accepted":               "TestOneSecretHasAPartOfTheConnections",
	"transport.arrivalsEach":           "TestQuestionsAndAnswersAreBounded",
	"transport.byteCallsEach":          "TestGossipStreamsAreBounded",
	"transport.conns":                  "TestGossipStreamsAreBounded",
	"transport.connsEach":              "TestAskConnectionsAreBounded",
	"transport.heard":                  "TestAnswersAreBoundedForEachInstance",
	"transport.held":                   "TestQuestionsAndAnswersAreBounded",
	"transport.heldEach":               "TestQuestionsAndAnswersAreBounded",
	"transport.maxArrivals":            "TestQuestionsAndAnswersAreBounded",
	"transport.maxByteCalls":           "TestGossipStreamsAreBounded",
	"transport.maxDials":               "TestDialPlacesAreGivenBack",
	"transport.maxDuplicateBytes":      "TestDuplicatesAreBounded",
	"transport.maxHeld":                "TestQuestionsAndAnswersAreBounded",
	"transport.maxPacketCalls":         "TestGossipStreamsAreBounded",
	"transport.maxPauses":              "TestPausesAreBounded",
	"transport.maxQuestions":           "TestQuestionsAndAnswersAreBounded",
	"transport.maxTold":                "TestAnAnswerThatIsNotRead",
	"transport.packetCallsEach":        "TestGossipStreamsAreBounded",
	"transport.packets":                "TestGossipStreamsAreBounded",
	"transport.questions":              "TestQuestionsAndAnswersAreBounded",
	"transport.questionsEach":          "TestQuestionsAndAnswersAreBounded",
	"transport.snapshots":              "TestSnapshotsTogetherAreBounded",
	"transport.snapshotsAtOnce":        "TestSnapshotsTogetherAreBounded",
	"transport.states":                 "TestSnapshotsTogetherAreBounded",
	"transport.told":                   "TestAnAnswerThatIsNotRead",
	"transport.toldEach":               "TestAnAnswerThatIsNotRead",
}

// otherwise has the limits whose places nothing takes, by the reason.
var otherwise = map[string]string{
	size: "" +
		"barrier.maxName cluster.maxLabelBytes cluster.maxRecordBytes cluster.maxSiteBytes " +
		"cluster/discovery.MaxAddrBytes cluster/discovery.maxErrorBytes " +
		"cluster/discovery.maxListAddrs cluster/discovery.maxListBytes " +
		"cluster/discovery.maxPathBytes cluster/founding.maxAddrBytes cluster/founding.maxList " +
		"cluster/founding.maxMessageBytes cluster/founding.maxNameBytes " +
		"cluster/founding.maxReasonBytes cluster/founding.maxTextBytes cluster/founding.maxWhy " +
		"cluster/gossip.MaxAddrBytes cluster/gossip.MaxNameBytes cluster/gossip.MaxZoneBytes " +
		"cluster/gossip/swim.maxExchangeBytes cluster/gossip/swim.maxExchangeNodes " +
		"cluster/gossip/swim.maxMemberFields cluster/gossip/swim.maxMemberName cluster/gossip/swim.maxMetaBytes " +
		"cluster/gossip/swim.maxPacketBytes cluster/voters.maxNamed cluster/voters.maxNotes " +
		"cmd/mortise.maxBody cmd/mortise.maxIdleNoted cmd/mortise.maxIdleShown cmd/mortise.maxKeys " +
		"cmd/mortise.maxLastBytes cmd/mortise.maxName cmd/mortise.maxRequestID " +
		"console.maxCommands console.maxDepth console.maxEnds console.maxFound console.maxHolder " +
		"console.maxLease console.maxMembers console.maxPeeks console.maxQueue console.maxRows " +
		"console.maxShown console.maxStuck console.maxTop console.maxTrees console.maxWaiters " +
		"fence.maxName fence.maxResource internal/capability.MaxBytes " +
		"internal/capability.MaxLines internal/capability.maxName internal/credentials.maxDerived " +
		"internal/credentials.maxFile internal/instance.maxDiskText internal/queries.maxAddrBytes " +
		"internal/queries.maxByBytes internal/queries.maxListed internal/queries.maxNameBytes " +
		"internal/queries.maxTextBytes internal/replica.MaxFounderBytes internal/replica.MaxPage " +
		"internal/replica.maxDiffer internal/replica.maxEvents internal/replica.maxListQueue " +
		"internal/replica.maxNameBytes internal/replica.maxPeekQueue internal/replica.maxUnlisted " +
		"internal/replica.maxZoneBytes internal/tofu.maxBody internal/tofu.maxID " +
		"internal/tofu.maxName internal/variables.maxLinesBytes keys.maxBytes locker.maxKeyBytes " +
		"lockfsm.MaxDataBytes lockfsm.MaxFormerBytes lockfsm.MaxKeys lockfsm.MaxProof lockfsm.MaxRecordBytes " +
		"lockfsm.MaxSettingsBytes lockfsm.MaxValueBytes lockfsm.maxComplaints maxMarkBytes " +
		"maxIdleHolds maxSessions maxShownKey raftlog.maxContext raftlog.maxDuplicateBytes " +
		"raftlog/storage.maxFormer raftlog/storage.maxFrameBytes raftlog/storage.maxMetaBytes raftlog/storage.maxMetaName " +
		"raftlog/storage.maxSegmentBytes session.maxAddrBytes session/client.maxHeldKeys " +
		"shard.maxNamed tick.maxName transport.maxAddr transport.maxDuplicates " +
		"transport.maxEntries transport.maxLabel transport.maxRaft transport.maxStrange",
	kept: "" +
		"cmd/mortise.maxRefusals " +
		"cluster.maxAddrs cluster.maxLosses cluster.maxRemovedPeers cluster/discovery.maxTroubles " +
		"cluster/founding.maxAnswered cluster/founding.maxAskers cluster/founding.maxCalled " +
		"cluster/founding.maxFates cluster/founding.maxGaveUp cluster/founding.maxPlaces " +
		"cluster/founding.maxRivals cluster/founding.maxTips cluster/founding.maxUsed " +
		"cluster/gossip/swim.maxAliases cluster/voters.maxRetired cmd/mortise.maxGivenUp " +
		"internal/replica.maxDiffering internal/replica.maxRefused lockfsm.maxBufferItems lockfsm.maxFree lockfsm.maxSpare " +
		"raftlog.maxMarks raftlog.maxRecycle raftlog.maxUnreachable session/client.maxLapses " +
		"session/client.maxNonceTo tick.maxFinished transport.maxAddrs transport.maxSpares",
	group: "" +
		"lockfsm.MaxData lockfsm.MaxNumber lockfsm.MaxReserved lockfsm.maxAsked lockfsm.maxBudget " +
		"lockfsm.maxFoundedUnixMS lockfsm.maxRevision lockfsm.maxSearches",
	shape: "" +
		"barrier.maxSize cluster/founding.maxAt cluster/founding.maxSupersedes " +
		"cluster/founding.maxVoters cluster/founding.maxWall cluster/gossip/swim.maxAt " +
		"cluster/voters.maxReplicas cmd/mortise.maxDev cmd/mortise.maxPings internal/modes.MaxPermits " +
		"internal/queries.maxKind internal/queries.maxNumber internal/replica.MaxFounders " +
		"internal/replica.MaxReplicas internal/tofu.maxChanges internal/variables.maxBytes " +
		"maxBegin maxBudget maxWaiting raftlog.maxMembers session/client.maxTerm shard.maxCount " +
		"shard.maxWeight stripe.maxStripes tick.maxMissed transport.maxPreferred " +
		"transport.maxSilentKeepalives",
	paces: "" +
		"internal/queries.maxForeignPages " +
		"cluster/founding.maxMet cluster/founding.maxRound cluster/founding.maxSample " +
		"cluster/founding.maxSearch cluster/founding.maxSettle internal/guest.maxAsks " +
		"internal/guest.maxJoin internal/guest.maxPlaces lockfsm.maxLinks " +
		"raftlog.maxDuplicatesPerTick raftlog.maxGathers raftlog.maxTurnRounds " +
		"raftlog/storage.maxLogRecords session/client.maxExcuses session/client.maxGathers " +
		"session/client.movesAtOnce " +
		"transport.callsEach",
}

// limitName matches the constants that are limits by their name.
var limitName = regexp.MustCompile(`^[mM]ax[A-Z]|(Each|AtOnce)$`)

// tools are the directories of which no part belongs to a program of a user.
var tools = regexp.MustCompile(`^(\..*|testdata|adapters|bench|deploy|examples|judge|scripts|model|mortisetest)$|` +
	`^internal/(history|lab)$`)

// limitsOf returns the constants that are limits, and the places of package fair, with the package
// of each.
func limitsOf(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		local, _ := filepath.Rel(root, file)
		local = filepath.ToSlash(local)
		if d.IsDir() {
			if local != "." && (tools.MatchString(local) || tools.MatchString(filepath.Base(local))) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
			return nil
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(local))+".", "..")
		add := func(name string) { found[strings.TrimPrefix(pkg, ".")+name] = filepath.ToSlash(filepath.Dir(local)) }
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				if n.Tok == token.CONST {
					counted(set, n, add)
				}
			case *ast.KeyValueExpr:
				if call, ok := n.Value.(*ast.CallExpr); ok && text(set, call.Fun) == "fair.New" {
					add(text(set, n.Key))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// counted adds the limits of a declaration that are no times.
func counted(set *token.FileSet, constants *ast.GenDecl, add func(name string)) {
	for _, spec := range constants.Specs {
		spec := spec.(*ast.ValueSpec)
		for i, name := range spec.Names {
			if limitName.MatchString(name.Name) && i < len(spec.Values) &&
				!strings.Contains(text(set, spec.Values[i]), "time.") {
				add(name.Name)
			}
		}
	}
}

func text(set *token.FileSet, n ast.Node) string {
	var b strings.Builder
	_ = printer.Fprint(&b, set, n)
	return b.String()
}

// A new limit fails until a row says which test sees that its places are given back, or what it
// bounds instead.
func TestEachLimitIsGivenBack(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found := limitsOf(t, root)
	if len(found) < 100 {
		t.Fatalf("only %d limits are found", len(found))
	}
	rows := maps.Clone(givenBack)
	for reason, names := range otherwise {
		for _, name := range strings.Fields(names) {
			rows[name] = reason
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		by, ok := rows[name]
		switch {
		case !ok:
			t.Errorf("%s has no row: which test sees that its places are given back, or what does it bound?", name)
		case otherwise[by] == "" && !tested(t, filepath.Join(root, found[name]), by):
			t.Errorf("%s: there is no %s in %s", name, by, found[name])
		}
	}
	for name := range rows {
		if _, ok := found[name]; !ok {
			t.Errorf("%s has a row and is no limit", name)
		}
	}
}

// tested reports whether a directory has a test of this name.
func tested(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
