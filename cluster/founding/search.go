package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

func (c *Core) everyone() bool { return len(c.settings.Founders) == 0 }

func (c *Core) joins() bool { return !c.everyone() && !c.settings.founds(c.name) }

func (c *Core) known(p *place) bool {
	return p.last.outcome == Answered && len(c.settings.Founders) > 0 && c.settings.founds(p.last.info.Name)
}

// Founders returns the addresses at which a founder was last met.
func (c *Core) Founders() []string {
	var addrs []string
	for _, p := range c.places {
		if c.known(p) {
			addrs = append(addrs, p.addr)
		}
	}
	return addrs
}

func (c *Core) watched(p *place) bool {
	switch {
	case c.everyone():
		return true
	case c.joins():
		return p.near && c.settling // other addresses are asked in rounds
	}
	return p.near || c.known(p)
}

// keeps is true for a Join address whose instance may prevent a newborn founder from founding.
func (c *Core) keeps(p *place) bool {
	if c.phase != Newborn || c.joins() || p.entry == "" {
		return false
	}
	who, ok := p.seen(c.now, sampledFor)
	return ok && who.Phase != Newborn && (who.Durable || who.Leader || !c.bystander(who))
}

func (c *Core) put(p *place, pause time.Duration) {
	p.pending = c.question(p.addr, nodeid.ID{}, appendQuestion(nil, c.introduction()))
	p.next = c.now + pause
}

func (c *Core) askPlaces(random Random) time.Duration {
	next := c.now + time.Hour
	curious := c.curious()
	if !curious {
		c.roundAt, c.searchAt = 0, 0
		if len(c.seenAt) == 0 {
			return next
		}
	}
	watched, keepers := 0, 0
	for _, p := range c.places {
		p.watch = c.watched(p)
		if !p.watch && keepers < maxSample && c.keeps(p) {
			p.watch = true
			keepers++
		}
		if p.watch {
			watched++
		}
	}
	if !c.everyone() {
		watched *= 2 // so that pace reaches its maximum with 64 watched addresses instead of 128
	}
	for i, p := range c.places {
		if p.pending != 0 || !(curious && p.watch || c.mustAsk(p)) {
			continue
		}
		if p.next <= c.now {
			c.put(p, c.pace(random.Spread+uint64(i), watched))
			continue
		}
		next = min(next, p.next)
	}
	switch {
	case !curious || c.everyone():
		return next
	case c.joins():
		return min(next, c.round(random))
	}
	return min(next, c.search(random))
}

func (c *Core) round(random Random) time.Duration {
	if c.roundAt == 0 {
		first := roundFirst
		if c.phase == Member {
			first = roundEvery // most elections take less time
		}
		if c.settling {
			first = time.Millisecond
		}
		c.roundAt = c.now + time.Duration(mix(random.Spread)%uint64(first))
	}
	if c.roundAt > c.now {
		return c.roundAt
	}
	// Without answers the rounds become rarer, because the network is cut or the other instances
	// are overloaded.
	c.roundAt = c.now + atRandom(roundEvery<<min(c.fruitless, 2), random.Spread+1)
	c.fruitless++
	for _, p := range c.places {
		if p.near && p.pending == 0 {
			c.put(p, 0)
		}
	}
	told := c.choose(random.Spread, 1, func(p *place) bool { return p.told || c.known(p) })
	for _, p := range told {
		c.put(p, 0)
	}
	// A new connection costs more than a question, so prefer addresses that have answered before.
	// Every fourth round may choose a new address.
	if c.rounds++; len(told) > 0 && c.rounds%4 != 0 {
		for _, p := range c.choose(random.Spread, maxRound-len(told), func(p *place) bool {
			return p.entry != "" &&
				c.answers(p)
		}) {
			c.put(p, 0)
			told = append(told, p)
		}
	}
	for _, p := range c.choose(random.Spread, maxRound-len(told), func(p *place) bool { return p.entry != "" }) {
		c.put(p, 0)
		told = append(told, p)
	}
	for _, p := range c.choose(random.Spread, maxRound-len(told), func(p *place) bool {
		return p.told ||
			c.known(p)
	}) {
		c.put(p, 0)
	}
	return c.roundAt
}

func (c *Core) answers(p *place) bool {
	_, ok := p.seen(c.now, 4*roundEvery)
	return ok
}

