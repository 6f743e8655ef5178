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
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// Status is a snapshot of a node, for display and monitoring.
type Status struct {
	// Member is this instance. For, Since, Leaving and Seen are not set.
	Member
	Cluster string // Config.Cluster

	Group   string // ID of the group, which may not be founded yet; "" without one
	Joined  bool   // the group is founded, and this instance belongs to it
	Leader  string // name of the leading instance, or its ID while that is unknown; "" if none leads
	Leading bool   // this instance leads
	Term    uint64 // of the group; 0 on an instance that does not vote
	// Voters are the instances with a replica: voters, and learners, which may become voters later.
	Voters []Member
	// Promised is Config.Replicas. Zero means that the configuration names Founders, or that the
	// node is on its own.
	Promised     int
	VotersWanted int     // voters when all configured instances run
	Health       *Health // the state of the voters, only on the leader; other instances call Node.Health

	Attached bool  // its session is attached to the leader, which can grant it locks
	Lease    State // LeaseSafe, LeaseJeopardy or LeaseLost
	// LeaseFor is the time until locks of this instance are lost if no renewal is acknowledged: the
	// shortest remaining lease of the node's session and those of NewSession. It is zero if one of
	// them is lost.
	LeaseFor time.Duration
	// GraceFor is the time until the grace of a new group ends. Until then the group grants nothing.
	// Zero means that the grace is over or not known.
	GraceFor time.Duration
	Held     int // locks of this instance
	// Idle are the locks of this instance with Request.MaxIdle, at most 100, those that end first
	// before the others.
	Idle    []IdleHold
	Sticky  StickyStatus
	Waiting string // what this node waits for, with the remedy; "" if nothing
	Waiters int    // calls on this instance that wait for a lock
	// Standby counts the calls in Waiters that may wait long by design, such as candidates of an
	// election. They have the label mortise.purpose.
	Standby int
	// Sessions are the IDs of the node's own session and of those of NewSession, in this order. The
	// Standing.Session of a lock that this process holds is one of these IDs.
	Sessions []string
	// Namesake is a warning that another instance has the same Name, or "".
	Namesake string
	// Unresolved is a warning that names entries of Join that lead to no address, although the group
	// works without them, or "".
	Unresolved  string
	Err         error       // the error of Node.Err
	Disk        *DiskFault  // the fault of the disk of Config.Dir; nil if there is none
	FaultyDisks []DiskFault // disk faults reported to this instance; voters have all of them

	Age       time.Duration // since Start
	Available time.Duration // the part of Age in which it was NodeAvailable
	// Starved is the time for which the machine gave the process no processor, although a timer was
	// due, in gaps of at least 250 ms. Only a voter or learner measures it, from its present replica.
	Starved      time.Duration
	HooksDropped uint64 // calls of Config.Hooks that were dropped because earlier calls were too slow
}

// StickyStatus describes the locks that an instance keeps (Node.LockSticky). The numbers except
// Kept are totals of the node's own session since Start.
type StickyStatus struct {
	Kept       int           // kept locks that no caller holds
	Grants     uint64        // grants out of kept locks, without a message
	Recalls    uint64        // kept locks that were given back because another request waited
	RecallTime time.Duration // time that this took, for all of them together
	InUse      uint64        // answers to a TryLock that a caller holds the kept lock
}

// IdleHold is a lock with Request.MaxIdle, as its own instance sees it.
type IdleHold struct {
	Key     string
	Token   Token
	MaxIdle time.Duration
	// Idle is the time since a Beat was last noticed, which is at most a quarter of MaxIdle after it.
	// Zero means that there was one since the instance looked last. The lock ends when Idle reaches
	// MaxIdle.
	Idle time.Duration
}

// String returns the lock and its times in a few words, with untrusted text escaped.
func (h IdleHold) String() string {
	return plain.Sprintf("%s (token %d): no Beat for %v of %v", h.Key, uint64(h.Token), h.Idle.Round(time.Second/10),
		h.MaxIdle)
}

const maxIdleHolds = 100

// Status returns the present state of this node. It asks no other instance.
func (n *Node) Status() Status {
	s := n.status()
	for _, c := range n.engine.Clients() {
		for _, h := range c.IdleHolds() {
			s.Idle = append(s.Idle, IdleHold{h.Key, Token(h.Token), h.Longest, h.Idle})
		}
	}
	slices.SortFunc(s.Idle, func(a, b IdleHold) int {
		return cmp.Or(cmp.Compare(a.MaxIdle-a.Idle, b.MaxIdle-b.Idle), cmp.Compare(a.Token, b.Token))
	})
	s.Idle = s.Idle[:min(len(s.Idle), maxIdleHolds)]
	return s
}

