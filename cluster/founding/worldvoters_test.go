package founding

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

type config struct {
	at     uint64
	voters []Voter
}

func (g *group) newest() config { return g.configs[len(g.configs)-1] }

func (g *group) voters() []Voter {
	return slices.DeleteFunc(slices.Clone(g.newest().voters), func(v Voter) bool { return v.Learner })
}

// govern simulates a leader that changes its group's voters at random. It also simulates the log
// that contains these changes, and the granting of tokens.
func (w *world) govern(g *group) {
	l := w.runs(g.leader, g.charter.Group)
	if l == nil || l.core.Phase() != Member {
		return
	}
	g.token += w.rng.Int64N(3)
	if w.rng.IntN(50) == 0 {
		g.token = max(g.token, l.wall()+int64(l.settings.slack()*3/4/time.Millisecond))
	}
	for _, s := range w.slots {
		if s.core != nil && s.raft != 0 && s.core.Group() == g.charter.Group && w.linked(s, l) && w.rng.IntN(3) == 0 {
			w.apply(g, s)
		}
	}
	if w.calm || w.rng.IntN(8) > 0 || w.runs(g.leader, g.charter.Group) != l {
		return
	}
	switch w.rng.IntN(5) {
	case 0, 1:
		w.prepare(g, l)
	case 2:
		w.change(g, l)
	case 3:
		w.announce(g, l)
	case 4:
		w.wear(g)
	}
}

func (w *world) apply(g *group, s *slot) {
	s.floor = max(s.floor, g.token)
	s.core.Floor(g.token)
	named := holds(g.newest().voters, s.raft)
	for _, c := range g.configs {
		if c.at > s.applied && (named || w.rng.IntN(2) == 0 && holds(c.voters, s.raft)) {
			s.applied = c.at
			s.core.Voters(w.now, g.charter.Group, c.at, c.voters)
			s.core.Applied(w.now, g.charter.Group, Configuration{At: c.at, Voters: c.voters})
			s.configure(g.charter.Group, c.at, c.voters)
			break
		}
	}
	s.tick()
}

// prepare asks an instance that may vote to start a replica, and adds the replica as a learner once
// it runs.
func (w *world) prepare(g *group, l *slot) {
	s := w.slots[w.rng.IntN(len(w.slots))]
	if s.core == nil || s.core.Group() != g.charter.Group || !g.charter.Settings.founds(s.name) ||
		len(g.newest().voters) > 6 {
		return
	}
	raft, term, instance, addr := w.id(), g.term, s.core.Instance(), s.addr
	in := func(v Voter) bool { return v.Instance == instance }
	if slices.ContainsFunc(g.newest().voters, in) {
		return
	}
	body := AppendPrepare(nil, Prepare{
		To: instance, Group: g.charter.Group, Raft: raft, Term: term, At: g.newest().at, Voters: g.newest().voters,
	})
	q := Question{Addr: addr, To: instance, Body: body}
	if w.rng.IntN(3) == 0 {
		w.late(Asker{l.core.Instance(), l.addr}, q, 5*time.Second)
		return
	}
	l.send(q, func(_ Outcome, from nodeid.ID, answer []byte) {
		a, err := DecodePrepared(from, answer)
		if err != nil || a.State != Running || a.Instance != instance || a.Raft != raft || g.term != term ||
			g.leader != l.core.Instance() {
			return
		}
		// In one of four cases the leader does not add the replica after all.
		if w.rng.IntN(4) > 0 && !slices.ContainsFunc(g.newest().voters, in) {
			w.agree(g, l, append(slices.Clone(g.newest().voters), Voter{Raft: raft, Instance: instance, Addr: addr,
				Life: 1, Learner: true}))
		}
	})
}

// change promotes some of the learners that know the newest configuration. It also removes all
// replicas that do not run, and some of the others.
func (w *world) change(g *group, l *slot) {
	next := slices.Clone(g.newest().voters)
	at := make(map[uint64]bool)
	for i, v := range next {
		if s := w.replica(v.Raft); v.Learner && s != nil && s.applied == g.newest().at && w.linked(s, l) &&
			w.rng.IntN(3) > 0 {
			next[i].Learner = false
		}
		at[v.Raft] = w.replica(v.Raft) != nil
	}
	out := func(gone bool) {
		next = slices.DeleteFunc(next, func(v Voter) bool {
			return v.Instance != l.core.Instance() && (gone && !at[v.Raft] || !gone && w.rng.IntN(3) == 0)
		})
	}
	out(true)
	out(false)
	w.agree(g, l, next)
}

