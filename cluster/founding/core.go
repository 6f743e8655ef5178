package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
)

// Core is the state machine that founds a group on behalf of one instance. A Core is not safe for
// concurrent use. It keeps no slice that is passed to a method, unless the method's comment says
// so.
//
// Each part has its fields alone, and is the only one that writes them. What reads several parts
// gets a [sight] of them.
type Core struct {
	self          self
	bond          bond
	replica       replica
	leading       leading
	attempt       attempt
	fates         fates
	acquaintances acquaintances
	directory     directory
	contacts      contacts

	now  time.Duration
	wall int64
	// why this incarnation must end at the next Tick; empty if it need not
	doomed string
	events []Event
}

// New returns the core of a new instance, or of an instance that resumes from Stored.
func New(cfg Config) *Core {
	c := &Core{
		self: self{
			instance: cfg.Instance, name: cfg.Name, addr: cfg.Addr, settings: cfg.Settings.normal(),
			rules: max(cfg.Rules, 1), life: max(cfg.Life, 1), boot: cfg.Boot,
		},
		directory: directory{durable: cfg.Durable},
	}
	c.contacts.outdate()
	c.resume(cfg.Stored)
	return c
}

// resume continues from the stored State. A newborn keeps its new ID, because the refusals made
// under the stored ID are not stored.
func (c *Core) resume(s *State) {
	c.directory.resume(s, c.self.addr)
	if s == nil || s.Phase == Newborn {
		return
	}
	c.self.resume(s.Instance)
	c.bond, c.replica = resumeBond(s), resumeReplica(s)
	c.acquaintances.listed(s.Voters, c.self.instance)
	if c.bond.charter != nil {
		c.attempt.begin(c.bond.charter, c.self.instance)
	}
}

func (c *Core) sight() *sight {
	return &sight{
		self: c.self, bond: c.bond, leading: c.leading, acquaintances: c.acquaintances, now: c.now, wall: c.wall,
		join: c.contacts.join, places: c.contacts.places,
		durable: c.directory.durable, settling: c.directory.settling, searches: c.searches(),
	}
}

func (c *Core) roll() *roll {
	return &roll{sight: c.sight(), floor: c.directory.floor, gaveUp: c.directory.gaveUp}
}

func (c *Core) assent() *assent {
	return &assent{roll: c.roll(), refused: c.attempt.refused, unfit: c.directory.unfit}
}

func (c *Core) inquest() *inquest {
	return &inquest{sight: c.sight(), fates: c.fates, replica: c.replica}
}

// Waiting tells the user what this instance waits for and what to do. It returns "" if this
// instance waits for nothing.
func (c *Core) Waiting() string {
	o := outlook{assent: c.assent(), inquest: c.inquest(), bound: c.attempt.bound, barred: c.directory.barred}
	return o.waiting()
}

// Founders returns the addresses at which a founder was last met.
func (c *Core) Founders() []string { return c.sight().founders() }

// Leader records whether this instance knows a leader of its group. A newborn ignores the call.
func (c *Core) Leader(now time.Duration, known bool) {
	c.now = now
	c.leading.observe(now, c.wall, known, c.bond.phase != Newborn)
}

// Born records that this instance has applied the Born entry of the group. It does nothing unless
// this incarnation is bound to that group.
func (c *Core) Born(now time.Duration, group uint64) {
	c.now = now
	if c.bond.phase == Bound && c.bond.group == group {
		c.attempt.markBorn()
	}
}

// Tick advances the time and returns all actions that follow from the inputs since the last Tick.
// The host must call it after every batch of inputs, and no later than Output.Next.
func (c *Core) Tick(now time.Duration, wallUnixMS int64, random Random) Output {
	c.now, c.wall = now, wallUnixMS
	c.arrange()
	c.decide(random)
	if c.doomed != "" && c.directory.barred == "" {
		c.restart(random)
		c.arrange()
	}
	next := c.ask(random)
	out := Output{Questions: c.contacts.questions(), Events: c.events, Next: next}
	c.events = nil
	return out
}

func (c *Core) arrange() { c.contacts.arrange(c.now, c.self.addr, c.directory.lastAddr, &c.bond) }

