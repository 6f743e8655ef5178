package mortiseotel

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mortise-lock/mortise"
)

// TestHoldsThatHaveEndedAreKeptForAWhile compares the spans that are kept with a list: the first
// maxHolds of the holds that last, and the last maxEnded of those that have ended, because a waiter
// needs the span after that.
func TestHoldsThatHaveEndedAreKeptForAWhile(t *testing.T) {
	h := &holds{spans: map[mortise.Token]trace.SpanContext{}}
	span := func(of mortise.Token) trace.SpanContext {
		return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1},
			SpanID: trace.SpanID{1, byte(of), byte(of >> 8), byte(of >> 16)}})
	}
	var ended []mortise.Token
	check := func(last mortise.Token, lasting func(mortise.Token) bool) {
		t.Helper()
		kept := ended[max(0, len(ended)-maxEnded):]
		for token := mortise.Token(1); token <= last; token++ {
			want := trace.SpanContext{}
			if lasting(token) || slices.Contains(kept, token) {
				want = span(token)
			}
			if got := h.get(token); !got.Equal(want) {
				t.Fatalf("after %d ends, the span of %d is %v, want %v", len(ended), token, got, want)
			}
		}
	}
	h.put(1, span(1))
	h.put(2, trace.SpanContext{}) // a provider that makes no spans
	h.end(2)
	for token := mortise.Token(3); token <= 2*maxEnded+10; token++ {
		h.put(token, span(token))
		h.end(token)
		h.end(1_000_000) // unknown
		if ended = append(ended, token); token%97 == 0 || len(ended) > 2*maxEnded-3 ||
			len(ended) >= maxEnded-1 && len(ended) <= maxEnded+2 {
			check(token+1, func(t mortise.Token) bool { return t == 1 })
		}
	}
	const first = 10_000
	full := mortise.Token(first + maxHolds - 2) // with 1 there are maxHolds
	for token := mortise.Token(first); token <= full+1; token++ {
		h.put(token, span(token))
	}
	lasts := func(t mortise.Token) bool { return t == 1 || t >= first && t <= full }
	check(full+1, lasts)
	h.end(1)
	ended = append(ended, 1)
	h.put(full+2, span(full+2))
	h.put(full+3, span(full+3))
	check(full+3, func(t mortise.Token) bool { return lasts(t) && t != 1 || t == full+2 })
}

// TestTheLimitOfWhatIsRemembered fills the doubts and the running holds beyond their limit, and
// ends one.
func TestTheLimitOfWhatIsRemembered(t *testing.T) {
	var d doubts
	var r running
	begin := func(token mortise.Token) {
		d.begin(token)
		r.begin(token, "", time.Time{})
	}
	for token := mortise.Token(1); token <= maxHolds+1; token++ {
		begin(token)
	}
	if !d.end(5) || d.end(5) {
		t.Error("a doubt ends once")
	}
	r.end(5)
	begin(maxHolds + 2)
	begin(maxHolds + 3)
	for token := mortise.Token(1); token <= maxHolds+3; token++ {
		want := token <= maxHolds && token != 5 || token == maxHolds+2
		if _, runs := r.holds[token]; runs != want || d.end(token) != want {
			t.Fatalf("%d runs: %v, want %v, and as a doubt: %v", token, runs, want, !want)
		}
	}
}

// TestMarks checks that only 25 bytes are a mark, and that each of them counts.
func TestMarks(t *testing.T) {
	telemetry := &Telemetry{}
	c := trace.SpanContextConfig{TraceFlags: trace.FlagsSampled, Remote: true}
	for i := range c.TraceID {
		c.TraceID[i] = byte(1 + i)
	}
	for i := range c.SpanID {
		c.SpanID[i] = byte(101 + i)
	}
	for _, c.TraceFlags = range []trace.TraceFlags{0, trace.FlagsSampled} {
		want := trace.NewSpanContext(c)
		mark := telemetry.mark(trace.ContextWithSpanContext(t.Context(), want))
		if got := decodeMark(mark); len(mark) != 25 || !got.Equal(want) {
			t.Errorf("%x is %v, want %v", mark, got, want)
		}
		for _, n := range []int{0, 1, 16, 24} {
			if got := decodeMark(mark[:n]); got.IsValid() {
				t.Errorf("%d bytes are %v", n, got)
			}
		}
		if got := decodeMark(append(mark, 0)); got.IsValid() {
			t.Errorf("26 bytes are %v", got)
		}
	}
}
