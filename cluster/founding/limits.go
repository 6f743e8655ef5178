package founding

import "time"

// Times and limits of founding. The rules determine them, so they are not settings. If a name
// contains Every or Again, a random time up to the same value is added.
const (
	// maximum age of an answer that counts for founding, measured from the question
	freshFor = 2 * time.Second
	// maximum age of an answer for rule 6; giving up a living group costs only a restart
	reachedFor  = 4 * time.Second
	resolvedFor = 5 * time.Second
	bornWithin  = 10 * time.Second // rule 5: maximum time from Bound to Born
	// maximum random time added to bornWithin, so that instances retry at different times
	bornSpread             = 5 * time.Second
	askEvery               = 100 * time.Millisecond
	askEverySlow           = time.Second // time between questions of a member without a leader
	clockSlackWithoutGrace = 5 * time.Second
	// time for which this instance asks an instance in return
	askerFor = 10 * time.Second
	// time for which a restarted voter searches for voters
	searchFor = time.Minute
	// time for which a resumed instance waits for silent addresses; longer than the timeout of a
	// question, one second
	settleWithin = 1500 * time.Millisecond

	roundEvery = time.Second
	// maximum time before the first round, so that instances that start together do not ask at once
	roundFirst   = 250 * time.Millisecond
	searchEvery  = 100 * time.Millisecond
	searchAgain  = 200 * time.Millisecond // time between two questions of a search to one address
	inquireEvery = 30 * time.Second
	restFor      = 30 * time.Second // time for which a member with a leader needs no Tick
	tipFor       = time.Minute      // time for which an address from an answer is asked
	metFor       = time.Minute      // time for which a founder is named to others after its answer
	// time for which a question to a Join address counts as a search for a living group
	sampledFor = 30 * time.Second
	seenAtFor  = time.Minute // time for which an address from gossip or a hint is asked
	// only with Replicas: time after which a silent voter is assumed never to vote again
	silentOver = 10 * time.Minute
	// time after which no message of a dead leader can arrive
	hearsayOver = 30 * time.Second
	// time within which a group whose majority answers should elect a leader
	electedWithin = 10 * time.Second
	// time for which a report of another group is a reason to ask again
	rivalFor = 2 * time.Minute

	maxRound    = 3  // number of addresses besides the near ones that a non-founder asks in a round
	maxSearch   = 4  // number of pending questions of a founder's search
	maxSample   = 16 // number of other Join addresses at which a founder looks for a living group
	maxSettle   = 3  // number of Join addresses whose answers a resumed instance waits for
	maxMet      = 16 // number of founders' addresses in one answer
	maxTips     = 64
	maxRivals   = 8
	lifeJump    = 1 << 20   // largest credible step of a life number
	maxWall     = 1<<42 - 1 // last millisecond that a token can hold, in the year 2109
	maxUsed     = 128
	maxGaveUp   = 16
	maxFates    = 64
	maxCalled   = 256
	maxPlaces   = 1024 // number of addresses that are asked, unless Join resolves to more
	maxAskers   = 256
	maxAnswered = 64
)
