package mortiseotel_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseotel"
)

// rig is a group of one node with a directory. The metrics of the node go to a Prometheus registry,
// and the spans of the node are kept in memory.
type rig struct {
	node     *mortise.Node
	registry *prometheus.Registry
	spans    *tracetest.SpanRecorder
}

func newRig(t *testing.T, change ...func(*mortiseotel.Options)) *rig {
	t.Helper()
	dir := t.TempDir() + "/d"
	r := startRig(t, func(c *mortise.Config) { c.Name, c.Dir = "solo", dir }, change...)
	r.ready(t)
	return r
}

func startRig(t *testing.T, configure func(*mortise.Config), change ...func(*mortiseotel.Options)) *rig {
	t.Helper()
	r := &rig{registry: prometheus.NewRegistry(), spans: tracetest.NewSpanRecorder()}
	exporter, err := otelprom.New(otelprom.WithRegisterer(r.registry))
	if err != nil {
		t.Fatal(err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	options := mortiseotel.Options{MeterProvider: meters, TracerProvider: tracers}
	for _, apply := range change {
		apply(&options)
	}
	telemetry, err := mortiseotel.New(options)
	if err != nil {
		t.Fatal(err)
	}
	config := mortise.Config{SessionTTL: 2 * time.Second, Hooks: telemetry.Hooks(),
		Logger: slog.New(slog.DiscardHandler)}
	configure(&config)
	if r.node, err = mortise.Start(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	stop, err := telemetry.Observe(r.node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(stop(), r.node.Close(), meters.Shutdown(context.Background()),
			tracers.Shutdown(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.node.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) acquire(t *testing.T, ctx context.Context, request mortise.Request) *mortise.Lock {
	t.Helper()
	l, err := r.node.Acquire(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func unlock(t *testing.T, l *mortise.Lock) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// live makes calls of all kinds on the node, so that every metric has values.
func (r *rig) live(t *testing.T) {
	t.Helper()
	l := r.acquire(t, t.Context(), mortise.Request{Key: "orders/1"})
	if _, err := r.node.TryLock(t.Context(), "orders/1"); !errors.Is(err, mortise.ErrHeld) {
		t.Fatal(err)
	}
	if _, err := r.node.Acquire(l.Context(t.Context()), mortise.Request{Key: "orders/1",
		Mode: mortise.Permits(1, 2)}); err == nil {
		t.Fatal("no deadlock")
	}
	unlock(t, l)
	overdue := r.acquire(t, t.Context(), mortise.Request{Key: "orders/2", MaxHold: time.Millisecond})
	<-overdue.Done()
	deadline := time.Now().Add(time.Minute)
	for r.value(t, "mortise_lock_losses_total", "reason", "overdue") == 0 ||
		r.value(t, "mortise_session_renewal_duration_seconds", "", "") == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the loss, or a renewal, was not told within a minute")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (r *rig) gather(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.MetricFamily{}
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

// value returns the sum of a metric over all series whose label has the value. For a histogram it
// is the sum of the counts.
func (r *rig) value(t *testing.T, name, label, value string) (sum float64) {
	t.Helper()
	for _, m := range r.gather(t)[name].GetMetric() {
		if label != "" && !slices.ContainsFunc(m.GetLabel(),
			func(l *dto.LabelPair) bool { return l.GetName() == label && l.GetValue() == value }) {
			continue
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}
