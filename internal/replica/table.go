package replica

import (
	"cmp"
	"iter"
	"slices"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

type table struct {
	known     map[lockfsm.SessionID]*indexed
	instances map[nodeid.ID][]*indexed
	names     map[string][]*indexed
	census    census
	electable []*indexed // all instances, in ascending order of session; nil after a change
	relevant  map[string]bool
}

type indexed struct {
	session  lockfsm.SessionInfo
	ended    bool
	record   Record
	instance nodeid.ID // the authenticated instance that the record registers; zero if none
}

func (t *table) pick(all bool) (list []*indexed) {
	order := func(a, b *indexed) int { return cmp.Compare(a.session.ID, b.session.ID) }
	switch {
	case all && t.electable == nil:
		for _, same := range t.instances {
			list = append(list, same...)
		}
		slices.SortFunc(list, order)
		t.electable = list
	case all:
		list = t.electable
	default:
		for name := range t.relevant {
			list = append(list, t.names[name]...)
		}
		slices.SortFunc(list, order)
	}
	return list
}

func (k *indexed) registered(linked func(instance nodeid.ID) bool) voters.Registered {
	return voters.Registered{
		Instance: k.instance, Name: k.record.Name, Zone: k.record.Zone, Leaving: k.session.Leaving, Session: true,
		Reachable: linked(k.instance), Addr: k.record.Addr, Rules: k.record.Rules, Build: k.record.Build,
		Order: uint64(k.session.ID),
	}
}

// The type others gives access to the instances that do not affect the choice of voters. It
// implements voters.Others.
type others struct {
	table  *table
	linked func(instance nodeid.ID) bool
}

// All yields the instances in ascending order of session. In the order of a map, the leader would
// send them a new configuration in another order in each run of a seed.
func (o others) All() iter.Seq[voters.Registered] {
	return func(yield func(voters.Registered) bool) {
		for _, k := range o.table.pick(true) {
			if !o.table.relevant[k.record.Name] && !yield(k.registered(o.linked)) {
				return
			}
		}
	}
}

func (o others) Has(instance nodeid.ID) bool { return len(o.table.instances[instance]) > 0 }

func (t *table) enter(s lockfsm.SessionInfo) {
	k := &indexed{session: s, record: DecodeRecord(s.Record)}
	k.session.Record, k.record.leaving = nil, s.Leaving
	t.known[s.ID] = k
	t.census.count(s.TTL, 1)
	if k.isMember() {
		t.census.members++
	}
	if !k.counts() {
		return
	}
	t.census.add(&k.record)
	// Only an authenticated instance is registered. A record from another build may have no
	// readable instance.
	if id := k.record.ID(); !id.IsZero() && id == s.Opener.Instance {
		k.instance, t.electable = id, nil
		t.instances[id], t.names[k.record.Name] = append(t.instances[id], k), append(t.names[k.record.Name], k)
	}
}

func (t *table) marked(k *indexed, leaving bool) {
	if k.session.Leaving == leaving {
		return
	}
	if k.counts() {
		t.census.remove(&k.record)
	}
	k.session.Leaving, k.record.leaving = leaving, leaving
	if k.counts() {
		t.census.add(&k.record)
	}
}

func (t *table) strike(k *indexed) {
	delete(t.known, k.session.ID)
	t.census.count(k.session.TTL, -1)
	if k.isMember() {
		t.census.members--
	}
	if !k.counts() {
		return
	}
	t.census.remove(&k.record)
	if !k.instance.IsZero() {
		t.electable = nil
		without(t.instances, k.instance, k)
		without(t.names, k.record.Name, k)
	}
}

func without[K comparable](lists map[K][]*indexed, key K, k *indexed) {
	left := slices.DeleteFunc(lists[key], func(o *indexed) bool { return o == k })
	if lists[key] = left; len(left) == 0 {
		delete(lists, key)
	}
}

// counts reports whether the session counts in settings agreement. Sessions of clients that only
// take locks, or that have a derived secret, do not count.
func (k *indexed) counts() bool {
	return !k.record.Guest && k.session.Opener.Capability == [32]byte{}
}

// isMember reports whether the session represents an instance or a client, and was not opened by
// NewSession.
func (k *indexed) isMember() bool { return !k.record.Own }
