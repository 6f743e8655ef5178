// Command bench measures mortise beside other ways to get a distributed lock: etcd, ZooKeeper,
// Redis and PostgreSQL. It is a module of its own, so that users of mortise do not depend on what
// only this needs.
//
//	cd bench && go run . [-quick] [-only REGEXP] [-peers NAME,...] [-out DIR]
//
// measures everything and prints a page like docs/SPEED.md, or writes it to DIR, with a picture. A
// whole run takes about half an hour, -quick about three minutes. It needs Linux. What is not
// installed is named and left out; -install, as root, gets it from Debian.
//
//	go run . -against PROGRAM [-named TEXT] [-rounds N] [-only REGEXP] [-peers NAME,...]
//
// compares this build with PROGRAM, the benchmark built at another commit. Both measure one peer
// directly after each other, and it prints the ratios (against.md).
//
// # How it measures
//
// Each peer (peer.go) is started by the benchmark itself, on free ports of loopback and in a
// temporary directory, and is measured in a process of its own (child.go) that no other has
// littered. A user is three instances: three nodes of mortise, three embedded members of etcd with
// a client each, or three clients of what runs outside. A workload (workload.go) runs for a while
// after a warm-up; all workloads of one peer, then the next peer, and all of that again
// (rounds.go). Cells are medians of the rounds, field by field.
//
// Before it begins it waits up to a minute until others leave the machine alone, and it measures
// what others use during every run: all of the machine's processor time that is not that of the
// child and its servers. Both are on the page.
//
// The rows about many instances (coldstart, beside, sessions, storm, line) are of mortise alone.
// Ten thousand sessions are in processes of their own, 4,000 in each (crowd.go): a session there is
// a port that does not listen and a client, with a connection and an ID of its own (light.go),
// which is what a member is to the leader. The three members are processes too, so that the
// leader's memory and processor time are its own (storm.go). They need 3 GB of memory, and 20,000
// files in a process.
//
// Two callers in one key at once end a workload with an error: every workload in which callers
// share keys watches that.
//
// Its tests start every peer that is there, and are not part of test.sh, since etcd is large to
// build: cd bench && go test ./...
//
// # What is fair
//
// Ratios count, and only within one run: all peers share the processors with the callers and with
// their own servers. etcd is measured in process, which is what mortise is like, and by gRPC, which
// is what most use. A durable mortise (Dir) is compared with a synced etcd, one in memory with an
// etcd that does not sync. Redis is polled every 5 ms, far more often than redsync's default, in
// its favour. No call locks on the instance that has just unlocked the key, except in relock, so
// that nothing that is remembered on an instance helps.
//
// # Limits
//
// Everything is on one machine: no network takes time, and the disks of three members are one.
// Waiters that stand in line cannot be seen from outside, so they get two seconds to arrive there;
// in the row line each is seen to have its place before the next one asks.
package main
