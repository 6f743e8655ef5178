package limits

// cutsByHand are the functions that shorten a string without plain.Cut, with the reason.
var cutsByHand = map[string]string{
	"cmd/mortise.buildOf":           "the first digits of a hash",
	"internal/capability.encode":    "a digit",
	"internal/credentials.estimate": "what it looks at, which it does not show",
	"internal/queries.fewer":        "a prefix of keys, which need not end with a character",
	"keys.read":                     "an escape of two digits",
	"shownKey":                      "what is no character becomes a question mark",
	"transport.clientTLS":           "the first bytes of a preface",
}

// Why constants that bound something have no trial at their boundary. Those of limits whose places
// are given back have one: limits.GivenBack takes exactly as many as there are.
const (
	format   = "a number of the format, or the last of a list, which encoder and decoder share"
	patience = "a pace or a patience: at the value itself either answer is right"
	reserve  = "what is kept for use again, or held ready: more or less of it changes no answer"
	shown    = "how much a page, a list or a text for people shows"
	cutTo    = "a text is cut to it by plain.Cut, which is tried at each byte"
	asInput  = "the bound of an exported input: TestEveryInput tries it, one less and one more"
	filled   = "the room of one peer or of all: a test fills it message by message, not to the last byte"
)

// untried are these constants, by the reason.
var untried = map[string]string{
	format: "" +
		"cluster/founding.refusals cluster/gossip/swim.maxMemberFields " +
		"cluster/gossip/swim.msgPushPull fence.tokenDigits " +
		"internal/capability.Force internal/credentials.checksumBytes " +
		"internal/credentials.derivedKeys internal/credentials.wordBits internal/modes.Upgradable " +
		"internal/modes.tooMany lockfsm.ModeU lockfsm.maxRevision lockfsm.placesOfLocks " +
		"lockfsm.revisionReserve raftlog/storage.entryHeadBytes raftlog/storage.frameHeadBytes " +
		"raftlog/storage.headerBytes raftlog/storage.sealBytes session/client.Attaching " +
		"transport.http2Header",
	paces: "" +
		"cluster.rejoinMany cluster/founding.maxMet cluster/founding.maxRound " +
		"cluster/founding.maxSample cluster/founding.maxSearch cluster/founding.maxSettle " +
		"internal/guest.maxAsks internal/guest.maxJoin internal/guest.maxPlaces " +
		"internal/queries.maxForeignPages " +
		"internal/replica.MaxPage internal/replica.maxEvents lockfsm.chunkBytes lockfsm.maxAsked " +
		"lockfsm.maxLinks lockfsm.maxSearches lockfsm.overlayBlockItems raftlog.atOnce " +
		"raftlog.maxDuplicatesPerTick raftlog.maxGathers raftlog.maxTurnRounds raftlog.restSteps " +
		"raftlog/storage.snapshotPieceBytes session/client.maxGathers session/client.movesAtOnce " +
		"session/keeper.attachFree session/keeper.blobBytes session/keeper.expiresPerBlob " +
		"transport.recheckShare",
	patience: "" +
		"busyPause cluster.loudEvery cluster.maxCloseWait cluster.removedPeerPause cluster.twinAfter " +
		"cluster.waitingAfter cluster.waitingEvery cluster/discovery.goneAfter " +
		"cluster/discovery.loudEvery cluster/founding.askerFor cluster/founding.connectFor " +
		"cluster/founding.electedWithin cluster/founding.hearsayOver cluster/founding.lifeJump " +
		"cluster/founding.sampledFor cluster/founding.seenAtFor cluster/founding.silentOver " +
		"cluster/founding.tipFor cluster/gossip/swim.fullEvery cluster/gossip/swim.newsEvery " +
		"cluster/lead.tryAgain cluster/voters.lossMemory cluster/voters.patience " +
		"cluster/voters.preparing cluster/voters.probePatience cluster/voters.restless " +
		"cluster/voters.silenceNamed cmd/mortise.clocksApart cmd/mortise.healthWithin " +
		"cmd/mortise.longHeld console.fewMembers " +
		"console.nowTime console.pastFresh console.slotTime fence.maxPause " +
		"internal/clock.StarvedAfter internal/clock.starvationEvery internal/clock.unsteady " +
		"internal/credentials.backdate internal/credentials.estimated internal/credentials.leastRun " +
		"internal/credentials.lifetime internal/credentials.lookEvery internal/credentials.renewAfter " +
		"internal/credentials.stepBack internal/instance.diskBlamedAfter " +
		"internal/instance.seldomEvery internal/replica.agreeEvery internal/trace.loudEvery lastAsk " +
		"lookPause raftlog.askTicks raftlog.caughtUpEntries raftlog.compareTicks raftlog.gapFactor " +
		"raftlog.handoverLimit " +
		"raftlog.maxCloseWait raftlog.outageTicks raftlog/storage.maxCloseWait " +
		"session/client.answerTTLParts session/client.answerTime session/client.excuseTimes " +
		"session/client.leaseRenewLongest " +
		"session/client.leaseRenewParts session/client.leaseShortestParts session/client.renewWaiting " +
		"session/client.settled session/client.tryWithout session/client.waitLongest " +
		"session/keeper.maxAttachPause session/keeper.roundAgain session/keeper.searchAgain " +
		"session/keeper.searchLatest session/keeper.searchPause session/keeper.stepPause " +
		"session/keeper.watchBefore " +
		"session/stay.biasKeys session/stay.biasLongest session/stay.biasPasses " +
		"session/stay.leastIdle session/stay.recallPasses tick.look tick.minGap " +
		"transport.chunkPatience transport.frameSlow transport.maxLinger transport.noticeEvery " +
		"transport.pauseAnswered transport.recheckEvery transport.sharedIdle transport.snapshotGrace " +
		"transport.youngLink wayKept",
	reserve: "" +
		"lockfsm.indexUntil lockfsm.maxBufferItems lockfsm.maxFree lockfsm.maxSpare lockfsm.roomBytes " +
		"raftlog.maxRecycle raftlog.queueKeepBytes raftlog/storage.maxLogRecords transport.habitUses " +
		"transport.packedKept transport.slackBytes transport.spareBytes",
	shown: "" +
		"cluster/discovery.maxTroubles cluster/voters.maxNamed cluster/voters.maxNotes " +
		"cmd/mortise.devLeadGone cmd/mortise.devSoon cmd/mortise.maxIdleNoted cmd/mortise.maxIdleShown " +
		"cmd/mortise.maxLastBytes cmd/mortise.topKeys cmd/mortise.waitedFor console.drawWidth " +
		"console.indent console.longest " +
		"console.maxCommands console.maxDepth console.maxEnds console.maxFound console.maxLease " +
		"console.maxMembers console.maxPeeks console.maxQueue console.maxRows console.maxShown " +
		"console.maxStuck console.maxTop console.maxTrees console.maxWaiters console.queueShown " +
		"console.shortest console.textWidth internal/replica.maxDiffer internal/replica.maxListQueue " +
		"internal/replica.maxUnlisted internal/tofu.maxChanges " +
		"keep.labelledValue lockfsm.maxComplaints maxIdleHolds maxShownKey session/client.maxHeldKeys " +
		"shard.maxNamed",
	kept: "" +
		"cluster.maxAddrs cluster.maxLosses cluster.maxRemovedPeers cluster/founding.maxAnswered " +
		"cluster/founding.maxAskers cluster/founding.maxCalled cluster/founding.maxFates " +
		"cluster/founding.maxPlaces cluster/founding.maxRivals cluster/founding.maxTips " +
		"cluster/founding.maxUsed cluster/gossip/swim.maxAliases cluster/voters.maxRetired " +
		"cmd/mortise.maxGivenUp cmd/mortise.maxRefusals counter.kept " +
		"internal/queries.sharedQueue internal/replica.maxDiffering internal/replica.maxRefused " +
		"internal/trace.MostWaiting raftlog.maxMarks session/client.askingSpare " +
		"session/client.forcedKept session/client.maxLapses session/client.maxNonceTo " +
		"session/client.talliesKept tick.maxFinished transport.maxAddrs " +
		"transport.maxPreferred transport.noticeKinds",
	cutTo: "" +
		"cluster/founding.maxWhy internal/credentials.most " +
		"internal/tofu.maxName",
	asInput: "" +
		"barrier.maxSize cluster/voters.maxReplicas cmd/mortise.devVoters internal/replica.MaxReplicas maxWaiting " +
		"minSessionTTL stripe.maxStripes",
	filled: "" +
		"lockfsm.sessionsReserve session/client.windowBytes session/keeper.inboxBytes " +
		"session/keeper.peerAttachments session/keeper.peerBytes session/keeper.peerInboxBytes " +
		"session/keeper.peerOpens session/keeper.peerSessions session/keeper.queuedBytes " +
		"session/keeper.replyBytes transport.connsOfSecret transport.packetsQueued",
}
