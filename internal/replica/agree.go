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

// This file says which settings a group is to adopt: those that all its instances name alike and that
// are not the group's yet. Instances that leave do not count. The leader asks whenever an instance has
// come or gone. As long as they differ the group's own hold, and people are shown which instance names
// what.

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

// agreement is what becomes of the settings: adopt is what the group is to have, encoded in blob if that is something new. differ is for people.
type agreement struct {
	adopt  Settings
	blob   []byte // nil: nothing is to be adopted
	differ []disagreement
}

// setting is one field, or several that mean something only together.
type setting struct {
	name func(Named) string
	text func(Named) string // equal exactly if the values are
	take func(g *Settings, own Settings)
}

// The places in the list of settings.
const (
	votersSetting = iota
	ttlSetting
	graceSetting
	foundersSetting
	sessionBytesSetting
	groupBytesSetting
)

func allSettings() [6]setting {
	called := func(name string) func(Named) string { return func(Named) string { return name } }
	return [...]setting{
		votersSetting: {
			called("Voters"), func(s Named) string { return strconv.Itoa(s.Voters) },
			func(g *Settings, own Settings) { g.Voters = own.Voters },
		},
		ttlSetting: {
			called("SessionTTL"), func(s Named) string { return s.SessionTTL.String() },
			func(g *Settings, own Settings) { g.SessionTTL = own.SessionTTL },
		},
		graceSetting: { // for a later group: this one has counted its own
			called("Grace"), func(s Named) string { return s.Grace.String() },
			func(g *Settings, own Settings) { g.Grace = own.Grace },
		},
		foundersSetting: {
			Named.foundedBy, Named.founding,
			func(g *Settings, own Settings) { g.Replicas, g.Founders = own.Replicas, own.Founders },
		},
		sessionBytesSetting: {
			called("MaxSessionBytes"), func(s Named) string { return session.FormatBytes(uint64(s.SessionBytes)) },
			func(g *Settings, own Settings) { g.SessionBytes = own.SessionBytes },
		},
		groupBytesSetting: {
			called("MaxGroupBytes"), func(s Named) string { return session.FormatBytes(uint64(s.GroupBytes)) },
			func(g *Settings, own Settings) { g.GroupBytes = own.GroupBytes },
		},
	}
}

func (s Named) foundedBy() string {
	if s.FounderCount > 0 {
		return "Founders"
	}
	return "Replicas"
}

func (s Named) founding() string {
	if s.FounderCount > 0 {
		return fmt.Sprintf("%d names (%s)", s.FounderCount, s.Founders)
	}
	return fmt.Sprintf("%d replicas", s.Replicas)
}

// proposed are the settings that a leader may propose: its own, which were found valid here and have
// the names of the founders. A leader that leaves proposes the founders that an instance that stays
// names, or its vote could never go to one of them.
func proposed(own Settings, registered *census, leaving bool) Settings {
	s, some := registered.staying()
	founders := registered.foundersOf(s.Founders)
	if !leaving || !some || len(founders) != s.FounderCount || s.FounderCount == 0 && (s.Replicas < 1 || s.Replicas > MaxReplicas) {
		return own
	}
	own.Replicas, own.Founders = s.Replicas, founders
	return own
}

// agree compares what all registered instances that stay name with what the group has. own are those
// that this leader may propose, which must be what all name. longest is the largest TTL of the sessions
// that live: with a shorter one in force, a later group would not wait for their holders.
//
// Founders are adopted only while one of them is here and stays. Otherwise no instance could have a
// vote, and one that leaves could hand its vote to none.
func agree(group, own Settings, registered *census, longest time.Duration) agreement {
	a := agreement{adopt: group}
	var why [6]string
	all := allSettings()
	for i, s := range all {
		mine := s.text(own.Named())
		if mine == s.text(group.Named()) || !registered.all(func(c content) bool { return s.text(c.settings) == mine }) {
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
		s.take(&a.adopt, own)
	}
	if g := &a.adopt; g.Grace > 0 && g.Grace < g.SessionTTL {
		g.SessionTTL, g.Grace = group.SessionTTL, group.Grace
		why[ttlSetting] = "the grace would be shorter than the TTL"
		why[graceSetting] = why[ttlSetting]
	}
	if a.adopt.Encode() == nil {
		a.adopt.Replicas, a.adopt.Founders = group.Replicas, group.Founders
		why[foundersSetting] = fmt.Sprintf("the names of the founders are longer than %d bytes together", lockfsm.MaxSettingsBytes)
	}
	if a.adopt.Named() != group.Named() {
		a.blob = a.adopt.Encode()
	}
	for i, s := range all {
		a.disagree(s, group, registered, why[i])
	}
	return a
}

// disagree notes which instances name another value of one setting than the group's.
func (a *agreement) disagree(s setting, group Settings, registered *census, why string) {
	d := disagreement{Setting: s.name(group.Named()), Group: s.text(group.Named()), Why: why}
	if registered.all(func(c content) bool { return s.text(c.settings) == d.Group }) {
		return
	}
	said := map[string]*otherSetting{d.Group: {Value: d.Group}}
	shown := map[string]string{d.Group: foundersText(d.Group, group.Founders)}
	for c, t := range registered.contents {
		if !c.stays() {
			continue
		}
		value := s.text(c.settings)
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
		if d.Setting == "Founders" || d.Setting == "Replicas" {
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
// and every instance that has a replica, voter or learner. Zero means that of one it is not known. A
// replica whose instance has no session may be of any build, and raising the rules beyond what it
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
