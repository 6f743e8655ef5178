package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
)

// contacts decides which addresses this instance asks, and when. The package comment says which.
type contacts struct {
	join   []Entry
	gossip []string
	askers []asker
	tips   []asker  // addresses at which other instances have met founders and voters
	places []*place // in ascending order of address
	stale  bool
	rivals []string // addresses whose last answer named another group with a leader
	// addresses that must be asked, because gossip reports this instance's ID or a newer
	// configuration there
	seenAt []asker
	// ID of the last question; a new incarnation continues to count, so that late answers to an
	// earlier incarnation are recognised
	asked uint64
	asks  []Question

	// time of the next round of questions, if this instance is no founder; zero means not set
	roundAt   time.Duration
	rounds    uint64
	fruitless int           // rounds since the last answer or refusal
	searchAt  time.Duration // time of a founder's next search among the Join addresses
	// time of the next question to a Join address, for a member with a leader; zero means not set
	inquireAt time.Duration
}

type asker struct {
	addr string
	at   time.Duration
}

// again returns the contacts of the next incarnation.
func (c *contacts) again() contacts {
	return contacts{join: c.join, gossip: c.gossip, askers: c.askers, tips: c.tips, asked: c.asked, stale: true}
}

// outdate makes arrange rebuild the places.
func (c *contacts) outdate() { c.stale = true }

// hurry makes every address due at once.
func (c *contacts) hurry(now time.Duration) {
	for _, p := range c.places {
		p.pause(now)
	}
}

// questions returns the questions since the last call.
func (c *contacts) questions() []Question {
	asks := c.asks
	c.asks = nil
	return asks
}

// lastAnswer returns the last answer from an address, unless its question was sent more than
// `within` ago.
func (c *contacts) lastAnswer(now time.Duration, addr string, within time.Duration) (InstanceInfo, bool) {
	if at, found := find(c.places, addr); found {
		if who, ok := c.places[at].seen(now, within); ok {
			return *who, true
		}
	}
	return InstanceInfo{}, false
}

// setPlaces sets the addresses to which Join now resolves, and further addresses from gossip. When
// no source names an address any more, the core forgets the address and its results.
func (c *contacts) setPlaces(join []Entry, gossip []string) {
	same := slices.EqualFunc(c.join, join, func(a, b Entry) bool {
		return a.Name == b.Name &&
			slices.Equal(a.Addrs, b.Addrs)
	})
	if same && slices.Equal(c.gossip, gossip) {
		for i, e := range join {
			c.join[i].refresh(e)
		}
		return
	}
	c.join = c.join[:0]
	for _, e := range join {
		c.join = append(c.join, e.clone())
	}
	c.gossip, c.stale = slices.Clone(gossip), true
}

// askedBy records that an instance at addr has asked this instance, which is at own.
func (c *contacts) askedBy(now time.Duration, own, addr string) {
	c.askers = c.note(c.askers, now, own, addr, maxAskers)
}

func (c *contacts) note(list []asker, now time.Duration, own, addr string, most int) []asker {
	if addr == "" || addr == own {
		return list
	}
	for i := range list {
		if list[i].addr == addr {
			list[i].at = now
			return list
		}
	}
	if len(list) < most {
		list = append(list, asker{addr: addr, at: now})
		c.stale = true
	}
	return list
}

// arrange rebuilds places from all sources. A kept address keeps its results. The argument last is
// the address at which this instance last took part.
func (c *contacts) arrange(now time.Duration, own, last string, b *bond) {
	known := len(c.askers) + len(c.tips)
	c.askers = slices.DeleteFunc(c.askers, func(k asker) bool { return now-k.at > askerFor })
	c.tips = slices.DeleteFunc(c.tips, func(k asker) bool { return now-k.at > tipFor })
	if !c.stale && len(c.askers)+len(c.tips) == known {
		return
	}
	c.stale = false
	old := c.places
	c.places = make([]*place, 0, len(old))
	for _, e := range c.join {
		for _, addr := range e.Addrs {
			c.keep(own, old, addr, kept{entry: e.Name})
		}
	}
	if b.charter != nil {
		for _, l := range b.charter.List {
			c.keep(own, old, l.Addr, kept{near: true})
		}
	}
	for _, v := range b.voters {
		c.keep(own, old, v.Addr, kept{near: true})
	}
	c.keep(own, old, last, kept{near: true})
	for _, addr := range c.gossip {
		c.keep(own, old, addr, kept{told: true})
	}
	for _, k := range slices.Concat(c.askers, c.tips) {
		c.keep(own, old, k.addr, kept{told: true})
	}
	c.seenAt = slices.DeleteFunc(c.seenAt, func(k asker) bool {
		_, found := find(c.places, k.addr)
		return !found || now-k.at > seenAtFor
	})
}

