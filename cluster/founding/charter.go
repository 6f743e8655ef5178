package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Settings are what an instance was told about its group. All instances of one group must be told
// the same; a charter carries the settings it was written with, and an instance with others refuses
// it.
type Settings struct {
	// Replicas is how many instances the user runs, all of them; 0 if Founders is set.
	Replicas int
	// Founders names the instances that found and vote; empty if Replicas is set. Their order has
	// no meaning.
	Founders []string
	// Voters is the largest number of voters: odd, 1 to 7.
	Voters int
	// SessionTTL is the largest time to live of a session.
	SessionTTL time.Duration
	// Grace is how long nothing is granted after birth; 0 means none.
	Grace time.Duration
	// Solo is set where there is no Join: the instance is a closed group of its own and refuses
	// everybody else.
	Solo bool
}

// normal returns a copy whose Founders are sorted and unique, so that equal settings compare equal
// and nobody shares the slice.
func (s Settings) normal() Settings {
	s.Founders = slices.Compact(slices.Sorted(slices.Values(s.Founders)))
	return s
}

// difference names the first setting in which two normal settings differ, or returns "".
func (s Settings) difference(o Settings) string {
	switch {
	case s.Solo != o.Solo:
		return "Join"
	case s.Replicas != o.Replicas && len(s.Founders) == 0 && len(o.Founders) == 0:
		return "Replicas"
	case !slices.Equal(s.Founders, o.Founders) || s.Replicas != o.Replicas:
		return "Founders"
	case s.Voters != o.Voters:
		return "Voters"
	case s.SessionTTL != o.SessionTTL:
		return "SessionTTL"
	case s.Grace != o.Grace:
		return "Grace"
	}
	return ""
}

// founds reports whether an instance of that name may found, be listed and vote.
func (s Settings) founds(name string) bool {
	if len(s.Founders) == 0 {
		return true
	}
	_, found := slices.BinarySearch(s.Founders, name)
	return found
}

// Founds reports whether an instance of that name may found, be listed and vote: with Replicas
// every one may.
func (s Settings) Founds(name string) bool { return s.normal().founds(name) }

// slack is how far two clocks on a list may differ: half the grace, since the grace is what later
// groups wait for, and 5 s without one.
func (s Settings) slack() time.Duration {
	if s.Grace > 0 {
		return s.Grace / 2
	}
	return clockSlackWithoutGrace
}

// voterCount is the number of voters of a list: the largest odd number that neither the list nor
// Voters is smaller than. An even number would need one more to agree and survive no more failures.
func (s Settings) voterCount(list int) int {
	n := min(s.Voters, list)
	if n%2 == 0 {
		n--
	}
	return max(n, 0)
}

// Listed is one instance on a charter's list.
type Listed struct {
	Instance nodeid.ID // of one life; another life at the same address is somebody else
	Name     string
	Addr     string // host:port
}

// Voter is one replica of a group: it votes, or it is a learner, which follows and may be given a
// vote later.
type Voter struct {
	Raft     uint64 // raft ID: never zero, never used twice
	Instance nodeid.ID
	Addr     string // host:port under which its newest life was last known
	Life     uint64 // counts the starts with one Dir, 1 in memory: the address of the highest life holds
	Learner  bool   // it has no vote
}

// Charter founds a group: who is in it, who votes, by which rules. Everybody on its list has to
// accept it before the group is born. It never changes once it was proposed, and its Group names
// it.
type Charter struct {
	Group         uint64 // random, never zero
	FoundedUnixMS int64  // the latest of the list's wall clocks, and above every token that they have seen
	Settings      Settings
	Rules         uint32   // version of the lock rules that everybody on the list knows
	List          []Listed // by instance, ascending
	Voters        []Voter
	// groups that people have given up on instances of the list, ascending: their members go when
	// they meet this one
	Supersedes []uint64
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

// listed returns the place of the instance on the list, or -1.
func (c *Charter) listed(instance nodeid.ID) int {
	i, found := slices.BinarySearchFunc(c.List, instance,
		func(l Listed, id nodeid.ID) int { return nodeid.Compare(l.Instance, id) })
	if !found {
		return -1
	}
	return i
}

// malformed says what no honest proposer can have written, or returns "". It does not depend on who
// reads the charter.
func (c *Charter) malformed() string {
	if c.Group == 0 || len(c.List) == 0 || len(c.List) > listMax || c.FoundedUnixMS < 0 || c.FoundedUnixMS > wallMax {
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
		return "the groups that it takes the place of are not in ascending order, or it is one of them"
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

// complete says what is missing from the list by the reader's own settings, or returns "".
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

// Difference names the first setting in which two instances, or an instance and its group, differ,
// or returns "".
func Difference(a, b Settings) string { return a.normal().difference(b.normal()) }