func (c *Core) decide(random Random) {
	switch {
	case c.doomed != "" || c.directory.barred != "":
	case c.directory.settling:
		c.settle()
	case c.bond.phase == Newborn:
		c.newborn(random)
	case c.bond.phase == Bound:
		c.tentative(random)
	case c.bond.phase == Member:
		c.member()
	}
}

// restart carries out the restart in place. It forgets everything that a killed process forgets, so
// it is as safe as a kill.
func (c *Core) restart(random Random) {
	reason := c.doomed
	*c = Core{
		self: c.self.again(random.Instance, c.sight().nextSettings()), contacts: c.contacts.again(),
		acquaintances: c.acquaintances, directory: c.directory.again(c.self.addr),
		now: c.now, wall: c.wall, events: c.events,
	}
	c.emit(Event{Kind: Restarted, Instance: c.self.instance, Text: reason})
}

func (c *Core) emit(e Event) { c.events = append(c.events, e) }

func (c *Core) newborn(random Random) {
	if c.self.settings.Solo {
		if c.directory.unfit == "" {
			ch := c.roll().alone(random)
			c.bind(&ch)
		}
		return
	}
	if who := c.sight().open(); who != nil {
		c.adopt(who)
		return
	}
	if ch, ok := c.assent().propose(random); ok {
		c.bind(&ch)
		c.attempt.propose()
	}
}

// consider applies rule 3: it accepts ch and binds this instance to ch, or returns the reason for
// refusing. It accepts ch again after accepting it, because the first answer may have been lost.
func (c *Core) consider(ch *Charter) (Refusal, string) {
	if ch.Group == c.bond.group && c.bond.phase != Newborn && c.bond.charter != nil {
		return Accepted, ""
	}
	refusal, detail := c.assent().judge(ch)
	if refusal != Accepted {
		c.attempt.remember(ch.Group)
		return refusal, detail
	}
	c.bind(ch)
	return Accepted, ""
}

func (c *Core) bind(ch *Charter) {
	own := ch.clone()
	c.bond.accept(&own)
	c.replica.begin(own.Raft(c.self.instance))
	c.attempt.begin(&own, c.self.instance)
	c.contacts.outdate()
	c.directory.changed()
	c.contacts.hurry(c.now)
	c.emit(Event{Kind: BoundTo, Charter: own, Group: own.Group, Raft: c.replica.raft})
}

// tentative applies rules 4 and 5. The package comment explains the rule for a directory.
func (c *Core) tentative(random Random) {
	if c.attempt.until == 0 || (c.directory.durable && c.sight().unreached(c.now-reachedFor) != "") {
		c.attempt.allow(c.now + bornWithin + time.Duration(random.Spread%uint64(bornSpread)))
	}
	if c.attempt.complete() {
		c.emit(Event{Kind: AllBound, Group: c.bond.group})
	}
	switch {
	case c.attempt.born:
		c.belong(c.bond.group, c.bond.at, c.bond.newest(), "")
	case c.superseded():
	case c.now >= c.attempt.until && !c.self.settings.Solo:
		c.doomed = "the group was not founded in time: " + c.Waiting()
	}
}

// superseded ends this incarnation if operators have given up the group, and reports whether it
// did.
func (c *Core) superseded() bool {
	text := c.sight().superseded()
	if text != "" {
		c.doomed = text
	}
	return text != ""
}

func (c *Core) belong(group, at uint64, voters []Voter, warning string) {
	c.bond.belong(group, at, voters)
	c.leading.begin(c.now, c.wall)
	c.attempt.end()
	c.contacts.outdate()
	c.directory.regain(group)
	c.directory.changed()
	c.emit(Event{Kind: Joined, Group: group, At: c.bond.at, Voters: slices.Clone(voters), Text: warning})
	raft := c.replica.raft
	if c.bond.charter != nil && raft != 0 && raft == c.bond.charter.Raft(c.self.instance) && !c.named() {
		c.remove() // the replica was removed before this instance learned that the group is founded
	}
}

// adopt makes a newborn a member of the group of a member that has answered.
func (c *Core) adopt(with *InstanceInfo) {
	warning := c.self.settings.differs(with.Settings)
	c.bond.enter(with)
	c.leading.enter()
	c.belong(with.Group, with.At, with.Voters, warning)
}

