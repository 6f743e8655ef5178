package election

import (
	"context"
	"iter"

	"github.com/mortise-lock/mortise"
)

func (g *group) tell(events ...mortise.Event) {
	g.events = append(g.events, events...)
	if g.happened != nil {
		close(g.happened)
		g.happened = nil
	}
}

func (t *term) event(what mortise.EventKind) mortise.Event {
	return mortise.Event{Kind: what, Part: mortise.Part{Key: "e"}, Hold: mortise.Hold{Holder: "node", Value: t.value,
		Token: t.token}}
}

func (g *group) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resets++
	g.tell()
}

func (g *group) watch(ctx context.Context, _ string, _ uint64) iter.Seq2[mortise.Event, error] {
	return func(yield func(mortise.Event, error) bool) {
		g.mu.Lock()
		g.watching++
		g.mu.Unlock()
		defer func() {
			g.mu.Lock()
			g.watching--
			g.mu.Unlock()
		}()
		resets, at := -1, 0
		for {
			g.mu.Lock()
			events := g.events[at:]
			if resets != g.resets {
				resets, events = g.resets, []mortise.Event{{Kind: mortise.EventReset}}
				if len(g.queue) > 0 && g.queue[0].token != 0 {
					events = append(events, g.queue[0].event(mortise.EventHeld))
				}
			}
			at = len(g.events)
			refuses := g.refuses
			if g.happened == nil {
				g.happened = make(chan struct{})
			}
			happened := g.happened
			g.mu.Unlock()
			for _, e := range append(events[:len(events):len(events)], mortise.Event{Kind: mortise.EventCurrent}) {
				if !yield(e, nil) {
					return
				}
			}
			if refuses == nil {
				select {
				case <-happened:
					continue
				case <-ctx.Done():
					refuses = ctx.Err()
				}
			}
			yield(mortise.Event{}, refuses)
			return
		}
	}
}
