package founding

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Waiting tells the user what this instance waits for and what to do. It returns "" if this
// instance waits for nothing.
func (c *Core) Waiting() string {
	switch {
	case c.barred != "":
		return c.barred
	case c.settings.Solo:
		return c.unfit
	case c.settling:
		return "checking whether another process runs from a copy of this directory"
	case c.phase == Newborn:
		return c.waitingNewborn()
	case c.phase == Bound:
		return c.waitingBound()
	case !c.leader && c.durable:
		return c.waitingDurable()
	case !c.leader:
		return c.waitingMember()
	}
	return ""
}

func (c *Core) waitingNewborn() string {
	if two := c.groups(); len(two) > 1 {
		return "two groups with leaders can be reached, " + strings.Join(two, " and ") +
			": stop one of them, they never merge"
	}
	if c.joins() {
		return c.waitingJoiner()
	}
	list, missing := c.candidates()
	_, obstacle := c.obstacle(nil)
	culprit := c.culprit()
	switch {
	case culprit != "" && c.settings.founds(c.name):
		return "founding waits: " + culprit
	case obstacle != "" && c.settings.founds(c.name):
		return "founding waits: " + obstacle
	case missing != "":
		return "founding waits: " + missing
	case list[0].instance != c.instance:
		return "founding waits for the charter of " + nameOf(list[0].name, list[0].addr)
	}
	ch := c.charterFor(list, Random{Group: 1, Raft: [7]uint64{1, 2, 3, 4, 5, 6, 7}})
	if refusal, detail := c.judge(&ch); refusal != Accepted {
		return "founding waits: this instance would refuse its own charter: " + refusal.String() + orEmpty(": ", detail)
	}
	return ""
}

