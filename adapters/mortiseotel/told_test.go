package mortiseotel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/mortise-lock/mortise"
)

// told is a Telemetry with all that it has told: metrics and ended spans, each as a line.
type told struct {
	*Telemetry
	*mortise.Hooks
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	caller trace.Span // the span of the calls
	ctx    context.Context
	begun  time.Time
}

func newTold(t *testing.T, change func(*Options)) *told {
	t.Helper()
	w := &told{reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder(), begun: time.Now()}
	o := Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans)),
		Class:          func(key string) string { return strings.SplitN(key, "/", 2)[0] },
		Attributes:     []attribute.KeyValue{attribute.String("node", "a")}}
	change(&o)
	var err error
	if w.Telemetry, err = New(o); err != nil {
		t.Fatal(err)
	}
	w.Hooks = w.Telemetry.Hooks()
	w.ctx, w.caller = sdktrace.NewTracerProvider().Tracer("caller").Start(t.Context(), "call")
	return w
}

// metrics returns a line for each series, without counters that are 0.
func (w *told) metrics(t *testing.T) (lines []string) {
	t.Helper()
	return w.series(t, func(name, labels string, value any) string {
		if n, is := value.(int64); is && n == 0 {
			return ""
		}
		return fmt.Sprint(strings.TrimPrefix(name, "mortise."), " ", labels, " ", value)
	})
}

func (w *told) series(t *testing.T, line func(name, labels string, value any) string) (lines []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			note := func(labels attribute.Set, value any) {
				if text := line(m.Name, listed(labels.ToSlice()), value); text != "" {
					lines = append(lines, text)
				}
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, fmt.Sprint(p.Count, "x ", p.Sum))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					note(p.Attributes, p.Value)
				}
			default:
				t.Fatalf("%s is a %T", m.Name, data)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func listed(attributes []attribute.KeyValue) string {
	var all []string
	for _, a := range attributes {
		if a.Key == "exception.type" {
			continue
		}
		all = append(all, strings.TrimPrefix(string(a.Key), "mortise.")+"="+a.Value.Emit())
	}
	return strings.Join(all, ",")
}

// ended returns a line for each span that has ended, in this order.
func (w *told) ended() (lines []string) {
	id := func(c trace.SpanContext) string { return c.TraceID().String() + c.SpanID().String() }
	names := map[string]string{id(w.caller.SpanContext()): "caller", id(trace.SpanContext{}): "none"}
	for _, s := range w.spans.Started() {
		names[id(s.SpanContext())] = s.Name()
	}
	for _, s := range w.spans.Ended() {
		line := fmt.Sprintf("%s in %s, %v to %v: %s", s.Name(), names[id(s.Parent())], s.StartTime().Sub(w.begun),
			s.EndTime().Sub(w.begun), listed(s.Attributes()))
		if d := s.Status().Description; s.Status().Code != 0 {
			line += fmt.Sprintf("; %v %s", s.Status().Code, d)
		}
		for _, l := range s.Links() {
			line += fmt.Sprintf("; to %s %s, remote: %v, sampled: %v", names[id(l.SpanContext)], listed(l.Attributes),
				l.SpanContext.IsRemote(), l.SpanContext.IsSampled())
		}
		for _, e := range s.Events() {
			line += strings.TrimSuffix("; event "+e.Name+" "+listed(e.Attributes), " ")
		}
		lines = append(lines, line)
	}
	return lines
}