// status returns Status without Idle.
func (n *Node) status() Status {
	p := n.engine.Picture()
	s := Status{
		Member: Member{Name: n.config.Name, Instance: p.ID.String(), Address: p.Address, Zone: n.config.Zone,
			Votes: p.Votes, Version: version, Tier: Tier(p.Tier.String())},
		Cluster: n.config.Cluster, Err: p.Err,
		Promised: n.config.Replicas, VotersWanted: n.config.votersWanted(), Standby: int(n.standby.Load()),
		Term: p.Term, Leading: p.Leading,
		Age: p.Age, Available: p.Available, Starved: p.Starved, HooksDropped: n.engine.Tracer().Dropped(),
	}
	s.fillSessions(p)
	if p.Started {
		s.fill(&p.Cluster, p.Leader, p.Names, p.Linked)
		if p.Report != nil {
			h := n.health(p, *p.Report, p.ID, p.Remarks, p.Disks)
			s.Health = &h
		}
	}
	if p.Durable {
		if p.Disk != nil {
			own := instance.FaultyDisk{Name: s.Name, Instance: s.Instance, DiskFault: *p.Disk}
			s.Disk = &diskFaults([]instance.FaultyDisk{own})[0]
		}
		s.FaultyDisks = diskFaults(p.Disks)
	}
	s.Waiting = n.waiting(&s, p)
	if n.config.unreachable() || p.Member { // its address is only a placeholder
		s.Address = ""
		for i := range s.Voters {
			if s.Voters[i].Instance == s.Instance {
				s.Voters[i].Address = ""
			}
		}
	}
	return s
}

func (s *Status) fillSessions(p *instance.Picture) {
	first := &p.Sessions[0]
	s.Attached, s.Lease = first.Phase == client.Attached, State(first.Lease.String())
	s.Session = instance.SessionText(first.Session)
	s.LeaseFor = max(first.Deadline.Sub(p.Now), 0)
	if first.Phase == client.Attached && first.GraceUntil != 0 {
		s.GraceFor = max(first.GraceUntil.Sub(p.Now), 1) // a lock may already be granted, but none was yet
	}
	all := &first.Stays
	s.Sticky = StickyStatus{Grants: all.Passes, Recalls: all.Recalls, RecallTime: all.RecallTime, InUse: all.InUse}
	for i := range p.Sessions {
		one := &p.Sessions[i]
		if one.Session != 0 {
			s.Sessions = append(s.Sessions, instance.SessionText(one.Session))
		}
		s.Held, s.Waiters, s.Sticky.Kept = s.Held+one.Held, s.Waiters+one.Waiting, s.Sticky.Kept+one.Kept
		s.LeaseFor = min(s.LeaseFor, max(one.Deadline.Sub(p.Now), 0))
	}
}

func (n *Node) waiting(s *Status, p *instance.Picture) string {
	mine := &p.Sessions[0]
	if s.Err == nil && mine.Phase != client.Attached {
		if p.Unread != nil {
			return n.waitsForLog(s, p)
		}
		if text := s.waitsForDisks(); text != "" {
			return text
		}
		if text := mine.Outdated.String(); text != "" {
			return text // without a session this instance believes that it does not reach the leader
		}
	}
	if s.Waiting != "" {
		return s.Waiting
	}
	return s.waitsFor(mine)
}

// votersWanted returns how many instances vote when all run. The number is odd, because an even
// number tolerates no more failures.
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

func (s *Status) fill(c *cluster.Status, leader nodeid.ID, names instance.InstanceNames, linked func(nodeid.ID) bool) {
	s.Joined, s.Waiting, s.Namesake = c.Joined(), plain.Text(c.Waiting), plain.Text(c.Namesake)
	s.Unresolved = plain.Text(c.Unresolved)
	if c.Group != 0 {
		s.Group = nodeid.Hex(c.Group)
	}
	for _, v := range c.Voters {
		is := names.Of(v.Instance)
		seen := slices.ContainsFunc(c.Members, func(m cluster.Member) bool { return m.Instance == v.Instance })
		s.Voters = append(s.Voters, Member{
			Name: is.Name, Zone: is.Zone, Instance: v.Instance.String(), Address: plain.Text(v.Addr), Votes: !v.Learner,
			Seen: seen || linked(v.Instance),
		})
	}
	s.Leader = names.Name(leader)
}

// waitsFor returns the reason why a node that belongs to a group cannot get locks, or "".
func (s *Status) waitsFor(mine *client.Status) string {
	switch {
	case s.Err != nil:
		return ""
	case s.GraceFor > 0:
		return fmt.Sprintf("the group is in its grace for about %v more: nothing is granted while a holder of an "+
			"earlier group could still rely on its lock", s.GraceFor.Round(time.Second/10))
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

// votersText lists the voters, and marks the voters that are not Seen.
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

// String returns the status in a few lines, with untrusted text escaped.
func (s Status) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(plain.Sprintf(format, args...)) }
	joined := map[bool]string{true: "member", false: "no member yet"}
	attached := map[bool]string{true: "attached", false: "not attached"}
	line("%s at %s: %s", s.Name, cmp.Or(s.Address, "no address"), joined[s.Joined])
	if s.Group != "" {
		line(" of group %s, leader %s, voters %s", s.Group, orNone(s.Leader), s.votersText())
	}
	lease := "no lease"
	if s.LeaseFor > 0 {
		lease = fmt.Sprintf("lease %s for %v", s.Lease, s.LeaseFor.Round(time.Millisecond))
	}
	line("\nsession %s, %s, %d held, %d waiting", attached[s.Attached], lease, s.Held, s.Waiters)
	if len(s.Idle) > 0 {
		line("\nMaxIdle: %v", s.Idle[0])
	}
	if s.Waiting != "" {
		line("\nwaiting: %s", s.Waiting)
	}
	if s.Disk != nil {
		line("\ndisk: %v", *s.Disk)
	}
	if s.Namesake != "" {
		line("\nwarning: %s", s.Namesake)
	}
	if s.Unresolved != "" {
		line("\nwarning: %s", s.Unresolved)
	}
	if s.Health != nil {
		fmt.Fprintf(&b, "\n%v", *s.Health)
	}
	if s.Err != nil {
		line("\nfailed: %v", s.Err)
	}
	return b.String()
}

