package replica

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file says which settings a group is to adopt: those that all its instances name alike and
// that are not the group's yet. Instances that leave do not count. The leader asks whenever an
// instance has come or gone. As long as they differ the group's own hold, and people are shown
// which instance names what.

// disagreement is a setting of which some instance has another value than the group.
type disagreement struct {
	Setting string       // field of Config
	Group   string       // the value in force
	Same    otherSetting // the instances that name it too
	Others  []otherSetting
	Why     string // all instances name the same value, and still it is not adopted; else ""
}

// otherSetting is a value of a setting, and the Names of the instances that name it.
type otherSetting struct {
	Value string
	Names []string // at most 10, the first in order
	More  int      // names that are left out
}

// differMax is how many names are shown of the instances that want one value.
const differMax = 10

// agreement is what becomes of the settings: adopt is what the group is to have, encoded in blob if
// that is something new. differ is for people.
type agreement struct {
	adopt  Settings
	blob   []byte // nil: nothing is to be adopted
	differ []disagreement
}

// setting is one field of Config, or several that mean something only together.
type setting int

const (
	votersSetting setting = iota
	ttlSetting
	graceSetting // for a later group: this one has counted its own
	foundersSetting
	sessionBytesSetting
	groupBytesSetting
	settingCount
)

// names returns the fields of Config in which each setting is.
func (s Named) names() [settingCount]string {
	founders := "Replicas"
	if s.FounderCount > 0 {
		founders = "Founders"
	}
	return [...]string{"Voters", "SessionTTL", "Grace", founders, "MaxSessionBytes", "MaxGroupBytes"}
}

// texts returns the value of each setting. Two texts are equal exactly if the values are.
func (s Named) texts() [settingCount]string {
	founders := fmt.Sprintf("%d replicas", s.Replicas)
	if s.FounderCount > 0 {
		founders = fmt.Sprintf("%d names (%s)", s.FounderCount, s.Founders)
	}
	return [...]string{
		votersSetting:       strconv.Itoa(s.Voters),
		ttlSetting:          s.SessionTTL.String(),
		graceSetting:        s.Grace.String(),
		foundersSetting:     founders,
		sessionBytesSetting: session.FormatBytes(uint64(s.SessionBytes)),
		groupBytesSetting:   session.FormatBytes(uint64(s.GroupBytes)),
	}
}

// take replaces one setting by that of own.
func (g *Settings) take(i setting, own Settings) {
	switch i {
	case votersSetting:
		g.Voters = own.Voters
	case ttlSetting:
		g.SessionTTL = own.SessionTTL
	case graceSetting:
		g.Grace = own.Grace
	case foundersSetting:
		g.Replicas, g.Founders = own.Replicas, own.Founders
	case sessionBytesSetting:
		g.SessionBytes = own.SessionBytes
	case groupBytesSetting:
		g.GroupBytes = own.GroupBytes
	}
}

// proposed are the settings that a leader may propose: its own, which were found valid here and
// have the names of the founders. A leader that leaves proposes the founders that an instance that
// stays names, or its vote could never go to one of them.
func proposed(own Settings, registered *census, leaving bool) Settings {
	s, some := registered.staying()
	founders := registered.foundersOf(s.Founders)
	if !leaving || !some || len(founders) != s.FounderCount || s.FounderCount == 0 &&
		(s.Replicas < 1 || s.Replicas > MaxReplicas) {
		return own
	}
	own.Replicas, own.Founders = s.Replicas, founders
	return own
}

// agree compares what all registered instances that stay name with what the group has. own are
// those that this leader may propose, which must be what all name. longest is the largest TTL of
// the sessions that live: with a shorter one in force, a later group would not wait for their
// holders.
//
// Founders are adopted only while one of them is here and stays. Otherwise no instance could have a
// vote, and one that leaves could hand its vote to none.
func agree(group, own Settings, registered *census, longest time.Duration) agreement {
	a := agreement{adopt: group}
	var why [settingCount]string
	held, wanted := group.Named().texts(), own.Named().texts()
	for i := range settingCount {
		if wanted[i] == held[i] || !registered.all(func(c content) bool { return c.settings.texts()[i] == wanted[i] }) {
			continue
		}
		if i == ttlSetting && own.SessionTTL < longest {
			why[i] = fmt.Sprintf("a session with a TTL of %v lives", longest)
			continue
		}
		if i == foundersSetting && len(own.Founders) > 0 && !registered.present(own.Founders) {
			why[i] = "none of them is here, or the only one leaves"
			continue
		}
		a.adopt.take(i, own)
	}
	if g := &a.adopt; g.Grace > 0 && g.Grace < g.SessionTTL {
		g.SessionTTL, g.Grace = group.SessionTTL, group.Grace
		why[ttlSetting] = "the grace would be shorter than the TTL"
		why[graceSetting] = why[ttlSetting]
	}
	if a.adopt.Encode() == nil {
		a.adopt.Replicas, a.adopt.Founders = group.Replicas, group.Founders
		why[foundersSetting] = fmt.Sprintf("the names of the founders are longer than %d bytes together",
			lockfsm.MaxSettingsBytes)
	}
	if a.adopt.Named() != group.Named() {
		a.blob = a.adopt.Encode()
	}
	for i := range settingCount {
		a.disagree(i, group, registered, why[i])
	}
	return a
}

