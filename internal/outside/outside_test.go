package outside

import (
	"context"
	"testing"

	"github.com/mortise-lock/mortise/internal/clock"
)

func TestTheNearestWorldCounts(t *testing.T) {
	if w := From(t.Context()); w.Clock != nil || w.Listen != nil || w.Dial != nil || w.Resolve != nil {
		t.Error("a world from nowhere")
	}
	var outer, inner clock.Manual
	ctx := In(t.Context(), World{Clock: &outer})
	child, cancel := context.WithCancel(ctx)
	defer cancel()
	if From(child).Clock != clock.Clock(&outer) {
		t.Error("a child has not the world of its parent")
	}
	if From(In(child, World{Clock: &inner})).Clock != clock.Clock(&inner) || From(child).Clock != clock.Clock(&outer) {
		t.Error("the nearest world does not count")
	}
}