func (n *Node) waitsForLog(s *Status, p *instance.Picture) string {
	text := fmt.Sprintf("the log of this voter in Config.Dir %q cannot be used: %v", n.config.Dir, p.Unread)
	if !p.OnlyVoter {
		return text + "; " + noLeader + s.votersText()
	}
	if p.BadDisk {
		return text + "; no other instance votes, so nothing is granted until the disk is repaired and this instance " +
			"started again"
	}
	return text + "; no other instance votes, so nothing is granted until this is done; the group is then founded anew, " +
		"without the old locks and data"
}

// waitsForDisks returns "" if disks are not the reason of the wait.
func (s Status) waitsForDisks() string {
	var faults []string
	own := s.Disk != nil && s.Disk.State != DiskLow
	if own {
		faults = append(faults, plain.Sprintf("this instance: %v", *s.Disk))
	}
	for _, f := range s.FaultyDisks {
		if f.State != DiskLow && (!own || f.Instance != s.Instance) {
			faults = append(faults, plain.Sprintf("%s: %v", f.Name, f))
		}
	}
	voters := 0
	for _, v := range s.Voters {
		if v.Votes {
			voters++
		}
	}
	blocks := len(faults) >= (voters+1)/2 // a leader with a hung disk may not be able to commit
	if len(faults) == 0 || s.Leader != "" && !blocks {
		return ""
	}
	return "nothing is granted: a majority of the voters must have disks that work, and reach each other; " +
		strings.Join(faults, "; ") +
		"; the voters are " + s.votersText()
}

// explain turns an error of package client into an error of this package. For an interrupted wait
// it adds what the call waited for.
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
	case errors.Is(err, client.ErrInGrace), errors.Is(err, client.ErrNoLeader), errors.Is(err, client.ErrKept):
		return fmt.Errorf("%w: %s: %w%s", ErrNotReady, doing, err, n.because(nil))
	case errors.As(err, &wait):
		return &waitError{fmt.Errorf("mortise: %s: %w%s", doing, wait.Err, n.because(wait.Behind)), wait.Behind != nil}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("mortise: %s: %w%s", doing, err, n.because(nil))
	}
	return fmt.Errorf("%w (%s)", err, doing)
}

// waitError is the end of a wait by its context. The agent of mortise uses HolderKnown, because its
// clients must not take a group that does not answer for a lock that is held.
type waitError struct {
	error
	held bool
}

func (e *waitError) Unwrap() error     { return e.error }
func (e *waitError) HolderKnown() bool { return e.held }

// met returns heldError(e), and notes in it whether the holder is an earlier incarnation of this
// node.
func (n *Node) met(e *client.HeldError) *HeldError {
	h := heldError(e)
	h.namesake = h.Holder == n.config.Name && !n.isOwn(e.Session)
	return h
}

// n.because returns the end of an error text. The text names what the node itself waits for. If the
// node waits for nothing, the text names the holder at the time when the request was queued.
func (n *Node) because(behind *client.HeldError) string {
	if waiting := n.status().Waiting; waiting != "" {
		return " (" + waiting + ")"
	}
	if behind == nil {
		return ""
	}
	h := n.met(behind)
	holder, advice := h.Holder, ""
	switch {
	case n.isOwn(behind.Session):
		holder = "this instance itself"
		advice = "; another call held it, or it was never unlocked; to enter a lock again, pass lock.Context(ctx)"
	case h.namesake:
		holder, advice = "another incarnation of "+h.Holder, "; the lock is free when that incarnation's session ends"
	}
	others := "no other request was waiting"
	switch before := h.Waiters - 1; { // Waiters includes this request
	case before == 1:
		others = "1 other request was waiting"
	case before > 1:
		others = fmt.Sprintf("%d other requests were waiting", before)
	}
	return fmt.Sprintf(" (when this request was queued, %s %s it, since %s, token %d, and %s%s)", holder, h.is(),
		h.Since.Format(time.RFC3339), h.Token, others, advice)
}

func (n *Node) isOwn(id lockfsm.SessionID) bool {
	for _, c := range n.engine.Clients() {
		if c.Status().Session == id {
			return true
		}
	}
	return false
}