// settle checks, before a resumed instance takes part, whether another process has its ID. It waits
// until every address has answered or refused, but at most settleWithin, because after a power
// failure this may be the only instance.
func (c *Core) settle() {
	until := c.directory.allow(c.now + settleWithin)
	if c.now < until && !c.self.settings.Solo && c.sight().unsettled() {
		return
	}
	c.directory.settled(c.now, c.self.addr)
	c.contacts.outdate()
	c.leading.begin(c.now, c.wall)
	raft := max(c.replica.raft, c.replica.lingers)
	var first []Event // events that precede those that arrived during settling
	switch {
	case c.bond.charter != nil && c.bond.charter.Raft(c.self.instance) == raft:
		first = append(first, Event{Kind: BoundTo, Charter: *c.bond.charter, Group: c.bond.group, Raft: raft})
	case raft != 0:
		first = append(first, Event{Kind: Prepared, Group: c.bond.group, Raft: raft})
	}
	if c.bond.phase == Member {
		first = append(first, Event{Kind: Joined, Group: c.bond.group, At: c.bond.at, Voters: slices.Clone(c.bond.voters)})
	}
	if c.replica.lingers != 0 {
		first = append(first, Event{Kind: Removed, Group: c.bond.group, Raft: c.replica.lingers})
	}
	c.events = append(first, c.events...)
}

// searches reports whether a restarted voter still searches for other voters, whose addresses may
// have changed too.
func (c *Core) searches() bool {
	began := c.directory.searchUntil - searchFor
	unmet := func(v Voter) bool {
		met := c.acquaintances.lastMet(v.Instance)
		return v.Instance != c.self.instance && (met == nil || met.at <= began)
	}
	return c.now < c.directory.searchUntil && c.bond.phase == Member && c.named() &&
		slices.ContainsFunc(c.bond.voters, unmet)
}

// member applies rules 6 and 7. With a directory it leaves only a group that is superseded.
func (c *Core) member() {
	c.follow(c.bond.newest())
	c.follow(c.bond.applied.Voters)
	after := c.leading.since + max(c.self.settings.SessionTTL, c.bond.rulesOf.SessionTTL)
	s := c.sight()
	for _, g := range s.later(after) {
		c.follow(g.Voters)
	}
	if c.superseded() {
		return
	}
	if c.leading.leader || c.self.settings.Solo || c.directory.durable || c.now <= after {
		c.fates.reach(c.now, false)
		return // holders may still trust their leases
	}
	other, own := s.leaders(after)
	reached := s.unreached(after) == ""
	if own || !reached && !other {
		c.fates.reach(c.now, false)
		return // the group may have lost only its leader, or a needed instance is missing
	}
	c.fates.reach(c.now, true)
	c.fates.doubt(c.now, c.bond.at, c.inquest().refuted(Configuration{At: c.bond.at, Voters: c.bond.newest()}, after))
	if text := c.inquest().verdict(after, other, reached); text != "" {
		c.doomed = text
	}
}

// follow begins to track the replicas of a configuration. If the name of a replica's instance is
// unknown, follow asks for it while the instance still runs. With Founders, the name can prove
// later that the replica has ended.
func (c *Core) follow(voters []Voter) {
	for _, v := range c.fates.follow(voters, c.now) {
		if s := c.sight(); c.replica.runs() != 0 && !c.directory.durable && s.nameOf(v.Instance) == "" {
			c.contacts.visit(s, v.Addr)
		}
	}
}

