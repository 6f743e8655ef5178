package mortise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// Status is a picture of a node at one moment, for people and for programs that watch. It is a value of its own.
type Status struct {
	Name     string // of this instance
	Instance string // ID of its present life
	Address  string // at which others reach it, "" if it listens nowhere
	Zone     string // Config.Zone
	Version  string // of this library in its build
	Phase    Phase
	Tier     Tier // what its secret or certificate makes of it: TierRoot, or TierMember, which never votes and serves nothing

	Group        string   // ID of the group, "" without one
	Leader       string   // Name of the instance that leads as far as known, its ID while no name is known; "" if none leads
	Leading      bool     // this instance leads
	Term         uint64   // of the group, 0 on an instance that does not vote
	Votes        bool     // this instance is a voter
	Voters       []Member // who has a replica: the voters, and learners, which get the log and may be needed as voters later
	Promised     int      // Config.Replicas: how many instances run, as the configuration says; 0: it names Founders, or the node is on its own
	VotersWanted int      // how many vote if all are there that the configuration names
	Health       *Health  // how the voters stand, on the instance that leads; nil on others, which ask by Node.Health

	// Members is what Node.Members was answered last on this instance: the first page of a hundred at most. Nothing refreshes it but a call
	// of Members; the console and cmd/mortise make it when a person looks.
	Members      []Member
	MembersAge   time.Duration // how old that is; 0: Members was never answered
	MembersTotal int           // how many there were then; on the instance that leads, how many there are now

	Session       SessionPhase
	Lease         LeaseState
	LeaseFor      time.Duration // until the locks of this instance are lost unless a renewal is acknowledged before
	LeaseTightest time.Duration // LeaseFor of the session that has least, of the node's and of those of NewSession; 0: one is lost
	Held          int           // locks that this instance holds
	Waiting       string        // what this node waits for and the way out, in a sentence; "" if nothing
	Waiters       int           // calls on this instance that wait for a lock
	Standby       int           // those of Waiters that may wait long by design, by the label mortise.purpose, as candidates of an election do
	Sessions      []string      // IDs of its sessions in the group, its own first: Standing.Session names one of them if this process holds the lock
	Namesake      string        // a sentence: another instance has the Name of this one, which must not be; "" if none is seen
	Err           error         // as Node.Err
	Disk          *DiskFault    // what is wrong with the disk of Config.Dir; nil if nothing, or there is none
	FaultyDisks   []FaultyDisk  // of all instances, as far as this one knows; all voters are told

	Age          time.Duration // since Start
	Available    time.Duration // for how long of that this instance could be granted locks: attached to a leader, its lease not lost, and no grace
	HooksDropped uint64        // calls of Config.Hooks that were left out because they were too slow
}