// scenes returns calls of hooks, each scene for a new Telemetry.
func scenes() (all []scene) {
	failed := errors.New("x")
	event := func(o mortise.Outcome, change ...func(e *mortise.LockEvent)) mortise.LockEvent {
		e := mortise.LockEvent{Part: mortise.Part{Key: "orders/1", Mode: mortise.Shared}, Outcome: o, Token: 7,
			Took: 2 * time.Second, Held: 3 * time.Second, Waiting: -1}
		for _, c := range change {
			c(&e)
		}
		return e
	}
	add := func(what string, do func(w *told)) { all = append(all, scene{what, do}) }
	acquired := func(what string, o mortise.Outcome, change ...func(e *mortise.LockEvent)) {
		add("acquired: "+what, func(w *told) { w.Acquired(w.ctx, event(o, change...)) })
	}
	waiting := func(n int) func(e *mortise.LockEvent) { return func(e *mortise.LockEvent) { e.Waiting = n } }
	mode := func(m mortise.Mode) func(e *mortise.LockEvent) { return func(e *mortise.LockEvent) { e.Mode = m } }
	refused := func(e *mortise.LockEvent) { e.Err, e.Token = failed, 0 }
	behind := func(token mortise.Token) func(e *mortise.LockEvent) {
		return func(e *mortise.LockEvent) {
			e.Behind = &mortise.HeldError{Hold: mortise.Hold{Holder: "b", Token: token}}
		}
	}
	for _, m := range []mortise.Mode{mortise.Exclusive, mortise.Shared, mortise.Upgradable, mortise.Permits(1, 2),
		mortise.Permits(2, 2)} {
		acquired("granted, "+m.String(), mortise.OutcomeGranted, mode(m), waiting(0))
	}
	acquired("granted in a queue of unknown length", mortise.OutcomeGranted)
	acquired("granted for an election", mortise.OutcomeGranted, waiting(2),
		func(e *mortise.LockEvent) { e.Purpose = "election" })
	acquired("granted, three keys and a tree", mortise.OutcomeGranted,
		func(e *mortise.LockEvent) { e.Also, e.Tree = make([]mortise.Part, 2), true })
	acquired("entered", mortise.OutcomeEntered, waiting(2))
	for _, o := range []mortise.Outcome{mortise.OutcomeHeld, mortise.OutcomeQueueFull, mortise.OutcomeDeadlock,
		mortise.OutcomeTimeout, mortise.OutcomeCanceled, mortise.OutcomeNotReady, mortise.OutcomeOverloaded,
		mortise.OutcomeLeaving, mortise.OutcomeNotHeld, mortise.OutcomeNoRoom, mortise.OutcomeBadRequest,
		mortise.OutcomeFailed, mortise.OutcomeClosed, mortise.OutcomeInDoubt} {
		acquired(string(o), o, refused, behind(5), waiting(1))
	}
	add("acquired: behind the caller of another instance", func(w *told) {
		mark := w.Mark(w.ctx)
		w.Acquired(context.Background(), event(mortise.OutcomeHeld, refused, behind(5),
			func(e *mortise.LockEvent) { e.BehindMark = mark }))
	})
	add("acquired: behind a hold of this instance", func(w *told) {
		w.Acquired(w.ctx, event(mortise.OutcomeGranted))
		mark := w.Mark(w.ctx)
		w.Acquired(w.ctx, event(mortise.OutcomeHeld, refused, behind(7),
			func(e *mortise.LockEvent) { e.BehindMark = mark }))
	})
	add("acquired without a span: no mark", func(w *told) {
		if mark := w.Mark(context.Background()); mark != nil {
			w.Acquired(w.ctx, event(mortise.OutcomeFailed, refused))
		}
	})
	hold := func(what string, then func(w *told, tag any)) {
		add("held: "+what, func(w *told) {
			tag := w.Acquired(w.ctx, event(mortise.OutcomeGranted))
			time.Sleep(time.Second)
			then(w, tag)
		})
	}
	tagged := func(tag any, err error) func(e *mortise.LockEvent) {
		return func(e *mortise.LockEvent) { e.Tag, e.Err = tag, err }
	}
	for _, o := range []mortise.Outcome{mortise.OutcomeConfirmed, mortise.OutcomeSoon, mortise.OutcomeDetached,
		mortise.OutcomeLeft, mortise.OutcomeClosed} {
		hold("unlocked, "+string(o), func(w *told, tag any) { w.Unlocked(w.ctx, event(o, tagged(tag, nil))) })
	}
	for _, o := range []mortise.Outcome{mortise.OutcomeLost, mortise.OutcomeUnconfirmed} {
		hold("unlocked, "+string(o), func(w *told, tag any) { w.Unlocked(w.ctx, event(o, tagged(tag, failed))) })
	}
	for _, o := range []mortise.Outcome{mortise.OutcomeLease, mortise.OutcomeOverdue, mortise.OutcomeForced,
		mortise.OutcomeResumed, mortise.OutcomeExpired, mortise.OutcomeRestarted, mortise.OutcomeStopped,
		mortise.OutcomeUnknown} {
		hold("lost, "+string(o), func(w *told, tag any) { w.Lost(event(o, tagged(tag, failed))) })
	}
	hold("lost, then unlocked", func(w *told, tag any) {
		w.Lost(event(mortise.OutcomeLease, tagged(tag, failed)))
		time.Sleep(time.Second)
		w.Unlocked(w.ctx, event(mortise.OutcomeLost, tagged(tag, failed)))
	})
	hold("leaked", func(w *told, tag any) {
		w.Leaked(event("", tagged(tag, nil), func(e *mortise.LockEvent) { e.Where = "main.go:1" }))
		w.Lost(event(mortise.OutcomeExpired, tagged(tag, failed)))
	})
	for what, end := range map[string]func(w *told, tag any){
		"then nothing": func(*told, any) {},
		"then unlocked": func(w *told, tag any) {
			w.Unlocked(w.ctx, event(mortise.OutcomeConfirmed, tagged(tag, nil)))
			w.Unlocked(w.ctx, event(mortise.OutcomeConfirmed, tagged(tag, nil)))
		},
		"then left": func(w *told, tag any) { w.Unlocked(w.ctx, event(mortise.OutcomeLeft, tagged(tag, nil))) },
		"then lost": func(w *told, tag any) {
			w.Lost(event(mortise.OutcomeLease, tagged(tag, nil)))
			w.Lost(event(mortise.OutcomeLease, tagged(tag, nil)))
		},
		"then lost before Unlock": func(w *told, tag any) {
			w.Unlocked(w.ctx, event(mortise.OutcomeLost, tagged(tag, nil)))
		},
		"regained, then lost": func(w *told, tag any) {
			w.Hooks.InDoubt(event(mortise.OutcomeRegained, tagged(tag, nil)))
			w.Lost(event(mortise.OutcomeLease, tagged(tag, nil)))
		},
	} {
		hold("in doubt, "+what, func(w *told, tag any) {
			w.Hooks.InDoubt(event(mortise.OutcomeInDoubt, tagged(tag, nil)))
			end(w, tag)
		})
	}
	for _, s := range []mortise.State{mortise.RenewalAcknowledged, mortise.RenewalUnanswered, mortise.SessionOpened,
		mortise.SessionClosed, mortise.SessionExpired, mortise.SessionRestarted, mortise.SessionStopped,
		mortise.LeaseSafe, mortise.LeaseJeopardy, mortise.LeaseLost, mortise.LeaderNew, mortise.LeaderNone,
		mortise.LeaderAgain, mortise.NodeAvailable, mortise.NodeUnavailable} {
		add("node: "+string(s), func(w *told) { w.Node(mortise.NodeEvent{State: s, Took: 4 * time.Second}) })
	}
	add("synced", func(w *told) { w.Synced(5*time.Second, nil) })
	add("not synced", func(w *told) { w.Synced(5*time.Second, failed) })
	slices.SortStableFunc(all, func(a, b scene) int { return strings.Compare(a.what, b.what) })
	return all
}

