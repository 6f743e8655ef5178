// Package e2e has the tests of whole nodes: real gossip, gRPC, TLS, raft and files, most of them on
// a network in memory and in fake time. It has no code of its own. Begin with bubble_test.go, which
// starts a fleet of nodes, and world_test.go, which gives a node its world and the test its inside.
//
// Limits: a test here starts nodes as a program does, by mortise.Start. What one package decides is
// tested in that package.
package e2e
