package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// OwnState gives a Core access to the state of its own instance. The methods must not call the
// core.
type OwnState interface {
	// Facts returns the leader's facts and term. leads is true if this instance's replica leads the
	// group and has applied an entry of its own term.
	Facts() (f voters.Facts, term uint64, leads bool)
	// Guide returns the leader to which this instance is attached or is about to attach, or zero. A
	// voter has named this leader, so the core trusts its reports about the configuration.
	Guide() nodeid.ID
	// Leader returns the known leader of the group and its address. Zero means unknown.
	Leader() (instance nodeid.ID, addr string)
}

const askWithin = time.Second

// Voter is a voter or a learner of the group, with the last known address of its instance.
type Voter = founding.Voter

// Asker is the instance that asks a question: its proven ID and its claimed address.
type Asker = founding.Asker

// CoreConfig configures a Core.
type CoreConfig struct {
	Founding founding.Config
	Zone     string
	Gossips  bool
	OwnState OwnState
}

// Core makes all decisions of this package for one instance. An owner passes inputs to the core and
// then calls Turn, which makes these calls:
//
//	Tick ──▶ the decisions of founding, to be stored
//	Follow ──▶ events for the host, once the decisions are stored
//	Act ──▶ steps for the log, questions, addresses to gossip with
//
// A Core is not safe for concurrent use. Its methods take times and random numbers as arguments.
type Core struct {
	// If an input concerns only founding, the owner passes it directly to Founding.
	Founding *founding.Core

	cfg       CoreConfig
	self      string
	book      founding.Book
	raft      uint64                   // ID of this incarnation's replica; zero if no replica may vote
	unfit     bool                     // the directory cannot be written
	join      []founding.Entry         // the addresses that Join leads to
	peers     map[string]gossip.Meta   // keys are memberlist's names; includes this instance
	moved     bool                     // join or peers have changed since the last call of Founding.Places
	rivals    map[string]time.Duration // when each address first seemed to belong to another group with a leader
	rival     founding.InstanceInfo    // an instance that has confirmed it is in another group; zero means none
	find      finder
	spread    spreading
	lead      lead.Lead
	wanted    bool           // the facts may have changed since the last evaluation
	life      uint64         // how often forget was called
	report    *voters.Report // report of the last evaluation; nil if this instance does not lead
	inquiries inquiries
	events    []founding.Event // for Follow
	acts      Acts             // for Act
}

// NewCore returns the core of an instance that starts.
func NewCore(cfg CoreConfig) *Core {
	c := &Core{
		Founding: founding.New(cfg.Founding), cfg: cfg, self: cfg.Founding.Addr, moved: true,
		find: newFinder(cfg.Founding.Addr), peers: make(map[string]gossip.Meta), rivals: make(map[string]time.Duration),
	}
	if stored := cfg.Founding.Stored; stored != nil {
		c.book.Configure(stored.At, stored.Voters)
	}
	return c
}

// Raft returns the raft ID of this incarnation's replica, or 0 if no replica may vote.
func (c *Core) Raft() uint64 { return c.raft }

// At returns the number of the newest known configuration. Zero means none.
func (c *Core) At() uint64 { return c.book.At() }

// Voters returns a copy of the address book, by raft ID.
func (c *Core) Voters() []Voter { return c.book.Voters() }

// Voter returns the replica with the given raft ID, if the group has it.
func (c *Core) Voter(raft uint64) (Voter, bool) { return c.book.Find(raft) }

// Rival returns a member of another group if both groups have a leader. The two groups can never
// merge.
func (c *Core) Rival() (who founding.InstanceInfo, two bool) { return c.rival, c.rival.Group != 0 }

func (c *Core) settled() bool {
	return c.Founding.Phase() == founding.Member && !c.Founding.Settling() && c.Founding.Refusal() == ""
}

// Tick advances the time. The owner stores Founding.State, or calls Unsaved if that fails. It then
// passes the events to Follow, and asks the questions after Act.
func (c *Core) Tick(now time.Duration, wallUnixMS int64, random founding.Random) founding.Output {
	c.places()
	c.pull(now, random.Spread)
	return c.Founding.Tick(now, wallUnixMS, random)
}

// Unsaved records that Founding.State could not be stored, and why. It returns the part of out that
// may still be carried out.
func (c *Core) Unsaved(out founding.Output, why string) founding.Output {
	c.unfit = true
	return c.Founding.Unsaved(out, why)
}

