// Package mortiseotel gives a mortise node's metrics and traces to OpenTelemetry.
//
//	telemetry, err := mortiseotel.New(mortiseotel.Options{MeterProvider: meters, TracerProvider: tracers})
//	...
//	node, err := mortise.Start(ctx, mortise.Config{Hooks: telemetry.Hooks()})
//	...
//	stop, err := telemetry.Observe(node) // the gauges
//	...
//	defer stop()
//
// The example has it with Prometheus.
//
// It is a module of its own, so that nobody who does not want it has OpenTelemetry among the
// dependencies, and it uses the API only: what becomes of the figures, and whether anything is
// measured at all, is the program's choice of an SDK. dashboard.json (Grafana) and alerts.yml
// (Prometheus) are made from the same table as the metrics by go run ./generate; a test sees to it
// that they are current and that all that they ask for is there. docs/OPERATION.md of mortise says
// what to do when an alert fires.
//
// # Metrics
//
// internal/table lists them; units are seconds and counts, and the OpenTelemetry exporter for
// Prometheus makes names of them that pass Prometheus's linter. No label has values without bound:
// keys are no label. Options.Class may sort keys into classes, a few, which become the label
// "class". Counters begin at 0 for every value of their label, so that a rule sees the first
// increase.
//
// # Spans
//
// "mortise.wait" is the way of one call for a lock, in the trace of its caller; it is made when the
// call ends, from its duration, so a sampler decides then. "mortise.hold" lasts from the grant
// until the lock was unlocked or lost. Both carry the key and the token.
//
// A wait links to the hold for which it began to wait (mortise.link is "hold"), if that is a lock
// of this process. For a lock of another instance it links to the span under which the lock was
// asked for there (mortise.link is "caller"): that is what travels with a lock, as 25 bytes of
// Hooks.Mark, since the span of the hold does not exist yet when the request is sent. Both
// instances must have this package with a TracerProvider, and the caller there a span. In any case
// mortise.behind.holder and mortise.behind.token say who it was; the token is that of one hold
// only. What a wait is behind is what held the lock when the request was queued, not everybody who
// stood between.
//
// # Guarantees
//
// A node is not slowed down by more than what the SDK's instruments take on the goroutines of its
// callers; what happens elsewhere is told on a goroutine that nobody waits for. See mortise.Hooks.
//
// # Concurrency
//
// Everything is safe for concurrent use. One Telemetry may serve one node: give each of several its
// own, with Options.Attributes that differ.
//
// # Failure
//
// New returns the error of an instrument that cannot be made. A span whose end was dropped because
// hooks were too slow is never exported.
//
// # Limits
//
// The holds of this process to which a wait can link are 16,384 that last and the last 1,024 that
// have ended.
//
// # Refused alternative
//
// Hooks in the core that know OpenTelemetry would put its modules into every build. A registry of
// our own would be one more thing to scrape. Prometheus's client library would be shorter, and the
// wrong one for everybody who does not use it.
package mortiseotel
