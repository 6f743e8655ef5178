package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Leases checks a trace of lease steps against the rules of model/lease.pml. Each rule is about
// what one process does, in terms of its earlier steps and of the clock that it reads. So the rules
// are stricter than the promises that the other checkers check: a trace can break a rule
// although no two callers hold a lock.
type Leases struct {
	// Passes is how many callers may get a pass of a stay after its recall.
	Passes int

	clients map[string]*leaseClient
	voters  map[string]*leaseVoter
	decided map[leaseDecision]bool
	terms   map[uint64]uint64 // the newest term of each group
}

type leaseDecision struct {
	group   uint64
	session lockfsm.SessionID
	term    uint64
}

type leaseClient struct {
	session  lockfsm.SessionID
	ttl      time.Duration
	nonce    lockfsm.Nonce            // of the newest Open
	asks     bool                     // it was not answered
	opened   time.Duration            // when it was first sent
	renewals map[uint64]time.Duration // when each renewal was sent
	sent     time.Duration            // of the newest acknowledged one
	first    bool                     // which was the Open
	deadline time.Duration
	numbers  map[lockfsm.Token]lockfsm.Number
	tokens   map[lockfsm.Number]lockfsm.Token
	held     map[lockfsm.Token]bool // whether a caller holds it, or only the client keeps it
	lost     map[lockfsm.Token]bool
	released map[lockfsm.Token]bool
	recalled map[lockfsm.Token]int // passes since the recall
}

type leaseAttachment struct {
	session lockfsm.SessionID
	epoch   lockfsm.Epoch
}

// leaseRenewal is the first arrival of a renewal: the newest term then, the round after it, and the
// number of grants that the voter had applied.
type leaseRenewal struct{ term, round, grants uint64 }

type leaseVoter struct {
	group, term uint64
	since       time.Duration // when it began to lead
	ttls        map[lockfsm.SessionID]time.Duration
	acked       map[lockfsm.SessionID]time.Duration
	expiring    map[lockfsm.SessionID]bool
	epochs      map[lockfsm.SessionID]lockfsm.Epoch
	live        map[leaseAttachment]bool
	came        map[string]leaseRenewal
	asked       uint64                                          // the newest round
	confirmed   uint64                                          // the newest round that a quorum has confirmed
	grants      uint64                                          // to sessions that are attached
	untold      map[lockfsm.SessionID]map[lockfsm.Number]uint64 // which of the grants it is
	recalls     map[lockfsm.SessionID][]lockfsm.Number
}

func (l *Leases) client(name string) *leaseClient {
	c := l.clients[name]
	if c == nil {
		c = &leaseClient{}
		c.begin()
		if l.clients == nil {
			l.clients = map[string]*leaseClient{}
		}
		l.clients[name] = c
	}
	return c
}

func (c *leaseClient) begin() {
	c.renewals, c.numbers = map[uint64]time.Duration{}, map[lockfsm.Token]lockfsm.Number{}
	c.tokens = map[lockfsm.Number]lockfsm.Token{}
	c.held, c.lost = map[lockfsm.Token]bool{}, map[lockfsm.Token]bool{}
	c.released, c.recalled = map[lockfsm.Token]bool{}, map[lockfsm.Token]int{}
}

func (l *Leases) voter(name string) *leaseVoter {
	v := l.voters[name]
	if v == nil {
		v = &leaseVoter{}
		v.leads(0, 0, 0)
		if l.voters == nil {
			l.voters, l.terms, l.decided = map[string]*leaseVoter{}, map[uint64]uint64{}, map[leaseDecision]bool{}
		}
		l.voters[name] = v
	}
	return v
}

func (v *leaseVoter) leads(group, term uint64, at time.Duration) {
	*v = leaseVoter{group: group, term: term, since: at, ttls: v.ttls, epochs: v.epochs,
		came: v.came, asked: v.asked, confirmed: v.confirmed, grants: v.grants,
		acked: map[lockfsm.SessionID]time.Duration{}, expiring: map[lockfsm.SessionID]bool{},
		live:   map[leaseAttachment]bool{},
		untold: map[lockfsm.SessionID]map[lockfsm.Number]uint64{}, recalls: map[lockfsm.SessionID][]lockfsm.Number{}}
	if v.ttls == nil {
		v.ttls, v.epochs = map[lockfsm.SessionID]time.Duration{}, map[lockfsm.SessionID]lockfsm.Epoch{}
		v.came = map[string]leaseRenewal{}
	}
}

