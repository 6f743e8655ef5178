// Package compare checks that the extension of mortisecollector is what the receivers of
// opentelemetry-collector-contrib look for, with contrib's own interface. It is a module of its
// own, so that users of mortisecollector do not get the client of Kubernetes.
package compare
