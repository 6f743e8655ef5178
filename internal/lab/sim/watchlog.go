package sim

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// logWatch observes what the replicas vote, apply and answer.
type logWatch struct {
	*sight
	steps  *leaseWatch
	stays  *stayWatch
	calls  *callWatch
	voters *voterWatch

	front  check.Front
	tokens check.Tokens
	hashes check.Hashes
	raft   check.Raft
	rising check.Rising
	opened func(lockfsm.SessionID) // called when a group has opened a session; may be nil
}

// stateEvery is the number of entries between two comparisons of the replicas' states.
const stateEvery = 16

func (o *logWatch) replicaStarts(r *voter, state raftlog.State, fresh bool) {
	o.w.numbers++
	r.judgedAs = fmt.Sprintf("%v, replica %x of group %x, life %d", r.p, r.ID, r.Group, o.w.numbers)
	o.voted(r, state.HardState)
	o.voters.begins(r, fresh)
}

// saved also checks that a batch refers only to a snapshot that is already durable.
func (o *logWatch) saved(r *voter, b *raftlog.Batch) {
	o.voted(r, b.HardState)
	if b.Prepared && b.Snapshot != r.prepared {
		o.w.broken("%s names the snapshot at %d before it is durable", r.judgedAs, b.Snapshot.GetMetadata().GetIndex())
	}
}

func (o *logWatch) voted(r *voter, hard *raftpb.HardState) {
	if hard != nil {
		o.w.must(o.raft.Votes(r.Group, hard.GetTerm(), r.ID, hard.GetVote()))
	}
}

// sends observes the messages that a replica sends. A vote counts from the moment when it is sent.
func (o *logWatch) sends(r *voter, messages []*raftpb.Message) {
	for _, m := range messages {
		if m.GetType() != raftpb.MsgVoteResp || m.GetReject() {
			continue
		}
		o.w.must(o.raft.Votes(r.Group, m.GetTerm(), r.ID, m.GetTo()))
		if disk := r.p.m.disk; disk != nil && o.w.befalls(powerFails, o.w.odds.brittle, r.p.m.name) {
			o.w.after(o.w.between(0, 2*o.w.cfg.Latency), func() {
				if !r.p.dead {
					r.p.m.power.crashAndReturn()
				}
			})
		}
	}
}

func (o *logWatch) trail(r *voter, e history.Event) {
	o.record(r.p, e)
	o.steps.leaseTrail(r, &e)
	if !r.first {
		return
	}
	g := o.groups[r.Group]
	for i, key := range append([]string{e.Key}, e.Keys...) {
		switch e.Kind {
		case history.Grant:
			o.w.must(o.tokens.Grant(key, e.Token))
			o.calls.grants(key, &e)
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
		o.calls.ended(g, &e)
	case e.Kind == history.Shared:
		o.calls.becomesShared(g, &e)
	case e.Resumes != 0:
		o.calls.resumed(&e)
	}
}

// queue observes that a request joins or leaves the queues of its keys.
func (o *logWatch) queue(r *voter, e history.Event, leaves bool) {
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
		o.calls.arrives(r, key, terms, e.Upgrades)
		o.stays.recalls(r.Group, key, terms)
	}
}

func (o *logWatch) role(r *voter) {
	role := r.Role()
	o.voters.counts(r, role.Leading)
	if role.Leading {
		o.w.stats.Terms++
		o.w.must(o.raft.Leads(r.Group, role.Term, r.ID))
	}
}

func (o *logWatch) applies(r *voter, e *raftlog.Event) {
	r.applying = e.Term
	sum := check.Sum(e.Data)
	o.w.must(o.raft.Committed(r.Group, e.Index, e.Term, sum, r.judgedAs))
	o.w.mark('a', e.Index, sum)
	g := o.groups[r.Group]
	if r.first = o.front.First(r.Group, e.Index); r.first || e.Index > g.front {
		o.w.stats.Entries++
		g.front = max(g.front, e.Index)
	}
}