// Follow processes the decisions of founding that the owner has stored. It returns the events for
// the host, in order. The events Joined and Heard carry the whole address book.
func (c *Core) Follow(now time.Duration, decided []founding.Event) []founding.Event {
	for _, e := range decided {
		c.follow(now, e)
	}
	if c.unfit && c.Founding.Phase() == founding.Member {
		c.raft = 0 // the replica makes no new promise
	}
	events := c.events
	c.events = nil
	return events
}

func (c *Core) follow(now time.Duration, e founding.Event) {
	switch e.Kind {
	case founding.BoundTo:
		c.raft = e.Raft
		c.configure(now, e.Group, charterAt, e.Charter.Voters)
	case founding.Joined:
		c.configure(now, e.Group, e.At, e.Voters)
		e.Voters = c.book.Voters()
	case founding.Heard:
		c.Configured(now, e.Group, e.At, e.Voters)
		return
	case founding.Prepared:
		c.raft = e.Raft
		c.linger(0)
	case founding.Removed:
		if c.raft == e.Raft {
			c.raft = 0
		}
		c.linger(e.Raft)
	case founding.Restarted, founding.Barred:
		c.forget()
	}
	c.events = append(c.events, e)
}

func (c *Core) forget() {
	c.raft, c.book, c.spread, c.lead = 0, founding.Book{}, spreading{}, lead.Lead{}
	c.acts, c.rival, c.report = Acts{}, founding.InstanceInfo{}, nil
	c.linger(0)
	c.life++ // answers to earlier tasks are ignored
	c.inquiries.restart()
}

// Act evaluates the voters if that is due, and returns the actions to carry out. fresh is a raft ID
// that was never used. word is a random number.
func (c *Core) Act(now time.Duration, fresh, word uint64) Acts {
	next := c.govern(now, fresh)
	next = min(next, c.inquire(now, fresh, word), c.tell(now), c.pullDue(now), c.askRival(now), c.rejoin(now, word))
	acts := c.acts.end(next, c.life)
	c.acts = Acts{}
	return acts
}

// Ask returns the answer to another instance's question about founding. The owner must store
// Founding.State before it sends the answer. Nil means that no answer is sent.
func (c *Core) Ask(now time.Duration, wallUnixMS int64, from Asker, question []byte) []byte {
	c.Founding.Guide(c.cfg.OwnState.Guide())
	return c.Founding.Ask(now, wallUnixMS, from, question)
}

// Result records the outcome of a question of founding. asked is when the question was sent.
func (c *Core) Result(
	now, asked time.Duration, q founding.Question, outcome founding.Outcome, from nodeid.ID, answer []byte,
) {
	c.Founding.Guide(c.cfg.OwnState.Guide())
	c.Founding.Result(now, q.ID, asked, outcome, from, answer)
	if outcome != founding.Answered || !c.cfg.Gossips {
		return
	}
	if who, ok := c.Founding.Met(now, q.Addr, askWithin); ok && c.cfg.Founding.Settings.Founds(who.Name) {
		c.find.met(q.Addr, now)
	}
}

// Retired records that this instance's replica has stopped by itself. Its raft ID is never used
// again.
func (c *Core) Retired(now time.Duration, raft uint64) {
	if c.raft == raft {
		c.raft = 0
	}
	c.inquiries.retire(raft)
	c.Founding.Retired(now, raft)
}

// rejoin decides which addresses to gossip with now, and returns when the next round is due. word
// is a random number.
func (c *Core) rejoin(now time.Duration, word uint64) time.Duration {
	if !c.cfg.Gossips {
		return now + idle
	}
	if len(c.find.now) == 0 && c.find.next > now {
		return c.find.next
	}
	wanted := c.Founding.Founders() // only founders take part in gossip
	if len(c.cfg.Founding.Settings.Founders) == 0 {
		wanted = nil
		for _, entry := range c.join {
			wanted = append(wanted, entry.Addrs...)
		}
		for _, v := range c.book.Voters() {
			wanted = append(wanted, v.Addr)
		}
	}
	var here []string
	for _, m := range c.peers {
		here = append(here, m.Addr)
	}
	c.acts.gossip(c.find.due(now, wanted, here, word))
	return c.find.next
}

// Gossiped records that an attempt to gossip with an address has ended.
func (c *Core) Gossiped(addr string) { c.find.ended(addr) }

// Look records that the result of OwnState.Facts may have changed, so that the core reads it again.
func (c *Core) Look() { c.wanted = true }

