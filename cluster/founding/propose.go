package founding

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

func (c *Core) newborn(random Random) {
	if c.settings.Solo {
		if c.unfit == "" {
			c.alone(random)
		}
		return
	}
	if c.adopt() || !c.settings.founds(c.name) {
		return
	}
	list, missing := c.candidates()
	if missing != "" || list[0].instance != c.instance {
		return // rule 2: the newborn with the lowest ID proposes
	}
	if _, obstacle := c.obstacle(nil); obstacle != "" {
		return
	}
	ch := c.charterFor(list, random)
	if refusal, _ := c.judge(&ch); refusal != Accepted {
		return
	}
	c.bind(&ch)
	c.offers = make([]offer, len(ch.List))
}

// alone makes this instance found a group of its own. The grace is zero, because no other
// instance can ever have been in such a group.
func (c *Core) alone(random Random) {
	settings := c.settings
	settings.Grace, settings.Voters = 0, 1
	ch := Charter{
		Group: random.Group, FoundedUnixMS: max(c.wall, above(c.floor)), Settings: settings, Rules: c.rules,
		List:   []Listed{{Instance: c.instance, Name: c.name, Addr: c.addr}},
		Voters: []Voter{{Raft: random.Raft[0], Instance: c.instance, Addr: c.addr, Life: c.life}},
	}
	c.bind(&ch)
}

type candidate struct {
	instance   nodeid.ID
	name, addr string
	rules      uint32
	life       uint64
	wall       int64
	obstacle   string
	settings   Settings
	floor      int64
	gaveUp     []uint64
}

// candidates returns the instances that a charter of this instance would list, in ascending order
// of ID. The text says what prevents them from founding a group. It is empty if nothing does.
func (c *Core) candidates() ([]candidate, string) {
	list := c.present()
	return list, c.missing(list)
}

func (c *Core) present() []candidate {
	var list []candidate
	if c.settings.founds(c.name) {
		list = append(list, candidate{
			instance: c.instance, name: c.name, addr: c.addr, rules: c.rules, life: c.life, wall: c.wall,
			settings: c.settings,
			floor:    c.floor, gaveUp: sorted(c.gaveUp),
		})
	}
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if !ok || who.Phase != Newborn || who.Settings.Solo || !c.settings.founds(who.Name) || who.Addr != p.addr {
			continue
		}
		if slices.ContainsFunc(list, func(l candidate) bool { return l.instance == who.Instance }) {
			continue
		}
		list = append(list, candidate{
			instance: who.Instance, name: who.Name, addr: who.Addr, rules: who.Rules, settings: who.Settings,
			obstacle: who.Obstacle,
			life:     max(who.Life, 1), wall: who.WallUnixMS + (c.now - p.last.got).Milliseconds(), floor: who.FloorUnixMS,
			gaveUp: who.Supersedes,
		})
	}
	slices.SortFunc(list, func(a, b candidate) int { return nodeid.Compare(a.instance, b.instance) })
	return list
}

func (c *Core) missing(list []candidate) string {
	if !c.settings.founds(c.name) {
		return c.founderMissing(list)
	}
	if text := c.culprit(); text != "" {
		return text
	}
	if len(c.settings.Founders) > 0 {
		if text := c.founderMissing(list); text != "" {
			return text
		}
	} else if len(list) < c.settings.Replicas {
		return c.replicaMissing(list)
	}
	latest := slices.MaxFunc(list, func(a, b candidate) int { return cmp.Compare(a.wall, b.wall) })
	for _, l := range list {
		if apart := time.Duration(latest.wall-l.wall) * time.Millisecond; apart > c.settings.slack() {
			return "the clock of " + nameOf(l.name, l.addr) + " is " + apart.String() + " behind that of " +
				nameOf(latest.name, latest.addr) + ": correct them"
		}
		if l.obstacle != "" {
			return nameOf(l.name, l.addr) + " is not ready: " + l.obstacle
		}
	}
	return c.tooHigh(list)
}

func (c *Core) charterFor(list []candidate, random Random) Charter {
	ch := Charter{Group: random.Group, FoundedUnixMS: c.wall, Settings: c.settings, Rules: c.rules}
	for _, l := range list {
		ch.List = append(ch.List, Listed{Instance: l.instance, Name: l.name, Addr: l.addr})
		ch.FoundedUnixMS = max(ch.FoundedUnixMS, l.wall, above(l.floor))
		ch.Rules = min(ch.Rules, l.rules)
		ch.Supersedes = union(ch.Supersedes, l.gaveUp)
	}
	for i := range min(c.settings.voterCount(len(list)), len(random.Raft)) {
		l := list[i]
		ch.Voters = append(ch.Voters, Voter{Raft: random.Raft[i], Instance: l.instance, Addr: l.addr, Life: l.life})
	}
	return ch
}
