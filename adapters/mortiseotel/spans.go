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

// Limits of the holds whose spans are kept, so that a wait can link to them.
const (
	maxHolds = 16_384 // current holds
	maxEnded = 1_024  // ended holds, because a wait may end after the hold that it links to
)

type hold struct {
	token mortise.Token
	span  trace.Span
	over  sync.Once
}

type holds struct {
	mu    sync.Mutex // guards the fields below; never held while blocking
	spans map[mortise.Token]trace.SpanContext
	live  int
	ended []mortise.Token // a ring
	next  int
}

func (h *holds) put(token mortise.Token, span trace.SpanContext) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if span.IsValid() && h.live < maxHolds {
		h.spans[token] = span
		h.live++
	}
}

func (h *holds) get(token mortise.Token) trace.SpanContext {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spans[token]
}

func (h *holds) end(token mortise.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.spans[token]; !known {
		return
	}
	h.live--
	if len(h.ended) < maxEnded {
		h.ended = append(h.ended, token)
		return
	}
	delete(h.spans, h.ended[h.next])
	h.ended[h.next] = token
	h.next = (h.next + 1) % maxEnded
}

func (t *Telemetry) waited(ctx context.Context, e mortise.LockEvent) {
	now := time.Now()
	attributes := t.attributes(e, attribute.String("mortise.outcome", string(e.Outcome)))
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

func (t *Telemetry) hold(ctx context.Context, e mortise.LockEvent) *hold {
	_, span := t.tracer.Start(ctx, "mortise.hold", trace.WithAttributes(t.attributes(e)...))
	t.holds.put(e.Token, span.SpanContext())
	return &hold{token: e.Token, span: span}
}

// release ends the span of a lock. It can be called twice for one lock, by Unlock and by the loss
// of the lock.
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

func (t *Telemetry) attributes(e mortise.LockEvent, more ...attribute.KeyValue) []attribute.KeyValue {
	list := append([]attribute.KeyValue{
		attribute.String("mortise.key", e.Key), attribute.Int("mortise.keys", 1+len(e.Also)),
		attribute.String("mortise.mode", e.Mode.String()), attribute.Bool("mortise.tree", e.Tree),
	}, more...)
	if e.Token != 0 {
		list = append(list, tokenIs("mortise.token", e.Token))
	}
	return append(list, t.options.Attributes...)
}

// tokenIs returns an attribute with a token as text, because some trace stores cannot hold 64-bit
// integers.
func tokenIs(key string, token mortise.Token) attribute.KeyValue {
	return attribute.String(key, strconv.FormatUint(uint64(token), 10))
}

// linkTo returns the link from a waiting call to the hold that delayed it: to the span of that
// hold, or to the span in which that hold was requested.
func linkTo(span trace.SpanContext, what string) []trace.Link {
	return []trace.Link{{SpanContext: span, Attributes: []attribute.KeyValue{attribute.String("mortise.link", what)}}}
}

// mark implements Hooks.Mark: it encodes the caller's span in 25 bytes. The span of the hold does
// not exist yet, because it begins only with the grant.
func (t *Telemetry) mark(ctx context.Context) []byte {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return nil
	}
	traceID, spanID := span.TraceID(), span.SpanID()
	return append(append(traceID[:], spanID[:]...), byte(span.TraceFlags()))
}

// decodeMark is the inverse of mark. For data of a wrong length it returns an invalid span.
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