// Result records the outcome of a question, given by its ID and the time at which it was sent. If
// outcome is Answered, from is the sender of the answer, as the connection has proved. If outcome
// is Foreign or Silent, answer is a reason in text, or nil. With other outcomes, from and answer
// have no meaning. Result ignores questions that are no longer pending, such as those of an
// earlier incarnation.
func (c *Core) Result(now time.Duration, id uint64, asked time.Duration, outcome Outcome, from nodeid.ID,
	answer []byte) {
	c.now = now
	if i := c.attempt.answered(id); i >= 0 {
		if text := c.attempt.hear(i, c.bond.charter, outcome, from, answer); text != "" {
			c.doomed = text
		}
		return
	}
	p := c.contacts.ended(now, id, outcome, answer)
	if p == nil || outcome == Silent || outcome == Other || asked < p.last.asked {
		return
	}
	var who InstanceInfo
	first, why := time.Duration(0), ""
	if outcome == Foreign {
		why = plain.Cut(string(answer), maxWhy)
	}
	if outcome == Answered {
		var err error
		if who, err = decodeInfo(answer); err != nil {
			// The instance may run a newer version, so it blocks founding like a silent address.
			return
		}
		who.Instance, first = from, now
		if p.last.outcome == Answered && p.last.info.Instance == from {
			first = p.last.first
		}
		c.contacts.learn(c.sight(), p, &who)
		c.recognise(&who)
		c.met(&who)
		c.attest(p, &who, asked)
	}
	p.record(lastResult{outcome: outcome, asked: asked, got: now, first: first, info: who, why: why})
}

// recognise bars this instance if an answer shows that another process has its ID.
func (c *Core) recognise(who *InstanceInfo) {
	if !c.directory.durable || c.directory.barred != "" {
		return
	}
	if text := copied(c.sight(), who); text != "" {
		c.bar(text)
	}
}

// WentBack records that this instance's replica lacks what it has acknowledged, and why that is
// known.
func (c *Core) WentBack(now time.Duration, why string) {
	c.now = now
	c.bar("this directory was restored from an older copy (" + why + "): " + recoveryHintOld)
}

func (c *Core) bar(text string) {
	if c.directory.bar(text) {
		c.events = append(c.events[:0], Event{Kind: Barred, Text: text})
	}
}

func (c *Core) met(who *InstanceInfo) {
	if who.Instance != c.self.instance && c.bond.votes(who.Instance) {
		c.leading.hear(c.now)
	}
	if who.Durable && !who.Resuming && who.Instance != c.self.instance {
		c.started(who.Instance, who.Life, who.Boot, who.Addr, who.Group)
	}
	ours := who.Group == c.bond.group && who.Phase != Newborn
	if c.bond.phase == Bound {
		at := c.bond.charter.listed(who.Instance)
		switch {
		case at >= 0 && who.RefusedYou:
			c.doomed = nameOf(who.Name, who.Addr) + " has refused the charter"
		case at >= 0 && ours:
			c.attempt.bindOther(at)
			if who.Phase == Member {
				c.attempt.markBorn()
			}
		}
	}
	if ours && (c.directory.durable || who.Phase == Member && (c.bond.phase == Member || who.At > c.bond.at)) {
		c.hear(who.Instance, who.At, who.Voters)
	}
}

// started records a start that an instance with a directory has reported itself.
func (c *Core) started(instance nodeid.ID, life, boot uint64, addr string, group uint64) {
	c.acquaintances.alive(presence{instance: instance, life: life, boot: boot, addr: addr, at: c.now, wall: c.wall}, true)
	if group != c.bond.group || !c.directory.durable {
		return
	}
	if v, changed := c.bond.moved(instance, life, addr); changed {
		// The event has no At, because its Voters are not a whole configuration.
		c.emit(Event{Kind: Heard, Group: c.bond.group, Voters: []Voter{v}})
	}
}

func (c *Core) attest(p *place, who *InstanceInfo, asked time.Duration) {
	c.call(who.Instance, who.Name)
	if s := who.Standing; s != nil && len(s.Names) == len(who.Voters) && (c.bond.phase == Newborn ||
		who.Group == c.bond.group && c.sight().believes(who.Instance)) {
		for i, v := range who.Voters {
			c.call(v.Instance, s.Names[i])
		}
	}
	if c.bond.phase != Member {
		return
	}
	if s := who.Standing; s != nil && who.Group == c.bond.group && c.replica.runs() == 0 &&
		s.Applied.At > c.bond.applied.At && c.sight().believes(who.Instance) {
		c.bond.apply(s.Applied)
	}
	c.fates.attest(c.sight(), p.addr, who, asked)
}

func (c *Core) call(instance nodeid.ID, name string) {
	if name != "" && c.sight().nameOf(instance) == "" {
		c.acquaintances.call(instance, name)
	}
}

