package keeper

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

const maxAskers = 4096

// askers are the peers that have asked for the leader, in the order in which they asked. They
// remain until their stream ends, because they may need the next leader too.
type askers struct {
	order []nodeid.ID
	known map[nodeid.ID]struct{}
}

// remember adds a peer. At the limit it removes the oldest peer, which will ask again.
func (a *askers) remember(id nodeid.ID) {
	if _, ok := a.known[id]; ok {
		return
	}
	if len(a.order) == maxAskers {
		delete(a.known, a.order[0])
		a.order = slices.Delete(a.order, 0, 1)
	}
	a.known[id] = struct{}{}
	a.order = append(a.order, id)
}

func (a *askers) forget(id nodeid.ID) {
	if _, ok := a.known[id]; ok {
		delete(a.known, id)
		a.order = slices.DeleteFunc(a.order, func(o nodeid.ID) bool { return o == id })
	}
}
