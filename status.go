package mortise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// Status is a picture of a node at one moment, for people and for programs that watch. It is a
// value of its own.
type Status struct {
	Name     string // of this instance
	Instance string // ID of its present life
	Address  string // at which others reach it, "" if it listens nowhere
	Zone     string // Config.Zone
	Version  string // of this library in its build
	Phase    Phase
	// what its secret or certificate makes of it: TierRoot, or TierMember, which never votes and
	// serves nothing
	Tier Tier

	Group string // ID of the group, "" without one
	// Name of the instance that leads as far as known, its ID while no name is known; "" if none
	// leads
	Leader  string
	Leading bool   // this instance leads
	Term    uint64 // of the group, 0 on an instance that does not vote
	Votes   bool   // this instance is a voter
	// who has a replica: the voters, and learners, which get the log and may be needed as voters
	// later
	Voters []Member
	// Config.Replicas: how many instances run, as the configuration says; 0: it names Founders, or
	// the node is on its own
	Promised     int
	VotersWanted int     // how many vote if all are there that the configuration names
	Health       *Health // how the voters stand, on the instance that leads; nil on others, which ask by Node.Health

	// Members is what Node.Members was answered last on this instance: the first page of a hundred
	// at most. Nothing refreshes it but a call of Members; the console and cmd/mortise make it when
	// a person looks.
	Members      []Member
	MembersAge   time.Duration // how old that is; 0: Members was never answered
	MembersTotal int           // how many there were then; on the instance that leads, how many there are now

	Session  SessionPhase
	Lease    LeaseState
	LeaseFor time.Duration // until the locks of this instance are lost unless a renewal is acknowledged before
	// LeaseFor of the session that has least, of the node's and of those of NewSession; 0: one is
	// lost
	LeaseTightest time.Duration
	Held          int    // locks that this instance holds
	Waiting       string // what this node waits for and the way out, in a sentence; "" if nothing
	Waiters       int    // calls on this instance that wait for a lock
	// those of Waiters that may wait long by design, by the label mortise.purpose, as candidates of
	// an election do
	Standby int
	// IDs of its sessions in the group, its own first: Standing.Session names one of them if this
	// process holds the lock
	Sessions []string
	// a sentence: another instance has the Name of this one, which must not be; "" if none is seen
	Namesake    string
	Err         error        // as Node.Err
	Disk        *DiskFault   // what is wrong with the disk of Config.Dir; nil if nothing, or there is none
	FaultyDisks []FaultyDisk // of all instances, as far as this one knows; all voters are told

	Age time.Duration // since Start
	// for how long of that this instance could be granted locks: attached to a leader, its lease
	// not lost, and no grace
	Available    time.Duration
	HooksDropped uint64 // calls of Config.Hooks that were left out because they were too slow
}

// Status returns the present picture. It asks nobody.
func (n *Node) Status() Status {
	p := n.engine.Picture()
	s := Status{
		Name: n.config.Name, Zone: n.config.Zone, Version: version, Instance: p.ID.String(), Address: p.Address,
		Tier: Tier(p.Tier.String()), Err: p.Err,
		Promised: n.config.Replicas, VotersWanted: n.config.votersWanted(), Standby: int(n.standby.Load()),
		Votes: p.Votes, Term: p.Term, Leading: p.Leading, MembersAge: p.MembersAge, MembersTotal: p.MembersTotal,
		Age: p.Age, Available: p.Available, HooksDropped: n.engine.Tracer().Dropped(),
	}
	if p.Members != nil {
		s.Members = membersOf(p.Members)
	}
	s.fillSessions(p)
	if p.Started {
		s.fill(&p.Cluster, p.Leader, p.People, p.Linked)
		if p.Report != nil {
			h := n.health(p, *p.Report, p.ID, p.Remarks, p.Disks)
			s.Health = &h
		}
	}
	if p.Durable {
		s.Disk, s.FaultyDisks = diskFault(p.Disk), faultyDisks(p.Disks)
	}
	s.Waiting = n.waiting(&s, p)
	if n.config.unreachable() || p.Member { // what it has in place of an address leads nowhere
		s.Address = ""
		for i := range s.Voters {
			if s.Voters[i].Instance == s.Instance {
				s.Voters[i].Address = ""
			}
		}
	}
	return s
}

// fillSessions adds what the sessions of the node know.
func (s *Status) fillSessions(p *instance.Picture) {
	first := &p.Sessions[0]
	s.Session, s.Lease = SessionPhase(first.Phase.String()), LeaseState(first.Lease.String())
	s.LeaseFor = max(first.Deadline.Sub(p.Now), 0)
	s.LeaseTightest = s.LeaseFor
	for i := range p.Sessions {
		one := &p.Sessions[i]
		if one.Session != 0 {
			s.Sessions = append(s.Sessions, instance.SessionText(one.Session))
		}
		s.Held, s.Waiters = s.Held+one.Held, s.Waiters+one.Waiting
		s.LeaseTightest = min(s.LeaseTightest, max(one.Deadline.Sub(p.Now), 0))
	}
}

