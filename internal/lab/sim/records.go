package sim

import (
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/stay"
)

// This file has what the watch can see of a process: its life, its sessions, its calls and its
// replica. The parts that act hold these records.

// life is a running process, from its start to its end.
type life struct {
	w    *world
	m    *machine
	dead bool

	stream int // number of its stream in the recorded history

	instance nodeid.ID
	group    uint64
	member   bool // the instance is a member of group
	leaving  bool

	core   *cluster.Core // nil for the insider
	leases []*lease      // of its sessions, that of the process itself first
	voter  *voter        // may be nil
}

// calls returns the calls in all sessions.
func (p *life) calls() (all []*call) {
	for _, s := range p.leases {
		all = append(all, s.calls...)
	}
	return all
}

func (p *life) String() string {
	return fmt.Sprintf("%s/%04x", p.m.name, nodeidtest.Number(p.instance)&0xffff)
}

func (p *life) alive(instance nodeid.ID) bool { return !p.dead && p.instance == instance }

// foundingNow returns the time since the beginning of the run, by the machine's clock.
func (p *life) foundingNow() time.Duration { return time.Duration(p.m.clock() - p.m.origin) }

func (p *life) later(d time.Duration, f func()) {
	p.w.after(d, func() {
		switch until := p.m.pausedUntil; {
		case p.dead:
		case p.w.now < until:
			p.later(until-p.w.now, f)
		default:
			f()
		}
	})
}

// lease is one session of a process: that of the process itself, or one that its program has
// opened.
type lease struct {
	p        *life
	traced   string  // its name in the trace of lease steps
	own      *opened // nil for the session of the process itself
	core     *client.Core
	deadline clock.Time // published deadline of the lease
	safe     clock.Time // published time at which the lease enters jeopardy
	ttl      time.Duration
	stays    *stay.Set
	kept     map[*stay.Request]*keptStay // the granted requests of stays
	expected clock.Time                  // last deadline for which the watch has scheduled a check
	breaks   int                         // how often the session lost its attachment
	calls    []*call                     // those that have not ended, in the order in which they were made
}

func (s *lease) String() string {
	if s.own == nil {
		return s.p.String()
	}
	return fmt.Sprintf("%v, session %d of its program", s.p, s.own.number)
}

// closes reports whether the program has begun to close the session.
func (s *lease) closes() bool { return s.own != nil && s.own.closing }

func (s *lease) status() client.Status { return s.core.Status(s.p.m.clock()) }

// leaseLeft returns the remaining time of the client's lease, by the clock of its machine.
func (s *lease) leaseLeft() time.Duration {
	if s.deadline == 0 {
		return 0
	}
	return s.deadline.Sub(s.p.m.clock())
}

// opened is a session that a program has opened.
type opened struct {
	number  int
	closing bool
}

// keptStay is a granted request of the stays.
type keptStay struct {
	key         string
	terms       check.Terms
	group       uint64
	first, last lockfsm.Token
	newest      lockfsm.Token // of the passes
	passes      int
	recalled    bool
	yields      bool // the process was asked to release the stay when it is free
	released    bool // the process has sent a Release

	begun  time.Duration
	leader *life         // at the grant; may be nil
	asked  time.Duration // when another request began to wait; zero means never
	breaks int           // of the process, at that time
}

// voter is the replica of a process.
type voter struct {
	p *life
	*replica.View
	glue *replica.Core
	core *raftlog.Core
	keep func(f func(now clock.Time)) // posts f to the owner of the keeper

	counted  bool             // in watch.voters.leaders
	judgedAs string           // name of this run of the replica, for the judges
	applying uint64           // the term of the present entry
	first    bool             // no other replica has applied the present entry before
	prepared *raftpb.Snapshot // the last snapshot that is durable
}

