package birth

import "time"

// Times and bounds of birth. They are not settings: nobody can tune them better than the rules behind them.
const (
	freshFor               = 2 * time.Second        // an answer older than this, counted from the asking, proves nothing
	reachedFor             = 4 * time.Second        // the same for rule 6, where asking is slower and a mistake costs only a restart
	resolvedFor            = 5 * time.Second        // how long the addresses behind a Join entry count as its addresses now
	bornWithin             = 10 * time.Second       // bound for longer without Born: restart in place
	bornSpread             = 5 * time.Second        // random addition to it, so that not all try again at the same moment
	askEvery               = 100 * time.Millisecond // plus up to the same again at random
	askEverySlow           = time.Second            // the same for a member without a leader
	clockSlackWithoutGrace = 5 * time.Second
	knockFor               = 10 * time.Second        // how long somebody who asked us is worth asking
	seekFor                = time.Minute             // how long a voter that was started again looks for others that have moved
	settleWithin           = 1500 * time.Millisecond // how long a resumed instance waits for places that are silent; above the second that a question takes

	lifeJump    = 1 << 20   // starts of one directory that others have not heard of: more is malformed
	wallMax     = 1<<42 - 1 // the last millisecond for which a token fits: in the year 2109
	usedMax     = 128       // raft IDs of one life that are remembered when they are over
	gaveUpMax   = 16        // groups given up that are remembered
	placesMax   = 1024      // addresses asked at a time
	knocksMax   = 256
	answeredMax = 64 // refused charters remembered; older ones fail by their founding time and their dead proposer
)
