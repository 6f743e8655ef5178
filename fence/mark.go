package fence

import (
	"context"
	"slices"
	"sync"

	"github.com/mortise-lock/mortise"
)

// Mark is a [Store] in the memory of the process that owns the resources: the highest token of
// each. Its zero value is ready to use. It is a [Section], too. It is safe for concurrent use and
// must not be copied.
//
// It forgets everything with its process, and knows nothing of what other instances of a service
// have seen. That is right for resources that live in the same memory; for others use a [Table], or
// [Files], or, with one instance, set Floor to the highest token that is stored with them.
type Mark struct {
	// Limit is how many resources are remembered, those in use by Do not counted; 0 means 65,536.
	// When there would be more, the half with the lowest tokens is forgotten, and Floor rises to
	// the highest of these. It must not be changed after the first call.
	Limit int

	// Floor is the token below which a resource that is not remembered is refused; 0 refuses
	// nothing. All tokens of a group rise with time, so what was granted lately lies above. It must
	// not be changed after the first call.
	Floor mortise.Token

	mu    sync.Mutex
	floor mortise.Token    // the highest token of those that were forgotten for room
	cells map[string]*cell // nil until the first
}

// defaultLimit is how many resources a Mark remembers if nobody says otherwise.
const defaultLimit = 1 << 16

// cell is what a Mark knows of one resource.
type cell struct {
	highest mortise.Token // 0: forgotten, and here only because it is in use
	turn    mortise.Token // the token of all runs under way
	runs    map[*run]bool
	waiting int
	over    chan struct{} // closed when the last of the runs has ended; nil while none waits for that
}

func (c *cell) used() bool { return len(c.runs) > 0 || c.waiting > 0 }

// Advance implements [Store]. It does not wait and ignores ctx. Runs of lower tokens (see Do) learn
// of it by the end of their contexts.
func (m *Mark) Advance(_ context.Context, resource string, token mortise.Token) error {
	if err := check(resource, token); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.advance(resource, token)
	return err
}

// Check says what Advance would, and remembers nothing. What it has admitted may be stale by the
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

// Forget drops what is known of a resource that exists no more. From then on any token of it is
// admitted that is not below the floor, so call it only where a write to what is gone fails by
// itself.
func (m *Mark) Forget(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.cells[resource]; c != nil {
		c.highest = 0
		m.tidy(resource, c)
	}
}

// admits returns nil, or the *StaleError. The caller holds mu.
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

// advance admits or refuses, remembers, and tells runs that they are overtaken. The caller holds
// mu.
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

// makeRoom forgets the half with the lowest tokens if there is no room for one more. That keeps
// refusals by the floor to resources whose holders have been silent for the longest time, and costs
// a sort once in Limit/2 new resources. The caller holds mu.
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
		return // all are in use: they are bounded by the calls under way
	}
	slices.Sort(tokens)
	m.floor = max(m.floor, tokens[(len(tokens)-1)/2])
	for resource, c := range m.cells {
		if !c.used() && c.highest <= m.floor {
			delete(m.cells, resource)
		}
	}
}

// tidy drops a cell that says nothing. The caller holds mu.
func (m *Mark) tidy(resource string, c *cell) {
	if c.highest == 0 && !c.used() {
		delete(m.cells, resource)
	}
}
