package sim

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file stands for spread.go and meta.go of the cluster room: how a configuration gets around.

// Times and bounds of spreading a configuration.
const (
	pullWithin    = 2 * time.Second
	announceTries = 4
	announcePause = time.Second
	strayPause    = time.Second
)

// configured takes a configuration, applied here or heard of.
func (p *proc) configured(group, at uint64, voters []founding.Voter) {
	if group == 0 || group != p.birth.Group() {
		return
	}
	switch known := p.book.At(); {
	case at < known && at != 0:
		p.birth.Voters(p.birthNow(), group, at, voters) // an older one that names this instance's replica tells that it was removed since
	case at <= known:
		changed := false
		for _, v := range voters {
			changed = p.book.Hear(v, false) || changed
		}
		p.readdressed(changed)
	default:
		before := p.book.Voters()
		p.configure(group, at, voters)
		p.pull.until = 0
		p.dismissed(before)
		p.tellAttached(before)
		p.tellVoters()
		p.look()
	}
}

func (p *proc) configure(group, at uint64, voters []founding.Voter) {
	p.book.Configure(at, voters)
	if p.raft != 0 {
		p.book.Hear(p.voter(), true)
	}
	p.birth.Voters(p.birthNow(), group, p.book.At(), p.book.Voters())
}

func (p *proc) voter() founding.Voter {
	return founding.Voter{Raft: p.raft, Instance: p.instance, Addr: p.m.addr, Life: p.birth.Life()}
}

// readdressed passes on that voters have moved.
func (p *proc) readdressed(changed bool) {
	if changed {
		p.birth.Voters(p.birthNow(), p.birth.Group(), p.book.At(), p.book.Voters())
		p.tellVoters()
		for _, v := range p.book.Voters() {
			if p.lead.Leads() && v.Instance != p.instance {
				p.announceTo(v.Instance, v.Addr, 1)
			}
		}
	}
}

// gone takes that an instance has said that the replica that it had is over.
func (p *proc) gone(instance nodeid.ID) {
	if p.lead.Gone(instance, p.book.Voters()) {
		p.look()
	}
}

// tellVoters tells the client whom to ask, and the keeper where the leader is.
func (p *proc) tellVoters() {
	if !p.settled() {
		return
	}
	voters := p.book.Voters()
	p.owner.post(func(now clock.Time) { p.client.SetTargets(now, targets(voters)) })
	if r := p.replica; r != nil {
		r.tellKeeper()
	}
}

// dismissed lets the leader tell the replicas that are in no configuration any more (rule 14).
func (p *proc) dismissed(before []founding.Voter) {
	gone := slices.DeleteFunc(before, func(v founding.Voter) bool {
		_, stays := p.book.Find(v.Raft)
		return stays || v.Instance == p.instance
	})
	if len(gone) == 0 {
		return
	}
	if _, _, leads := p.facts(); !leads {
		return
	}
	for _, v := range gone {
		p.announceTo(v.Instance, v.Addr, announceTries)
	}
}

// tellAttached lets the leader tell all whose sessions are attached to it.
func (p *proc) tellAttached(before []founding.Voter) {
	for _, v := range p.lead.Attached(slices.Concat(before, p.book.Voters())) {
		p.announceTo(v.Instance, v.Addr, 1)
	}
}

// announceTo tells an instance the newest configuration, until it has answered, nobody is there, or it was tried that often.
func (p *proc) announceTo(instance nodeid.ID, addr string, tries int) {
	if addr == "" || !p.settled() || p.book.At() == 0 {
		return
	}
	body := founding.AppendAnnounce(nil, founding.Announce{To: instance, Group: p.birth.Group(), At: p.book.At(), Voters: p.book.Voters()})
	var try func()
	try = func() {
		tries--
		p.put(addr, instance, query{body: body}, func(outcome founding.Outcome, _ reply) {
			if outcome == founding.Silent && tries > 0 {
				p.later(announcePause, try)
			}
		})
	}
	try()
}

// stray takes that somebody whose raft ID is in no configuration speaks raft.
func (p *proc) stray(instance nodeid.ID, addr string) {
	now := p.birthNow()
	if last, known := p.strays[instance]; known && now-last < strayPause {
		return
	}
	p.strays[instance] = now
	p.w.note("%v tells %x that it is in no configuration", p, instance)
	p.ofLife(func() { p.announceTo(instance, addr, 1) })
}

// meta is what gossip says about a process.
type meta struct {
	instance  nodeid.ID
	group, at uint64
	addr      string
}

func (p *proc) meta() meta {
	return meta{instance: p.instance, group: p.group, at: p.book.At(), addr: p.m.addr}
}

// seen takes what gossip says now: of whom, and in which order.
func (p *proc) seen(streams []int, metas []meta) {
	peers := make(map[int]meta, len(metas))
	for i, m := range metas {
		if peers[streams[i]] = m; m.instance == p.instance {
			p.birth.Suspect(p.birthNow(), m.addr)
		}
	}
	p.peers = peers
}

// pulling is the search for a newer configuration, of which gossip says that there is one.
type pulling struct {
	until time.Duration
	turn  int
}

// pullNewer asks the leader, or some voter, if gossip says that there is a newer configuration of this group.
func (p *proc) pullNewer(now time.Duration) {
	if !p.behind() || now < p.pull.until {
		return
	}
	p.pull.until = now + pullWithin
	p.birth.Inquire(now, p.advisor(p.pull.turn).Addr)
	p.pull.turn++
}

func (p *proc) pullDue(now time.Duration) time.Duration {
	if !p.behind() {
		return now + time.Hour
	}
	return max(p.pull.until, now)
}

// behind reports whether gossip says that another member of the group knows a newer configuration.
func (p *proc) behind() bool {
	if !p.settled() {
		return false
	}
	for _, m := range p.peers {
		if m.group == p.birth.Group() && m.at > p.book.At() {
			return true
		}
	}
	return false
}