// rounding is what a conversion of clocks may lose.
const rounding = time.Microsecond

func broken(rule LeaseRule, s *LeaseStep, format string, args ...any) error {
	return fmt.Errorf("leases: rule %s of model/lease.pml, %q: %s%s: session %d, epoch %d: %s", rule, leaseRules()[rule],
		s.Client, s.Voter, s.Session, s.Epoch, fmt.Sprintf(format, args...))
}

// Step checks the next step. After an error the trace is over.
func (l *Leases) Step(s *LeaseStep) error {
	switch {
	case s.Kind == Settled:
		if s.Left != 0 {
			return broken(CancelFrees, s, "%d requests are left that no caller wants", s.Left)
		}
		return nil
	case s.Client != "":
		return l.client(s.Client).step(s, l.Passes)
	}
	return l.atVoter(l.voter(s.Voter), s)
}

func (c *leaseClient) step(s *LeaseStep, passes int) error {
	switch s.Kind {
	case OpenSent:
		if c.nonce != s.Nonce {
			c.nonce, c.opened, c.asks = s.Nonce, s.Clock, true
		}
	case OpenHeard:
		if c.asks && c.nonce == s.Nonce { // a second answer is ignored
			c.begin()
			c.asks = false
			c.session, c.ttl, c.sent, c.first, c.deadline = s.Session, s.TTL, c.opened, true, 0
		}
	case RenewSent:
		c.renewals[s.Seq] = s.Clock
	case RenewHeard:
		if sent, ours := c.renewals[s.Seq]; ours && s.Session == c.session && sent > c.sent {
			c.sent, c.first = sent, false
		}
	case Published:
		return c.published(s)
	case StateHeard:
		c.numbers[s.Token], c.tokens[s.Number] = s.Number, s.Token
	default:
		return c.holds(s, passes)
	}
	return nil
}

func (c *leaseClient) published(s *LeaseStep) error {
	most := c.sent + c.ttl
	switch {
	case s.Deadline == 0:
	case s.Deadline > most+rounding && c.first:
		return broken(FirstSending, s, "the lease ends %v after the first sending of Open, and the TTL is %v",
			s.Deadline-c.sent, c.ttl)
	case s.Deadline > most+rounding:
		return broken(SentTime, s, "the lease ends %v after the sending of the acknowledged renewal, and the TTL is %v",
			s.Deadline-c.sent, c.ttl)
	case s.Deadline > most-c.ttl/50+rounding:
		return broken(Margin, s, "the lease ends %v before that of the leader", most-s.Deadline)
	}
	if c.deadline != 0 && s.Clock >= c.deadline && s.Deadline != c.deadline {
		for token := range c.held {
			c.lost[token] = true
		}
	}
	c.deadline = s.Deadline
	return nil
}

func (c *leaseClient) holds(s *LeaseStep, passes int) error {
	switch s.Kind {
	case Believes:
		if c.lost[s.Token] {
			return broken(LossIsFinal, s, "the lock with token %d is held again after the end of its lease", s.Token)
		}
		c.held[s.Token] = true
	case Keeps:
		c.held[s.Token] = false
	case Forgets:
		delete(c.held, s.Token)
	case FreeSent:
		if token, known := c.tokens[s.Number]; known && s.Session == c.session {
			c.released[token] = true
			delete(c.held, token)
			delete(c.numbers, token)
			delete(c.tokens, s.Number)
		}
	case RecallHeard:
		if _, again := c.recalled[s.Token]; !again {
			c.recalled[s.Token] = 0
		}
	case Passes:
		if c.released[s.Token] {
			return broken(ReleasedIsOver, s, "a pass of the stay with token %d, which was given back", s.Token)
		}
		if n, recalled := c.recalled[s.Token]; recalled {
			if c.recalled[s.Token]++; n >= passes {
				return broken(RecallIsRespected, s, "pass %d of the stay with token %d after its recall", n+1, s.Token)
			}
		}
	case AttachSent:
		for token := range c.held {
			number, known := c.numbers[token]
			if known && !slices.ContainsFunc(s.Named, func(r lockfsm.Range) bool {
				return r.First <= number && number <= r.Last
			}) {
				return broken(NamesWhatIsKept, s, "the Attach does not name the request %d, held with token %d", number, token)
			}
		}
	}
	return nil
}