// waiting says what the node waits for, or "". s.Waiting is what the cluster room says.
func (n *Node) waiting(s *Status, p *instance.Picture) string {
	mine := &p.Sessions[0]
	if s.Err == nil && mine.Phase != client.Attached {
		if p.Unread != nil {
			return n.waitsForLog(s, p)
		}
		if text := s.waitsForDisks(); text != "" {
			return text
		}
	}
	if s.Waiting != "" {
		return s.Waiting
	}
	return s.waitsFor(mine, p.Now)
}

// votersWanted is how many instances vote if all are there that the configuration names: an odd
// number, so that each counts.
func (c *Config) votersWanted() int {
	n := c.Voters
	if c.Replicas > 0 {
		n = min(n, c.Replicas)
	}
	if len(c.Founders) > 0 {
		n = min(n, len(replica.Unique(c.Founders)))
	}
	if len(c.Founders) == 0 && c.Replicas == 0 {
		n = 1
	}
	return n - (n+1)%2
}

// fill adds what the cluster room knows.
func (s *Status) fill(c *cluster.Status, leader nodeid.ID, people instance.People, linked func(nodeid.ID) bool) {
	s.Phase, s.Waiting, s.Namesake = Phase(c.Phase.String()), plain.Text(c.Waiting), plain.Text(c.Namesake)
	if c.Group != 0 {
		s.Group = nodeid.Hex(c.Group)
	}
	for _, v := range c.Voters {
		is := people[v.Instance]
		seen := slices.ContainsFunc(c.Members, func(m cluster.Member) bool { return m.Instance == v.Instance })
		s.Voters = append(s.Voters, Member{
			Name: is.Name, Zone: is.Zone, Instance: v.Instance.String(), Address: plain.Text(v.Addr), Votes: !v.Learner,
			Seen: seen || linked(v.Instance),
		})
	}
	s.Leader = people.Name(leader)
}

// waitsFor says what stands between this node and a lock once it belongs to a group.
func (s *Status) waitsFor(mine *client.Status, now clock.Time) string {
	switch {
	case s.Err != nil:
		return ""
	case mine.Phase == client.Attached && mine.GraceUntil != 0:
		left := max(mine.GraceUntil.Sub(now), 0)
		return fmt.Sprintf("the group is in its grace for about %v more: nothing is granted while a holder of an earlier group could still believe in its lock", left.Round(time.Second/10))
	case mine.Phase == client.Attached:
		return ""
	case s.Leader != "":
		return fmt.Sprintf("%s a session with the leader, %s", mine.Phase, s.Leader)
	case len(s.Voters) == 0:
		return "no group is known yet"
	}
	return noLeader + s.votersText()
}

const noLeader = "no leader answers; a majority of these voters must be running and reach each other: "