// call is what a caller has asked for, and what it holds.
type call struct {
	p     *life
	s     *lease // the session in which the call was made
	id    uint64
	req   client.Request
	token lockfsm.Token
	group uint64 // group in which the lock was granted
	// session in which the lock was granted
	session lockfsm.SessionID
	stage   stage
	hold    time.Duration // how long the caller will hold the lock

	outer   *call // the call under whose lock this call was made
	raises  *call // of an upgrade: the call whose hold it upgrades, see upgrade
	crosses bool  // the caller will upgrade the lock of outer under this one
	raised  *call // the last upgrade of this hold that was granted
	handle  *handle

	tier int // of a job: the number of its locks, with this one; zero means no job

	ends   clock.Time // when the handle ends the hold by itself; zero means never
	forced bool       // the state machine has ended the hold by force
	told   bool       // the caller was notified of a waiter

	parts    []modes.Part   // what the request asks for; nil if its keys say it
	lowered  []lockfsm.Mode // the caller has downgraded its hold to these modes; nil if not
	detaches bool           // the caller will detach the hold instead of releasing it
	once     bool           // the caller makes no other call afterwards

	sticky bool // the caller asks for a pass
	kept   bool // the call waits for a pass or has one
	pass   stay.Caller
	stay   *keptStay // the stay of the pass

	own belief
}

// belief is what the caller knows by its own clock and client of the hold's end.
type belief struct {
	lapsed bool // the hold has ended by the caller's clock
	until  time.Duration

	doubt     bool // the client has marked the hold as in doubt
	patient   bool // the caller does not release the lock in doubt
	postponed bool // the release waits for the end of the doubt
}

// handle is a request that has entered the lock of a call.
type handle struct {
	want  lockfsm.Grant
	reads bool
}

type stage uint8

const (
	waits stage = iota
	holds
	over // the call has ended
)

// mayKeep reports whether the call may be sticky. Of the options, only Notice is allowed.
func (c *call) mayKeep() bool {
	t := c.req.Terms
	return c.outer == nil && !c.modal() && (t == nil || len(t.Keys) == 0 && t.Of == 0 && t.Most == 0 &&
		len(t.Value) == 0 && t.Delay == 0 && t.Grace == 0 && t.Longest == 0 && t.Resume == 0 && t.Under == nil)
}

// request returns the request of the group under which c holds its lock.
func (c *call) request() *client.Request {
	if c.kept {
		if q := c.s.stays.Request(&c.pass); q != nil {
			return q.Of.(*client.Request)
		}
	}
	return &c.req
}

// stateToken returns the token of the hold in the state.
func (c *call) stateToken() lockfsm.Token {
	if c.kept && c.stay != nil {
		return c.stay.first
	}
	return c.token
}

func (c *call) wantsNotice() bool { return c.req.Terms != nil && c.req.Terms.Notice }

// readers returns the modes of the call's keys after a downgrade, as package mortise sends them. A
// resumed hold may be of a tree.
func (c *call) readers() []lockfsm.Mode {
	trees := c.modal()
	if c.parts != nil {
		if c.handle == nil {
			return modes.Readers(c.parts)
		}
		trees = slices.ContainsFunc(c.parts, func(p modes.Part) bool { return p.Tree })
	}
	g := c.grant()
	return g.Readers(trees || c.handle != nil && len(c.handle.want.Modes) > 0)
}

// grant returns what the call holds, or asks for. A call that resumes a hold knows that from its
// grant only. Before, it knows one key.
func (c *call) grant() lockfsm.Grant {
	g := c.req.Grant()
	if g.Key == "" {
		g = lockfsm.Grant{Key: c.req.Key}
	}
	if c.lowered != nil {
		g = g.Lowered(c.lowered)
	}
	return g
}

func (c *call) keys() []string {
	g := c.grant()
	return append([]string{g.Key}, g.Keys...)
}

// resumes returns the token of the hold that the call resumes. Zero means none.
func (c *call) resumes() lockfsm.Token {
	if c.req.Terms == nil {
		return 0
	}
	return c.req.Terms.Resume
}

// termsOf returns the terms of a key, whose index in the result of keys is i.
func (c *call) termsOf(i int) check.Terms {
	if g := c.grant(); len(g.Modes) > 0 {
		permits, of := g.Modes[i].Terms()
		return check.Terms{Permits: permits, Of: of}
	}
	return c.terms()
}