// choose returns random addresses for which `wanted` returns true and that may be asked now. It
// returns at most the given number. It prefers addresses that were never asked.
func (c *Core) choose(salt uint64, most int, wanted func(*place) bool) []*place {
	var out []*place
	if len(c.places) == 0 {
		return nil
	}
	for _, tried := range []bool{false, true} {
		var all []*place
		for _, p := range c.places {
			if p.tried == tried && p.pending == 0 && p.next <= c.now && wanted(p) {
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
func (c *Core) search(random Random) time.Duration {
	if !c.searching() {
		return c.now + time.Hour
	}
	if c.searchAt > c.now {
		return c.searchAt
	}
	every := searchEvery
	if c.phase == Member && !c.settling {
		every = askEverySlow
	}
	c.searchAt = c.now + atRandom(every, random.Spread+2)
	free := maxSearch
	for _, p := range c.places {
		if p.pending != 0 && !p.watch {
			free--
		}
	}
	told := c.choose(random.Spread, min(free, maxSearch/2), func(p *place) bool { return !p.watch && p.told })
	for i, p := range told {
		c.put(p, atRandom(searchAgain, random.Spread+uint64(i)))
	}
	for i, p := range c.choose(random.Spread, free-len(told),
		func(p *place) bool { return !p.watch && p.entry != "" }) {
		c.put(p, atRandom(searchAgain, random.Spread-uint64(i)))
	}
	return c.searchAt
}

func (c *Core) searching() bool {
	switch {
	case c.leader && c.phase == Member && !c.settling:
		return false
	case c.settling:
		return true
	case c.phase == Newborn && (!c.sampled() || c.silentJoin() != nil || len(c.strays()) > 0):
		return true
	}
	return len(c.absentFounders(reachedFor)) > 0
}

func (c *Core) absentFounders(limit time.Duration) []string {
	var here, missing []string
	for _, p := range c.places {
		if who, ok := p.seen(c.now, limit); ok {
			here = append(here, who.Name)
		}
	}
	for _, f := range c.needed() {
		if f != c.name && !slices.Contains(here, f) {
			missing = append(missing, f)
		}
	}
	return missing
}

func (c *Core) sampled() bool {
	asked, others := 0, 0
	for _, p := range c.places {
		if p.entry == "" || c.known(p) {
			continue
		}
		others++
		if p.tried && c.now-p.ended <= sampledFor {
			asked++
		}
	}
	return asked >= min(others, maxSample)
}

// learn records the addresses in an answer. It also records the address that the instance reports
// as its own, because a charter lists only instances that are reached at that address.
func (c *Core) learn(p *place, who *InstanceInfo) {
	if c.everyone() || c.settings.founds(who.Name) || c.votes(who.Instance) {
		c.askedBy(who.Addr)
	}
	c.rival(p, who)
	if c.everyone() || c.phase == Member && c.leader {
		return
	}
	for _, addr := range who.Met {
		c.tips = c.note(c.tips, addr, maxTips)
	}
	for _, v := range who.Voters {
		if !v.Learner && who.Phase == Member {
			c.tips = c.note(c.tips, v.Addr, maxTips)
		}
	}
}

func (c *Core) acquainted(asker string) []string {
	var met []string
	if c.everyone() {
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
		if _, ok := p.seen(c.now, metFor); ok && c.known(p) {
			add(p.addr)
		}
	}
	for _, k := range c.askers {
		add(k.addr)
	}
	return met
}

func (c *Core) inquire(random Random) time.Duration {
	if c.phase != Member || !c.leader || c.settling || c.settings.Solo {
		c.inquireAt = 0
		return c.now + time.Hour
	}
	if c.inquireAt != 0 && c.inquireAt <= c.now {
		behind := c.choose(random.Spread+3, 1, func(p *place) bool { return p.entry != "" })
		for _, p := range behind {
			c.put(p, 0)
		}
		// Ask a voter, because the leader's message about a newer configuration may have been lost.
		for _, p := range c.choose(random.Spread+3, 1, func(p *place) bool { return p.near }) {
			c.put(p, 0)
		}
		c.inquireAt = 0
	}
	if c.inquireAt == 0 {
		c.inquireAt = c.now + atRandom(inquireEvery, random.Spread+4)
	}
	return c.inquireAt
}

func (c *Core) askForVoters() {
	for _, v := range c.voters {
		if v.Instance == c.guide && v.Instance != c.instance {
			c.Inquire(c.now, v.Addr)
			return
		}
	}
	for _, v := range c.voters {
		if v.Instance != c.instance && !v.Learner {
			c.Inquire(c.now, v.Addr)
		}
	}
}

func (c *Core) rival(p *place, who *InstanceInfo) {
	c.rivals = slices.DeleteFunc(c.rivals, func(addr string) bool { return addr == p.addr })
	other := who.Phase == Member && who.Leader && !who.Settings.Solo && who.Group != c.group
	if other && c.phase == Member && c.leader && len(c.rivals) < maxRivals {
		c.rivals = append(c.rivals, p.addr)
	}
}

// Rivals returns the addresses from which an answer of the last two minutes (rivalFor) says that
// another group has a leader. While this instance's group has no leader, no address is added.
func (c *Core) Rivals(now time.Duration) []string {
	c.rivals = slices.DeleteFunc(c.rivals, func(addr string) bool {
		_, ok := c.Met(now, addr, rivalFor)
		return !ok
	})
	return slices.Clone(c.rivals)
}