// votersText lists the voters, and which of them are not seen from here.
func (s Status) votersText() string {
	var list []string
	for _, v := range s.Voters {
		text := v.Address
		if v.Name != "" {
			text = v.Name + " at " + v.Address
		}
		if !v.Votes {
			text += " (a learner, without a vote)"
		}
		if !v.Seen {
			text += " (not seen)"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// String shows the status in a few lines. Texts are escaped: one that was decoded may come from
// anywhere.
func (s Status) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(plain.Sprintf(format, args...)) }
	line("%s at %s: %s", s.Name, cmp.Or(s.Address, "no address"), s.Phase)
	if s.Group != "" {
		line(" of group %s, leader %s, voters %s", s.Group, orNone(s.Leader), s.votersText())
	}
	lease := "no lease"
	if s.LeaseFor > 0 {
		lease = fmt.Sprintf("lease %s for %v", s.Lease, s.LeaseFor.Round(time.Millisecond))
	}
	line("\nsession %s, %s, %d held, %d waiting", s.Session, lease, s.Held, s.Waiters)
	if s.Waiting != "" {
		line("\nwaiting: %s", s.Waiting)
	}
	if s.Disk != nil {
		line("\ndisk: %v", *s.Disk)
	}
	if s.Namesake != "" {
		line("\nwarning: %s", s.Namesake)
	}
	if s.Health != nil {
		fmt.Fprintf(&b, "\n%v", *s.Health)
	}
	if s.Err != nil {
		line("\nfailed: %v", s.Err)
	}
	return b.String()
}

// waitsForLog says what an instance without a leader waits for whose own log cannot be used.
func (n *Node) waitsForLog(s *Status, p *instance.Picture) string {
	text := fmt.Sprintf("the log of this voter in Config.Dir %q cannot be used: %v", n.config.Dir, p.Unread)
	if !p.OnlyVoter {
		return text + "; " + noLeader + s.votersText()
	}
	if p.BadDisk {
		return text + "; no other instance votes, so nothing is granted until the disk is repaired and this instance " +
			"started again"
	}
	return text + "; no other instance votes, so nothing is granted until this is done: the new group has none of the " +
		"locks and data of the old one"
}

// waitsForDisks says what an instance without a session waits for if disks are the reason, or "".
func (s Status) waitsForDisks() string {
	var faults []string
	own := s.Disk != nil && s.Disk.State != DiskLow
	if own {
		faults = append(faults, plain.Sprintf("this instance: %v", *s.Disk))
	}
	for _, f := range s.FaultyDisks {
		if f.State != DiskLow && (!own || f.Instance != s.Instance) {
			faults = append(faults, plain.Sprintf("%s: %v", f.Name, f.DiskFault))
		}
	}
	voters := 0
	for _, v := range s.Voters {
		if v.Votes {
			voters++
		}
	}
	blocks := len(faults) >= (voters+1)/2 // a hung disk may leave a leader that can commit nothing
	if len(faults) == 0 || s.Leader != "" && !blocks {
		return ""
	}
	return "nothing is granted: a majority of the voters must have disks that work, and reach each other; " +
		strings.Join(faults, "; ") +
		"; the voters are " + s.votersText()
}

// explain turns an error of the session room into one of this package, and says what a wait that
// was broken off waited for.
func (n *Node) explain(doing string, err error) error {
	var held *client.HeldError
	var wait *client.WaitError
	var deadlock *client.DeadlockError
	var denied *session.NotAllowedError
	switch {
	case n.engine.Err() != nil:
		return n.engine.Err()
	case errors.As(err, &denied):
		return (*NotAllowedError)(denied)
	case errors.As(err, &held):
		return n.met(held)
	case errors.As(err, &deadlock):
		return deadlockError(deadlock)
	case errors.Is(err, client.ErrInGrace), errors.Is(err, client.ErrNoLeader):
		return fmt.Errorf("%w: %s: %w%s", ErrNotReady, doing, err, n.because(nil))
	case errors.As(err, &wait):
		return fmt.Errorf("mortise: %s: %w%s", doing, wait.Err, n.because(wait.Behind))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("mortise: %s: %w%s", doing, err, n.because(nil))
	}
	return fmt.Errorf("%w (%s)", err, doing)
}

// met is heldError for a caller of this node. The process before this one, under the same name, can
// still hold the lock.
func (n *Node) met(e *client.HeldError) *HeldError {
	h := heldError(e)
	h.namesake = h.Holder == n.config.Name && !n.isOwn(e.Session)
	return h
}

// because says what a wait waits for, as the end of an error's text: what the node itself waits
// for, or else who held the lock when the request was queued.
func (n *Node) because(behind *client.HeldError) string {
	if waiting := n.Status().Waiting; waiting != "" {
		return " (" + waiting + ")"
	}
	if behind == nil {
		return ""
	}
	h := n.met(behind)
	holder, advice := h.Holder, ""
	switch {
	case n.isOwn(behind.Session):
		holder, advice = "this instance itself", "; to enter a lock again, pass lock.Context(ctx)"
	case h.namesake:
		holder, advice = "another life of "+h.Holder, "; the lock is free when the session of that life ends"
	}
	others := "no other request was waiting"
	switch before := h.Waiters - 1; { // it is counted itself
	case before == 1:
		others = "1 other request was waiting"
	case before > 1:
		others = fmt.Sprintf("%d other requests were waiting", before)
	}
	return fmt.Sprintf(" (when this request was queued, %s held it, since %s, token %d, and %s%s)", holder,
		h.Since.Format(time.RFC3339), h.Token, others, advice)
}

// isOwn reports whether a session is one of this node's.
func (n *Node) isOwn(id lockfsm.SessionID) bool {
	for _, c := range n.engine.Clients() {
		if c.Status().Session == id {
			return true
		}
	}
	return false
}

// The words that Status, Event, LockEvent, NodeEvent and DiskFault carry have a type each, so that
// a program compares them with constants. In JSON they are strings with these values. A later
// version may add a word: a program has to ignore a word that it does not know.

// Phase says how far an instance has come in its present life. It only goes forward; a new life
// begins at PhaseNewborn.
type Phase string

// The phases of an instance.
const (
	PhaseNewborn Phase = "newborn" // belongs to no group
	PhaseBound   Phase = "bound"   // has accepted the charter of a group that may not be founded yet
	PhaseMember  Phase = "member"  // belongs to a group that is founded
)
