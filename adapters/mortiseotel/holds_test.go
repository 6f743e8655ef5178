package mortiseotel

import (
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/mortise-lock/mortise"
)

// The span of a hold is kept after the hold has ended, because a waiter needs the span after that.
// The number of kept spans is limited, even if holds never end.
func TestHoldsThatHaveEndedAreKeptForAWhile(t *testing.T) {
	h := &holds{spans: map[mortise.Token]trace.SpanContext{}}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
	h.put(1, span)
	h.put(2, span)
	if h.end(1); !h.get(1).IsValid() {
		t.Fatal("a hold that has just ended is forgotten")
	}
	for token := mortise.Token(10); token < 10+maxEnded; token++ {
		h.put(token, span)
		h.end(token)
	}
	if h.get(1).IsValid() || !h.get(2).IsValid() {
		t.Errorf("the oldest that has ended is kept: %v, one that lasts: %v", h.get(1).IsValid(), h.get(2).IsValid())
	}
	for token := mortise.Token(100_000); token < 100_000+2*maxHolds; token++ {
		h.put(token, span)
	}
	if n := len(h.spans); n > maxHolds+maxEnded {
		t.Errorf("%d are kept", n)
	}
}