// modal reports whether the call has a mode for each key.
func (c *call) modal() bool { return len(c.grant().Modes) > 0 }

// terms returns the terms of all keys of a call without modes.
func (c *call) terms() check.Terms {
	g := c.grant()
	return check.Terms{Permits: g.Permits, Of: g.Of}
}

func (c *call) mayNest() bool {
	depth := 0
	for o := c.outer; o != nil; o = o.outer {
		depth++
	}
	return depth < deepest && c.req.Key[0] == lockName(0)[0]
}

// upgradable reports whether the call asks for a lock that it can upgrade.
func (c *call) upgradable() bool {
	t := c.req.Terms
	return t != nil && len(t.Modes) == 1 && t.Modes[0] == lockfsm.ModeU
}

// upgrades reports whether the call asks for an upgrade of the lock of c.outer.
func (c *call) upgrades() bool { return c.req.Terms != nil && c.req.Terms.Upgrades }

// upgraded returns the token of the hold that the call upgrades. Zero means none.
func (c *call) upgraded() lockfsm.Token {
	if !c.upgrades() {
		return 0
	}
	return c.raises.token
}

func (c *call) caller() check.Caller { return check.Caller{Node: c.p.m.name, Op: c.id} }

// differs tells what distinguishes a request from one for exclusive locks that may wait.
func (c *call) differs(terms check.Terms, modes string) (text string) {
	if terms != (check.Terms{}) {
		text += fmt.Sprintf(", %d permits of %d", terms.Permits, terms.Of)
	}
	if modes != "" {
		text += fmt.Sprintf(", in the modes %q", modes)
	}
	if c.req.Try {
		text += ", without a wait"
	}
	if c.outer != nil {
		text += fmt.Sprintf(", under %v", c.outer)
	}
	return text
}

func (c *call) String() string {
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("call %d", c.id)
}

// believes reports whether the caller holds the lock at this moment by its own clock.
func (c *call) believes() bool {
	return c.stage == holds && !c.p.dead && c.p.m.clock().Before(c.limit()) && !(c.own.lapsed && c.mayDoubt())
}

// limit returns the time until which the call's handle reports that the lock is held.
func (c *call) limit() clock.Time {
	if c.ends != 0 && c.ends.Before(c.s.deadline) {
		return c.ends
	}
	return c.s.deadline
}

func (c *call) mayDoubt() bool { return c.req.Terms != nil && c.req.Terms.Grace > 0 }

// reads returns the call as which c reads. The holder of an upgradable lock has read what its
// upgrade has written.
func (c *call) reads() *call {
	if c.raised != nil {
		return c.raised
	}
	return c
}

// remembered returns the terms with which the judge of acknowledged grants remembers a grant. For
// this judge an upgrade is like a reader, because its hold goes on.
func (c *call) remembered(i int) check.Terms {
	if c.upgrades() {
		return reader()
	}
	return c.termsOf(i)
}

// inside is the handle as a caller of its own.
func (c *call) inside() check.Caller { return check.Caller{Node: c.p.m.name + " inside", Op: c.id} }

func (c *call) ownTerms() *client.Terms {
	if c.req.Terms == nil {
		c.req.Terms = &client.Terms{}
	}
	return c.req.Terms
}

// lowers reports whether a downgrade changes a mode of the call's keys. An upgradable lock stays as
// it is, because its upgrade ends with a downgrade.
func (c *call) lowers() bool {
	g := c.grant()
	return !c.upgrades() && !g.Semaphore() && !g.Reads() && !slices.Contains(g.Modes, lockfsm.ModeU)
}

const (
	pools     = 2 // semaphores
	deepest   = 2 // largest depth of calls under the lock of another call
	valueSize = 8
)

func lockName(i int) string { return fmt.Sprintf("key-%d", i) }

func poolName(i int) string { return fmt.Sprintf("pool-%d", i) }

// tiers is the number of limits of a job.
const tiers = 3

func reader() check.Terms { return check.Terms{Permits: 1} }
