package mortise

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/lockfsm"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session"
)

// This file says which settings a group is to adopt: those that all its instances name alike and that
// are not the group's yet. Instances that leave do not count. It is pure; the leader asks it whenever
// an instance has come or gone. As long as they differ the group's own hold, and people are shown which
// instance names what.

// groupSettings are the settings of a group as a whole. Their JSON is what the state machine keeps, unread. A build that adds a field has to
// wait for a rules version of its own before it writes it: an older leader would drop the field again.
type groupSettings struct {
	Replicas   int           `json:"replicas,omitempty"`
	Founders   []string      `json:"founders,omitempty"` // ascending, each once
	Voters     int           `json:"voters"`
	SessionTTL time.Duration `json:"session_ttl_ns"`
	Grace      time.Duration `json:"grace_ns"` // 0: none
	// The budgets are in no founding: a group begins with the defaults, and adopts these when all instances name them.
	SessionBytes int64 `json:"session_bytes"`
	GroupBytes   int64 `json:"group_bytes"`
}

// group returns what this configuration says of the group. A node on its own needs no grace: its group is closed, nobody else can have been
// granted anything.
func (c Config) group() groupSettings {
	g := groupSettings{Replicas: c.Replicas, Founders: unique(c.Founders), Voters: c.Voters, SessionTTL: c.SessionTTL, Grace: max(c.Grace, 0)}
	g.SessionBytes, g.GroupBytes = c.MaxSessionBytes, c.MaxGroupBytes
	if c.alone() {
		g.Grace = 0
	}
	return g
}

// settingsOf returns the settings that a group was founded with.
func settingsOf(s founding.Settings) groupSettings {
	limits := lockfsm.DefaultLimits()
	return groupSettings{
		Replicas: s.Replicas, Founders: unique(s.Founders), Voters: s.Voters, SessionTTL: s.SessionTTL, Grace: s.Grace,
		SessionBytes: int64(limits.SessionBytes), GroupBytes: int64(limits.GroupBytes),
	}
}

// birth returns the settings for the cluster room.
func (g groupSettings) birth(solo bool) founding.Settings {
	return founding.Settings{Replicas: g.Replicas, Founders: g.Founders, Voters: g.Voters, SessionTTL: g.SessionTTL, Grace: g.Grace, Solo: solo}
}

// budgets returns what the leader proposes as budgets.
func (g groupSettings) budgets() session.Budgets {
	return session.Budgets{Session: uint64(g.SessionBytes), Group: uint64(g.GroupBytes)}
}

func unique(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// named returns the settings as an instance's record names them.
func (g groupSettings) named() settings {
	s := settings{Replicas: g.Replicas, FounderCount: len(g.Founders), Voters: g.Voters, SessionTTL: g.SessionTTL, Grace: g.Grace}
	s.SessionBytes, s.GroupBytes = g.SessionBytes, g.GroupBytes
	if len(g.Founders) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(g.Founders, "\x00")))
		s.Founders = hex.EncodeToString(sum[:8])
	}
	return s
}

// encode returns what the state machine keeps, nil if that is more than it takes: very many founders with very long names.
func (g groupSettings) encode() []byte {
	b, err := json.Marshal(g)
	if err != nil || len(b) > lockfsm.MaxSettingsBytes { // strings and numbers always marshal
		return nil
	}
	return b
}

// decodeSettings reads what encode has written.
func decodeSettings(b []byte) (groupSettings, error) {
	var g groupSettings
	if err := json.Unmarshal(b, &g); err != nil {
		return groupSettings{}, fmt.Errorf("mortise: the group's settings cannot be read: %w", err)
	}
	return g, nil
}

// presentSettings returns the settings that are in force in a group: those that it has adopted, or was founded with.
func presentSettings(c lockfsm.Charter) (groupSettings, error) {
	g, err := decodeSettings(c.Settings)
	g.SessionTTL = c.SessionTTL // by which the rules go
	g.SessionBytes, g.GroupBytes = int64(c.Limits.SessionBytes), int64(c.Limits.GroupBytes)
	return g, err
}

// Disagreement is a setting of which some instance has another value than the group.
type Disagreement struct {
	Setting string       // field of Config
	Group   string       // the value in force
	Same    OtherSetting // the instances that name it too
	Others  []OtherSetting
	Why     string // all instances name the same value, and still it is not adopted; else ""
}

// OtherSetting is a value of a setting, and the Names of the instances that name it.
type OtherSetting struct {
	Value string
	Names []string // at most 10, the first in order
	More  int      // names that are left out
}

// differMost is how many names are shown of the instances that want one value.
const differMost = 10

// agreement is what becomes of the settings: adopt is what the group is to have, encoded in blob if that is something new. differ is for people.
type agreement struct {
	adopt  groupSettings
	blob   []byte // nil: nothing is to be adopted
	differ []Disagreement
}

