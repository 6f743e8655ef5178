package founding

import (
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// These checks find a wrong decision of one instance immediately, long before it leads to two
// groups.

// mustAccept checks whether an instance was right to bind itself to a charter, using only facts
// that the instance could have known.
func (s *slot) mustAccept(ch *Charter) {
	w := s.w
	if apart := time.Duration(ch.FoundedUnixMS-s.wall()) * time.Millisecond; apart.Abs() > s.settings.slack() {
		w.fault("%s accepted a founding time %v off its own clock", s.name, apart)
	}
	for _, l := range ch.List {
		at := slices.IndexFunc(w.slots, func(o *slot) bool { return o.core != nil && o.core.Instance() == l.Instance })
		if at < 0 || l.Instance == s.core.Instance() || len(s.settings.Founders) == 0 {
			continue
		}
		places := s.core.contacts.places
		p, found := find(places, l.Addr)
		if !found || w.now-places[p].last.asked > freshFor || places[p].last.info.Instance != l.Instance {
			w.fault("%s accepted a charter without a fresh answer of the founder %s", s.name, l.Name)
		}
	}
	if ch.FoundedUnixMS <= s.floor {
		w.fault("%s accepted a founding time that is not above the tokens it has seen", s.name)
	}
	for _, addr := range w.extraJoin {
		if w.silent[addr] && len(s.settings.Founders) <= 1 {
			w.fault("%s accepted a charter while %s, which Join names, is silent", s.name, addr)
		}
	}
}

// mustGiveUp checks that a member in memory was right to give up its group. The member must have
// known no leader for longer than the TTL. No configuration of the group may have a running
// majority, unless the group has continued without the member.
func (s *slot) mustGiveUp(why string) {
	w := s.w
	if s.joined == 0 || s.disk != nil {
		return
	}
	if w.now-s.leaderless <= s.settings.SessionTTL {
		w.fault("%s gave up a group that it lost sight of only %v ago", s.name, w.now-s.leaderless)
	}
	g := w.groups[s.joined]
	if strings.Contains(why, "the group has a newer configuration") && !w.needs(s.joined, s.raft) {
		return // the group has continued without this instance
	}
	for _, conf := range g.configs {
		if w.runsWith(conf) && w.majority(conf) {
			w.fault("%s gave up group %x although a majority of its configuration %d runs: %s", s.name, s.joined, conf.at,
				why)
		}
	}
}

func (w *world) runsWith(conf config) bool {
	return slices.ContainsFunc(w.slots, func(s *slot) bool {
		return s.core != nil && s.raft != 0 && holds(conf.voters, s.raft) && (s.applied == conf.at ||
			conf.at == 1 && s.applied == 0)
	})
}

func (w *world) majority(conf config) bool {
	n, all := 0, 0
	for _, v := range conf.voters {
		if v.Learner {
			continue
		}
		all++
		if w.replica(v.Raft) != nil || w.kept(v.Raft, 0) {
			n++
		}
	}
	return 2*n > all
}

// needs reports whether the newest configuration of a group names one of these replicas.
func (w *world) needs(group uint64, rafts ...uint64) bool {
	g := w.groups[group]
	return g != nil && slices.ContainsFunc(rafts, func(raft uint64) bool { return holds(g.newest().voters, raft) })
}

// mustBeFinal checks that only the asked incarnation answers to a charter, and that a refused
// charter stays refused.
func (w *world) mustBeFinal(q Question, to *slot, answer []byte) {
	p, err := decodeProposal(q.Body)
	if err != nil || answer == nil {
		return
	}
	if p.To != to.core.Instance() {
		w.fault("%s, which is %x, answered for %x", to.name, to.core.Instance(), p.To)
	}
	v, err := decodeVerdict(answer)
	if err != nil {
		w.fault("%s answered to a charter with something else: %v", to.name, err)
		return
	}
	key := answerKey{to.core.Instance(), v.Group}
	if w.refusals[key] = w.refusals[key] || v.Refusal != Accepted; w.refusals[key] && v.Refusal == Accepted {
		w.fault("%s accepted charter %x, which it had refused", to.name, v.Group)
	}
}

// repeat delivers some questions a second time, long after they were answered, to the instance that
// then has the address.
func (w *world) repeat(from Asker, q Question) {
	if w.rng.IntN(16) == 0 {
		w.late(from, q, 20*time.Second)
	}
}

func (w *world) late(from Asker, q Question, within time.Duration) {
	w.after(time.Duration(w.rng.Int64N(int64(within))), func() {
		for _, to := range w.slots {
			if to.addr != q.Addr || to.core == nil || !q.To.IsZero() && q.To != to.core.Instance() {
				continue
			}
			answer := to.core.Ask(w.now, to.wall(), from, q.Body)
			w.mustBeFinal(q, to, answer)
			before := to.retired
			if to.persist(nil) {
				if to.retired == before { // after a failed save it sends nothing
					w.mustBePrepared(to, answer)
				}
				to.tick()
			}
		}
	})
}

type answerKey struct {
	instance nodeid.ID
	group    uint64
}
