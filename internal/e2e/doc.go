// Package e2e contains the tests of whole nodes. They use real gossip, gRPC, TLS, raft and files,
// most of them with a network in memory and in fake time. Read bubble_test.go first, which starts a
// fleet of nodes, and then world_test.go, which gives access to the internals of a node.
//
// Limits: a rule that a single package decides is tested in that package.
package e2e