// govern evaluates the voters if an evaluation is due, and returns when the next one is due. Before
// the group is born, no instance may change the group's voters.
func (c *Core) govern(now time.Duration, fresh uint64) time.Duration {
	if !c.settled() {
		return now + idle
	}
	if c.lead.Due(now, c.wanted) <= now {
		c.observe(now, fresh)
	}
	return c.lead.Due(now, c.wanted)
}

func (c *Core) observe(now time.Duration, fresh uint64) {
	c.wanted = false
	facts, term, leads := c.cfg.OwnState.Facts()
	if !leads {
		c.lead.Rest(now)
		c.report = nil
		return
	}
	orders := c.lead.Look(now, facts, term, fresh)
	report := c.lead.Report()
	c.report = &report
	if orders.Carry != nil {
		c.acts.step(*orders.Carry)
	}
	if step := orders.Prepare; step != nil {
		body := c.lead.Question(*step, c.Founding.Group(), c.book.At(), c.book.Voters())
		c.task(Task{To: step.Instance, Addr: c.lead.Where(step.Instance), Body: body, Prepare: step})
		c.wanted = true // another Prepare may be due
	}
	for _, p := range orders.Probes {
		c.task(Task{To: p.Instance, Addr: p.Addr, probe: &p})
	}
}

func (c *Core) task(e Task) {
	if e.Addr == "" || c.cfg.Founding.Settings.Solo {
		return
	}
	c.acts.task(e.in(c.lead.Term()))
}

// Done records the outcome of a task. from is the proven ID of the instance that answered, if one
// did. declined is the reason why an instance does not start a replica.
func (c *Core) Done(now time.Duration, e Task, outcome founding.Outcome, from nodeid.ID,
	answer []byte) (declined string) {
	look := false
	switch {
	case e.life != c.life: // of an earlier incarnation: nothing waits for it
	case e.pushed != nil:
		c.spread.pushed(now, e.pushed, outcome)
	case e.attached:
		c.spread.arrived() // if the push was lost, that instance itself asks later
	case e.Prepare != nil:
		look, declined = c.lead.Answered(now, e.term, *e.Prepare, outcome, answer)
	case e.probe != nil:
		look = c.lead.Probed(now, e.term, *e.probe, outcome, from)
	}
	c.wanted = c.wanted || look
	return declined
}

// PeerLost records that an instance has reported, on its own connection, that its replica has
// ended. If the instance has a directory, the next process may resume the replica.
func (c *Core) PeerLost(now time.Duration, instance nodeid.ID) {
	c.Founding.Departed(now, instance)
	if c.lead.PeerLost(instance, c.book.Voters()) {
		c.wanted = true
	}
}

// Report returns the state of the voters at the last evaluation, or nil if this instance does not
// lead. The caller must not change it.
func (c *Core) Report() *voters.Report { return c.report }

// Meta returns the data about this instance that gossip spreads.
func (c *Core) Meta() gossip.Meta {
	return gossip.Meta{
		Instance: c.Founding.Instance(), Group: c.Founding.Group(), At: c.book.At(), Leader: c.Founding.HasLeader(),
		Name: c.cfg.Founding.Name, Zone: c.cfg.Zone, Addr: c.self,
	}
}

// Seen records gossip's report about one member. The core still tries to gossip with a member that
// has left, and its address stays in the address book.
func (c *Core) Seen(now time.Duration, n gossip.News) {
	c.moved = true
	if !n.Here {
		delete(c.peers, n.Name)
		return
	}
	c.peers[n.Name] = n.Meta
	c.find.remember(n.Meta.Addr)
	if n.Meta.Instance == c.Founding.Instance() {
		c.Founding.SeenElsewhere(now, n.Meta.Addr)
	}
}

// Peers returns the members that gossip reports. The caller must not change the map.
func (c *Core) Peers() map[string]gossip.Meta { return c.peers }

// Resolved sets the addresses that Join leads to. appeared lists the new ones. A member tries a few
// new addresses without delay, because an instance may have returned at another address. The core
// keeps the entries.
func (c *Core) Resolved(now time.Duration, entries []founding.Entry, appeared []string) {
	c.join, c.moved = entries, true
	if c.Founding.Phase() != founding.Member {
		return // package founding asks all addresses, and Result calls finder.met
	}
	for _, addr := range appeared[:min(len(appeared), rejoinMany)] {
		if !c.cfg.Gossips || len(c.cfg.Founding.Settings.Founders) > 0 {
			c.Founding.Inquire(now, addr) // not every instance gossips, so ask this address first
			continue
		}
		c.find.met(addr, now)
	}
}

