// Package e2e contains the tests of whole nodes. They use real gossip, gRPC, TLS, raft and files,
// most of them with a network in memory and in fake time. The package contains no other code. Read
// bubble_test.go first, which starts a fleet of nodes. Then read world_test.go, which gives a node
// its World and gives the test access to the node's internals.
//
// Limits: these tests start nodes by mortise.Start, as a program does. A rule that a single package
// decides is tested in that package.
package e2e
