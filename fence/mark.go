package fence

import (
	"context"
	"slices"
	"sync"

	"github.com/mortise-lock/mortise"
)

// Mark is a [Store] in the memory of the process that owns the resources: it holds the highest
// token of each. It is also a [Section]. The zero value is ready to use. A Mark is safe for
// concurrent use and must not be copied.
//
// Its marks end with its process, and do not include what other instances of a service have seen.
// That is right for resources in the same memory. For others use a [Table] or [Files], or, with one
// instance, set Floor to the highest token that is stored with them.
type Mark struct {
	// Limit is how many resources are remembered, without those in use by Do. Zero means 65,536. At
	// the limit the half with the lowest tokens is forgotten, and the floor rises to the highest of
	// these. It must not be changed after the first call.
	Limit int

	// Floor is the token below which a resource that is not remembered is refused. Zero refuses
	// nothing. All tokens of a group rise with time, so recent grants lie above it. It must not be
	// changed after the first call.
	Floor mortise.Token

	mu    sync.Mutex
	floor mortise.Token    // the highest of the tokens that were forgotten for room
	cells map[string]*cell // nil until the first use
}

const defaultLimit = 1 << 16

type cell struct {
	highest mortise.Token // zero means forgotten: the cell exists only because it is in use
	turn    mortise.Token // the token of all runs in progress
	runs    map[*run]bool
	waiting int
	over    chan struct{} // closed when the last run has ended; nil while none waits for that
}

func (c *cell) used() bool { return len(c.runs) > 0 || c.waiting > 0 }

// Advance implements [Store]. It does not wait and ignores ctx. It ends the contexts of runs of
// lower tokens (see Do).
func (m *Mark) Advance(_ context.Context, resource string, token mortise.Token) error {
	if err := check(resource, token); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.advance(resource, token)
	return err
}

// Check returns what Advance would return, and remembers nothing. The answer may be stale by the
// time of the write.
func (m *Mark) Check(resource string, token mortise.Token) error {
	if err := check(resource, token); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admits(resource, token)
}

// Highest returns the highest token of resource, and false if it is not remembered.
func (m *Mark) Highest(resource string) (mortise.Token, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cells[resource]
	if c == nil || c.highest == 0 {
		return 0, false
	}
	return c.highest, true
}

// Forget drops the mark of a resource that no longer exists. Afterwards any token at or above the
// floor is admitted, so call it only if a write to the removed resource fails by itself.
func (m *Mark) Forget(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.cells[resource]; c != nil {
		c.highest = 0
		m.tidy(resource, c)
	}
}

// admits returns nil or a *StaleError. It needs mu.
func (m *Mark) admits(resource string, token mortise.Token) error {
	if c := m.cells[resource]; c != nil && c.highest > 0 {
		if token < c.highest {
			return &StaleError{Resource: resource, Token: token, Highest: c.highest}
		}
		return nil
	}
	if floor := max(m.Floor, m.floor); token < floor {
		return &StaleError{Resource: resource, Token: token, Highest: floor, Forgotten: true}
	}
	return nil
}

// advance admits or refuses token, records it, and cancels the runs that it overtakes. It needs mu.
func (m *Mark) advance(resource string, token mortise.Token) (*cell, error) {
	if err := m.admits(resource, token); err != nil {
		return nil, err
	}
	c := m.cells[resource]
	if c == nil {
		m.makeRoom()
		c = &cell{}
		m.cells[resource] = c
	}
	c.highest = token
	if c.turn < token {
		for r := range c.runs {
			r.cancel(&StaleError{Resource: resource, Token: c.turn, Highest: token})
		}
	}
	return c, nil
}

// makeRoom forgets the half with the lowest tokens if there is no room for one more. So the floor
// refuses only resources whose holders have been silent the longest, and the sort happens once per
// Limit/2 new resources. It needs mu.
func (m *Mark) makeRoom() {
	if m.cells == nil {
		m.cells = map[string]*cell{}
	}
	limit := m.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	if len(m.cells) < limit {
		return
	}
	tokens := make([]mortise.Token, 0, len(m.cells))
	for _, c := range m.cells {
		if !c.used() {
			tokens = append(tokens, c.highest)
		}
	}
	if len(tokens) == 0 {
		return // all are in use, so there are no more of them than calls in progress
	}
	slices.Sort(tokens)
	m.floor = max(m.floor, tokens[(len(tokens)-1)/2])
	for resource, c := range m.cells {
		if !c.used() && c.highest <= m.floor {
			delete(m.cells, resource)
		}
	}
}

// tidy drops a cell without a mark and without a user. It needs mu.
func (m *Mark) tidy(resource string, c *cell) {
	if c.highest == 0 && !c.used() {
		delete(m.cells, resource)
	}
}
