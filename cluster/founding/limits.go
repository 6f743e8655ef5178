package founding

import "time"

// Times and limits of founding. They are constants and not settings, because the correctness of the
// rules depends on them.
const (
	// an answer older than this, counted from the asking, proves nothing
	freshFor = 2 * time.Second
	// the same for rule 6: there questions are less frequent, and a mistake costs only a restart
	reachedFor = 4 * time.Second
	// for how long a resolved Join entry is valid
	resolvedFor = 5 * time.Second
	bornWithin  = 10 * time.Second // bound for longer without Born: restart in place
	// a random time up to this is added, so that instances do not all retry together
	bornSpread             = 5 * time.Second
	askEvery               = 100 * time.Millisecond // plus a random time up to that
	askEverySlow           = time.Second            // the same for a member without a leader
	clockSlackWithoutGrace = 5 * time.Second
	askerFor               = 10 * time.Second // for how long an instance that has asked is asked in turn
	// for how long a restarted voter looks for others that have moved
	searchFor = time.Minute
	// how long a resumed instance waits for silent places; longer than the second that a question
	// takes
	settleWithin = 1500 * time.Millisecond

	// not a founder: between two rounds of questions, plus a random time up to that
	roundEvery = time.Second
	// the longest wait before the first round; spreads the questions of a fleet that starts
	// together
	roundFirst = 250 * time.Millisecond
	// founder: between two steps of a search, plus a random time up to that
	searchEvery = 100 * time.Millisecond
	searchAgain = 200 * time.Millisecond // until an address is asked again, plus a random time up to that
	// member with a leader: between two questions, plus a random time up to that
	inquireEvery = 30 * time.Second
	restFor      = 30 * time.Second // for how long a member with a leader need not be ticked
	tipFor       = time.Minute      // for how long an address that others have named is worth asking
	metFor       = time.Minute      // for how long a founder that was met is named to others
	// for how long a question to an address behind Join counts as a search for a living group
	sampledFor = 30 * time.Second
	seenAtFor  = time.Minute // for how long an address that gossip or a hint has named is asked
	// With Replicas, a voter that was silent for this long is taken never to vote again.
	silentOver = 10 * time.Minute
	// longer than a silent link exists; a message of a dead leader may arrive until then
	hearsayOver   = 30 * time.Second
	electedWithin = 10 * time.Second // a group whose majority answers should have a leader by then
	rivalFor      = 2 * time.Minute  // for how long a report of another group is a reason to ask again

	maxRound    = 3  // addresses behind Join that an instance which is no founder asks at a time
	maxSearch   = 4  // pending questions of a founder's search
	maxSample   = 16 // other addresses behind Join that a founder asks for a living group
	maxSettle   = 3  // addresses behind Join that a resumed instance waits for
	maxMet      = 16 // founders that an answer names
	maxTips     = 64
	maxRivals   = 8
	lifeJump    = 1 << 20   // starts of a directory that others may miss; a larger jump is a lie
	maxWall     = 1<<42 - 1 // the last millisecond for which a token can be represented, in the year 2109
	maxUsed     = 128       // raft IDs of one life that are remembered when they are over
	maxGaveUp   = 16        // groups given up that are remembered
	maxFates    = 64
	maxCalled   = 256  // names of instances that are remembered
	maxPlaces   = 1024 // addresses asked at a time
	maxAskers   = 256
	maxAnswered = 64 // refused charters that are remembered
)