// setting is one field, or several that mean something only together.
type setting struct {
	name func(settings) string
	text func(settings) string // equal exactly if the values are
	take func(g *groupSettings, own groupSettings)
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
	called := func(name string) func(settings) string { return func(settings) string { return name } }
	return [...]setting{
		votersSetting: {
			called("Voters"), func(s settings) string { return strconv.Itoa(s.Voters) },
			func(g *groupSettings, own groupSettings) { g.Voters = own.Voters },
		},
		ttlSetting: {
			called("SessionTTL"), func(s settings) string { return s.SessionTTL.String() },
			func(g *groupSettings, own groupSettings) { g.SessionTTL = own.SessionTTL },
		},
		graceSetting: { // for a later group: this one has counted its own
			called("Grace"), func(s settings) string { return s.Grace.String() },
			func(g *groupSettings, own groupSettings) { g.Grace = own.Grace },
		},
		foundersSetting: {
			settings.foundedBy, settings.founding,
			func(g *groupSettings, own groupSettings) { g.Replicas, g.Founders = own.Replicas, own.Founders },
		},
		sessionBytesSetting: {
			called("MaxSessionBytes"), func(s settings) string { return session.FormatBytes(uint64(s.SessionBytes)) },
			func(g *groupSettings, own groupSettings) { g.SessionBytes = own.SessionBytes },
		},
		groupBytesSetting: {
			called("MaxGroupBytes"), func(s settings) string { return session.FormatBytes(uint64(s.GroupBytes)) },
			func(g *groupSettings, own groupSettings) { g.GroupBytes = own.GroupBytes },
		},
	}
}

func (s settings) foundedBy() string {
	if s.FounderCount > 0 {
		return "Founders"
	}
	return "Replicas"
}

func (s settings) founding() string {
	if s.FounderCount > 0 {
		return fmt.Sprintf("%d names (%s)", s.FounderCount, s.Founders)
	}
	return fmt.Sprintf("%d replicas", s.Replicas)
}

// proposed are the settings that a leader may propose: its own, which were found valid here and have
// the names of the founders. A leader that leaves proposes the founders that an instance that stays
// names, or its vote could never go to one of them.
func proposed(own groupSettings, registered *census, leaving bool) groupSettings {
	s, some := registered.staying()
	founders := registered.foundersOf(s.Founders)
	if !leaving || !some || len(founders) != s.FounderCount || s.FounderCount == 0 && (s.Replicas < 1 || s.Replicas > maxReplicas) {
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
func agree(group, own groupSettings, registered *census, longest time.Duration) agreement {
	a := agreement{adopt: group}
	var why [6]string
	all := allSettings()
	for i, s := range all {
		mine := s.text(own.named())
		if mine == s.text(group.named()) || !registered.all(func(c content) bool { return s.text(c.settings) == mine }) {
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
	if a.adopt.encode() == nil {
		a.adopt.Replicas, a.adopt.Founders = group.Replicas, group.Founders
		why[foundersSetting] = fmt.Sprintf("the names of the founders are longer than %d bytes together", lockfsm.MaxSettingsBytes)
	}
	if a.adopt.named() != group.named() {
		a.blob = a.adopt.encode()
	}
	for i, s := range all {
		a.disagree(s, group, registered, why[i])
	}
	return a
}

// disagree notes which instances name another value of one setting than the group's.
func (a *agreement) disagree(s setting, group groupSettings, registered *census, why string) {
	d := Disagreement{Setting: s.name(group.named()), Group: s.text(group.named()), Why: why}
	if registered.all(func(c content) bool { return s.text(c.settings) == d.Group }) {
		return
	}
	said := map[string]*OtherSetting{d.Group: {Value: d.Group}}
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
			said[value] = &OtherSetting{Value: value}
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
	slices.SortFunc(d.Others, func(a, b OtherSetting) int { return strings.Compare(a.Value, b.Value) })
	if len(d.Others) > 1 || len(d.Same.Names) > 0 {
		d.Why = ""
	}
	a.differ = append(a.differ, d)
}

// add adds the names under which a value was named.
func (o *OtherSetting) add(t *tally) {
	o.More += len(t.names)
	for _, n := range t.names[:min(len(t.names), differMost)] {
		o.Names = append(o.Names, cmp.Or(n.name, "?"))
	}
}

// count keeps the first names of all, which are among the first ones of each content.
func (o *OtherSetting) count() {
	o.Names = unique(o.Names)
	o.Names = o.Names[:min(len(o.Names), differMost)]
	o.More -= len(o.Names)
	if len(o.Names) < differMost {
		o.More = 0 // names that stand in several contents
	}
}

// foundersText shows a list of founders by their names if they are few and known, else by text.
func foundersText(text string, founders []string) string {
	if len(founders) == 0 || len(founders) > differMost {
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