type scene struct {
	what string
	do   func(w *told)
}

// TestAllThatIsTold compares all metrics and spans after calls of hooks with testdata/told.txt.
// Metrics are there as name, labels, and for histograms the count and the sum.
func TestAllThatIsTold(t *testing.T) {
	want, err := os.ReadFile("testdata/told.txt")
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]string{}
	for _, block := range strings.Split(string(want), "\n\n") {
		what, lines, _ := strings.Cut(strings.TrimSpace(block), "\n")
		wanted[what] = lines
	}
	all := scenes()
	if len(wanted) != len(all) {
		t.Errorf("testdata/told.txt has %d scenes, and the test %d", len(wanted), len(all))
	}
	for _, s := range all {
		var got string
		synctest.Test(t, func(t *testing.T) {
			w := newTold(t, func(*Options) {})
			s.do(w)
			got = w.all(t)
		})
		if got != wanted[s.what] {
			t.Errorf("%s\n%s\n\nwant\n%s", s.what, got, wanted[s.what])
		}
	}
}

func (w *told) all(t *testing.T) string {
	return strings.Join(append(w.metrics(t), w.ended()...), "\n")
}

// TestPartsOfATelemetry compares what a Telemetry with only some of the options tells with what one
// with all of them tells.
func TestPartsOfATelemetry(t *testing.T) {
	no := func(*Options) {}
	for _, s := range scenes() {
		if !strings.HasPrefix(s.what, "held") && !strings.HasPrefix(s.what, "acquired: granted") {
			continue
		}
		tell := func(change func(*Options)) (metrics, spans string) {
			synctest.Test(t, func(t *testing.T) {
				w := newTold(t, change)
				if o := w.options; (w.Mark != nil) != (o.TracerProvider != nil) || (w.Node != nil) != (o.MeterProvider != nil) ||
					(w.Synced != nil) != (o.MeterProvider != nil) {
					t.Error("it has hooks that tell nothing, or lacks one")
				}
				s.do(w)
				metrics, spans = strings.Join(w.metrics(t), "\n"), strings.Join(w.ended(), "\n")
			})
			return metrics, spans
		}
		metrics, spans := tell(no)
		if m, s := tell(func(o *Options) { o.MeterProvider = nil }); m != "" || s != spans {
			t.Errorf("without metrics:\n%s\n%s\nwant\n%s", m, s, spans)
		}
		if m, s := tell(func(o *Options) { o.TracerProvider = nil }); m != metrics || s != "" {
			t.Errorf("without spans:\n%s\n%s\nwant\n%s", m, s, metrics)
		}
		if m, s := tell(func(o *Options) { o.MeterProvider, o.TracerProvider = nil, nil }); m != "" || s != "" {
			t.Errorf("without both:\n%s\n%s", m, s)
		}
		if m, s := tell(func(o *Options) { o.Class = nil }); m != strings.ReplaceAll(metrics, "class=orders,", "") ||
			s != spans {
			t.Errorf("without classes:\n%s\n%s", m, s)
		}
	}
}
