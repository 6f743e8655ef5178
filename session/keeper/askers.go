package keeper

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// maxAskers is above the number of instances that a group is measured with. A voter that remembers
// all of them tells each one of a new leader, and none has to ask again.
const maxAskers = 16 << 10

// askers are the peers that have asked for the leader, in the order in which they asked. They
// remain until their stream ends, because they may need the next leader too.
type askers struct {
	order []asker // also has peers that were forgotten, whose numbers differ from those in known
	known map[nodeid.ID]uint64
	last  uint64 // the number of the last asker
	first int    // no asker is ahead of this index
}

type asker struct {
	id     nodeid.ID
	number uint64
}

// remember adds a peer. At the limit it removes the oldest peer, which will ask again.
func (a *askers) remember(id nodeid.ID) {
	if _, ok := a.known[id]; ok {
		return
	}
	for len(a.known) >= maxAskers {
		oldest := a.order[a.first]
		a.first++
		if a.has(oldest) {
			delete(a.known, oldest.id)
		}
	}
	a.last++
	a.known[id] = a.last
	a.order = append(a.order, asker{id, a.last})
	a.tidy()
}

func (a *askers) has(o asker) bool { return a.known[o.id] == o.number }

func (a *askers) forget(id nodeid.ID) {
	delete(a.known, id)
	a.tidy()
}

// tidy removes the forgotten peers from order when most are. So the end of many streams costs no
// search for each.
func (a *askers) tidy() {
	if len(a.order) <= 2*len(a.known)+64 {
		return
	}
	kept := make([]asker, 0, len(a.known))
	for _, o := range a.order[a.first:] {
		if a.has(o) {
			kept = append(kept, o)
		}
	}
	a.order, a.first = kept, 0
}

// each calls do for each asker, in order.
func (a *askers) each(do func(nodeid.ID)) {
	for _, o := range a.order[a.first:] {
		if a.has(o) {
			do(o.id)
		}
	}
}