func (c *Core) places() {
	if !c.moved {
		return
	}
	c.moved = false
	seen := make([]string, 0, len(c.peers))
	for _, name := range slices.Sorted(maps.Keys(c.peers)) {
		seen = append(seen, c.peers[name].Addr)
	}
	c.Founding.Places(c.join, seen)
}

// An address is asked after it was reported as part of another group with a leader for rivalAfter.
// Gossip detects a dead instance sooner, so a group that no longer exists causes no question.
// rivalFresh is how long an answer counts.
const (
	rivalAfter = 45 * time.Second
	rivalFresh = 15 * time.Second
	rivalAgain = time.Second // time between two checks of the answer
)

// rivalHints returns the addresses that gossip or an answer reports as part of another group with a
// leader. It returns none while this instance's own group has no leader.
func (c *Core) rivalHints(now time.Duration) map[string]bool {
	if c.Founding.Phase() != founding.Member || !c.Founding.HasLeader() {
		return nil
	}
	hints := make(map[string]bool)
	for _, p := range c.peers {
		if p.Leader && p.Group != c.Founding.Group() {
			hints[p.Addr] = true
		}
	}
	for _, addr := range c.Founding.Rivals(now) {
		hints[addr] = true
	}
	return hints
}

// askRival searches for a member of another group that has a leader, and returns when the next
// check is due. That member itself has to confirm the group, because gossip may be wrong.
func (c *Core) askRival(now time.Duration) (next time.Duration) {
	c.rival, next = founding.InstanceInfo{}, now+idle
	hints := c.rivalHints(now)
	for addr := range c.rivals {
		if !hints[addr] {
			delete(c.rivals, addr)
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(hints)) {
		if _, known := c.rivals[addr]; !known {
			c.rivals[addr] = now
		}
		due := c.rivals[addr] + rivalAfter
		if now >= due {
			met, ok := c.Founding.Met(now, addr, rivalFresh)
			if !ok {
				c.Founding.Inquire(now, addr)
			} else if met.Phase == founding.Member && met.Leader && met.Group != c.Founding.Group() &&
				!met.Settings.Solo {
				c.rival = met
				return now + rivalAgain
			}
			due = now + rivalAgain
		}
		next = min(next, due)
	}
	return next
}

// Configured processes a configuration that this instance has applied or received. at is the log
// index of its entry. An older configuration does not change the address book. A configuration with
// the same index, or with at == 0, may contain newer addresses.
func (c *Core) Configured(now time.Duration, group, at uint64, voters []Voter) {
	if group == 0 || group != c.Founding.Group() {
		return
	}
	known := c.book.At()
	switch {
	case at < known && at != 0:
		c.Founding.Voters(now, group, at, voters) // an older configuration may show that this replica was removed
	case at <= known:
		changed := false
		for _, v := range voters {
			changed = c.book.Hear(v, false) || changed
		}
		if changed {
			c.readdressed(now)
		}
	default:
		c.spread.remember(c.book.Voters())
		c.configure(now, group, at, voters)
		c.spread.pullNow() // gossip may report an even newer configuration
		c.tellHost()
		c.wanted = true
	}
}

func (c *Core) configure(now time.Duration, group, at uint64, voters []Voter) {
	c.book.Configure(at, voters)
	if c.raft != 0 { // this instance's own address is the newest
		c.book.Hear(Voter{Raft: c.raft, Instance: c.Founding.Instance(), Addr: c.self, Life: c.Founding.Life()}, true)
	}
	c.Founding.Voters(now, group, c.book.At(), c.book.Voters())
}

// readdressed reports the new addresses of voters to founding and the host. A leader also sends
// them to the other voters.
func (c *Core) readdressed(now time.Duration) {
	c.Founding.Voters(now, c.Founding.Group(), c.book.At(), c.book.Voters())
	c.tellHost()
	if !c.lead.Leads() {
		return
	}
	for _, v := range c.book.Voters() {
		if v.Instance != c.Founding.Instance() {
			c.spread.push(v.Instance, v.Addr, 1)
		}
	}
}

// tellHost reports the whole address book to the host. Before the instance is settled, the events
// BoundTo and Joined report the voters.
func (c *Core) tellHost() {
	if c.settled() {
		c.events = append(c.events, founding.Event{
			Kind: founding.Heard, Group: c.Founding.Group(), At: c.book.At(), Voters: c.book.Voters(),
		})
	}
}

// If this instance leads, the method announce sends a new configuration to the attached instances,
// and to the replicas that are no longer part of it (rule 14 of package founding). Without this,
// several changes within a second could replace all voters whose addresses an instance has.
func (c *Core) announce() {
	if c.spread.before == nil || !c.lead.Leads() && c.wanted {
		return // the evaluation is still due
	}
	before := c.spread.forget()
	if !c.lead.Leads() {
		return
	}
	for _, v := range before {
		if _, stays := c.book.Find(v.Raft); !stays && v.Instance != c.Founding.Instance() {
			c.spread.push(v.Instance, v.Addr, pushTries)
		}
	}
	c.spread.tell(c.lead.Attached(slices.Concat(before, c.book.Voters())))
}

// RemovedPeer sends the configuration to an instance that sends raft messages although no
// configuration contains its raft ID. The caller limits the calls with RemovedPeers.
func (c *Core) RemovedPeer(instance nodeid.ID, addr string) {
	c.spread.push(instance, addr, 1)
}

func (c *Core) tell(now time.Duration) time.Duration {
	c.announce()
	if !c.settled() || c.book.At() == 0 || c.cfg.Founding.Settings.Solo {
		c.spread.stop()
		return now + idle
	}
	due, next := c.spread.due(now)
	for _, a := range due {
		c.acts.task(Task{To: a.to, Addr: a.addr, Body: c.pushTo(a.to), pushed: a})
	}
	for _, v := range c.spread.next() {
		c.acts.task(Task{To: v.Instance, Addr: v.Addr, Body: c.pushTo(v.Instance), attached: true})
	}
	return next
}

func (c *Core) pushTo(instance nodeid.ID) []byte {
	return founding.AppendPush(nil, founding.Push{
		To: instance, Group: c.Founding.Group(), At: c.book.At(), Voters: c.book.Voters(),
	})
}

// If gossip reports a newer configuration of this group, pull requests it from the leader or a
// known voter. The report may be false, so pull does not ask the reporting instance.
func (c *Core) pull(now time.Duration, word uint64) {
	if now < c.spread.pullAt || !c.behind() {
		return
	}
	leader, addr := c.nextToAsk(c.spread.pulls, word)
	again := now + pullWithin
	if leader != c.cfg.OwnState.Guide() {
		again = now + pullSoon // the voter may not have the newer configuration
	}
	c.spread.pulled(again)
	c.Founding.Inquire(now, addr)
}

func (c *Core) pullDue(now time.Duration) time.Duration {
	if !c.behind() {
		return now + idle
	}
	return max(c.spread.pullAt, now)
}

// behind reports whether gossip reports a newer configuration of this group. It returns false if
// this instance is not a member, because then it asks all addresses anyway.
func (c *Core) behind() bool {
	if !c.settled() {
		return false
	}
	for _, m := range c.peers {
		if m.Group == c.Founding.Group() && m.At > c.book.At() && m.Addr != c.self {
			return true
		}
	}
	return false
}

// Turn runs one turn of the core and makes the owner carry out its decisions. The result is the
// latest time for the next turn. fresh is a raft ID that was never used. word is a random number.
func (c *Core) Turn(
	now time.Duration, wallUnixMS int64, random founding.Random, fresh, word uint64, o Owner,
) time.Duration {
	out := c.Tick(now, wallUnixMS, random)
	if o.Store(&out); o.Ended() {
		return 0
	}
	if o.Tell(c.Follow(now, out.Events)); o.Ended() {
		return 0
	}
	acts := c.Act(now, fresh, word)
	if o.Ended() {
		return 0
	}
	for _, q := range out.Questions {
		o.Question(q)
	}
	acts.carry(o)
	return min(out.Next, acts.Next)
}

// ReplyStatus answers a status query. If the last evaluation is not fresh, ReplyStatus evaluates
// the voters again, since this instance may no longer lead. fresh is a raft ID that was never used.
func (c *Core) ReplyStatus(now time.Duration, q StatusQuery, fresh uint64) (a StatusReply) {
	if q.Group != c.Founding.Group() {
		return a
	}
	if c.settled() {
		if !c.lead.Fresh(now) {
			c.observe(now, fresh)
		}
		if status, leads := c.lead.VoterStatus(q.Raft, q.At, q.Instance); leads {
			status.Leader = c.Founding.Instance()
			return StatusReply{VoterStatus: &status}
		}
	}
	if c.Founding.Phase() != founding.Member {
		return a
	}
	if instance, addr := c.cfg.OwnState.Leader(); instance != c.Founding.Instance() && instance != q.Instance {
		a.Leader, a.Addr = instance, addr
	}
	return a
}

// Heir evaluates the voters and returns the one to which an operator may move the leadership. It
// reports false if this instance does not lead. fresh is a raft ID that was never used.
func (c *Core) Heir(now time.Duration, name string, fresh uint64) (lead.Heir, bool) {
	if !c.settled() {
		return lead.Heir{}, false
	}
	c.observe(now, fresh)
	return c.lead.Heir(name)
}

// nextToAsk returns an instance to ask. It alternates between the known leader and a random voter,
// since the known leader may be out of date. word is a random number.
func (c *Core) nextToAsk(try int, word uint64) (instance nodeid.ID, addr string) {
	self := c.Founding.Instance()
	if c.Founding.Phase() != founding.Member || c.cfg.Founding.Settings.Solo {
		return nodeid.ID{}, ""
	}
	if instance, addr = c.cfg.OwnState.Leader(); instance == self {
		instance, addr = nodeid.ID{}, ""
	}
	others := slices.DeleteFunc(c.book.Voters(), func(v Voter) bool { return v.Learner || v.Instance == self })
	if len(others) == 0 || !instance.IsZero() && try%2 == 0 {
		return instance, addr
	}
	v := others[word%uint64(len(others))]
	return v.Instance, v.Addr
}

// Inquire begins an inquiry. The answer is returned in Acts.Told.
func (c *Core) Inquire(q *Inquiry) { c.inquiries.add(q) }

// GiveUp ends an inquiry, and reports whether it was still under way.
func (c *Core) GiveUp(q *Inquiry) bool { return c.inquiries.end(q) }

// linger starts to ask whether a removed replica may stop (rule 13 of package voters), and ends an
// earlier such inquiry. If raft is zero, linger only ends the earlier inquiry.
func (c *Core) linger(raft uint64) {
	c.inquiries.endLingering()
	if raft != 0 {
		c.Inquire(&Inquiry{Raft: raft, lingers: true})
	}
}

func (c *Core) inquire(now time.Duration, fresh, word uint64) time.Duration {
	next := now + idle
	for _, q := range slices.Clone(c.inquiries.list) {
		if !q.asking && q.due <= now {
			c.attempt(now, q, fresh, word)
		}
		if !q.asking && c.inquiries.goesOn(q) {
			next = min(next, q.due)
		}
	}
	return next
}

func (c *Core) attempt(now time.Duration, q *Inquiry, fresh, word uint64) {
	q.begin(now, word)
	if reply := c.ReplyStatus(now, c.statusQuery(q), fresh); reply.VoterStatus != nil {
		c.told(q, reply.VoterStatus)
		return
	}
	if to, addr := c.nextToAsk(q.tried(), word); addr != "" {
		c.queryStatus(q, to, addr)
	}
}

func (c *Core) statusQuery(q *Inquiry) StatusQuery {
	raft := q.Raft
	if q.Own {
		raft = c.raft
	}
	return StatusQuery{Group: c.Founding.Group(), Instance: c.Founding.Instance(), Raft: raft, At: c.book.At()}
}

func (c *Core) queryStatus(q *Inquiry, to nodeid.ID, addr string) {
	question := c.statusQuery(q)
	q.asked()
	c.acts.task(Task{To: to, Addr: addr, Query: &question, inquiry: q})
}

// StatusReplied records the answer to a status query. ok is false if no answer has arrived. A
// leader that the answer names is asked at once.
func (c *Core) StatusReplied(now time.Duration, e Task, a StatusReply, ok bool) {
	q := e.inquiry
	if e.life != c.life {
		return // it is about the replica and the group of an earlier incarnation
	}
	q.replied(now)
	switch {
	case !ok || !c.inquiries.goesOn(q): // no answer, or the inquiry has ended
	case a.VoterStatus != nil:
		c.told(q, a.VoterStatus)
	case q.hops > 0 && a.Addr != "" && !a.Leader.IsZero() && a.Leader != e.To:
		q.hop()
		c.queryStatus(q, a.Leader, a.Addr)
	}
}

func (c *Core) told(q *Inquiry, status *VoterStatus) {
	switch {
	case !q.lingers:
		c.acts.tell(Told{Inquiry: q, VoterStatus: *status})
	case status.MayStop:
		c.acts.dismiss(q.Raft)
	default:
		return // the inquiry asks again later
	}
	c.GiveUp(q)
}
