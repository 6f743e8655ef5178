package founding

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
)

func (c *Core) ask(random Random) time.Duration {
	next := c.deadline()
	if c.barred != "" {
		return next
	}
	next = min(next, c.askPlaces(random), c.inquire(random))
	for i := range c.offers {
		o := &c.offers[i]
		if c.charter.List[i].Instance == c.instance || o.accepted || o.pending != 0 {
			continue
		}
		if o.next <= c.now {
			l := c.charter.List[i]
			o.pending = c.question(l.Addr, l.Instance,
				appendProposal(nil, proposal{To: l.Instance, Charter: *c.charter}))
			o.next = c.now + c.pace(random.Spread-uint64(i)-1, len(c.places))
			continue
		}
		next = min(next, o.next)
	}
	return max(next, c.now+time.Millisecond)
}

// curious reports whether this instance has to ask other instances regularly.
func (c *Core) curious() bool {
	return !c.settings.Solo && (c.settling || c.phase != Member || !c.leader || c.searches())
}

func (c *Core) question(addr string, to nodeid.ID, body []byte) uint64 {
	c.asked++
	c.asks = append(c.asks, Question{ID: c.asked, Addr: addr, To: to, Body: body})
	return c.asked
}

func (c *Core) introduction() question {
	q := question{Group: c.group, Bound: c.phase != Newborn, Resuming: c.settling, Founds: c.settings.founds(c.name)}
	if c.durable {
		q.Life, q.Boot = c.life, c.boot
	}
	return q
}

