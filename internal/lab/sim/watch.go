package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/stay"
)

// watch observes the run from outside, in global time. It passes its observations to the judges of
// internal/lab/check, and records the history that is judged at the end.
type watch struct {
	*sight
	steps   leaseWatch
	stays   stayWatch
	calls   callWatch
	voters  voterWatch
	log     logWatch
	written map[uint64]*written // by group
}

func newWatch(w *world) *watch {
	seen := &sight{w: w, groups: map[uint64]*group{}, overs: map[sessionOf]bool{},
		running: make([]*life, w.cfg.Machines)}
	o := &watch{sight: seen, written: map[uint64]*written{}}
	o.steps = leaseWatch{sight: seen, asked: map[sessionOf]bool{}, opening: map[lockfsm.Nonce]*life{},
		opened: map[sessionOf]*life{}}
	o.steps.leases.Passes = recallPasses
	o.stays = stayWatch{sight: seen, steps: &o.steps, reserved: map[lockfsm.Token]lockfsm.Token{},
		lost: map[*stay.Request]bool{}}
	o.calls = newCallWatch(seen, &o.steps, &o.stays)
	o.voters = voterWatch{sight: seen, gaveUp: map[uint64]bool{}, bound: map[nodeid.ID]uint64{}}
	o.log = logWatch{sight: seen, steps: &o.steps, stays: &o.stays, calls: &o.calls, voters: &o.voters}
	return o
}

// died observes that a process ends.
func (o *watch) died(p *life) {
	o.stays.diedKept(p)
	o.calls.died(p)
	if p.m.disk == nil {
		o.voters.foundings.EndedEverywhere(nodeidtest.Number(p.instance))
	}
}

// In a run that heals, settleWithin bounds the time between the end of a lock for its caller and
// the end of the lock in the state machine. Without healing there is no bound. Leaders may then
// change more often than once in a TTL, so that no session expires (promise 4 in
// docs/GUARANTEES.md).
const settleWithin = 2 * time.Minute

func (o *watch) judge(settled bool) {
	o.w.stats.Refused, o.w.stats.Recorded = o.calls.register.Refused(), len(o.history)
	settle := settleWithin + o.w.cfg.silence()
	if o.w.cfg.Doubts > 0 {
		settle += longestGrace * o.w.cfg.TTL
	}
	if !settled {
		settle = time.Hour
	}
	if o.w.fault == "" {
		err := history.Judge(o.history, history.Options{Settled: settled && o.recorded(), Settle: settle})
		o.w.must(err)
		o.w.faultAt = objection(err, o.w.faultAt)
	}
}

// objection returns when the last event happened that shows what a judge has found, in page time.
// Of other errors it returns the second argument.
func objection(err error, otherwise time.Duration) time.Duration {
	var v *history.Violation
	if !errors.As(err, &v) || len(v.Events) == 0 {
		return otherwise
	}
	at := time.Duration(0)
	for _, e := range v.Events {
		at = max(at, time.Duration(e.At)-time.Hour)
	}
	return at
}

// recorded reports whether the history has a grant of the group that was founded last. Without this
// grant the history does not show that the locks of earlier groups have ended.
func (o *watch) recorded() bool {
	var last founding.Charter
	for _, g := range o.groups {
		if g.born && g.charter.FoundedUnixMS > last.FoundedUnixMS {
			last = g.charter
		}
	}
	return last.Group == 0 || slices.ContainsFunc(o.history, func(e history.Event) bool {
		return e.Kind == history.Grant && uint64(e.Group) == last.Group
	})
}

// written is what the answers to changes show about one group.
type written struct {
	ids  []span            // that were given, in the order of the answers
	data map[string][]note // by key, in the order of their revisions
}

type span struct{ first, last uint64 }

// note is the data of a key: the token of the hold that has written it.
type note struct {
	revision lockfsm.Revision
	token    lockfsm.Token
}

func (o *watch) writtenIn(group uint64) *written {
	if o.written[group] == nil {
		o.written[group] = &written{data: map[string][]note{}}
	}
	return o.written[group]
}
