package fence

import (
	"context"
	"slices"
	"sync"
)

// Memo is like a [Ledger], but stores results in memory. Its zero value is ready to use. It is safe
// for concurrent use and must not be copied.
//
// Within one process, fn succeeds only once for each step, as long as the Memo keeps the result. An
// fn that fails or is interrupted may have had an effect, and runs again when the step is repeated.
type Memo struct {
	// Marks compares the tokens. If Marks is nil, the Memo uses a Mark of its own. Marks must not be
	// changed after the first call.
	Marks Store

	// Limit is the maximum number of results that are kept. Zero means 65,536. The oldest result is
	// dropped first. Limit must not be changed after the first call.
	Limit int

	own   Mark
	mu    sync.Mutex
	steps map[stepKey]*outcome
	done  []stepKey // the finished steps, oldest first
}

type stepKey struct{ resource, id string }

type outcome struct {
	over   chan struct{} // closed when the step is done or has failed; the fields below are set before that
	done   bool
	result []byte
}

// Do returns a copy of the stored result of the step, or runs fn and stores its result. Concurrent
// calls wait for the result as long as their ctx allows. If the fn of the first call fails, the
// next call runs its own fn. A stale token fails with a *StaleError even if the step is done. The
// context of fn carries the token. If Marks is nil or a [Section], a higher token ends this context
// early.
func (m *Memo) Do(ctx context.Context, step Step, fn func(context.Context) ([]byte, error)) (result []byte, err error) {
	id, err := step.id()
	if err != nil {
		return nil, err
	}
	var marks Store = &m.own
	if m.Marks != nil {
		marks = m.Marks
	}
	err = Run(ctx, marks, step.Resource, step.Token, func(ctx context.Context) error {
		result, err = m.once(ctx, stepKey{step.Resource, id}, fn)
		return err
	})
	return slices.Clone(result), err
}

func (m *Memo) once(ctx context.Context, key stepKey, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	for {
		o, mine := m.claim(key)
		if mine {
			return m.work(ctx, key, o, fn)
		}
		select {
		case <-o.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if o.done {
			return o.result, nil
		}
	}
}

func (m *Memo) claim(key stepKey) (o *outcome, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.steps[key]; o != nil {
		return o, false
	}
	if m.steps == nil {
		m.steps = map[stepKey]*outcome{}
	}
	o = &outcome{over: make(chan struct{})}
	m.steps[key] = o
	return o, true
}

func (m *Memo) work(ctx context.Context, key stepKey, o *outcome,
	fn func(context.Context) ([]byte, error)) (result []byte, err error) {
	finished := false
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		defer close(o.over)
		if !finished || err != nil {
			delete(m.steps, key)
			return
		}
		o.done, o.result = true, slices.Clone(result)
		m.keep(key)
	}()
	result, err = fn(ctx)
	finished = true
	return result, err
}

// keep records a finished step. The caller must hold mu.
func (m *Memo) keep(key stepKey) {
	limit := m.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	m.done = append(m.done, key)
	for len(m.done) > limit {
		delete(m.steps, m.done[0])
		m.done = m.done[1:]
	}
}