// Departed records that an instance has announced its exit, which ends its replica in memory.
func (c *Core) Departed(now time.Duration, instance nodeid.ID) {
	c.now = now
	if instance != c.self.instance {
		c.fates.depart(instance)
	}
}

// Ask answers a question of another instance. It returns nil if the question is unknown or must not
// be answered. The answer binds this instance as soon as Ask returns.
func (c *Core) Ask(now time.Duration, wallUnixMS int64, from Asker, body []byte) []byte {
	c.now, c.wall = now, wallUnixMS
	if c.doomed != "" || c.directory.barred != "" {
		return nil
	}
	if p, err := decodeProposal(body); err == nil {
		if p.To != c.self.instance || c.directory.settling {
			// The proposer could mistake an answer for that of another incarnation.
			return nil
		}
		v := verdict{Instance: c.self.instance, Group: p.Charter.Group}
		v.Refusal, v.Detail = c.consider(&p.Charter)
		return appendVerdict(nil, v)
	}
	if answer := c.told(from.Instance, body); answer != nil {
		return answer
	}
	q, err := decodeQuestion(body)
	if err != nil {
		return nil
	}
	q.Instance, q.Addr = from.Instance, from.Addr
	if q.Founds {
		c.contacts.askedBy(c.now, c.self.addr, q.Addr)
	}
	if q.Life > 0 && !q.Resuming && q.Instance != c.self.instance {
		c.started(q.Instance, q.Life, q.Boot, q.Addr, q.Group)
	}
	if q.Bound && c.bond.phase == Bound && q.Group == c.bond.group {
		if at := c.bond.charter.listed(q.Instance); at >= 0 {
			c.attempt.bindOther(at)
		}
	}
	who := c.answer(q)
	who.Met = c.contacts.acquainted(c.sight(), q.Addr)
	return appendInfo(nil, who)
}

// Tell answers the question "who are you?" of a peer that is not an instance. It returns nil for
// any other question and records nothing about the peer.
func (c *Core) Tell(now time.Duration, wallUnixMS int64, from nodeid.ID, body []byte) []byte {
	c.now, c.wall = now, wallUnixMS
	q, err := decodeQuestion(body)
	if err != nil || c.doomed != "" || c.directory.barred != "" {
		return nil
	}
	return appendInfo(nil, c.answer(question{Instance: from, Group: q.Group}))
}

func (c *Core) answer(q question) InstanceInfo {
	r := respondent{assent: c.assent(), replica: c.replica}
	return r.answer(q)
}

func (c *Core) told(from nodeid.ID, body []byte) []byte {
	if p, err := decodePrepare(body); err == nil {
		if p.To != c.self.instance {
			return nil
		}
		a := PrepareAnswer{Instance: c.self.instance, Raft: p.Raft}
		a.State, a.Detail = c.prepare(from, &p)
		return appendPrepared(nil, a)
	}
	if a, err := decodePush(body); err == nil && a.To == c.self.instance {
		if a.Group == c.bond.group {
			c.hear(from, a.At, a.Voters)
		}
		return []byte{wireVersion}
	}
	return nil
}

func (c *Core) prepare(from nodeid.ID, p *Prepare) (PreparedState, string) {
	switch {
	case c.bond.phase != Member || c.bond.group != p.Group || c.self.settings.Solo:
		return Declined, "it does not belong to group " + groupName(p.Group)
	case c.directory.settling:
		return Declined, "it has just been started again and is still looking for other instances"
	case c.directory.unfit != "":
		return Declined, c.directory.unfit
	}
	c.hear(from, p.At, p.Voters)
	if !c.sight().believes(from) {
		return Declined, "the instance that asks is not known to lead the group"
	}
	if state, detail, fresh := c.replica.meets(p, c.bond.newest()); !fresh {
		return state, detail
	}
	if c.replica.raft != 0 {
		c.remove()
	}
	c.replica.prepare(p.Raft, p.Term)
	c.directory.changed()
	c.emit(Event{Kind: Prepared, Group: c.bond.group, Raft: c.replica.raft})
	return Running, ""
}

