package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// raft simulates the replicated logs of all groups. Every 20 ms it determines for each group which
// voter reaches a majority of live voters. It reports leaders to all instances with a delay, and
// commits Born for a leader that may propose it.
func (w *world) raft() {
	w.after(20*time.Millisecond, w.raft)
	ids := make([]uint64, 0, len(w.groups))
	for id := range w.groups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		w.elect(w.groups[id])
	}
	for _, s := range w.slots {
		if s.core != nil && s.core.Phase() != Newborn && w.rng.IntN(4) == 0 {
			w.notice(s)
		}
	}
	w.twoAlive()
}

func (w *world) elect(g *group) {
	voters := make([]*slot, 0, len(g.voters()))
	for _, v := range g.voters() {
		if s := w.replica(v.Raft); s != nil && !s.retired {
			voters = append(voters, s)
		}
	}
	before := g.leader
	g.leader = nodeid.ID{}
	for _, s := range voters {
		near := 0
		for _, o := range voters {
			if w.connected(s, o) && s.knows(o) && o.knows(s) {
				near++
			}
		}
		if near*2 <= len(g.voters()) {
			continue
		}
		if g.leader = s.core.Instance(); g.leader != before {
			g.term++
		}
		mayPropose := s.allBound == g.charter.Group || w.plant == "born without all"
		if !g.born && mayPropose && w.rng.IntN(3) == 0 {
			w.commit(g)
		}
		break
	}
	if g.leader.IsZero() {
		g.led = w.now
	}
	if !g.born {
		return
	}
	for _, s := range voters {
		if !g.leader.IsZero() && !g.applied[s.core.Instance()] && w.rng.IntN(3) == 0 {
			g.applied[s.core.Instance()] = true
			s.core.Born(w.now, g.charter.Group)
			s.tick()
		}
	}
	w.govern(g)
}

// commit commits the Born entry of a group, and checks most of the rules.
func (w *world) commit(g *group) {
	g.born, g.bornAt = true, w.now
	w.note("group %x is born", g.charter.Group)
	for _, l := range g.charter.List {
		if !g.accepted[l.Instance] && w.plant != "born without all" {
			w.fault("group %x was born without %s", g.charter.Group, l.Name)
		}
	}
	if len(g.charter.Voters)%2 == 0 {
		w.fault("group %x has %d voters", g.charter.Group, len(g.charter.Voters))
	}
	for _, earlier := range w.order {
		granted := g.bornAt-earlier.bornAt > earlier.charter.Settings.Grace && earlier.charter.Settings.Grace > 0
		if granted && g.charter.FoundedUnixMS <= earlier.charter.FoundedUnixMS {
			w.fault("group %x starts its tokens at or below those of %x", g.charter.Group, earlier.charter.Group)
		}
	}
	w.order = append(w.order, g)
}

func (w *world) twoAlive() {
	n := 0
	for _, g := range w.order {
		if w.alive(g)*2 > len(g.voters()) {
			n++
		}
	}
	if n > 1 {
		w.fault("%d groups that are born could have a leader", n)
	}
}

func (w *world) notice(s *slot) {
	g := w.groups[s.core.Group()]
	known := false
	if g != nil && !g.leader.IsZero() {
		l := w.runs(g.leader, g.charter.Group)
		known = l != nil && w.connected(s, l) && s.knows(l) && l.knows(s)
	}
	if known {
		s.core.Guide(g.leader)
	} else {
		s.core.Guide(nodeid.ID{})
	}
	if known != s.leader {
		s.leader = known
		s.leaderless = w.now
		s.core.Leader(w.now, known)
		s.tick()
	}
}

func (w *world) settled() bool {
	group := uint64(0)
	for _, s := range w.slots {
		if s.core == nil || s.core.Phase() != Member || !s.leader {
			return false
		}
		if group != 0 && s.core.Group() != group || !s.informed() {
			return false
		}
		group = s.core.Group()
	}
	return group != 0
}
