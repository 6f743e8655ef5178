package replica

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file decides which settings a group should adopt. A value should be adopted if it is not
// in force yet and all instances have it. Instances that leave do not count.

// disagreement is a setting for which some instance has a value other than the group's.
type disagreement struct {
	Setting string // name of a field of Config
	Group   string
	Same    otherSetting
	Others  []otherSetting
	Why     string // why a value that all instances have is not adopted; otherwise empty
}

type otherSetting struct {
	Value string
	Names []string // the first names in ascending order, at most 10
	More  int
}

const maxDiffer = 10

type agreement struct {
	adopt  Settings
	blob   []byte // encoding of adopt; nil if nothing is to be adopted
	differ []disagreement
}

// setting is one field of Config, or several fields that have a meaning only together.
type setting int

const (
	votersSetting setting = iota
	ttlSetting
	graceSetting // takes effect in a later group, because the grace of this group has ended
	foundersSetting
	sessionBytesSetting
	groupBytesSetting
	settingCount
)

func (s Named) names() [settingCount]string {
	founders := "Replicas"
	if s.FounderCount > 0 {
		founders = "Founders"
	}
	return [...]string{"Voters", "SessionTTL", "Grace", founders, "MaxSessionBytes", "MaxGroupBytes"}
}

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

func (g *Settings) set(i setting, own Settings) {
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

// proposed returns the settings that a leader may propose: its own validated settings. A leader
// that leaves proposes the Replicas and founders of an instance that stays. Otherwise its vote
// could not move to such an instance.
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

// agree compares the group's settings with those of all registered instances that stay. It adopts
// only values of own, the settings that this leader may propose. longest is the largest TTL of
// the live sessions. A TTL below longest is not adopted, because a later group would not wait
// until the session with the largest TTL has expired.
//
// New founders are adopted only while one of them is present and stays. Otherwise no instance could
// have a vote.
func agree(group, own Settings, registered *census, longest time.Duration) agreement {
	a := agreement{adopt: group}
	var why [settingCount]string
	held, wanted := group.Named().texts(), own.Named().texts()
	for i := range settingCount {
		if wanted[i] == held[i] || !registered.all(func(c content) bool { return c.settings.texts()[i] == wanted[i] }) {
			continue
		}
		if i == ttlSetting && own.SessionTTL < longest {
			why[i] = fmt.Sprintf("a live session has a TTL of %v", longest)
			continue
		}
		if i == foundersSetting && len(own.Founders) > 0 && !registered.present(own.Founders) {
			why[i] = "none of them is present, or the only one is leaving"
			continue
		}
		a.adopt.set(i, own)
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
			value = "unknown"
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
			o.Value = shown[value]
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

func (o *otherSetting) add(t *tally) {
	o.More += len(t.names)
	for _, n := range t.names[:min(len(t.names), maxDiffer)] {
		o.Names = append(o.Names, cmp.Or(n.name, "?"))
	}
}

func (o *otherSetting) count() {
	o.Names = Unique(o.Names)
	o.Names = o.Names[:min(len(o.Names), maxDiffer)]
	o.More -= len(o.Names)
	if len(o.Names) < maxDiffer {
		o.More = 0 // every name is listed; More has counted some of them repeatedly
	}
}

// foundersText returns a list of the founders if there are 1 to maxDiffer, and otherwise returns
// text.
func foundersText(text string, founders []string) string {
	if len(founders) == 0 || len(founders) > maxDiffer {
		return text
	}
	return "[" + strings.Join(founders, ", ") + "]"
}

// supported returns the newest version of the lock rules that all registered instances and all
// instances with a replica support. Zero means unknown. A replica whose instance has no session may
// run an older build, and would retire if the rules were raised.
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

func (d disagreement) String() string {
	text := fmt.Sprintf("%s: the group has %s", d.Setting, d.Group)
	if len(d.Same.Names) > 0 {
		text += " (also on " + d.Same.instances() + ")"
	}
	for _, o := range d.Others {
		text += "; " + o.Value + " on " + o.instances()
	}
	text += "; " + founding.Counts(d.Setting)
	if d.Why != "" {
		text += "; not adopted, because " + d.Why
	}
	return text
}

func (o otherSetting) instances() string {
	text := strings.Join(o.Names, ", ")
	if o.More > 0 {
		text += fmt.Sprintf(" and %d more", o.More)
	}
	return text
}