func (l *Leases) atVoter(v *leaseVoter, s *LeaseStep) error {
	switch s.Kind {
	case Leads:
		v.leads(s.Group, s.Term, s.Clock)
		l.terms[s.Group] = max(l.terms[s.Group], s.Term)
	case Stopped:
		delete(l.voters, s.Voter)
	case OpenApplied:
		if _, again := v.ttls[s.Session]; !again { // a second Open has the same answer
			v.ttls[s.Session], v.acked[s.Session] = s.TTL, s.Clock
		}
	case AttachApplied:
		v.epochs[s.Session] = s.Epoch
		v.live[leaseAttachment{s.Session, s.Epoch}] = true
		v.recalls[s.Session] = s.Recalled
		delete(v.untold, s.Session)
	case GrantApplied:
		if v.term != 0 && v.live[leaseAttachment{s.Session, v.epochs[s.Session]}] {
			if v.untold[s.Session] == nil {
				v.untold[s.Session] = map[lockfsm.Number]uint64{}
			}
			v.grants++
			v.untold[s.Session][s.Number] = v.grants
		}
	case EndApplied:
		if delete(v.untold[s.Session], s.Number); s.Number == 0 { // of the session
			delete(v.ttls, s.Session)
		}
	case ExpireApplied:
		delete(v.ttls, s.Session)
		if !l.decided[leaseDecision{s.Group, s.Session, s.Term}] {
			return broken(OwnTerm, s, "an expiry counts in term %d, in which no leader has decided it", s.Term)
		}
	case GrantTold:
		delete(v.untold[s.Session], s.Number)
	case RecallTold:
		v.recalls[s.Session] = slices.DeleteFunc(v.recalls[s.Session], func(n lockfsm.Number) bool { return n == s.Number })
	case AttachTold:
		if left := v.recalls[s.Session]; len(left) > 0 {
			return broken(RecallIsRepeated, s, "it is attached, and hears nothing of the recall of its request %d", left[0])
		}
	default:
		return l.renews(v, s)
	}
	return nil
}

func (l *Leases) renews(v *leaseVoter, s *LeaseStep) error {
	renewal := fmt.Sprint(s.Session, s.Epoch, s.Seq)
	switch s.Kind {
	case RenewCame:
		if _, again := v.came[renewal]; !again {
			v.came[renewal] = leaseRenewal{l.terms[v.group], v.asked + 1, v.grants}
		}
	case RoundAsked:
		v.asked = max(v.asked, s.Seq)
	case RoundConfirmed:
		v.confirmed = max(v.confirmed, s.Seq)
	case ExpireProposed:
		l.decided[leaseDecision{v.group, s.Session, s.Term}] = true
		v.expiring[s.Session] = true
		last := max(v.since, v.acked[s.Session])
		if ttl, lives := v.ttls[s.Session]; lives && !s.Ended && s.Clock < last+ttl-rounding {
			return broken(FullTTL, s, "its end is proposed %v after it could be renewed, and the TTL is %v", s.Clock-last, ttl)
		}
	case RenewTold:
		at := leaseAttachment{s.Session, s.Epoch}
		came, known := v.came[renewal]
		switch {
		case known && came.term > v.term:
			return broken(LeadConfirmed, s, "the leader of term %d acknowledges a renewal that came in term %d", v.term,
				came.term)
		case known && came.round > v.confirmed:
			return broken(LeadConfirmed, s, "a renewal is acknowledged and no quorum has confirmed the leader since it came")
		case v.term == 0 || !v.live[at]:
			return broken(AppliedFirst, s, "an attachment is acknowledged in term %d before it is applied", v.term)
		case v.expiring[s.Session]:
			return broken(NotExpiring, s, "a renewal is acknowledged after its end was proposed")
		case v.epochs[s.Session] > s.Epoch:
			return broken(NewestAttachment, s, "the attachment %d is newer", v.epochs[s.Session])
		case !known:
			return broken(NewestAttachment, s, "the renewal %d did not come with this attachment", s.Seq)
		}
		for number, grant := range v.untold[s.Session] {
			if grant <= came.grants { // it came after the grant
				return broken(GrantIsTold, s, "the grant of its request %d was not told", number)
			}
		}
		v.acked[s.Session] = s.Clock
	}
	return nil
}