// remove ends the present raft ID and emits Removed. The replica runs until the host reports
// Retired, because other replicas may need its vote.
func (c *Core) remove() {
	raft := c.replica.remove(c.bond.at)
	c.directory.changed()
	if !c.directory.settling {
		c.emit(Event{Kind: Removed, Group: c.bond.group, Raft: raft})
	}
}

// Retired records that a replica of this instance has stopped for good: it stopped by itself, or it
// was removed and its vote is no longer needed. Its raft ID is never used again. The instance may
// be prepared under another ID.
func (c *Core) Retired(now time.Duration, raft uint64) {
	c.now = now
	if c.replica.retire(raft, c.bond.at) {
		c.directory.changed()
	}
}

// Voters records a configuration that this instance's replica has applied. A newer configuration
// replaces the known one, and a configuration with the same number updates addresses. If an older
// configuration names this instance's replica, the replica was removed since then.
func (c *Core) Voters(now time.Duration, group, at uint64, voters []Voter) {
	c.now = now
	if c.bond.group != group || c.bond.phase == Newborn || c.take(at, voters) {
		return
	}
	if at != c.bond.at || len(voters) > maxVoters || (c.bond.phase == Bound && !c.directory.durable) {
		return
	}
	if c.bond.readdress(voters) {
		c.directory.changed()
	}
	c.placed()
}

func (c *Core) hear(from nodeid.ID, at uint64, voters []Voter) {
	if len(voters) == 0 {
		return
	}
	if !c.sight().believes(from) {
		c.hinted(at, voters)
		return
	}
	c.events = append(c.events, Event{Kind: Heard, Group: c.bond.group, At: at, Voters: slices.Clone(voters)})
	c.take(at, voters)
}

// hinted handles a configuration from an instance that is not believed. Equal hints from several
// instances prove nothing, because any process can create new IDs.
func (c *Core) hinted(at uint64, voters []Voter) {
	if at <= c.bond.at || c.bond.phase != Member || c.directory.settling {
		return
	}
	s := c.sight()
	if c.leading.leader {
		c.contacts.askForVoters(s)
	}
	if c.leading.leader || !s.lost() {
		return
	}
	if holds(voters, c.replica.raft) {
		return // the newer configuration names this replica, so its voters will contact it
	}
	if c.directory.durable {
		return
	}
	c.doomed = "none of the voters of group " + groupName(c.bond.group) + " that this instance knows has answered for " +
		s.unguided().Round(time.Second).String() +
		", and the group has a newer configuration"
}

// take replaces the known configuration with a newer one and reports whether it did. It removes
// this instance's replica if the old configuration names it and the new one does not.
func (c *Core) take(at uint64, voters []Voter) bool {
	if len(voters) == 0 || len(voters) > maxVoters {
		return false
	}
	named := c.named()
	if at <= c.bond.at {
		if at < c.bond.at && c.bond.phase == Member && !named && holds(voters, c.replica.raft) {
			c.remove()
		}
		return false
	}
	c.bond.replace(at, voters)
	c.directory.changed()
	c.placed()
	switch {
	case c.bond.phase == Bound:
		c.attempt.markBorn() // no configuration changes before the group is founded
	case named && !c.named():
		c.remove()
	}
	return true
}

// placed follows a change of the known voters.
func (c *Core) placed() {
	c.contacts.outdate()
	if c.directory.durable {
		c.acquaintances.listed(c.bond.voters, c.self.instance)
	}
}

func (c *Core) named() bool { return holds(c.bond.newest(), c.replica.raft) }

// Adopt records the group's settings after a change through the log (rule 15). From then on this
// instance reports, stores and uses these settings.
func (c *Core) Adopt(now time.Duration, group uint64, s Settings) {
	c.now = now
	if c.bond.group == group && c.bond.phase == Member && c.bond.regulate(s) {
		c.directory.changed()
	}
}

// Applied records the configuration that this instance's replica has applied, with both halves if
// the configuration is joint.
func (c *Core) Applied(now time.Duration, group uint64, applied Configuration) {
	c.now = now
	c.bond.applyOwn(group, applied)
}

