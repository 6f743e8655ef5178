package replica

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// census counts what the records of all sessions say, so that a look of the leader compares the few
// different contents that there are, and not one record for each instance. It is pure: the registry
// adds each record once and takes it away once.
type census struct {
	contents  map[content]*tally
	instances map[nodeid.ID]int     // how many sessions are a registration of that instance
	ttls      map[time.Duration]int // of all sessions, guests' too
	members   int                   // sessions that are an instance, or a program that only takes locks
}

// content is what all instances have to agree on, as one record says it.
type content struct {
	settings Named
	rules    uint32
	unknown  bool // the record has no name: it could not be read, or another build has written it
	leaving  bool // its settings do not count any more; the rules that it knows do until its replica is removed
}

// stays reports whether the settings count.
func (c content) stays() bool { return !c.leaving }

// tally is how many records have one content, and under which names.
type tally struct {
	count    int
	names    []named  // ascending by name, each once
	founders []string // those of the settings, once a record has named them
}

type named struct {
	name  string
	count int
}

func contentOf(r *Record) content {
	return content{settings: r.Settings, rules: r.Rules, unknown: r.Name == "", leaving: r.leaving}
}

// add counts a record that has a word in what all have to agree on.
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

// remove takes away a record that was added.
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

// lives counts by how much more or fewer sessions have that TTL.
func (c *census) lives(ttl time.Duration, more int) {
	if c.ttls == nil {
		c.ttls = map[time.Duration]int{}
	}
	if c.ttls[ttl] += more; c.ttls[ttl] == 0 {
		delete(c.ttls, ttl)
	}
}

// longest returns the longest TTL.
func (c *census) longest() (longest time.Duration) {
	for ttl := range c.ttls {
		longest = max(longest, ttl)
	}
	return longest
}

// all reports whether an instance stays, and the condition holds for each that does. Without one
// nothing is agreed on.
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

// staying returns the settings of an instance that stays. They stand for all if all agree.
func (c *census) staying() (s Named, some bool) {
	for each := range c.contents {
		if each.stays() {
			return each.settings, true
		}
	}
	return Named{}, false
}

// present reports whether an instance that stays goes by one of these names.
func (c *census) present(names []string) bool {
	for each, t := range c.contents {
		is := func(name string) bool { _, found := t.find(name); return found }
		if each.stays() && slices.ContainsFunc(names, is) {
			return true
		}
	}
	return false
}

// foundersOf returns the names behind a fingerprint, nil if no record has them.
func (c *census) foundersOf(fingerprint string) []string {
	for each, t := range c.contents {
		if each.settings.Founders == fingerprint && t.founders != nil {
			return t.founders
		}
	}
	return nil
}