func (c *contacts) keep(own string, old []*place, addr string, why kept) {
	if addr == "" || addr == own || (why.entry == "" && len(c.places) >= maxPlaces) {
		return
	}
	at, found := find(c.places, addr)
	if found {
		c.places[at].also(why)
		return
	}
	p := &place{addr: addr}
	if i, known := find(old, addr); known {
		p = old[i]
	}
	p.begin(why)
	c.places = slices.Insert(c.places, at, p)
}

func (c *contacts) question(addr string, to nodeid.ID, body []byte) uint64 {
	c.asked++
	c.asks = append(c.asks, Question{ID: c.asked, Addr: addr, To: to, Body: body})
	return c.asked
}

// curious reports whether an instance has to ask other instances regularly.
func curious(s *sight) bool {
	return !s.settings.Solo && (s.settling || s.phase != Member || !s.leader || s.searches)
}

// pace returns the time until the same address is asked again. The time grows with the number of
// addresses. Until the group is founded, it is less than freshFor minus the timeout of a question.
func pace(s *sight, salt uint64, places int) time.Duration {
	every := askEvery
	if s.phase == Member && !s.settling {
		every = askEverySlow
	} else {
		every += askEvery * time.Duration(min(places, 128)) / 32
	}
	return atRandom(every, salt)
}

func atRandom(every time.Duration, salt uint64) time.Duration {
	return every + time.Duration(mix(salt)%uint64(every))
}

// mix is the finaliser of splitmix64. It keeps timers of different instances from coinciding.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

func (c *contacts) put(s *sight, p *place, pause time.Duration) {
	p.ask(c.question(p.addr, nodeid.ID{}, appendQuestion(nil, s.introduction())), s.now+pause)
}

func (c *contacts) askPlaces(s *sight, random Random) time.Duration {
	next := s.now + time.Hour
	wanted := curious(s)
	if !wanted {
		c.roundAt, c.searchAt = 0, 0
		if len(c.seenAt) == 0 {
			return next
		}
	}
	all, keepers := 0, 0
	for _, p := range c.places {
		p.observe(watched(s, p))
		if !p.watch && keepers < maxSample && keeps(s, p) {
			p.observe(true)
			keepers++
		}
		if p.watch {
			all++
		}
	}
	if !s.everyone() {
		all *= 2 // so that pace reaches its maximum with 64 watched addresses instead of 128
	}
	for i, p := range c.places {
		if p.pending != 0 || !(wanted && p.watch || c.mustAsk(p)) {
			continue
		}
		if p.next <= s.now {
			c.put(s, p, pace(s, random.Spread+uint64(i), all))
			continue
		}
		next = min(next, p.next)
	}
	switch {
	case !wanted || s.everyone():
		return next
	case s.joins():
		return min(next, c.round(s, random))
	}
	return min(next, c.search(s, random))
}

func (c *contacts) round(s *sight, random Random) time.Duration {
	if c.roundAt == 0 {
		first := roundFirst
		if s.phase == Member {
			first = roundEvery // most elections take less time
		}
		if s.settling {
			first = time.Millisecond
		}
		c.roundAt = s.now + time.Duration(mix(random.Spread)%uint64(first))
	}
	if c.roundAt > s.now {
		return c.roundAt
	}
	// Without answers the rounds become rarer, because the network is cut or the other instances
	// are overloaded.
	c.roundAt = s.now + atRandom(roundEvery<<min(c.fruitless, 2), random.Spread+1)
	c.fruitless++
	for _, p := range c.places {
		if p.near && p.pending == 0 {
			c.put(s, p, 0)
		}
	}
	told := c.choose(s.now, random.Spread, 1, func(p *place) bool { return p.told || s.known(p) })
	for _, p := range told {
		c.put(s, p, 0)
	}
	// A new connection costs more than a question, so prefer addresses that have answered before.
	// Every fourth round may choose a new address.
	if c.rounds++; len(told) > 0 && c.rounds%4 != 0 {
		for _, p := range c.choose(s.now, random.Spread, maxRound-len(told), func(p *place) bool {
			return p.entry != "" &&
				answers(s, p)
		}) {
			c.put(s, p, 0)
			told = append(told, p)
		}
	}
	for _, p := range c.choose(s.now, random.Spread, maxRound-len(told), func(p *place) bool { return p.entry != "" }) {
		c.put(s, p, 0)
		told = append(told, p)
	}
	for _, p := range c.choose(s.now, random.Spread, maxRound-len(told), func(p *place) bool {
		return p.told ||
			s.known(p)
	}) {
		c.put(s, p, 0)
	}
	return c.roundAt
}

