package voters

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// twin is a second, slow implementation of the rules. It enumerates every set of voters that one
// change can reach, drops the forbidden sets, and returns the worth of the best set. It shares only
// types with the package.
type twin struct {
	v                        View
	eligible, wanted, target int
	open                     []Registered               // instances that could get a replica
	judged                   map[nodeid.ReplicaID]facts // cached facts, since every set needs them
}

type facts struct {
	sound, active, ready, known bool
	zone                        string
	who                         nodeid.ID
}

func (t *twin) record(who nodeid.ID) (r Registered, known bool) {
	for _, x := range t.v.Registered {
		if x.Instance == who && !who.IsZero() {
			if !known {
				r = x
			}
			known = true
		}
	}
	return r, known
}

func (t *twin) replica(id nodeid.ReplicaID) Replica {
	for _, r := range t.v.Replicas {
		if r.ID == id {
			if id == t.v.Self {
				r.Active, r.CaughtUp, r.Full, r.Settled, r.LifeOver = true, true, true, true, false
			}
			return r
		}
	}
	return Replica{ID: id, Active: id == t.v.Self, CaughtUp: id == t.v.Self}
}

func (t *twin) isVoter(id nodeid.ReplicaID) bool { return slices.Contains(t.v.Config.Voters, id) }

func (t *twin) active(id nodeid.ReplicaID) bool { r := t.replica(id); return r.Active && !r.LifeOver }

func (t *twin) dead(id nodeid.ReplicaID) bool {
	r := t.replica(id)
	if t.v.Settings.Durable {
		return !t.active(id) && (r.Renewed || r.SilentFor >= time.Minute)
	}
	return r.LifeOver || !r.Active && r.SilentFor >= 5*time.Second
}

func (t *twin) mayVote(r Registered) bool {
	return len(t.v.Settings.Founders) == 0 || slices.Contains(t.v.Settings.Founders, r.Name)
}

func (t *twin) rivals(a, b nodeid.ID) bool {
	x, k1 := t.record(a)
	y, k2 := t.record(b)
	return !a.IsZero() && a == b || k1 && k2 && x.Name == y.Name && x.Name != ""
}

// soundAlone applies rule 8 to one replica of the configuration.
func (t *twin) soundAlone(id nodeid.ReplicaID) bool {
	r, known := t.record(t.replica(id).Instance)
	return !t.dead(id) && !(known && (r.Leaving || !t.mayVote(r)))
}

func (t *twin) sound(id nodeid.ReplicaID) bool { return t.judged[id].sound }

func (t *twin) isSound(id nodeid.ReplicaID) bool {
	if !t.soundAlone(id) {
		return false
	}
	if t.isVoter(id) {
		return true
	}
	for _, v := range t.v.Config.Voters {
		if t.soundAlone(v) && t.rivals(t.replica(id).Instance, t.replica(v).Instance) {
			return false
		}
	}
	for _, l := range sorted(t.v.Config.Learners) {
		if l < id && t.isSound(l) && t.rivals(t.replica(id).Instance, t.replica(l).Instance) {
			return false
		}
	}
	return true
}

func (t *twin) ready(id nodeid.ReplicaID) bool { return t.judged[id].ready }

func (t *twin) isReady(id nodeid.ReplicaID) bool {
	r, _ := t.record(t.replica(id).Instance)
	return !t.isVoter(id) && t.isSound(id) && t.active(id) && r.Session && t.replica(id).CaughtUp &&
		t.replica(id).Settled
}

func (t *twin) newest(who nodeid.ID) (p Prepared, asked bool) {
	for _, x := range t.v.Prepared {
		if x.Instance == who && (!asked || x.Since > p.Since || x.Since == p.Since && x.ID > p.ID) {
			p, asked = x, true
		}
	}
	return p, asked
}

