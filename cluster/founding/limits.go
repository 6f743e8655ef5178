package founding

import "time"

// Times and bounds of birth. They are not settings: nobody can tune them better than the rules
// behind them.
const (
	// an answer older than this, counted from the asking, proves nothing
	freshFor = 2 * time.Second
	// the same for rule 6, where asking is slower and a mistake costs only a restart
	reachedFor = 4 * time.Second
	// how long the addresses behind a Join entry count as its addresses now
	resolvedFor = 5 * time.Second
	bornWithin  = 10 * time.Second // bound for longer without Born: restart in place
	// random addition to it, so that not all try again at the same moment
	bornSpread             = 5 * time.Second
	askEvery               = 100 * time.Millisecond // plus up to the same again at random
	askEverySlow           = time.Second            // the same for a member without a leader
	clockSlackWithoutGrace = 5 * time.Second
	knockFor               = 10 * time.Second // how long somebody who asked us is worth asking
	// how long a voter that was started again looks for others that have moved
	seekFor = time.Minute
	// how long a resumed instance waits for places that are silent; above the second that a
	// question takes
	settleWithin = 1500 * time.Millisecond

	// no founder: between two rounds of questions, plus up to the same again at random
	roundEvery = time.Second
	// up to so long it waits before the first, so that a fleet that is started together does not
	// ask together
	roundFirst = 250 * time.Millisecond
	// founder: between two steps of a search, plus up to the same again at random
	searchEvery = 100 * time.Millisecond
	searchAgain = 200 * time.Millisecond // until the same address is asked again, likewise
	// member with a leader: between two questions, plus up to the same again at random
	inquireEvery = 30 * time.Second
	restFor      = 30 * time.Second // how long a member with a leader may be left alone
	tipFor       = time.Minute      // how long an address that another instance has named is worth asking
	metFor       = time.Minute      // how long a founder that was met is named to others
	// how long it counts that an address behind Join was asked for a living group
	sampledFor = 30 * time.Second
	suspectFor = time.Minute      // how long a place is asked that gossip or a hint has named
	silentOver = 10 * time.Minute // with Replicas: a voter that was silent for so long is over
	// longer than a silent link lasts: until then a message of a dead leader may arrive
	hearsayOver   = 30 * time.Second
	electedWithin = 10 * time.Second // a group whose majority answers should have a leader by then
	rivalFor      = 2 * time.Minute  // how long the word of another group counts as a reason to ask again

	roundMost   = 3  // addresses behind Join that an instance which is no founder asks at a time
	searchMost  = 4  // questions of a founder's search under way
	sampleMost  = 16 // other addresses behind Join that a founder asks for a living group
	settleMost  = 3  // addresses behind Join that a resumed instance waits for
	metMost     = 16 // founders that an answer names
	tipsMax     = 64
	rivalsMax   = 8
	lifeJump    = 1 << 20   // starts of one directory that others have not heard of: more is malformed
	wallMax     = 1<<42 - 1 // the last millisecond for which a token fits: in the year 2109
	usedMax     = 128       // raft IDs of one life that are remembered when they are over
	gaveUpMax   = 16        // groups given up that are remembered
	fatesMax    = 64
	calledMax   = 256  // names of instances that are remembered
	placesMax   = 1024 // addresses asked at a time
	knocksMax   = 256
	answeredMax = 64 // refused charters remembered; older ones fail by their founding time and their dead proposer
)