func answers(s *sight, p *place) bool {
	_, ok := p.seen(s.now, 4*roundEvery)
	return ok
}

// choose returns random addresses for which `wanted` returns true and that may be asked now. It
// returns at most the given number. It prefers addresses that were never asked.
func (c *contacts) choose(now time.Duration, salt uint64, most int, wanted func(*place) bool) []*place {
	var out []*place
	if len(c.places) == 0 {
		return nil
	}
	for _, tried := range []bool{false, true} {
		var all []*place
		for _, p := range c.places {
			if p.tried == tried && p.pending == 0 && p.next <= now && wanted(p) {
				all = append(all, p)
			}
		}
		for i := 0; i < len(all) && len(out) < most; i++ {
			at := i + int(mix(salt+uint64(i))%uint64(len(all)-i))
			all[i], all[at] = all[at], all[i]
			out = append(out, all[i])
		}
	}
	return out
}

// search makes a founder ask some Join addresses and some addresses from answers. It returns the
// time of the next search.
func (c *contacts) search(s *sight, random Random) time.Duration {
	if !searching(s) {
		return s.now + time.Hour
	}
	if c.searchAt > s.now {
		return c.searchAt
	}
	every := searchEvery
	if s.phase == Member && !s.settling {
		every = askEverySlow
	}
	c.searchAt = s.now + atRandom(every, random.Spread+2)
	free := maxSearch
	for _, p := range c.places {
		if p.pending != 0 && !p.watch {
			free--
		}
	}
	told := c.choose(s.now, random.Spread, min(free, maxSearch/2), func(p *place) bool { return !p.watch && p.told })
	for i, p := range told {
		c.put(s, p, atRandom(searchAgain, random.Spread+uint64(i)))
	}
	for i, p := range c.choose(s.now, random.Spread, free-len(told),
		func(p *place) bool { return !p.watch && p.entry != "" }) {
		c.put(s, p, atRandom(searchAgain, random.Spread-uint64(i)))
	}
	return c.searchAt
}

func searching(s *sight) bool {
	switch {
	case s.leader && s.phase == Member && !s.settling:
		return false
	case s.settling:
		return true
	case s.phase == Newborn && (!s.sampled() || s.silentJoin() != nil || len(s.strays()) > 0):
		return true
	}
	return len(s.absentFounders(reachedFor)) > 0
}

func watched(s *sight, p *place) bool {
	switch {
	case s.everyone():
		return true
	case s.joins():
		return p.near && s.settling // other addresses are asked in rounds
	}
	return p.near || s.known(p)
}

// keeps is true for a Join address whose instance may prevent a newborn founder from founding.
func keeps(s *sight, p *place) bool {
	if s.phase != Newborn || s.joins() || p.entry == "" {
		return false
	}
	who, ok := p.seen(s.now, sampledFor)
	return ok && who.Phase != Newborn && (who.Durable || who.Leader || !s.bystander(who))
}

// learn records the addresses in an answer. It also records the address that the instance reports
// as its own, because a charter lists only instances that are reached at that address.
func (c *contacts) learn(s *sight, p *place, who *InstanceInfo) {
	if s.everyone() || s.settings.founds(who.Name) || s.votes(who.Instance) {
		c.askedBy(s.now, s.addr, who.Addr)
	}
	c.rival(s, p, who)
	if s.everyone() || s.phase == Member && s.leader {
		return
	}
	for _, addr := range who.Met {
		c.tips = c.note(c.tips, s.now, s.addr, addr, maxTips)
	}
	for _, v := range who.Voters {
		if !v.Learner && who.Phase == Member {
			c.tips = c.note(c.tips, s.now, s.addr, v.Addr, maxTips)
		}
	}
}

