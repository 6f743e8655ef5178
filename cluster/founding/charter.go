package founding

import (
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Settings are the settings of an instance for its group. They must be equal on all instances.
type Settings struct {
	// Replicas is the total number of instances. It is zero if Founders is set.
	Replicas int
	// Founders lists the names of the instances that found the group and may vote, in any order. It
	// is empty if Replicas is set.
	Founders []string
	// Voters is the largest number of voters: odd, 1 to 7.
	Voters int
	// SessionTTL is the largest TTL of a session.
	SessionTTL time.Duration
	// Grace is the time for which a new group grants nothing. Zero means no such time.
	Grace time.Duration
	// Solo is set if there is no Join. The instance is then a group of its own and refuses all
	// other instances.
	Solo bool
}

func (s Settings) normal() Settings {
	s.Founders = slices.Compact(slices.Sorted(slices.Values(s.Founders)))
	return s
}

// difference returns the name of the first setting in which s and o differ, and both values. The
// name is empty if they do not differ.
func (s Settings) difference(o Settings) (name, own, other string) {
	for _, field := range comparedFields() {
		if s.unlike(o, field) {
			return field, s.value(field), o.value(field)
		}
	}
	return "", "", ""
}

func (s Settings) unequal(o Settings) string {
	name, _, _ := s.difference(o)
	return name
}

// comparedFields returns the names of the settings that must be equal, the most important first.
func comparedFields() [6]string {
	return [...]string{"Join", "Replicas", "Founders", "Voters", "SessionTTL", "Grace"}
}

func (s Settings) unlike(o Settings, field string) bool {
	switch field {
	case "Replicas":
		return s.Replicas != o.Replicas && len(s.Founders) == 0 && len(o.Founders) == 0
	case "Founders":
		return !slices.Equal(s.Founders, o.Founders) || s.Replicas != o.Replicas
	}
	return s.value(field) != o.value(field)
}

// value returns a setting as text, of Founders the first ones.
func (s Settings) value(field string) string {
	switch field {
	case "Join":
		return strconv.FormatBool(!s.Solo)
	case "Replicas":
		return strconv.Itoa(s.Replicas)
	case "Founders":
		return s.foundedBy()
	case "Voters":
		return strconv.Itoa(s.Voters)
	case "SessionTTL":
		return s.SessionTTL.String()
	}
	return s.Grace.String()
}

func (s Settings) foundedBy() string {
	if len(s.Founders) > 0 {
		return "[" + some(s.Founders) + "]"
	}
	return "Replicas: " + strconv.Itoa(s.Replicas)
}

// Counts returns which value of a setting has an effect while instances have different ones. The
// name is that of a field of Config.
func Counts(name string) string {
	if name == "SessionTTL" {
		return "each session gets the shorter one"
	}
	return "the group's value counts"
}

// differs describes the first setting in which s differs from the group's, or returns "".
func (s Settings) differs(group Settings) string {
	name, own, other := s.difference(group)
	if name == "" {
		return ""
	}
	return name + " is " + own + " on this instance and " + other + " in the group, and " + Counts(name) +
		": make it equal on all instances"
}

func (s Settings) founds(name string) bool {
	if len(s.Founders) == 0 {
		return true
	}
	_, found := slices.BinarySearch(s.Founders, name)
	return found
}

// Founds reports whether an instance with this name is a founder, which may propose, be listed and
// vote. With Replicas every instance is a founder.
func (s Settings) Founds(name string) bool { return s.normal().founds(name) }

// alone returns the settings of a group of one.
func (s Settings) alone() Settings {
	s.Grace, s.Voters = 0, 1
	return s
}

// withFounders returns s with other founders. It still asks for Replicas if there are none.
func (s Settings) withFounders(founders []string) Settings {
	if s.Founders = founders; len(founders) > 0 {
		s.Replicas = 0
	}
	return s
}

// slack returns the largest allowed difference between two clocks on a list: half the grace, or 5 s
// without a grace.
func (s Settings) slack() time.Duration {
	if s.Grace > 0 {
		return s.Grace / 2
	}
	return clockSlackWithoutGrace
}

// voterCount returns the largest odd number that exceeds neither list nor Voters. An additional
// voter would not let the group survive more failures.
func (s Settings) voterCount(list int) int {
	n := min(s.Voters, list)
	if n%2 == 0 {
		n--
	}
	return max(n, 0)
}

// Listed is one instance on a charter's list.
type Listed struct {
	Instance nodeid.ID // ID of an incarnation; a later incarnation at the same address has another ID
	Name     string
	Addr     string // host:port
}

// Voter is one replica of a group, with a vote or as a learner.
type Voter struct {
	Raft     nodeid.ReplicaID // never zero
	Instance nodeid.ID
	Addr     string // host:port of the newest known start of the instance
	// number of starts with the instance's directory, 1 without a directory
	Life    uint64
	Learner bool
}

// again returns the voter at the address of a later start.
func (v Voter) again(life uint64, addr string) Voter {
	v.Life, v.Addr = life, addr
	return v
}

// Charter founds a group: it determines the members, the voters and the rules. Every listed
// instance must accept the charter before the group is founded. A charter never changes.
type Charter struct {
	Group uint64 // identifies the charter; random, never zero
	// higher than the clocks of the listed instances and than every token that they have received
	FoundedUnixMS int64
	Settings      Settings
	Rules         uint32   // a version of the lock rules that all listed instances know
	List          []Listed // in ascending order of Instance
	Voters        []Voter
	// Supersedes lists, in ascending order, groups that operators have given up. Listed instances
	// belonged to them. A member of such a group leaves the group when it meets the new group.
	Supersedes []uint64
}

// clone returns a copy that shares nothing with c, with settings in normal form.
func (c *Charter) clone() Charter {
	own := *c
	own.List, own.Voters = slices.Clone(c.List), slices.Clone(c.Voters)
	own.Settings, own.Supersedes = c.Settings.normal(), slices.Clone(c.Supersedes)
	return own
}

// Raft returns the raft ID that the charter gives to the instance, or 0 if it has no vote.
func (c *Charter) Raft(instance nodeid.ID) uint64 {
	for _, v := range c.Voters {
		if v.Instance == instance {
			return v.Raft
		}
	}
	return 0
}

func (c *Charter) listed(instance nodeid.ID) int {
	i, found := slices.BinarySearchFunc(c.List, instance,
		func(l Listed, id nodeid.ID) int { return nodeid.Compare(l.Instance, id) })
	if !found {
		return -1
	}
	return i
}

// malformed returns what is wrong with the form of the charter, or "". No correct proposer sends a
// malformed charter. The result is the same on every instance.
func (c *Charter) malformed() string {
	if c.Group == 0 || len(c.List) == 0 || len(c.List) > maxList || c.FoundedUnixMS < 0 || c.FoundedUnixMS > maxWall {
		return "it has no group ID, no list or no founding time"
	}
	addrs := make(map[string]bool, len(c.List))
	for i, l := range c.List {
		if l.Instance.IsZero() || (i > 0 && nodeid.Compare(c.List[i-1].Instance, l.Instance) >= 0) {
			return "its list is not in ascending order of instance IDs"
		}
		if l.Addr == "" || addrs[l.Addr] {
			return "two on its list share an address"
		}
		addrs[l.Addr] = true
	}
	if len(c.Voters) == 0 || len(c.Voters) != c.Settings.voterCount(len(c.List)) {
		return "it names a wrong number of voters"
	}
	if !orderly(c.Supersedes) || slices.Contains(c.Supersedes, c.Group) {
		return "the groups that it replaces are not in ascending order, or it is one of them"
	}
	rafts := make(map[uint64]bool, 2*len(c.Voters))
	voting := make(map[nodeid.ID]bool, len(c.Voters))
	for _, v := range c.Voters {
		at := c.listed(v.Instance)
		if at < 0 || c.List[at].Addr != v.Addr || voting[v.Instance] {
			return "a voter is not on its list, or votes twice"
		}
		if v.Raft == 0 || rafts[v.Raft] || v.Learner {
			return "two voters share a raft ID, or one has no vote"
		}
		rafts[v.Raft], voting[v.Instance] = true, true
	}
	return ""
}

// complete compares the charter's list with an instance's own settings. It returns what is wrong
// with the list, or "" if the list is complete.
func (c *Charter) complete(own Settings) string {
	if len(own.Founders) == 0 {
		if len(c.List) < own.Replicas {
			return "it lists fewer instances than Replicas asks for"
		}
		return ""
	}
	names := make([]string, 0, len(c.List))
	for _, l := range c.List {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, own.Founders) {
		return "its list is not exactly the Founders"
	}
	return ""
}

// Difference describes the first setting in which an instance differs from its group: both values,
// which one has an effect, and the next step. It returns "" if none differs.
func Difference(own, group Settings) string { return own.normal().differs(group.normal()) }
