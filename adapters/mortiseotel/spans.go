package mortiseotel

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mortise-lock/mortise"
)

// Bounds of what is remembered for links.
const (
	holdsMost = 16_384 // that last
	endedMost = 1_024  // that have ended: whoever waited for one is granted the lock, and looks for it, a moment later
)

// hold is the span of a lock that is held.
type hold struct {
	token mortise.Token
	span  trace.Span
	over  sync.Once
}

// holds finds the span of a hold of this process by its token.
type holds struct {
	mu    sync.Mutex // guards the rest; never held across a wait
	spans map[mortise.Token]trace.SpanContext
	live  int
	ended []mortise.Token // a ring
	next  int
}

func (h *holds) put(token mortise.Token, span trace.SpanContext) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if span.IsValid() && h.live < holdsMost {
		h.spans[token] = span
		h.live++
	}
}

func (h *holds) get(token mortise.Token) trace.SpanContext {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spans[token]
}

// end keeps the hold among the last that have ended.
func (h *holds) end(token mortise.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.spans[token]; !known {
		return
	}
	h.live--
	if len(h.ended) < endedMost {
		h.ended = append(h.ended, token)
		return
	}
	delete(h.spans, h.ended[h.next])
	h.ended[h.next] = token
	h.next = (h.next + 1) % endedMost
}

// waited makes the span of a call that has ended just now.
func (t *Telemetry) waited(ctx context.Context, e mortise.LockEvent) {
	now := time.Now()
	attributes := t.attributes(e, attribute.String("mortise.outcome", string(e.Outcome)),
		attribute.Bool("mortise.try", e.Try))
	var links []trace.Link
	if b := e.Behind; b != nil {
		attributes = append(attributes, attribute.String("mortise.behind.holder", b.Holder),
			tokenIs("mortise.behind.token", b.Token))
		if span := t.holds.get(b.Token); span.IsValid() {
			links = linkTo(span, "hold")
		} else if caller := decodeMark(e.BehindMark); caller.IsValid() {
			links = linkTo(caller, "caller")
		}
	}
	if e.Waiting >= 0 {
		attributes = append(attributes, attribute.Int("mortise.waiting", e.Waiting))
	}
	_, span := t.tracer.Start(ctx, "mortise.wait", trace.WithTimestamp(now.Add(-e.Took)),
		trace.WithAttributes(attributes...), trace.WithLinks(links...))
	if e.Err != nil {
		span.SetStatus(codes.Error, string(e.Outcome))
		span.RecordError(e.Err)
	}
	span.End(trace.WithTimestamp(now))
}

// hold begins the span of a lock that was granted.
func (t *Telemetry) hold(ctx context.Context, e mortise.LockEvent) *hold {
	_, span := t.tracer.Start(ctx, "mortise.hold", trace.WithAttributes(t.attributes(e)...))
	t.holds.put(e.Token, span.SpanContext())
	return &hold{token: e.Token, span: span}
}

// release ends the span of a lock that has ended. Unlock and the loss of a lock may both tell that.
func (t *Telemetry) release(e mortise.LockEvent) {
	h, ok := e.Tag.(*hold)
	if !ok {
		return
	}
	h.over.Do(func() {
		h.span.SetAttributes(attribute.String("mortise.outcome", string(e.Outcome)))
		if e.Err != nil {
			h.span.SetStatus(codes.Error, string(e.Outcome))
			h.span.RecordError(e.Err)
		}
		h.span.End()
		t.holds.end(h.token)
	})
}

// attributes are those that a wait and a hold have in common.
func (t *Telemetry) attributes(e mortise.LockEvent, more ...attribute.KeyValue) []attribute.KeyValue {
	list := append([]attribute.KeyValue{attribute.String("mortise.key", e.Key), attribute.Int("mortise.keys", e.Keys),
		attribute.String("mortise.kind", string(e.Kind))}, more...)
	if e.Token != 0 {
		list = append(list, tokenIs("mortise.token", e.Token))
	}
	return append(list, t.options.Attributes...)
}

// tokenIs is a token as text: not every store of traces has numbers that large.
func tokenIs(key string, token mortise.Token) attribute.KeyValue {
	return attribute.String(key, strconv.FormatUint(uint64(token), 10))
}

// linkTo is a link to what a wait was behind: the span of the hold, or what the holder has locked
// for.
func linkTo(span trace.SpanContext, what string) []trace.Link {
	return []trace.Link{{SpanContext: span, Attributes: []attribute.KeyValue{attribute.String("mortise.link", what)}}}
}

// mark is the hook of that name: who the caller is, in 25 bytes. The span of the hold cannot
// travel, since it begins with the grant.
func (t *Telemetry) mark(ctx context.Context) []byte {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return nil
	}
	traceID, spanID := span.TraceID(), span.SpanID()
	return append(append(traceID[:], spanID[:]...), byte(span.TraceFlags()))
}

// decodeMark is the inverse of mark; what it cannot read is no span.
func decodeMark(mark []byte) trace.SpanContext {
	var c trace.SpanContextConfig
	if len(mark) != len(c.TraceID)+len(c.SpanID)+1 {
		return trace.SpanContext{}
	}
	copy(c.TraceID[:], mark)
	copy(c.SpanID[:], mark[len(c.TraceID):])
	c.TraceFlags, c.Remote = trace.TraceFlags(mark[len(mark)-1]), true
	return trace.NewSpanContext(c)
}