func (c *contacts) acquainted(s *sight, asker string) []string {
	var met []string
	if s.everyone() {
		return nil
	}
	add := func(addr string) {
		if addr != asker && len(met) < maxMet && !slices.Contains(met, addr) {
			met = append(met, addr)
		}
	}
	n := len(c.places)
	for i := range n {
		p := c.places[(i+int(c.asked%uint64(n)))%n]
		if _, ok := p.seen(s.now, metFor); ok && s.known(p) {
			add(p.addr)
		}
	}
	for _, k := range c.askers {
		add(k.addr)
	}
	return met
}

func (c *contacts) inquire(s *sight, random Random) time.Duration {
	if s.phase != Member || !s.leader || s.settling || s.settings.Solo {
		c.inquireAt = 0
		return s.now + time.Hour
	}
	if c.inquireAt != 0 && c.inquireAt <= s.now {
		behind := c.choose(s.now, random.Spread+3, 1, func(p *place) bool { return p.entry != "" })
		for _, p := range behind {
			c.put(s, p, 0)
		}
		// Ask a voter, because the leader's message about a newer configuration may have been lost.
		for _, p := range c.choose(s.now, random.Spread+3, 1, func(p *place) bool { return p.near }) {
			c.put(s, p, 0)
		}
		c.inquireAt = 0
	}
	if c.inquireAt == 0 {
		c.inquireAt = s.now + atRandom(inquireEvery, random.Spread+4)
	}
	return c.inquireAt
}

func (c *contacts) askForVoters(s *sight) {
	for _, v := range s.voters {
		if v.Instance == s.guide && v.Instance != s.instance {
			c.visit(s, v.Addr)
			return
		}
	}
	for _, v := range s.voters {
		if v.Instance != s.instance && !v.Learner {
			c.visit(s, v.Addr)
		}
	}
}

func (c *contacts) rival(s *sight, p *place, who *InstanceInfo) {
	c.rivals = slices.DeleteFunc(c.rivals, func(addr string) bool { return addr == p.addr })
	other := who.Phase == Member && who.Leader && !who.Settings.Solo && who.Group != s.group
	if other && s.phase == Member && s.leader && len(c.rivals) < maxRivals {
		c.rivals = append(c.rivals, p.addr)
	}
}

// rivalsAt returns the addresses from which an answer of the last two minutes (rivalFor) says that
// another group has a leader. While this instance's group has no leader, no address is added.
func (c *contacts) rivalsAt(now time.Duration) []string {
	c.rivals = slices.DeleteFunc(c.rivals, func(addr string) bool {
		_, ok := c.lastAnswer(now, addr, rivalFor)
		return !ok
	})
	return slices.Clone(c.rivals)
}

// visit makes this instance ask an address in any phase.
func (c *contacts) visit(s *sight, addr string) {
	if addr == "" || addr == s.addr || s.settings.Solo {
		return
	}
	c.askedBy(s.now, s.addr, addr)
	c.seenAt = c.note(c.seenAt, s.now, s.addr, addr, maxAskers)
}

func (c *contacts) mustAsk(p *place) bool {
	return slices.ContainsFunc(c.seenAt, func(k asker) bool { return k.addr == p.addr })
}

func (c *contacts) cleared(p *place) {
	c.seenAt = slices.DeleteFunc(c.seenAt, func(k asker) bool { return k.addr == p.addr })
}

// maxWhy limits the bytes of a stored reason. The reason may quote an unknown program.
const maxWhy = 400

// ended records that a question has ended. It returns the place that was asked, or nil if the
// question is not pending.
func (c *contacts) ended(now time.Duration, id uint64, outcome Outcome, answer []byte) *place {
	at := slices.IndexFunc(c.places, func(p *place) bool { return p.pending == id })
	if at < 0 || id == 0 {
		return nil
	}
	p, why := c.places[at], ""
	if outcome == Silent {
		why = plain.Cut(string(answer), maxWhy)
	}
	p.end(now, outcome, why)
	if outcome != Silent {
		c.cleared(p)
		c.fruitless = 0
	}
	return p
}