// Log records the position of the log of this instance's replica. The host calls Log at each change
// of the replica's term or leader. While the replica has a leader, the host passes the zero Log,
// because the leader may append entries.
func (c *Core) Log(now time.Duration, raft uint64, log Log) {
	c.now = now
	c.replica.locate(raft, log)
}

// Unsaved records that the State could not be stored, and why. It returns the part of out that may
// still be carried out. From then on the core neither proposes nor accepts a charter, and it
// restarts in place if it is bound to a charter that was not stored. An instance may remain or
// become a member, because a member promises nothing. State need not be stored again.
func (c *Core) Unsaved(out Output, why string) Output {
	c.directory.fail(why)
	fresh := slices.ContainsFunc(out.Events, func(e Event) bool { return e.Kind == Joined })
	if c.bond.phase != Member || (fresh && c.bond.charter == nil) {
		c.directory.forgo()
	}
	// A prepared replica must not begin. A removed replica stops but keeps its log, because the
	// next start may resume the replica from the last stored State.
	unsaid := func(e Event) bool { return e.Kind == Prepared || e.Kind == Removed }
	if c.bond.phase == Bound {
		c.doomed = c.directory.unfit
		unsaid = func(e Event) bool { return e.Kind == BoundTo }
		out.Questions = nil
	}
	c.events, out.Events = slices.DeleteFunc(c.events, unsaid), slices.DeleteFunc(out.Events, unsaid)
	c.replica.endLingering()
	if c.bond.phase == Member && c.replica.raft != 0 {
		c.replica.spend(c.bond.at) // the replica stops voting; its ID may or may not be stored
		c.directory.changed()
	}
	out.Next = c.now
	return out
}

// Recover gives up the group in this instance's directory for good, by a restart in place. Call
// Recover only for a group that has lost the majority of its voters, and on each remaining instance
// of the group. The next group of these instances replaces the lost group, and remaining members of
// the lost group leave it when they meet the new one. An error says why the group was not given up
// and what to do. Recover returns nil if this instance has given the group up before.
func (c *Core) Recover(now time.Duration, group uint64) error {
	c.now = now
	if group != 0 && slices.Contains(c.directory.gaveUp, group) && (c.bond.group != group || c.doomed != "") {
		return nil
	}
	r := recovery{sight: c.sight(), barred: c.directory.barred, unfit: c.directory.unfit}
	if err := r.refusal(group); err != nil {
		return err
	}
	c.directory.giveUp(group)
	c.doomed = "group " + groupName(group) + " was given up by Recover"
	return nil
}

// SeenElsewhere records that gossip reports this instance's ID at another address. The core asks
// that address, because the report may be about an earlier start.
func (c *Core) SeenElsewhere(now time.Duration, addr string) {
	if c.directory.durable {
		c.Inquire(now, addr)
	}
}

// Inquire makes the core ask an address in any phase. The host calls it if gossip reports a newer
// configuration at that address.
func (c *Core) Inquire(now time.Duration, addr string) {
	c.now = now
	c.contacts.visit(c.sight(), addr)
}

func (c *Core) ask(random Random) time.Duration {
	next := c.deadline()
	if c.directory.barred != "" {
		return next
	}
	s := c.sight()
	next = min(next, c.contacts.askPlaces(s, random), c.contacts.inquire(s, random))
	for i, o := range c.attempt.offers {
		l := c.bond.charter.List[i]
		if l.Instance == c.self.instance || o.accepted || o.pending != 0 {
			continue
		}
		if o.next <= c.now {
			p := proposal{To: l.Instance, Charter: *c.bond.charter}
			id := c.contacts.question(l.Addr, l.Instance, appendProposal(nil, p))
			again := c.now + pace(s, random.Spread-uint64(i)-1, len(c.contacts.places))
			c.attempt.offered(i, id, again)
			continue
		}
		next = min(next, o.next)
	}
	return max(next, c.now+time.Millisecond)
}

func (c *Core) deadline() time.Duration {
	switch {
	case c.directory.settling && c.directory.settleUntil > c.now:
		return c.directory.settleUntil
	case c.bond.phase == Bound && c.attempt.until > c.now:
		return c.attempt.until
	case c.bond.phase == Member && c.leading.leader && !c.directory.settling:
		return c.now + restFor
	}
	return c.now + askEverySlow
}
