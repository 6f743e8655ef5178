package replica

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// census counts the sessions by the content of their records, so that a pass of the leader compares
// few contents instead of all records.
type census struct {
	contents  map[content]*tally
	instances map[nodeid.ID]int
	// number of sessions with each TTL, including those of clients that only take locks
	ttls map[time.Duration]int
	// number of sessions that represent an instance or a client that only takes locks
	members int
}

// content is the part of a record that settings agreement compares.
type content struct {
	settings Named
	rules    uint32
	unknown  bool // the record is unreadable, or from another build
	// the instance leaves: its settings do not count, but its rules version does
	leaving bool
}

func (c content) stays() bool { return !c.leaving }

type tally struct {
	count    int
	names    []named  // in ascending order of name, each once
	founders []string // names of the founders, if a record lists them; content has only a fingerprint
}

type named struct {
	name  string
	count int
}

func contentOf(r *Record) content {
	return content{settings: r.Settings, rules: r.Rules, unknown: r.Name == "", leaving: r.leaving}
}

func (c *census) add(r *Record) {
	if c.contents == nil {
		c.contents, c.instances = map[content]*tally{}, map[nodeid.ID]int{}
	}
	key := contentOf(r)
	t := c.contents[key]
	if t == nil {
		t = &tally{}
		c.contents[key] = t
	}
	t.count++
	if t.founders == nil {
		t.founders = r.founders()
	}
	i, found := t.find(r.Name)
	if !found {
		t.names = slices.Insert(t.names, i, named{name: r.Name})
	}
	t.names[i].count++
	if id := r.ID(); !id.IsZero() {
		c.instances[id]++
	}
}

func (c *census) remove(r *Record) {
	key := contentOf(r)
	t := c.contents[key]
	if t.count--; t.count == 0 {
		delete(c.contents, key)
	} else if i, found := t.find(r.Name); found {
		if t.names[i].count--; t.names[i].count == 0 {
			t.names = slices.Delete(t.names, i, i+1)
		}
	}
	if id := r.ID(); !id.IsZero() {
		if c.instances[id]--; c.instances[id] == 0 {
			delete(c.instances, id)
		}
	}
}

func (t *tally) find(name string) (int, bool) {
	return slices.BinarySearchFunc(t.names, name, func(n named, name string) int { return cmp.Compare(n.name, name) })
}

func (c *census) count(ttl time.Duration, more int) {
	if c.ttls == nil {
		c.ttls = map[time.Duration]int{}
	}
	if c.ttls[ttl] += more; c.ttls[ttl] == 0 {
		delete(c.ttls, ttl)
	}
}

func (c *census) longest() (longest time.Duration) {
	for ttl := range c.ttls {
		longest = max(longest, ttl)
	}
	return longest
}

// all reports whether the given condition holds for every instance that stays, and at least one
// instance stays.
func (c *census) all(is func(content) bool) bool {
	some := false
	for each := range c.contents {
		switch {
		case !each.stays():
		case is(each):
			some = true
		default:
			return false
		}
	}
	return some
}

func (c *census) staying() (s Named, some bool) {
	for each := range c.contents {
		if each.stays() {
			return each.settings, true
		}
	}
	return Named{}, false
}

func (c *census) present(names []string) bool {
	for each, t := range c.contents {
		is := func(name string) bool { _, found := t.find(name); return found }
		if each.stays() && slices.ContainsFunc(names, is) {
			return true
		}
	}
	return false
}

// foundersOf returns the founders' names with the given fingerprint, or nil if no record lists
// them.
func (c *census) foundersOf(fingerprint string) []string {
	for each, t := range c.contents {
		if each.settings.Founders == fingerprint && t.founders != nil {
			return t.founders
		}
	}
	return nil
}
