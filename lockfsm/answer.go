package lockfsm

import "slices"

// answer has the memory of the present result, which the machine reuses.
type answer struct {
	result  Result
	holder  Holder
	evicted Eviction
	states  []Change
}

// begin returns an empty result.
func (a *answer) begin() *Result {
	a.result = Result{}
	return &a.result
}

func (a *answer) name(holder Holder) *Holder {
	a.holder = holder
	return &a.holder
}

func (a *answer) evict(e Eviction) *Eviction {
	a.evicted = e
	return &a.evicted
}

// list returns the states of all requests of a session.
func (a *answer) list(s *session) []Change {
	a.states = slices.Grow(emptied(a.states), s.requests.Len())
	for e := range s.requests.All() {
		a.states = append(a.states, e.change())
	}
	return a.states
}
