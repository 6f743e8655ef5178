// Package e2e contains the tests of whole nodes. The nodes use real gossip, gRPC, TLS, raft and
// files. In most tests the network is in memory and the time is fake. Read bubble_test.go first,
// which starts a fleet of nodes, and then world_test.go, which gives access to the internals of a
// node.
//
// Limits: a rule that a single package decides is tested in that package.
package e2e