// pace returns the time until the same address is asked again. The time grows with the number of
// addresses. Until the group is founded, it is less than freshFor minus the timeout of a question.
func (c *Core) pace(salt uint64, places int) time.Duration {
	every := askEvery
	if c.phase == Member && !c.settling {
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

// maxWhy limits the bytes of a stored reason. The reason may quote an unknown program.
const maxWhy = 400

func (c *Core) deadline() time.Duration {
	switch {
	case (c.phase == Bound || c.settling) && c.until > c.now:
		return c.until
	case c.phase == Member && c.leader && !c.settling:
		return c.now + restFor
	}
	return c.now + askEverySlow
}

// Result records the outcome of a question, given by its ID and the time at which it was sent. If
// outcome is Answered, from is the sender of the answer, as the connection has proved. If outcome
// is Foreign or Silent, answer is a reason in text, or nil. With other outcomes, from and answer
// have no meaning. Result ignores questions that are no longer pending, such as those of an
// earlier incarnation.
func (c *Core) Result(now time.Duration, id uint64, asked time.Duration, outcome Outcome, from nodeid.ID,
	answer []byte) {
	c.now = now
	for i := range c.offers {
		if c.offers[i].pending == id {
			c.offers[i].pending = 0
			c.answered(i, outcome, from, answer)
			return
		}
	}
	at := slices.IndexFunc(c.places, func(p *place) bool { return p.pending == id })
	if at < 0 || id == 0 {
		return
	}
	p := c.places[at]
	p.pending, p.tried, p.ended, p.mute, p.why = 0, true, now, outcome == Silent, ""
	if outcome == Silent {
		p.why = plain.Cut(string(answer), maxWhy)
	}
	if outcome != Silent {
		c.cleared(p)
		c.fruitless = 0
	}
	if outcome == Silent || outcome == Other || asked < p.last.asked {
		return
	}
	s := lastResult{outcome: outcome, asked: asked, got: now}
	if outcome == Foreign {
		s.why = plain.Cut(string(answer), maxWhy)
	}
	if outcome == Answered {
		who, err := decodeInfo(answer)
		if err != nil {
			// The instance may run a newer version, so it blocks founding like a silent address.
			return
		}
		who.Instance = from
		s.info, s.first = who, now
		if p.last.outcome == Answered && p.last.info.Instance == who.Instance {
			s.first = p.last.first
		}
		c.learn(p, &s.info)
		c.recognise(&s.info)
		c.met(&s.info)
		c.attest(p, &s.info, asked)
	}
	p.last = s
}

// answered records an answer to the charter of this instance. It ignores an answer of another
// incarnation.
func (c *Core) answered(i int, outcome Outcome, from nodeid.ID, answer []byte) {
	l := c.charter.List[i]
	if outcome != Answered {
		return
	}
	v, err := decodeVerdict(answer)
	if err != nil || from != l.Instance || v.Group != c.charter.Group {
		return
	}
	if v.Refusal == Accepted {
		c.offers[i].accepted = true
		c.bound[i] = true
		return
	}
	c.doomed = nameOf(l.Name, l.Addr) + " has refused the charter: " + v.Refusal.String()
	if v.Detail != "" {
		c.doomed += ": " + v.Detail
	}
}

func (c *Core) met(who *InstanceInfo) {
	if who.Instance != c.instance && c.votes(who.Instance) {
		c.guided = c.now
	}
	if who.Durable && !who.Resuming && who.Instance != c.instance {
		c.alive(who.Instance, who.Life, who.Boot, who.Addr, true)
		if who.Group == c.group {
			c.moved(who.Instance, who.Life, who.Addr)
		}
	}
	ours := who.Group == c.group && who.Phase != Newborn
	if c.phase == Bound {
		at := c.charter.listed(who.Instance)
		switch {
		case at >= 0 && who.RefusedYou:
			c.doomed = nameOf(who.Name, who.Addr) + " has refused the charter"
		case at >= 0 && ours:
			c.bound[at] = true
			c.born = c.born || who.Phase == Member
		}
	}
	if ours && (c.durable || who.Phase == Member && (c.phase == Member || who.At > c.at)) {
		c.hear(who.Instance, who.At, who.Voters)
	}
}

// Asker is the instance that asks a question. The connection proves Instance; Addr is only a claim.
type Asker struct {
	Instance nodeid.ID
	Addr     string
}

// Ask answers a question of another instance. It returns nil if the question is unknown or must not
// be answered. The answer binds this instance as soon as Ask returns.
func (c *Core) Ask(now time.Duration, wallUnixMS int64, from Asker, body []byte) []byte {
	c.now, c.wall = now, wallUnixMS
	if c.doomed != "" || c.barred != "" {
		return nil
	}
	if p, err := decodeProposal(body); err == nil {
		if p.To != c.instance || c.settling {
			// The proposer could mistake an answer for that of another incarnation.
			return nil
		}
		v := verdict{Instance: c.instance, Group: p.Charter.Group}
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
		c.askedBy(q.Addr)
	}
	if q.Life > 0 && !q.Resuming && q.Instance != c.instance {
		c.alive(q.Instance, q.Life, q.Boot, q.Addr, true)
		if q.Group == c.group {
			c.moved(q.Instance, q.Life, q.Addr)
		}
	}
	if q.Bound && c.phase == Bound && q.Group == c.group {
		if at := c.charter.listed(q.Instance); at >= 0 {
			c.bound[at] = true
		}
	}
	who := c.self(q)
	who.Met = c.acquainted(q.Addr)
	return appendInfo(nil, who)
}

// Tell answers the question "who are you?" of a peer that is not an instance. It returns nil for
// any other question and records nothing about the peer.
func (c *Core) Tell(now time.Duration, wallUnixMS int64, from nodeid.ID, body []byte) []byte {
	c.now, c.wall = now, wallUnixMS
	q, err := decodeQuestion(body)
	if err != nil || c.doomed != "" || c.barred != "" {
		return nil
	}
	return appendInfo(nil, c.self(question{Instance: from, Group: q.Group}))
}

func (c *Core) self(q question) InstanceInfo {
	who := InstanceInfo{
		Instance: c.instance, Name: c.name, Addr: c.addr, Phase: c.phase, Leader: c.leader, Group: c.group,
		Settings: c.settings, Rules: c.rules, WallUnixMS: c.wall, Voters: c.voters,
		RefusedYou: slices.Contains(c.refused, q.Group), Life: c.life, Boot: c.boot, Durable: c.durable, Resuming: c.settling,
		At: c.at, Supersedes: c.supersedes, FloorUnixMS: c.floor, Standing: c.standing(),
	}
	who.AskerLife, who.AskerBoot, who.AskerAddr = c.newestLife(q.Instance)
	if c.phase == Newborn {
		if c.settings.founds(c.name) {
			_, obstacle := c.obstacle(nil)
			who.Obstacle = cmp.Or(c.culprit(), obstacle)
		}
		who.Supersedes = sorted(c.gaveUp)
	} else {
		who.Settings = c.rulesOf
	}
	return who
}
