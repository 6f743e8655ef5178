package sim

import (
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/keeper"
)

// leaseWatch passes the lease steps of a run to check.Leases, which compares them with the rules of
// model/lease.pml. It decodes what clients and keepers send, and does not ask the cores.
type leaseWatch struct {
	*sight
	leases check.Leases
	asked  map[sessionOf]bool // sessions that their client has closed
	// opening has the process that has sent an Open, and opened the one that has opened a session.
	opening map[lockfsm.Nonce]*life
	opened  map[sessionOf]*life
}

// recallPasses is how many callers get a pass of a stay after its recall, see package stay.
const recallPasses = 16

func (o *leaseWatch) leaseStep(s check.LeaseStep) { o.w.must(o.leases.Step(&s)) }

func (o *leaseWatch) clientStep(of *lease, s check.LeaseStep) {
	s.Client, s.Clock = of.traced, time.Duration(of.p.m.clock())
	o.leaseStep(s)
}

func (o *leaseWatch) voterStep(r *voter, s check.LeaseStep) {
	s.Voter, s.Clock, s.Group = r.judgedAs, time.Duration(r.p.m.clock()), r.Group
	o.leaseStep(s)
}

// appliedStep observes a step of a log when it reaches the keeper. What the keeper has sent before
// depends on earlier steps only.
func (o *leaseWatch) appliedStep(r *voter, s check.LeaseStep) {
	r.keep(func(clock.Time) { o.voterStep(r, s) })
}

func traced(number int, name string) string { return "client " + strconv.Itoa(number) + " on " + name }

// clientSends observes a frame of a client.
func (o *leaseWatch) clientSends(of *lease, renewals, commands []byte) {
	for len(renewals) > 0 {
		r, rest, err := session.NextRenewal(renewals)
		if o.w.must(err); err != nil {
			return
		}
		renewals = rest
		o.clientStep(of, check.LeaseStep{Kind: check.RenewSent, Session: r.Session, Epoch: r.Epoch, Seq: r.Seq})
	}
	for len(commands) > 0 {
		one, rest, err := lockfsm.Next(commands)
		if o.w.must(err); err != nil {
			return
		}
		commands = rest
		c, err := lockfsm.Decode(one)
		if err != nil {
			continue // a client may send a command of rules that this build does not have
		}
		s := check.LeaseStep{Session: c.Session, Epoch: c.Epoch, Number: c.Number, Nonce: c.Nonce, Named: c.Live}
		switch c.Kind {
		case lockfsm.Open:
			s.Kind = check.OpenSent
			o.opening[c.Nonce] = of.p
		case lockfsm.Attach:
			s.Kind = check.AttachSent
		case lockfsm.Release, lockfsm.Cancel, lockfsm.Detach:
			s.Kind = check.FreeSent
		case lockfsm.Close:
			o.closesSession(of, c.Session)
			continue
		default:
			continue
		}
		o.clientStep(of, s)
	}
}

// each calls the callback with each reply of a frame.
func (o *leaseWatch) each(replies []byte, f func(*session.Reply)) {
	for len(replies) > 0 {
		r, rest, err := session.NextReply(replies)
		if err != nil {
			return // the insider sends anything
		}
		replies = rest
		f(&r)
	}
}

// clientHears observes a frame that a client has read.
func (o *leaseWatch) clientHears(of *lease, replies []byte) {
	has := of.status().Session
	o.each(replies, func(r *session.Reply) {
		s := check.LeaseStep{Session: r.Session, Epoch: r.Epoch, Number: r.Number, Seq: r.Seq, Nonce: r.Nonce, TTL: r.TTL,
			Token: r.Token}
		switch {
		case r.Kind == session.ReplyOpened && r.Session == has: // not an answer of the insider, nor to another session
			s.Kind = check.OpenHeard
		case r.Kind == session.ReplyRenewed:
			s.Kind = check.RenewHeard
		case r.Kind == session.ReplyState && r.Token != 0 && r.Session == has:
			s.Kind = check.StateHeard
		default:
			return
		}
		o.clientStep(of, s)
	})
}

func (o *leaseWatch) published(of *lease, deadline clock.Time) {
	o.clientStep(of, check.LeaseStep{Kind: check.Published, Deadline: time.Duration(deadline)})
}

