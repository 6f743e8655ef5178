package founding

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
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

func count(have, want int) string {
	return strconv.Itoa(have) + " of " + strconv.Itoa(want) + " instances (Replicas: " + strconv.Itoa(want) + ")"
}

func groupName(group uint64) string { return nodeid.Hex(group) }

func clockText(unixMS int64) string {
	return time.UnixMilli(unixMS).UTC().Format("2006-01-02 15:04:05 UTC")
}