// agree commits a configuration if the leader reaches a majority of the new voters and of the old
// voters.
func (w *world) agree(g *group, l *slot, next []Voter) {
	majority := func(voters []Voter) bool {
		near, n := 0, 0
		for _, v := range voters {
			if s := w.replica(v.Raft); !v.Learner {
				n++
				if s != nil && !s.retired && w.linked(s, l) && l.knows(s) && s.knows(l) {
					near++
				}
			}
		}
		return near*2 > n && n%2 == 1
	}
	if majority(next) && majority(g.newest().voters) && !slices.Equal(next, g.newest().voters) {
		g.configs = append(g.configs, config{g.newest().at + 1 + uint64(w.rng.IntN(4)), next})
		w.note("group %x has configuration %d: %+v", g.charter.Group, g.newest().at, next)
		l.applied = g.newest().at
		l.core.Applied(w.now, g.charter.Group, Configuration{At: l.applied, Voters: next})
		l.configure(g.charter.Group, l.applied, next)
		l.tick()
	}
}

// announce sends an instance the newest configuration or, as a late message, an earlier one.
func (w *world) announce(g *group, l *slot) {
	s := w.slots[w.rng.IntN(len(w.slots))]
	if s.core == nil || s == l {
		return
	}
	c := g.newest()
	if w.rng.IntN(3) == 0 {
		c = g.configs[w.rng.IntN(len(g.configs))]
	}
	a := Push{To: s.core.Instance(), Group: g.charter.Group, At: c.at, Voters: c.voters}
	l.send(Question{Addr: s.addr, To: a.To, Body: AppendPush(nil, a)}, func(Outcome, nodeid.ID, []byte) {})
}

// wear makes a replica stop by itself if its group has a majority without that replica.
func (w *world) wear(g *group) {
	s := w.slots[w.rng.IntN(len(w.slots))]
	if s.core == nil || s.retired || s.raft == 0 || s.core.Group() != g.charter.Group ||
		(w.alive(g)-1)*2 <= len(g.voters()) || w.rng.IntN(4) > 0 {
		return
	}
	w.note("the replica %x of %s stops by itself", s.raft, s.name)
	raft := s.raft
	s.raft = 0
	s.core.Retired(w.now, raft)
	disk := s.disk
	// If the state was not stored, the replica resumes with its log once the directory is repaired.
	if s.tick(); disk == nil || disk.decoded().Raft != raft {
		w.over[raft] = true
	}
}

// removed carries out the event Removed. The vote of the replica must no longer count.
func (s *slot) removed(e Event) {
	w := s.w
	w.note("%s %x stops its replica %x", s.name, s.core.Instance(), e.Raft)
	if s.raft != 0 && s.raft != e.Raft {
		w.fault("%s is told to stop %x, and runs %x", s.name, e.Raft, s.raft)
	}
	if g := w.groups[e.Group]; slices.ContainsFunc(g.voters(), func(v Voter) bool { return v.Raft == e.Raft }) {
		w.fault("%s stops its replica %x, which votes in group %x", s.name, e.Raft, e.Group)
	}
	s.raft = 0
	if s.disk == nil {
		w.over[e.Raft] = true
		s.core.Retired(w.now, e.Raft)
		return
	}
	life, disk := s.life, s.disk
	// Until the replica stops, its vote may be needed, even after a restart with this directory.
	w.after(time.Duration(w.rng.Int64N(int64(3*time.Second))), func() {
		if s.life != life || s.disk != disk || s.core == nil {
			return
		}
		s.core.Retired(w.now, e.Raft)
		if s.tick(); s.disk == disk && disk.decoded().Lingers != e.Raft {
			w.over[e.Raft] = true
			delete(disk.logs, e.Raft)
		}
	})
}

// informed reports whether the slot knows the newest configuration of its group and runs no removed
// replica. A replica that was added and removed while its process was unreachable stays prepared.
func (s *slot) informed() bool {
	g := s.w.groups[s.core.Group()]
	return s.core.At() == g.newest().at && s.raft == s.core.Raft() && (holds(g.newest().voters, s.raft) ||
		s.raft == 0 || s.named != s.raft)
}

func (s *slot) mustNotForget(events []Event) {
	if s.core == nil {
		return
	}
	if slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Restarted }) {
		s.at = 0
	}
	if at := s.core.At(); at < s.at {
		s.w.fault("%s knew configuration %d, and now %d", s.name, s.at, at)
	}
	s.at = s.core.At()
	if s.core.named() {
		s.named = s.core.Raft()
	}
}

func (w *world) mustBePrepared(to *slot, answer []byte) {
	a, err := DecodePrepared(to.core.Instance(), answer)
	if err != nil || a.State != Running {
		return
	}
	if a.Instance != to.core.Instance() || a.Raft != to.core.Raft() || w.over[a.Raft] {
		w.fault("%s says that it runs %x, which is over or another's", to.name, a.Raft)
	}
	if to.disk != nil && !to.retired && to.disk.decoded().Raft != a.Raft {
		w.fault("%s says that it runs %x, and has stored %x", to.name, a.Raft, to.disk.decoded().Raft)
	}
}