// account is the replica.Trail of a replica. It passes each result to the watch first.
type account struct {
	*history.Trail
	o *logWatch
	r *voter
}

func (o *logWatch) account(r *voter, group uint64) account {
	trail := history.NewTrail(group, func(e history.Event) { o.trail(r, e) })
	trail.Queue = func(e history.Event, leaves bool) { o.queue(r, e, leaves) }
	return account{trail, o, r}
}

// Result implements replica.Trail.
func (a account) Result(result lockfsm.Result, machine *lockfsm.Machine) {
	a.o.result(a.r, &result)
	a.Trail.Result(result, machine)
}

func (o *logWatch) result(r *voter, result *lockfsm.Result) {
	o.steps.leaseResult(r, result)
	if r.first {
		o.stays.mayReserve(result)
		if result.Kind == lockfsm.Refuse && result.Code == lockfsm.Deadlock {
			o.w.stats.SearchedOn++
		}
	}
	if r.first && result.Code == lockfsm.Done {
		switch result.Kind {
		case lockfsm.Open:
			if o.opened != nil {
				o.w.after(0, func() { o.opened(result.Session) })
			}
		case lockfsm.Close:
			o.sessionEnds(r, result)
		case lockfsm.Expire:
			o.sessionEnds(r, result)
			o.w.stats.Expired++
			o.groups[r.Group].delays.Expired(result.Session, o.w.now)
			o.outlived(r, result.Session)
		case lockfsm.Detach:
			if result.Detached != 0 {
				o.w.stats.Detached++
				o.groups[r.Group].delays.Expired(result.Detached, o.w.now)
			}
		case lockfsm.EndGrace:
			o.graceEnds(r)
		case lockfsm.Adopt:
			o.w.stats.Adopted++
		}
	}
}

// outlived checks promise 3: when a replica applies the expiry of a session, the lease of its
// client must have ended, because the session's locks can then be granted to others.
func (o *logWatch) outlived(r *voter, session lockfsm.SessionID) {
	for s := range o.leasesOf() {
		if s.p.group == r.Group && s.leaseLeft() > 0 && s.status().Session == session {
			o.w.broken("session %d has expired, and the lease of %v goes on for %v", session, s, s.leaseLeft())
		}
	}
}

// graceEnds checks that when the grace of a group ends, no client has a lease of an earlier group.
func (o *logWatch) graceEnds(r *voter) {
	for s := range o.leasesOf() {
		if s.p.group != r.Group && s.leaseLeft() > 0 && o.w.cfg.Grace > 0 {
			o.w.broken("the grace of group %x is over, and the lease of %v in group %x goes on for %v", r.Group, s,
				s.p.group, s.leaseLeft())
		}
	}
}

// compare checks the whole state of a replica, and that it equals the state of the other replicas
// at the same index.
func (o *logWatch) compare(r *voter, index uint64) {
	o.w.must(r.glue.Machine().Check())
	o.w.must(o.hashes.Applied(r.Group, index, check.Sum(r.glue.Machine().Snapshot(nil)), r.judgedAs))
	o.w.must(o.groups[r.Group].acks.Replica(r.judgedAs, index, check.Holders(r.glue.Machine().Entries())))
	o.w.must(o.rising.Observed(r.judgedAs, check.Progress{
		Term: r.Role().Term, Commit: r.core.Status().Commit, Applied: index,
		Revision: uint64(r.glue.Machine().Revision()),
	}))
}

// sessionEnds observes that the state ends a session: after its own Close, or because it expired.
func (o *logWatch) sessionEnds(r *voter, result *lockfsm.Result) {
	of := sessionOf{r.Group, result.Session}
	if result.Kind == lockfsm.Close && !o.steps.asked[of] {
		o.w.broken("session %d is closed in the state, and its client has not sent that", result.Session)
	}
	o.overs[of] = true
}
