// Package mortisecollector is an extension of the OpenTelemetry Collector. It elects one of several
// collectors with a lock of mortise, so a receiver that must run once runs in one collector. No
// Lease of Kubernetes, no role for it and no API server is needed.
//
//	factories.Extensions[mortisecollector.Type] = mortisecollector.NewFactory()
//
// The extension has the methods of LeaderElection in k8sleaderelector, an extension of
// opentelemetry-collector-contrib. So the receivers k8sobjects, k8s_cluster and k8s_events use it
// if their k8s_leader_elector names it:
//
//	extensions:
//	  mortise:
//	    bind: 0.0.0.0:7947
//	    join: [dns:///collectors.example.com:7947]
//	    replicas: 3
//	    secret: ${env:MORTISE_SECRET}
//	receivers:
//	  k8sobjects:
//	    k8s_leader_elector: mortise
//
// With [NewFactory] each extension has a node of its own, for which [Config] has the usual fields.
// A collector that you build can have one node for all its extensions, with TLS, a directory and
// whatever else mortise.Config has: see [NewFactoryFor].
//
// # Guarantees
//
//   - Receivers run in one collector at a time. The context of a start callback ends, and the stop
//     callback is called, when the lock is lost: before another collector is granted it, if clock
//     rates differ by at most 1%.
//   - If a collector shuts down in good order, another one leads only after all its stop callbacks
//     have returned.
//   - Each start callback is followed by its stop callback. Neither is called while the other runs,
//     and a receiver is not started again before its former stop callback has returned.
//   - No callback is called before all pipelines have started, or after they begin to stop.
//   - A receiver may register at any time. If this collector leads, the receiver starts at once.
//   - The context of a start callback has the fencing token of the lock (mortise.TokenFrom).
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Each receiver has a goroutine for its callbacks
// while this collector leads, so a receiver that hangs does not keep the others running.
// SetCallBackFuncs does not wait for a callback.
//
// # Failure
//
// If the leader is killed or cut off, another collector leads when its session has expired
// (session_ttl, 10 s by default). A collector that has lost the lock campaigns again. The log has
// each loss, with its reason.
//
// If a stop callback does not return, this collector does not campaign again, and its shutdown
// waits for the callback, as with k8sleaderelector. The log has a warning after 10 s.
//
// The promise about the end of the context needs a process that runs. If a process is paused for
// longer than the session lasts, for example by a debugger or a suspended machine, another
// collector leads meanwhile. After the pause the receivers of the first one may run until their
// stop callbacks return. Both then collect the same data.
//
// # Limits
//
// All receivers of one extension run in the same collector. Two extensions with different keys
// elect separately. The host must call Ready, as the service of the Collector does with each
// extension that has it: an extension that another program starts by hand never campaigns. In
// an update from k8sleaderelector, a collector with a Lease and one with a lock do not exclude each
// other: stop the old collectors first.
//
// The group is in memory unless the node comes from NewFactoryFor. If all collectors have ended, a
// new group waits for session_ttl before it grants the lock.
//
// # Refused alternative
//
// The callbacks could run one after the other, as in k8sleaderelector. Then a receiver that hangs
// in its start callback keeps all others from being stopped at a loss.
package mortisecollector