func (c *Core) groups() []string {
	var names []string
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if !ok || who.Phase != Member || !who.Leader || who.Settings.Solo {
			continue
		}
		if name := groupName(who.Group); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (c *Core) waitingBound() string {
	var open []string
	for i, l := range c.charter.List {
		if !c.bound[i] {
			open = append(open, nameOf(l.Name, l.Addr))
		}
	}
	if len(open) > 0 {
		return "group " + groupName(c.group) + " is not founded yet: " + some(open) + " has not accepted its charter" +
			c.keepNote()
	}
	return "group " + groupName(c.group) + " is not founded yet: a majority of its voters has not confirmed it" +
		c.keepNote()
}

func (c *Core) waitingMember() string {
	if text := c.cutOff(); text != "" {
		return text
	}
	text := "group " + groupName(c.group) + " has no leader; " + c.prospects()
	if who := c.elsewhere(); who != nil {
		text += "; " + nameOf(who.Name, who.Addr) + " belongs to group " + groupName(who.Group) + ", which has one"
	}
	if c.joins() {
		return text + "; this instance is no founder, and joins a new group once the Founders have founded one"
	}
	return text
}

// connectFor is the time after which an unconnected member counts as cut off.
const connectFor = 3 * time.Second

func (c *Core) cutOff() string {
	text := c.led()
	if text == "" {
		return ""
	}
	if c.now-c.since < connectFor {
		return "group " + groupName(c.group) + " has a leader, and this instance is connecting to it"
	}
	text = "group " + groupName(c.group) + " has a leader, which this instance does not reach, but " + text +
		": check the network between this instance and the voters"
	if c.durable && c.lost() {
		text += "; if all the voters that it knows are gone for good, empty its directory: it then joins as a new " +
			"instance"
	}
	return text
}

// silence names the addresses that do not answer, and what to do. It gives only one reason, because
// instances with the same configuration have the same reason.
func (c *Core) silence(places []*place) string {
	var barred, silent []string
	var last *place
	why := ""
	for _, p := range places {
		if p.why != "" {
			barred, why = append(barred, p.label()), cmp.Or(why, p.why)
			continue
		}
		silent, last = append(silent, p.label()), p
	}
	text := ""
	if len(barred) > 0 {
		text = some(barred) + " cannot be asked: " + why
	}
	switch {
	case len(silent) == 0:
		return text
	case text != "":
		text += "; "
	}
	text += "no answer from " + some(silent)
	founder := " and, if it is a founder, out of Founders"
	switch {
	case len(silent) > 1:
		text += ", which Join leads to. If these machines are gone, take them out of Join, or out of the records " +
			"of its names"
		founder = " and, if they are founders, out of Founders"
	case last.entry == JoinFunc:
		text += ", which it returns. If that machine is gone, it must no longer return the address"
	case strings.HasPrefix(last.entry, "file://"):
		text += ", which that file lists. If that machine is gone, take the address out of the file"
	case last.entry != "" && last.entry != last.addr:
		text += ", an address of a name in Join. If that machine is gone, take the address out of the name's " +
			"records, or the name out of Join"
	default:
		text += ", which Join names. If that machine is gone, take it out of Join"
	}
	if len(c.settings.Founders) > 0 {
		return text + founder
	}
	list, _ := c.candidates()
	if len(list) > 1 && len(list) == c.settings.Replicas-1 {
		return text + ", or start with Replicas: " + strconv.Itoa(c.settings.Replicas-1)
	}
	return text
}

func (c *Core) replicaMissing(list []candidate) string {
	return count(len(list), c.settings.Replicas) + " are here (" + some(names(list)) + ")" +
		cmp.Or(c.absent(), ": start the others; each needs the same Replicas, and Join must lead to it")
}

func (c *Core) absent() string {
	var refused, foreign []string
	why, met := "", false
	for _, p := range c.places {
		if who, ok := p.seen(c.now, freshFor); ok && who.Instance != c.instance {
			met = true
		}
		switch {
		case p.entry == "" || !p.last.fresh(c.now, freshFor):
		case p.last.outcome == Refused:
			refused = append(refused, p.label())
		case p.last.outcome == Foreign:
			foreign = append(foreign, p.label())
			if why == "" && p.last.why != "" {
				why = " (" + p.last.why + ")"
			}
		}
	}
	text := ""
	if len(refused) > 0 {
		text += "; nothing listens at " + some(refused) + ": start the " +
			plural(len(refused), "instance", "instances") + " there, or correct Join"
	}
	if len(foreign) > 0 {
		text += "; another cluster or another program listens at " + some(foreign) + why
		if len(foreign) > 1 && !met {
			text += ": if those belong together, correct the secret and Cluster of this instance"
		}
	}
	return text
}

func (c *Core) founderMissing(list []candidate) string {
	here := names(list)
	var missing []string
	for _, f := range c.settings.Founders {
		if !slices.Contains(here, f) {
			missing = append(missing, strconv.Quote(f))
		}
	}
	return c.withoutFounders(missing)
}

func (c *Core) withoutFounders(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return "missing founders: " + some(missing) + cmp.Or(c.unlisted()+c.absent()+c.muted(), ": start them")
}

// sameName returns a sentence about two listed instances that have the same name, or "".
func sameName(list []candidate) string {
	for i, l := range list {
		before := slices.IndexFunc(list[:i], func(o candidate) bool { return o.name == l.name })
		if before >= 0 {
			return "the instances at " + list[before].addr + " and " + l.addr + " are both called " +
				strconv.Quote(l.name) +
				": give each instance a Name of its own"
		}
	}
	return ""
}

func names(list []candidate) []string {
	out := make([]string, 0, len(list))
	for _, l := range list {
		out = append(out, l.name)
	}
	return out
}

// culprit names an instance that answers and has a wrong setting, with the correction. It returns
// "" if there is none. Because of such a setting this instance would report others as missing, so
// the culprit comes before them.
func (c *Core) culprit() string {
	list := c.present()
	if text := sameName(list); text != "" {
		return text + c.unused(list)
	}
	if text := c.misplaced(); text != "" {
		return text
	}
	return c.unequal(list)
}

// unequal names the instance whose settings differ from those of most newborns in reach, which may
// be this instance. Newborns that are no founders count too, because this instance may have the
// wrong list. If there are not more on one side, nothing shows which value is wrong.
func (c *Core) unequal(list []candidate) string {
	at := slices.IndexFunc(list, func(l candidate) bool { return c.settings.unequal(l.settings) != "" })
	if at < 0 {
		return ""
	}
	all := c.newborns()
	for _, field := range comparedFields() {
		for _, most := range all {
			var alike []string
			var odd *candidate
			for i, o := range all {
				switch {
				case !o.settings.unlike(most.settings, field):
					alike = append(alike, nameOf(o.name, o.addr))
				case odd == nil && (o.instance == c.instance || c.settings.founds(o.name)):
					odd = &all[i]
				}
			}
			if 2*len(alike) > len(all) && odd != nil {
				return nameOf(odd.name, odd.addr) + " has another " + field + " (" + odd.settings.value(field) + ") than " +
					some(alike) + " (" + most.settings.value(field) + "): make them equal on all"
			}
		}
	}
	which, own, other := c.settings.difference(list[at].settings)
	return nameOf(list[at].name, list[at].addr) + " and this instance have different " + which + " (" + other + " and " +
		own + "): make them equal on all"
}

// newborns returns this instance and the newborns that answer at their own addresses.
func (c *Core) newborns() []candidate {
	all := []candidate{{instance: c.instance, name: c.name, addr: c.addr, settings: c.settings}}
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if ok && who.Phase == Newborn && !who.Settings.Solo && who.Addr == p.addr && who.Instance != c.instance {
			all = append(all, candidate{instance: who.Instance, name: who.Name, addr: who.Addr, settings: who.Settings})
		}
	}
	return all
}

