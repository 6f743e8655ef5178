// Package mortiseotel exports a mortise node's metrics and traces through OpenTelemetry.
//
//	telemetry, err := mortiseotel.New(mortiseotel.Options{
//		MeterProvider: meters, TracerProvider: tracers,
//	})
//	...
//	node, err := mortise.Start(ctx, mortise.Config{Hooks: telemetry.Hooks()})
//	...
//	stop, err := telemetry.Observe(node) // the gauges
//	...
//	defer stop()
//
// The example uses Prometheus.
//
// The package is a separate module, so that programs that do not use it do not depend on
// OpenTelemetry. It uses only the API of OpenTelemetry: the program chooses an SDK. The command go
// run ./generate makes dashboard.json (Grafana) and alerts.yml (Prometheus) from the table of the
// metrics. docs/OPERATION.md of mortise describes what to do when an alert fires.
//
// # Metrics
//
// The package internal/table lists the metrics. Units are seconds and counts. The OpenTelemetry
// exporter for Prometheus derives names that pass Prometheus's linter. No label has an unbounded
// set of values, so keys are not labels. Options.Class may group keys into a few classes, which
// become the label "class". Counters begin at 0 for every value of their label, so that an alert
// rule detects the first increase.
//
// # Spans
//
// The span "mortise.wait" describes one call for a lock, in the trace of the caller. It is created
// when the call ends, with the call's duration, so a sampler decides about it only at the end of
// the call. The span "mortise.hold" lasts from the grant until the lock is unlocked or lost. Both
// spans have the key and the token.
//
// A wait has a link to the hold that the request had to wait for when it was queued. If that hold
// is in this process, the link is to its span (mortise.link is "hold"). If the hold is on another
// instance, the link is to the span in which that instance requested the lock (mortise.link is
// "caller"). Hooks.Mark attaches that span to the request, as 25 bytes. Such a link exists only
// if both instances use this package with a TracerProvider and the caller on the other instance
// has a span. The attributes mortise.behind.holder and mortise.behind.token always identify the
// hold.
//
// # Guarantees
//
// On the goroutines that call a node, this package only calls the SDK's instruments. All other work
// runs on a goroutine for which no call waits. See mortise.Hooks.
//
// # Concurrency
//
// Everything is safe for concurrent use. One Telemetry serves one node. If a process has several
// nodes, give each node its own Telemetry with different Options.Attributes.
//
// # Failure
//
// New returns the error of an instrument that cannot be created. If hooks are too slow, the event
// that ends a span can be dropped. Such a span is never exported.
//
// # Limits
//
// The package remembers at most 16,384 current holds of this process, and the last 1,024 holds that
// have ended. A wait has no link to holds that are not remembered.
//
// # Refused alternative
//
// OpenTelemetry in package mortise: its modules would then be in every build. Prometheus's client
// library: it is useless to programs without Prometheus.
package mortiseotel
