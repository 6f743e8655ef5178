// Package mortiseotel gives a mortise node's metrics and traces to OpenTelemetry.
//
//	telemetry, err := mortiseotel.New(mortiseotel.Options{MeterProvider: meters, TracerProvider: tracers})
//	...
//	node, err := mortise.Start(ctx, mortise.Config{Hooks: telemetry.Hooks(), ...})
//	...
//	defer telemetry.Observe(node)()
//
// It is a module of its own, so that nobody who does not want it has OpenTelemetry among the dependencies, and it uses the API only: what becomes
// of the figures, and whether anything is measured at all, is the program's choice of an SDK. dashboard.json (Grafana) and alerts.yml (Prometheus)
// are made from the same table as the metrics by go run ./generate; a test sees to it that they are current and that all that they ask for is there.
// docs/OPERATION.md of mortise says what to do when an alert fires.
//
// # Metrics
//
// internal/table lists them; units are seconds and counts, and the OpenTelemetry exporter for Prometheus makes names of them that pass
// Prometheus's linter. No label has values without bound: keys are no label. Options.Class may sort keys into classes, a few, which become
// the label "class". Counters begin at 0 for every value of their label, so that a rule sees the first increase.
//
// # Spans
//
// "mortise.wait" is the way of one call for a lock, in the trace of its caller; it is made when the call ends, from its duration, so a
// sampler decides then. "mortise.hold" lasts from the grant until the lock was unlocked or lost. Both carry the key and the token.
//
// A wait links to the hold for which it began to wait, if that is a lock of this process. The span of a hold on another instance is not known
// here: the group's state does not carry it. The wait then says who it was, as mortise.behind.holder and mortise.behind.token; the token is
// that of one hold only, and finds its span in the store of the traces.
//
// # Guarantees
//
// A node is not slowed down by more than what the SDK's instruments take on the goroutines of its callers; what happens elsewhere is told on
// a goroutine that nobody waits for. See mortise.Hooks.
//
// # Concurrency
//
// Everything is safe for concurrent use. One Telemetry may serve one node: give each of several its own, with Options.Attributes that differ.
//
// # Failure
//
// New returns the error of an instrument that cannot be made. A span whose end was dropped because hooks were too slow is never exported.
//
// # Limits
//
// The holds to which a wait can link are at most 16,384 at a time; further ones are not linked to.
//
// # Refused alternative
//
// Hooks in the core that know OpenTelemetry would put its modules into every build. A registry of our own would be one more thing to scrape.
// Prometheus's client library would be shorter, and the wrong one for everybody who does not use it.
package mortiseotel
