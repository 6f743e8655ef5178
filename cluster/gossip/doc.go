// Package gossip says what gossip between instances is, without an implementation: what an instance
// publishes about itself ([Meta]), what it receives of the others ([News]), and the network below.
// Package swim implements it with memberlist. Gossip is a hint: it names addresses to ask, and
// decides nothing.
//
// Package cluster, whose core also runs in the simulation, depends only on this package. So it
// needs neither memberlist nor sockets. All types are values or interfaces without state.
package gossip