// disagree notes which instances name another value of one setting than the group's.
func (a *agreement) disagree(i setting, group Settings, registered *census, why string) {
	d := disagreement{Setting: group.Named().names()[i], Group: group.Named().texts()[i], Why: why}
	if registered.all(func(c content) bool { return c.settings.texts()[i] == d.Group }) {
		return
	}
	said := map[string]*otherSetting{d.Group: {Value: d.Group}}
	shown := map[string]string{d.Group: foundersText(d.Group, group.Founders)}
	for c, t := range registered.contents {
		if !c.stays() {
			continue
		}
		value := c.settings.texts()[i]
		if c.unknown && value != d.Group {
			value = "not known"
		}
		if said[value] == nil {
			said[value] = &otherSetting{Value: value}
		}
		said[value].add(t)
		if value != d.Group {
			shown[value] = foundersText(value, registered.foundersOf(c.settings.Founders))
		}
	}
	for value, o := range said {
		o.count()
		if i == foundersSetting {
			o.Value = cmp.Or(shown[value], value)
		}
		if value == d.Group {
			d.Group, d.Same = o.Value, *o
			continue
		}
		d.Others = append(d.Others, *o)
	}
	if len(d.Others) == 0 {
		return
	}
	slices.SortFunc(d.Others, func(a, b otherSetting) int { return strings.Compare(a.Value, b.Value) })
	if len(d.Others) > 1 || len(d.Same.Names) > 0 {
		d.Why = ""
	}
	a.differ = append(a.differ, d)
}

// add adds the names under which a value was named.
func (o *otherSetting) add(t *tally) {
	o.More += len(t.names)
	for _, n := range t.names[:min(len(t.names), differMax)] {
		o.Names = append(o.Names, cmp.Or(n.name, "?"))
	}
}

// count keeps the first names of all, which are among the first ones of each content.
func (o *otherSetting) count() {
	o.Names = Unique(o.Names)
	o.Names = o.Names[:min(len(o.Names), differMax)]
	o.More -= len(o.Names)
	if len(o.Names) < differMax {
		o.More = 0 // names that stand in several contents
	}
}

// foundersText shows a list of founders by their names if they are few and known, else by text.
func foundersText(text string, founders []string) string {
	if len(founders) == 0 || len(founders) > differMax {
		return text
	}
	return "[" + strings.Join(founders, ", ") + "]"
}

// supported returns the newest version of the lock rules that all know: every registered instance,
// and every instance that has a replica, voter or learner. Zero means that of one it is not known.
// A replica whose instance has no session may be of any build, and raising the rules beyond what it
// knows ends it.
func supported(registered *census, replicas []nodeid.ID) uint32 {
	lowest := ^uint32(0)
	for c := range registered.contents {
		lowest = min(lowest, c.rules)
	}
	unknown := func(id nodeid.ID) bool { return registered.instances[id] == 0 }
	if len(registered.contents) == 0 || slices.ContainsFunc(replicas, unknown) {
		return 0
	}
	return lowest
}

// String names the values, and the instances that name each.
func (d disagreement) String() string {
	text := fmt.Sprintf("%s: the group has %s", d.Setting, d.Group)
	if len(d.Same.Names) > 0 {
		text += " (also on " + d.Same.instances() + ")"
	}
	for _, o := range d.Others {
		text += "; " + o.Value + " on " + o.instances()
	}
	if d.Why != "" {
		text += "; not adopted, because " + d.Why
	}
	return text
}

// instances lists the instances that name a value.
func (o otherSetting) instances() string {
	text := strings.Join(o.Names, ", ")
	if o.More > 0 {
		text += fmt.Sprintf(" and %d more", o.More)
	}
	return text
}
