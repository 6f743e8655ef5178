package main

import (
	"context"
	"time"
)

// A Workload is one way to use locks.
type Workload struct {
	Name  string
	About string
	Run   func(ctx context.Context, r *Run) (Result, error)
	Alone bool // the workload opens its own clusters
	Fleet bool // about many instances or sessions of mortise
	Only  func(p Peer) bool
}

// A Run is one measurement of one peer.
type Run struct {
	Peer     Peer
	Cluster  Cluster // nil if the workload opens its own clusters
	Dir      string
	Duration time.Duration
	Quick    bool
}

func (r *Run) scaled(n int) int {
	if r.Quick {
		return n / 10
	}
	return n
}

func (r *Run) patience() time.Duration {
	if r.Quick {
		return 5 * time.Second
	}
	return 15 * time.Second
}

func workloads() []Workload {
	return []Workload{
		{Name: "serial", About: "one caller, by turns on two instances whose members do not lead", Run: serial},
		{Name: "parallel64", About: "64 callers, each with a key of its own, each call on the next instance",
			Run: parallel(64)},
		{Name: "parallel1024", About: "1,024 of them", Run: parallel(1024)},
		{Name: "parallel8192", About: "8,192 of them", Run: parallel(8192)},
		{Name: "handover3", About: "3 callers, one on each instance, want one key", Run: handover(3)},
		{Name: "handover64", About: "64 callers on three instances want one key", Run: handover(64)},
		{Name: "relock", About: "one caller locks the same key again on the same instance, and no other caller wants it",
			Run: relock},
		{Name: "zipf", About: "256 callers on three instances want 10,000 keys, few of them often (Zipf, s = 1.1)",
			Run: zipf},
		{Name: "own64", About: "64 callers, each with a key of its own, and each always on the same instance",
			Run: own(64), Only: isAgain},
		{Name: "local64", About: "64 callers on one instance want one key", Run: handoverOn(1, 64), Only: isAgain},
		{Name: "mostly", About: "256 callers want 1,000 keys, few of them often (Zipf, s = 1.1), and each key 95 times of " +
			"100 on the same instance", Run: mostly, Only: isAgain},
		{Name: "turns3", About: "one caller, by turns on three instances", Run: turns3, Only: isAgain},
		{Name: "recall", About: "one caller, by turns on three instances, eight pairs on each; only the first one is " +
			"measured",
			Run: recall, Only: isAgain},
		{Name: "held", About: "100,000 locks are taken and kept", Run: held},
		{Name: "waiters", About: "10,000 callers wait for one key, and each gets it once", Run: waiters},
		{Name: "kill", About: "kill -9 of the process that leads, to the next grant in another", Run: kill,
			Alone: true, Only: func(p Peer) bool { return p.Member != nil }},
		{Name: "idle1", About: "an idle instance", Run: idleAlone, Alone: true, Fleet: true, Only: isMortise},
		{Name: "idle10", About: "10 of them, three vote", Run: idle(10), Alone: true, Fleet: true, Only: isMortise},
		{Name: "idle100", About: "100 of them", Run: idle(100), Alone: true, Fleet: true, Only: isMortise},
		{Name: "idle1000", About: "1,000 of them", Run: idle(1000), Alone: true, Fleet: true, Only: isMortise},
		{Name: "coldstart100", About: "100 instances in one process, from nothing to all ready", Run: coldstart(100),
			Alone: true, Fleet: true, Only: isMortise},
		{Name: "coldstart1000", About: "1,000 of them", Run: coldstart(1000), Alone: true, Fleet: true,
			Only: isMortise},
		{Name: "beside1000", About: "one caller, beside 1,000 idle instances", Run: beside(1000), Alone: true,
			Fleet: true, Only: isMortise},
		{Name: "sessions", About: "10,000 sessions attached to one leader, at rest", Run: sessions(10_000),
			Alone: true, Fleet: true, Only: isMortise},
		{Name: "storm", About: "kill -9 of the leader under 10,000 attached sessions", Run: storm(10_000),
			Alone: true, Fleet: true, Only: isMortise},
		{Name: "line", About: "a million waiters on 1,000 keys, served in order", Run: line(1_000_000), Alone: true,
			Fleet: true, Only: isMortise},
	}
}

// isAgain reports whether the peer runs the workloads of again.go.
func isAgain(p Peer) bool { return encrypted(p) || p.Kind == "postgres" }

func isMortise(p Peer) bool { return p.Kind == "mortise" && !p.Durable }

func peers() []Peer {
	return []Peer{
		mortisePeer("mortise-dir", true, false),
		mortisePeer("mortise-dir-tls", true, true),
		stickyPeer("mortise-dir-sticky-tls", true),
		wirePeer("wire-sync", true, false),
		wirePeer("wire-sync-tls", true, true),
		etcdPeer("etcd", true, false),
		etcdPeer("etcd-grpc", true, true),
		zookeeperPeer(),
		natsPeer("nats-sync", true),
		redisPeer("redlock", 3, true),
		redisPeer("redis-always", 1, true),
		mortisePeer("mortise", false, false),
		mortisePeer("mortise-tls", false, true),
		soonPeer(),
		stickyPeer("mortise-sticky-tls", false),
		wirePeer("wire", false, false),
		wirePeer("wire-tls", false, true),
		etcdPeer("etcd-nosync", false, false),
		etcdPeer("etcd-grpc-nosync", false, true),
		natsPeer("nats", false),
		redisPeer("redis", 1, false),
		postgresPeer(),
		olricPeer(),
	}
}