// Status returns the present picture. It asks nobody.
func (n *Node) Status() Status {
	s := Status{Name: n.config.Name, Zone: n.config.Zone, Version: version, Instance: n.instance().String(), Address: n.address, Tier: Tier(n.self.Tier.String()), Err: n.Err()}
	s.Promised, s.VotersWanted = n.config.Replicas, n.config.votersWanted()
	mine := n.client.Status()
	s.Session, s.Lease, s.Held, s.Waiters = SessionPhase(mine.Phase.String()), LeaseState(mine.Lease.String()), mine.Held, mine.Waiting
	now := n.env.clock.Now()
	s.LeaseFor = max(mine.Deadline.Sub(now), 0)
	s.LeaseTightest = s.LeaseFor
	s.Standby = int(n.standby.Load())
	s.Sessions = withSession(s.Sessions, mine.Session)
	for _, own := range n.own.list() {
		status := own.Status()
		s.Sessions = withSession(s.Sessions, status.Session)
		s.Held, s.Waiters = s.Held+status.Held, s.Waiters+status.Waiting
		s.LeaseTightest = min(s.LeaseTightest, max(status.Deadline.Sub(now), 0))
	}
	s.Age, s.Available = n.grantable.share(now)
	s.HooksDropped = n.trace.Dropped()
	s.Members, s.MembersTotal, s.MembersAge = n.known.last(now)
	leader := mine.Leader.Peer
	if r := n.replica.Load(); r != nil {
		role := r.role.Load()
		s.Votes, s.Term, s.Leading = r.votes(), role.Term, role.Leading
		if s.Leading {
			s.MembersTotal = r.registry.Members()
		}
		leader = n.target(role.Leader).Peer
	}
	if c := n.cluster(); c != nil {
		picture := c.Status()
		s.fill(&picture, leader, n.people(&picture), n.linked)
		if report, leads := c.Report(); leads {
			h := n.health(report, n.instance(), n.remarks(), n.faultyDisks())
			s.Health = &h
		}
	}
	unread := n.unread.Load()
	if unread != nil && s.Err == nil && mine.Phase != client.Attached {
		s.Waiting = n.waitsForLog(s, *unread)
	}
	if n.dir != nil {
		s.Disk, s.FaultyDisks = n.diskFault(), n.faultyDisks()
	}
	if text := n.waitsForDisks(s); text != "" && s.Err == nil && mine.Phase != client.Attached && unread == nil {
		s.Waiting = text
	}
	if s.Waiting == "" {
		s.Waiting = n.waitsFor(s, mine)
	}
	if n.config.unreachable() || n.isMember() { // what it has in place of an address leads nowhere
		s.Address = ""
		for i := range s.Voters {
			if s.Voters[i].Instance == s.Instance {
				s.Voters[i].Address = ""
			}
		}
	}
	return s
}

// votersWanted is how many instances vote if all are there that the configuration names: an odd number, so that each counts.
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

// withSession adds the ID of a session, if there is one.
func withSession(list []string, id lockfsm.SessionID) []string {
	if id == 0 {
		return list
	}
	return append(list, sessionText(id))
}

// fill adds what the cluster room knows.
func (s *Status) fill(c *cluster.Status, leader nodeid.ID, people map[nodeid.ID]person, linked func(nodeid.ID) bool) {
	s.Phase, s.Waiting, s.Namesake = Phase(c.Phase.String()), plain.Text(c.Waiting), plain.Text(c.Namesake)
	if c.Group != 0 {
		s.Group = nodeid.Hex(c.Group)
	}
	for _, v := range c.Voters {
		is := people[v.Instance]
		seen := slices.ContainsFunc(c.Members, func(m cluster.Member) bool { return m.Instance == v.Instance })
		s.Voters = append(s.Voters, Member{
			Name: is.name, Zone: is.zone, Instance: v.Instance.String(), Address: plain.Text(v.Addr), Votes: !v.Learner,
			Seen: seen || linked(v.Instance),
		})
	}
	s.Leader = nameOf(people, leader)
}

// waitsFor says what stands between this node and a lock once it belongs to a group.
func (n *Node) waitsFor(s Status, mine client.Status) string {
	switch {
	case s.Err != nil:
		return ""
	case mine.Phase == client.Attached && mine.GraceUntil != 0:
		left := max(mine.GraceUntil.Sub(n.env.clock.Now()), 0)
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

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// phaseChanged takes whether this instance's session is attached to a leader; the client calls it when its phase changes.
func (n *Node) phaseChanged(phase client.Phase) {
	n.attached.Store(phase == client.Attached)
	n.leaderKnown()
	if phase == client.Attached {
		n.learnNames()
	}
}

// leaderKnown passes on what gossip and birth go by: whether there is a leader. Its own replica is one witness of that and its session
// another: a replica that has just been prepared, or that was removed, hears of no leader while the group is well.
func (n *Node) leaderKnown() {
	n.knowing.Lock() // so that what was true earlier is not said later; never held across a wait
	defer n.knowing.Unlock()
	r := n.replica.Load()
	n.noteLeader(r)
	known := n.attached.Load() || r != nil && r.role.Load().Leader != 0
	if known {
		n.without.Store(0)
	} else {
		n.without.CompareAndSwap(0, int64(n.env.clock.Now()))
	}
	if c := n.cluster(); c != nil {
		c.HasLeader(known)
	}
}
