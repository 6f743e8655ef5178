// Package whole runs whole collectors with the extension of mortisecollector and a receiver of
// opentelemetry-collector-contrib, which elects its collector by it. It is a module of its own,
// because they take minutes to compile.
package whole