func (o *leaseWatch) holdStep(c *call, kind check.LeaseStepKind) {
	if !c.mayDoubt() { // a hold with a grace may be good again
		o.clientStep(c.s, check.LeaseStep{Kind: kind, Token: c.stateToken()})
	}
}

func (o *leaseWatch) stayStep(of *lease, k *keptStay, kind check.LeaseStepKind) {
	o.clientStep(of, check.LeaseStep{Kind: kind, Token: k.first})
}

// renewalsCome observes that a frame arrives at a keeper.
func (o *leaseWatch) renewalsCome(r *voter, renewals []byte) {
	for len(renewals) > 0 {
		one, rest, err := session.NextRenewal(renewals)
		if err != nil {
			return // the insider sends anything
		}
		renewals = rest
		o.voterStep(r, check.LeaseStep{Kind: check.RenewCame, Session: one.Session, Epoch: one.Epoch, Seq: one.Seq})
	}
}

func (o *leaseWatch) round(r *voter, kind check.LeaseStepKind, number uint64) {
	if number&keeper.SearchRound == 0 {
		o.voterStep(r, check.LeaseStep{Kind: kind, Seq: number})
	}
}

func (o *leaseWatch) keeperSends(r *voter, replies []byte) {
	o.each(replies, func(reply *session.Reply) {
		s := check.LeaseStep{Session: reply.Session, Epoch: reply.Epoch, Number: reply.Number, Seq: reply.Seq}
		switch {
		case reply.Kind == session.ReplyRenewed:
			s.Kind = check.RenewTold
		case reply.Kind == session.ReplyState && reply.Token != 0:
			s.Kind = check.GrantTold
		case reply.Kind == session.ReplyWanted:
			s.Kind = check.RecallTold
		case reply.Kind == session.ReplyAttached && reply.Code == lockfsm.Done:
			s.Kind = check.AttachTold
		default:
			return
		}
		o.voterStep(r, s)
	})
}

func (o *leaseWatch) keeperProposes(r *voter, term uint64, batch []byte) {
	for len(batch) > 0 {
		one, rest, err := lockfsm.Next(batch)
		if o.w.must(err); err != nil {
			return
		}
		batch = rest
		if c, err := lockfsm.Decode(one); err == nil && c.Kind == lockfsm.Expire {
			by := o.opened[sessionOf{r.Group, c.Session}]
			if c.Cause == lockfsm.Superseded {
				o.w.stats.Superseded++
			}
			o.voterStep(r, check.LeaseStep{Kind: check.ExpireProposed, Session: c.Session, Term: term,
				Ended: c.Cause == lockfsm.Superseded && by != nil && by.dead})
		}
	}
}

// leaseResult observes a result that a replica applies, from an entry of the given term.
func (o *leaseWatch) leaseResult(r *voter, result *lockfsm.Result) {
	if result.Code != lockfsm.Done {
		return
	}
	s := check.LeaseStep{Session: result.Session, Epoch: result.Epoch, TTL: result.TTL, Term: r.applying}
	switch result.Kind {
	case lockfsm.Open:
		s.Kind = check.OpenApplied
		o.opened[sessionOf{r.Group, result.Session}] = o.opening[result.Nonce]
	case lockfsm.Attach:
		s.Kind = check.AttachApplied
		for _, state := range result.States {
			if state.Wanted {
				s.Recalled = append(s.Recalled, state.Number)
			}
		}
	case lockfsm.Close:
		s.Kind = check.EndApplied
	case lockfsm.Expire:
		s.Kind = check.ExpireApplied
	default:
		return
	}
	o.appliedStep(r, s)
}

// leaseTrail observes a grant or an end that a replica applies.
func (o *leaseWatch) leaseTrail(r *voter, e *history.Event) {
	s := check.LeaseStep{Session: e.Session, Number: e.Number}
	switch {
	case e.Kind == history.Grant && e.Seq != 0:
		s.Kind = check.GrantApplied
	case e.Kind == history.End:
		s.Kind = check.EndApplied
	default:
		return
	}
	o.appliedStep(r, s)
}

// closesSession observes that a client sends the command that closes its session.
func (o *leaseWatch) closesSession(s *lease, session lockfsm.SessionID) {
	if !s.closes() && !s.p.leaving {
		o.w.broken("%v closes its session %d, which it was not asked to", s, session)
	}
	o.asked[sessionOf{s.p.group, session}] = true
}
