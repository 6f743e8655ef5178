package fence

import (
	"context"
	"slices"
	"sync"

	"github.com/mortise-lock/mortise"
)

// Mark is a [Store] and a [Section] in memory. The zero value is ready to use. A Mark is safe for
// concurrent use and must not be copied.
//
// The marks are lost when the process ends, and do not include tokens that other instances of a
// service have seen. So use a Mark only for resources in the memory of the same process, and
// otherwise a [Table] or [Files]. If the service has only one instance, you can instead set Floor
// to the highest token that is stored with the resources.
type Mark struct {
	// Limit is the maximum number of resources that are remembered. Zero means 65,536. At the limit,
	// the Mark forgets the half of the resources with the lowest tokens, and the floor rises to the
	// highest token in that half. Resources in use by Do are not forgotten, so their number can
	// exceed the limit. Limit must not be changed after the first call.
	Limit int

	// Floor is the lowest token that is admitted for a resource that is not remembered. Zero admits
	// every token. The tokens of a group rise with time, so recent grants have tokens above the
	// floor. Floor must not be changed after the first call.
	Floor mortise.Token

	mu    sync.Mutex
	floor mortise.Token    // the highest token that makeRoom has forgotten
	cells map[string]*cell // nil until the first use
}

const defaultLimit = 1 << 16

type cell struct {
	highest mortise.Token // zero means that the mark was forgotten
	turn    mortise.Token // the token of all runs in progress
	runs    map[*run]bool
	waiting int
	over    chan struct{} // closed when the last run ends; nil while no caller waits
}

func (c *cell) used() bool { return len(c.runs) > 0 || c.waiting > 0 }

// Advance implements [Store]. It does not block and ignores ctx. It cancels the contexts of runs of
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

// Check returns the result that Advance would return, but records nothing. The result may be stale
// when you write.
func (m *Mark) Check(resource string, token mortise.Token) error {
	if err := check(resource, token); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admits(resource, token)
}

// Highest returns the highest token of resource, and false if resource is not remembered.
func (m *Mark) Highest(resource string) (mortise.Token, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cells[resource]
	if c == nil || c.highest == 0 {
		return 0, false
	}
	return c.highest, true
}

// Forget drops the mark of a resource that no longer exists. Any token at or above the floor is
// then admitted again. So call Forget only if writes to the removed resource fail even with an
// admitted token.
func (m *Mark) Forget(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.cells[resource]; c != nil {
		c.highest = 0
		m.tidy(resource, c)
	}
}

// admits returns nil or a *StaleError. The caller must hold mu.
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

// advance admits or refuses token. It records an admitted token, and cancels the runs of lower
// tokens. The caller must hold mu.
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

// makeRoom forgets the half of the resources with the lowest tokens if Limit resources are
// remembered. So the floor refuses only old tokens, and tokens are sorted only once for every
// Limit/2 new resources. The caller must hold mu.
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
		return // all cells are in use
	}
	slices.Sort(tokens)
	m.floor = max(m.floor, tokens[(len(tokens)-1)/2])
	for resource, c := range m.cells {
		if !c.used() && c.highest <= m.floor {
			delete(m.cells, resource)
		}
	}
}

// tidy deletes a cell that has no mark and is not in use. The caller must hold mu.
func (m *Mark) tidy(resource string, c *cell) {
	if c.highest == 0 && !c.used() {
		delete(m.cells, resource)
	}
}