func (t *twin) survey() {
	staying := 0
	all := slices.Concat(t.v.Config.Voters, t.v.Config.Learners)
	t.judged = map[nodeid.ReplicaID]facts{}
	for _, id := range all {
		r, known := t.record(t.replica(id).Instance)
		t.judged[id] = facts{sound: t.isSound(id), active: t.active(id), ready: t.isReady(id), known: known,
			zone: r.Zone, who: t.replica(id).Instance}
	}
	for _, id := range all {
		if t.sound(id) {
			staying++
		}
	}
	var calm, wild []Registered
	for _, r := range t.v.Registered {
		p, prepared := t.newest(r.Instance)
		age := t.v.Now - p.Since
		resting := prepared && (p.State == Asked && age >= 30*time.Second && age < 35*time.Second ||
			p.State != Asked && age < 5*time.Second)
		if prepared && p.State == Running && !slices.Contains(all, p.ID) {
			resting = false
		}
		has := slices.ContainsFunc(all,
			func(id nodeid.ReplicaID) bool { return t.sound(id) && t.rivals(r.Instance, t.replica(id).Instance) })
		if !r.Session || !r.Reachable || r.Leaving || !t.mayVote(r) || has || resting {
			continue
		}
		if r.Lost >= 3 {
			wild = append(wild, r)
		} else {
			calm = append(calm, r)
		}
	}
	most := max(t.v.Settings.Voters-1+t.v.Settings.Voters%2, 1)
	there := t.uneven(min(most, staying+t.names(slices.Concat(calm, wild))))
	t.open, t.eligible = calm, staying+t.names(calm)
	// instances with many losses are added if otherwise fewer than a majority would vote
	for 2*t.uneven(min(most, t.eligible)) <= there && there > 0 {
		t.open = slices.Concat(calm, wild)
		t.eligible++
	}
	t.seat(all, staying)
	t.wanted = min(most, t.eligible)
	t.target = t.uneven(t.wanted)
}

// seat applies Settings.Replicas. It does not check which of the open instances get a replica if
// two of them have one name, nor which of those that were lost often.
func (t *twin) seat(all []nodeid.ReplicaID, staying int) {
	places := 0
	for _, id := range t.v.Config.Voters {
		if t.sound(id) {
			places++
		}
	}
	places = max(places, t.v.Settings.Replicas)
	if t.v.Settings.Replicas == 0 || t.eligible <= places {
		return
	}
	t.eligible = places
	if t.names(t.open) < len(t.open) {
		return
	}
	// an instance is dropped if enough others come before it
	first := func(a, b Registered) bool {
		lost := func(r Registered) bool {
			return slices.ContainsFunc(all,
				func(id nodeid.ReplicaID) bool { return t.rivals(r.Instance, t.replica(id).Instance) })
		}
		if wild := a.Lost >= 3; wild || b.Lost >= 3 {
			return !wild
		}
		if lost(a) != lost(b) {
			return lost(a)
		}
		return a.Order < b.Order
	}
	var open []Registered
	for _, r := range t.open {
		before := 0
		for _, o := range t.open {
			if first(o, r) {
				before++
			}
		}
		if staying+before < places {
			open = append(open, r)
		}
	}
	t.open = open
}

func (t *twin) uneven(n int) int {
	for n > 0 && n%2 == 0 {
		n--
	}
	return n
}

// names returns how many of the instances could have a vote at the same time.
func (t *twin) names(list []Registered) int {
	n := 0
	for i, r := range list {
		if !slices.ContainsFunc(list[:i], func(o Registered) bool { return t.rivals(r.Instance, o.Instance) }) {
			n++
		}
	}
	return n
}

func (t *twin) majority(set []nodeid.ReplicaID) bool {
	n := 0
	for _, id := range set {
		if t.judged[id].active {
			n++
		}
	}
	return 2*n > len(set)
}

func (t *twin) pairs(set []nodeid.ReplicaID) int {
	n := 0
	for i, a := range set {
		for _, b := range set[:i] {
			if x, y := t.judged[a], t.judged[b]; x.known && y.known && x.zone == y.zone {
				n++
			}
		}
	}
	return n
}