// unused names the founders under whose names no listed instance runs.
func (c *Core) unused(list []candidate) string {
	var free []string
	here := names(list)
	for _, f := range c.settings.Founders {
		if !slices.Contains(here, f) {
			free = append(free, strconv.Quote(f))
		}
	}
	if len(free) == 0 {
		return ""
	}
	return "; no instance is called " + some(free)
}

// strays returns the places whose instance calls itself by another address, at which it was not
// met.
func (c *Core) strays() (list []*place) {
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if !ok || who.Phase != Newborn || who.Settings.Solo || who.Addr == "" || who.Addr == p.addr ||
			who.Instance == c.instance || !c.settings.founds(who.Name) {
			continue
		}
		at, found := find(c.places, who.Addr)
		if found {
			if there, ok := c.places[at].seen(c.now, sampledFor); ok && there.Instance == who.Instance {
				continue
			}
		}
		list = append(list, p)
	}
	return list
}

// misplaced names an instance whose own address leads to another place, or returns "".
func (c *Core) misplaced() string {
	for _, p := range c.strays() {
		who := &p.last.info
		says := strconv.Quote(who.Name) + " calls itself " + who.Addr + ", "
		step := ": correct its Advertise (it answers at " + p.addr + ")"
		if who.Addr == c.addr {
			return says + "the address of " + strconv.Quote(c.name) + step
		}
		at, found := find(c.places, who.Addr)
		if !found || !c.places[at].tried {
			continue
		}
		// An outcome tells more than a later question that was not sent, because a dial had just failed.
		switch there := c.places[at]; {
		case !there.last.fresh(c.now, sampledFor):
			if there.mute {
				return says + "where no instance answers" + step
			}
		case there.last.outcome == Refused:
			return says + "where nothing listens" + step
		case there.last.outcome == Foreign:
			return says + "where another cluster or another program listens" + step
		case there.last.outcome == Answered:
			return says + "where " + strconv.Quote(there.last.info.Name) + " listens" + step
		}
	}
	return ""
}

// unlisted names newborn instances at Join addresses that are not among the Founders. One of them
// may be a missing founder under another name.
func (c *Core) unlisted() string {
	var list []string
	for _, p := range c.places {
		who, ok := p.seen(c.now, metFor)
		if ok && p.entry != "" && who.Phase == Newborn && !who.Settings.Solo && !c.settings.founds(who.Name) &&
			!slices.Contains(list, p.label()) {
			list = append(list, p.label())
		}
	}
	switch len(list) {
	case 0:
		return ""
	case 1:
		return "; " + list[0] + " runs and is not one of the Founders: if it should be, correct its Name, or Founders " +
			"on all instances"
	}
	return "; " + some(list) + " run and are not among the Founders: if one of them should be, correct its Name, or " +
		"Founders on all instances"
}
