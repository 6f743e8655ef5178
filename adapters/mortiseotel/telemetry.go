package mortiseotel

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/mortise-lock/mortise"
)

const scope = "github.com/mortise-lock/mortise/adapters/mortiseotel"

// Options configure a Telemetry. With the zero value, a Telemetry measures nothing.
type Options struct {
	// MeterProvider provides the instruments. Nil means no metrics.
	MeterProvider metric.MeterProvider

	// TracerProvider provides the tracer. Nil means no spans.
	TracerProvider trace.TracerProvider

	// Class returns the class of a key, for example "orders" for "orders/42". The class becomes a
	// label of the metrics of locks. Class is called on the goroutines of the lock's callers and
	// must be fast. There must be only a few classes. Nil means no such label.
	Class func(key string) string

	// Attributes are added to all metrics and spans. They distinguish the nodes of one process.
	Attributes []attribute.KeyValue
}

// Telemetry turns the events of a node into metrics and spans.
type Telemetry struct {
	options Options
	meter   meter // the zero meter makes no metrics
	tracer  trace.Tracer
	holds   holds
	running running
	doubts  doubts
}

// New returns a Telemetry with its instruments.
func New(o Options) (*Telemetry, error) {
	t := &Telemetry{options: o}
	if o.MeterProvider != nil {
		if err := t.meter.make(o.MeterProvider.Meter(scope), o.Attributes); err != nil {
			return nil, fmt.Errorf("mortiseotel: %w", err)
		}
	}
	if o.TracerProvider != nil {
		t.tracer = o.TracerProvider.Tracer(scope)
		t.holds.spans = map[mortise.Token]trace.SpanContext{}
	}
	return t, nil
}

// Hooks returns the value for Config.Hooks. The caller may change the value, for example to wrap
// functions or to set functions to nil. If Leaked is nil, mortise does not spend time on detecting
// leaks.
func (t *Telemetry) Hooks() *mortise.Hooks {
	h := &mortise.Hooks{Acquired: t.acquired, Unlocked: t.unlocked, Lost: t.lost, InDoubt: t.inDoubt,
		Leaked: t.leaked}
	if t.tracer != nil {
		h.Mark = t.mark
	}
	if t.meter.made {
		h.Node, h.Synced = t.meter.node, t.meter.synced
	}
	return h
}

// Observe makes the gauges read node.Status whenever they are collected, until stop is called. Call
// stop when you no longer use the node. Without a MeterProvider, Observe does nothing. It returns
// the error of the provider.
func (t *Telemetry) Observe(node *mortise.Node) (stop func() error, err error) {
	if !t.meter.made {
		return func() error { return nil }, nil
	}
	r, err := t.meter.observe(node.Status, &t.running)
	if err != nil {
		return nil, fmt.Errorf("mortiseotel: %w", err)
	}
	return r.Unregister, nil
}

func (t *Telemetry) acquired(ctx context.Context, e mortise.LockEvent) any {
	class := t.class(e.Key)
	if t.meter.made {
		t.meter.acquired(ctx, class, e)
		if e.Outcome == mortise.OutcomeGranted && e.Purpose == "" {
			t.running.begin(e.Token, t.className(e.Key), time.Now())
		}
	}
	if t.tracer == nil {
		return nil
	}
	t.waited(ctx, e)
	if e.Outcome != mortise.OutcomeGranted {
		return nil
	}
	return t.hold(ctx, e)
}

func (t *Telemetry) unlocked(ctx context.Context, e mortise.LockEvent) {
	if t.meter.made {
		t.meter.unlocked(ctx, t.class(e.Key), e)
	}
	if e.Outcome != mortise.OutcomeLeft {
		t.endDoubt(e, map[bool]string{true: doubtLost, false: doubtUnlocked}[e.Outcome == mortise.OutcomeLost])
		t.running.end(e.Token)
		t.release(e)
	}
}

func (t *Telemetry) lost(e mortise.LockEvent) {
	if t.meter.made {
		t.meter.lost(t.class(e.Key), e)
	}
	t.endDoubt(e, doubtLost)
	t.running.end(e.Token)
	t.release(e)
}

func (t *Telemetry) leaked(e mortise.LockEvent) {
	if t.meter.made {
		t.meter.leaked(t.class(e.Key))
	}
	if h, ok := e.Tag.(*hold); ok {
		h.span.AddEvent("mortise.leaked", trace.WithAttributes(attribute.String("mortise.where", e.Where)))
	}
}

func (t *Telemetry) class(key string) []attribute.KeyValue {
	if t.options.Class == nil {
		return nil
	}
	return []attribute.KeyValue{attribute.String("class", t.className(key))}
}

func (t *Telemetry) className(key string) string {
	if t.options.Class == nil {
		return ""
	}
	return t.options.Class(key)
}
