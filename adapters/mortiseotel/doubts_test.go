package mortiseotel_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseotel"
	"github.com/mortise-lock/mortise/mortisetest"
)

// Every lock in doubt is counted when the doubt begins and when it ends: the lock is good again,
// lost, or unlocked.
func TestDoubtsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{registry: prometheus.NewRegistry(), spans: tracetest.NewSpanRecorder()}
		exporter, err := otelprom.New(otelprom.WithRegisterer(r.registry))
		if err != nil {
			t.Fatal(err)
		}
		telemetry, err := mortiseotel.New(mortiseotel.Options{
			MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)),
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans)),
		})
		if err != nil {
			t.Fatal(err)
		}
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true, Configure: func(i int, c *mortise.Config) {
			if i == 0 {
				c.Hooks = telemetry.Hooks()
				c.Hooks.Leaked = nil // the garbage collector would call the node from outside the bubble
			}
		}})
		c.Ready()
		r.node = c.Node(0)
		counts := func(began, regained, lost, unlocked float64) {
			t.Helper()
			synctest.Wait()
			for state, want := range map[string]float64{"in_doubt": began, "regained": regained, "lost": lost,
				"unlocked": unlocked} {
				if got := r.value(t, "mortise_lock_doubts_total", "state", state); got != want {
					t.Errorf("%s is %v, want %v", state, got, want)
				}
			}
		}
		counts(0, 0, 0, 0)
		long := func(key string) *mortise.Lock {
			return r.acquire(t, t.Context(), mortise.Request{Key: key, JeopardyGrace: time.Hour})
		}
		good, left, plain := long("good"), long("left"), r.acquire(t, t.Context(), mortise.Request{Key: "plain"})
		r.acquire(t, t.Context(), mortise.Request{Key: "lost", JeopardyGrace: 30 * time.Second})
		c.Cut(0, 1)
		c.Cut(0, 2)
		c.Cut(1, 2)
		<-good.Done()
		<-plain.Done()
		counts(3, 0, 0, 0)
		time.Sleep(time.Minute) // fake time; the grace of one lock is over
		counts(3, 0, 1, 0)
		unlocked := make(chan error, 1)
		go func() { unlocked <- left.Unlock(t.Context()) }()
		c.Heal()
		if err := good.Regain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-unlocked; err != nil {
			t.Fatal(err)
		}
		counts(3, 1, 1, 1)
		if err := good.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		counts(3, 1, 1, 1)
		events := map[string]int{}
		for _, span := range r.spans.Ended() {
			for _, e := range span.Events() {
				events[e.Name]++
			}
		}
		if events["mortise.in_doubt"] != 3 || events["mortise.regained"] != 1 {
			t.Errorf("the events of spans are %v", events)
		}
	})
}
