package sim

import (
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// stateEvery is the number of entries between two comparisons of the replicas' states.
const stateEvery = 16

func (o *watch) founded(c *founding.Charter) {
	if o.groups[c.Group] == nil {
		o.groups[c.Group] = &group{charter: *c, delays: check.Delays{Drift: o.w.cfg.Drift + 1e-6}}
	}
}

// lives reports whether a running replica could win an election in its own configuration. It
// considers only configurations in which the given voter votes. A replica votes for a candidate if
// the last entry of the candidate's log is not older than its own last entry, and if the replica
// knows the candidate.
func (o *watch) lives(voter *ownReplica) bool {
	run := slices.DeleteFunc(slices.Collect(o.w.replicas()), func(r *ownReplica) bool { return r.Group != voter.Group })
	return slices.ContainsFunc(run, func(candidate *ownReplica) bool {
		majority := func(voters []uint64) bool {
			n := 0
			for _, r := range run {
				if slices.Contains(voters, r.ID) && !behind(candidate, r) &&
					r.Speaks(r.p.core, candidate.ID, candidate.p.instance) {
					n++
				}
			}
			return 2*n > len(voters)
		}
		c := candidate.Configuration()
		return candidate.Votes() && (slices.Contains(c.Voters, voter.ID) || slices.Contains(c.Outgoing, voter.ID)) &&
			majority(c.Voters) && (len(c.Outgoing) == 0 || majority(c.Outgoing))
	})
}

// born checks a group when the first replica has applied the command Born.
func (o *watch) born(r *ownReplica) {
	g := o.groups[r.Group]
	if g.born {
		return
	}
	g.born = true
	o.stats.Groups++
	for _, l := range g.charter.List {
		if o.bound[l.Instance] != r.Group {
			o.w.broken("group %x is born, and %s, which is on its list, was never bound to it", r.Group, l.Name)
		}
	}
	o.w.note("group %x is born", r.Group)
	var voters []uint64
	for _, v := range g.charter.Voters {
		voters = append(voters, nodeidtest.Number(v.Instance))
	}
	o.w.must(o.foundings.Born(r.Group, g.charter.FoundedUnixMS, voters...))
	if o.w.cfg.Quiet && o.foundings.Needless() > 0 {
		o.w.broken("group %x is born, and a group before it had a majority all the time", r.Group)
	}
}

func (o *watch) replicaStarts(r *ownReplica, state raftlog.State, fresh bool) {
	o.w.numbers++
	r.judgedAs = fmt.Sprintf("%v, replica %x of group %x, life %d", r.p, r.ID, r.Group, o.w.numbers)
	o.voted(r, state.HardState)
	o.begins(r, fresh)
}

func (o *watch) saved(r *ownReplica, b *raftlog.Batch) {
	o.voted(r, b.HardState)
	r.names(b)
}

func (o *watch) voted(r *ownReplica, hard *raftpb.HardState) {
	if hard != nil {
		o.w.must(o.raft.Votes(r.Group, hard.GetTerm(), r.ID, hard.GetVote()))
	}
}

// sends observes the messages that a replica sends. A vote counts from the moment when it is sent.
func (o *watch) sends(r *ownReplica, messages []*raftpb.Message) {
	for _, m := range messages {
		if m.GetType() != raftpb.MsgVoteResp || m.GetReject() {
			continue
		}
		o.w.must(o.raft.Votes(r.Group, m.GetTerm(), r.ID, m.GetTo()))
		if disk := r.p.m.disk; disk != nil && o.w.befalls(powerFails, o.w.nemesis.brittle, r.p.m.name) {
			o.w.after(o.w.between(0, 2*o.w.net.latency), func() {
				if !r.p.dead {
					r.p.m.crashAndReturn()
				}
			})
		}
	}
}

func (o *watch) trail(r *ownReplica, e history.Event) {
	o.record(r.p, e)
	o.leaseTrail(r, &e)
	if !r.first {
		return
	}
	g := o.groups[r.Group]
	for i, key := range append([]string{e.Key}, e.Keys...) {
		switch e.Kind {
		case history.Grant:
			o.w.must(o.tokens.Grant(key, e.Token))
			o.grants(key, &e)
			if e.Resumes == 0 { // a resumed hold keeps the place of the old hold in the queue
				o.w.must(g.fifo.Granted(key, e.Place))
			}
		case history.End:
			terms := termsOf(&e, i)
			if e.Upgrades != 0 {
				terms = reader() // see remembered
			}
			g.acks.Ended(e.Index, key, terms, e.Token, e.How.String())
		}
	}
	switch {
	case e.Kind == history.End:
		o.ended(g, &e)
	case e.Kind == history.Shared:
		o.becomesShared(g, &e)
	case e.Resumes != 0:
		o.resumed(&e)
	}
}

// queue observes that a request joins or leaves the queues of its keys.
func (o *watch) queue(r *ownReplica, e history.Event, leaves bool) {
	if !r.first {
		return
	}
	f := &o.groups[r.Group].fifo
	for i, key := range append([]string{e.Key}, e.Keys...) {
		if leaves {
			o.w.must(f.Gone(key, e.Place))
			continue
		}
		terms := termsOf(&e, i)
		if e.Upgrades != 0 {
			o.w.must(f.Upgrades(key, e.Place))
		} else {
			o.w.must(f.Queued(key, e.Place, terms, len(e.Keys) > 0))
		}
		o.arrives(r, key, terms, e.Upgrades)
		o.recalls(r.Group, key, terms)
	}
}

func (o *watch) role(r *ownReplica) {
	role := r.Role()
	o.counts(r, role.Leading)
	if role.Leading {
		o.stats.Terms++
		o.w.must(o.raft.Leads(r.Group, role.Term, r.ID))
	}
}

func (o *watch) applies(r *ownReplica, e *raftlog.Event) {
	r.applying = e.Term
	sum := check.Sum(e.Data)
	o.w.must(o.raft.Committed(r.Group, e.Index, e.Term, sum, r.judgedAs))
	o.w.mark('a', e.Index, sum)
	g := o.groups[r.Group]
	if r.first = o.front.First(r.Group, e.Index); r.first || e.Index > g.front {
		o.stats.Entries++
		g.front = max(g.front, e.Index)
	}
}

// account is the replica.Trail of a replica. It passes each result to the watch first.
type account struct {
	*history.Trail
	r *ownReplica
}

func (o *watch) account(r *ownReplica, group uint64) account {
	trail := history.NewTrail(group, func(e history.Event) { o.trail(r, e) })
	trail.Queue = func(e history.Event, leaves bool) { o.queue(r, e, leaves) }
	return account{trail, r}
}

// Result implements replica.Trail.
func (a account) Result(result lockfsm.Result, machine *lockfsm.Machine) {
	a.r.p.w.watch.result(a.r, &result)
	a.Trail.Result(result, machine)
}

func (o *watch) result(r *ownReplica, result *lockfsm.Result) {
	o.leaseResult(r, result)
	if r.first {
		o.mayReserve(result)
		if result.Kind == lockfsm.Refuse && result.Code == lockfsm.Deadlock {
			o.stats.SearchedOn++
		}
	}
	if r.first && result.Code == lockfsm.Done {
		switch result.Kind {
		case lockfsm.Open:
			if i := o.w.insider; i != nil {
				o.w.after(0, func() { i.opened(result.Session) })
			}
		case lockfsm.Close:
			o.sessionEnds(r, result)
		case lockfsm.Expire:
			o.sessionEnds(r, result)
			o.stats.Expired++
			o.groups[r.Group].delays.Expired(result.Session, o.w.now)
			o.outlived(r, result.Session)
		case lockfsm.Detach:
			if result.Detached != 0 {
				o.stats.Detached++
				o.groups[r.Group].delays.Expired(result.Detached, o.w.now)
			}
		case lockfsm.EndGrace:
			o.graceEnds(r)
		case lockfsm.Adopt:
			o.stats.Adopted++
		}
	}
}

// outlived checks promise 3: when a replica applies the expiry of a session, the lease of its
// client must have ended, because the session's locks can then be granted to others.
func (o *watch) outlived(r *ownReplica, session lockfsm.SessionID) {
	for s := range o.w.clientsOf() {
		if s.p.group == r.Group && s.leaseLeft() > 0 && s.status().Session == session {
			o.w.broken("session %d has expired, and the lease of %v goes on for %v", session, s, s.leaseLeft())
		}
	}
}

// graceEnds checks that when the grace of a group ends, no client has a lease of an earlier group.
func (o *watch) graceEnds(r *ownReplica) {
	for s := range o.w.clientsOf() {
		if s.p.group != r.Group && s.leaseLeft() > 0 && o.w.cfg.Grace > 0 {
			o.w.broken("the grace of group %x is over, and the lease of %v in group %x goes on for %v", r.Group, s,
				s.p.group, s.leaseLeft())
		}
	}
}

// leaseLeft returns the remaining time of the client's lease, by the clock of its machine.
func (s *ownClient) leaseLeft() time.Duration {
	if s.deadline == 0 {
		return 0
	}
	return s.deadline.Sub(s.p.m.clock())
}

// compare checks the whole state of a replica, and that it equals the state of the other replicas
// at the same index.
func (o *watch) compare(r *ownReplica, index uint64) {
	o.w.must(r.glue.Machine().Check())
	o.w.must(o.hashes.Applied(r.Group, index, check.Sum(r.glue.Machine().Snapshot(nil)), r.judgedAs))
	o.w.must(o.groups[r.Group].acks.Replica(r.judgedAs, index, check.Holders(r.glue.Machine().Entries())))
	o.w.must(o.rising.Observed(r.judgedAs, check.Progress{
		Term: r.Role().Term, Commit: r.core.Status().Commit, Applied: index,
		Revision: uint64(r.glue.Machine().Revision()),
	}))
}

// behind reports whether raft refuses to vote: the last entry of the candidate is older than r's.
func behind(candidate, r *ownReplica) bool {
	term, index, err := r.core.LastEntry()
	r.p.w.must(err)
	of, at, err := candidate.core.LastEntry()
	r.p.w.must(err)
	return of < term || of == term && at < index
}

// sessionEnds observes that the state ends a session: after its own Close, or because it expired.
func (o *watch) sessionEnds(r *ownReplica, result *lockfsm.Result) {
	of := sessionOf{r.Group, result.Session}
	if result.Kind == lockfsm.Close && !o.asked[of] {
		o.w.broken("session %d is closed in the state, and its client has not sent that", result.Session)
	}
	o.overs[of] = true
}
