package election

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise"
)

// group is a lock in memory that several instances share. A test can end a hold as lost.
type group struct {
	mu      sync.Mutex // guards the fields below, and the fields of terms except their channels
	queue   []*term    // the first term leads
	token   mortise.Token
	refuses error // the error of the next acquire only
	unheard bool  // Unlock gets no confirmation

	events   []mortise.Event
	resets   int           // increases when watchers must start from the beginning
	watching int           // the number of watchers
	happened chan struct{} // closed when the field events, resets or refuses changes; nil if no watcher waits for it
}

type term struct {
	group   *group
	value   string
	token   mortise.Token
	granted chan struct{}
	done    chan struct{}
	err     error
	beats   atomic.Uint64
}

func (g *group) election(o Options) *Election {
	return &Election{name: "e", options: o, acquire: g.acquire, peek: g.peek, watch: g.watch}
}

func (g *group) acquire(ctx context.Context, r mortise.Request) (grant, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	t := &term{group: g, value: r.Value, granted: make(chan struct{}), done: make(chan struct{})}
	g.mu.Lock()
	err := g.refuses
	g.refuses = nil
	if err == nil {
		g.queue = append(g.queue, t)
		g.serve()
	}
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-t.granted:
		return t, nil
	case <-ctx.Done():
		t.end(mortise.ErrUnlocked)
		return nil, ctx.Err()
	}
}

func (g *group) serve() {
	if len(g.queue) > 0 && g.queue[0].token == 0 {
		g.token++
		g.queue[0].token = g.token
		close(g.queue[0].granted)
		g.tell(g.queue[0].event(mortise.EventHeld))
	}
}

func (g *group) peek(ctx context.Context, key string) (mortise.KeyInfo, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil {
		return mortise.KeyInfo{}, ctx.Err()
	}
	if g.refuses != nil {
		return mortise.KeyInfo{}, g.refuses
	}
	info := mortise.KeyInfo{Key: key}
	for _, t := range g.queue {
		info.Queue = append(info.Queue, mortise.Standing{Hold: mortise.Hold{Holder: "node", Value: t.value, Token: t.token}})
	}
	return info, nil
}

func (g *group) lose() {
	g.mu.Lock()
	first := g.queue[0]
	g.mu.Unlock()
	first.end(mortise.ErrLost)
}

func (g *group) refuse(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuses = err
	g.tell()
}

func (t *term) SetValue(_ context.Context, value string) error {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	t.value = value
	t.group.tell(t.event(mortise.EventHeld))
	return nil
}

// end removes t from the queue, and stores why as the reason of its end. If t has already ended,
// end does nothing and returns the earlier reason.
func (t *term) end(why error) error {
	g := t.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	t.err = why
	close(t.done)
	if t.token != 0 {
		g.tell(t.event(mortise.EventFreed))
	}
	g.queue = slices.DeleteFunc(g.queue, func(other *term) bool { return other == t })
	g.serve()
	return nil
}

func (t *term) Token() mortise.Token  { return t.token }
func (t *term) Done() <-chan struct{} { return t.done }

func (t *term) Err() error {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	return t.err
}

func (t *term) Regain(context.Context) error { return t.Err() }

func (t *term) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		select {
		case <-t.done:
			cancel(t.Err())
		case <-ctx.Done():
		}
	}()
	return ctx
}

func (t *term) Beat() { t.beats.Add(1) }

func (t *term) Unlock(ctx context.Context) error {
	if err := t.end(mortise.ErrUnlocked); err != nil && err != mortise.ErrUnlocked {
		return err
	}
	t.group.mu.Lock()
	unheard := t.group.unheard
	t.group.mu.Unlock()
	if unheard {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}