// worth returns the worth of a set of voters; lower is better. Only the first three numbers justify
// a change.
func (t *twin) worth(set []nodeid.ReplicaID) (w [6]int) {
	w[0] = 1 - len(set)%2
	w[1] = max(len(set)-t.target, t.target-len(set))
	for _, id := range set {
		if !t.sound(id) {
			w[2]++
		}
		if !t.judged[id].active {
			w[3]++
		}
		if !t.isVoter(id) {
			w[4]++
		}
	}
	w[5] = t.pairs(set)
	return w
}

// forbidden returns why a set of voters must not replace the current one, or "".
func (t *twin) forbidden(set []nodeid.ReplicaID) string {
	if !slices.Contains(set, t.v.Self) {
		return "the leader takes its own vote"
	}
	if !t.majority(set) || !t.majority(t.v.Config.Voters) {
		return "a majority of the old and of the new could not commit it"
	}
	for _, id := range set {
		if !t.isVoter(id) && !t.ready(id) {
			return fmt.Sprintf("%d gets a vote and may not", id)
		}
		for _, other := range set {
			if other != id && !(t.isVoter(id) && t.isVoter(other)) && t.rivals(t.judged[id].who, t.judged[other].who) {
				return fmt.Sprintf("%d and %d are one process or one founder", id, other)
			}
		}
	}
	if !t.sound(t.v.Self) && !t.heir(set) {
		return "the leader leaves, and no voter there could follow it"
	}
	return ""
}

func (t *twin) heir(set []nodeid.ReplicaID) bool {
	return slices.ContainsFunc(set, func(id nodeid.ReplicaID) bool {
		return id != t.v.Self && t.sound(id) && t.active(id)
	})
}

// reachable calls f with every set of voters that one change can reach.
func (t *twin) reachable(f func(set []nodeid.ReplicaID)) {
	all := slices.Concat(t.v.Config.Voters, t.v.Config.Learners)
	self := slices.Index(all, t.v.Self)
	set := make([]nodeid.ReplicaID, 0, len(all))
	for bits := 1; bits < 1<<len(all); bits++ {
		if set = set[:0]; bits&(1<<self) == 0 {
			continue // a set without the leader is forbidden; these are half of all sets
		}
		for i, id := range all {
			if bits&(1<<i) != 0 {
				set = append(set, id)
			}
		}
		if t.forbidden(set) == "" {
			f(set)
		}
	}
}

func (t *twin) best() (best [6]int, some bool) {
	t.reachable(func(set []nodeid.ReplicaID) {
		if w := t.worth(set); !some || slices.Compare(w[:], best[:]) < 0 {
			best, some = w, true
		}
	})
	return best, some
}

// quiet reports whether the voters are well and their number is right, so that only their zones
// can need a change.
func (t *twin) quiet() bool {
	for _, id := range t.v.Config.Voters {
		if r, _ := t.record(t.replica(id).Instance); !t.sound(id) || !t.active(id) || r.Lost > 0 {
			return false
		}
	}
	return len(t.v.Config.Voters) == t.target
}

// spread returns how many pairs of voters share a zone after the best replacement of one voter,
// and whether that replacement is an improvement.
func (t *twin) spread() (best int, some bool) {
	best = t.pairs(t.v.Config.Voters)
	if !t.quiet() {
		return best, false
	}
	t.reachable(func(set []nodeid.ReplicaID) {
		if w := t.worth(set); len(set) == len(t.v.Config.Voters) && w[4] == 1 && w[5] < best && t.mayMove(set) {
			best, some = w[5], true
		}
	})
	return best, some
}

// mayMove reports whether set may replace the voters to improve the zones. The new voter must
// not have been lost recently, and the zone of the old voter must be known.
func (t *twin) mayMove(set []nodeid.ReplicaID) bool {
	for _, id := range set {
		if r, _ := t.record(t.replica(id).Instance); !t.isVoter(id) && r.Lost > 0 {
			return false
		}
	}
	for _, id := range t.v.Config.Voters {
		if _, known := t.record(t.replica(id).Instance); !slices.Contains(set, id) && !known {
			return false
		}
	}
	return true
}
