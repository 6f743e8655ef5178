package main

import (
	"context"
	"slices"
)

// A Peer is a lock implementation in one configuration. A service with three instances uses it.
type Peer struct {
	Name    string // in tables and flags
	Kind    string // peers of one kind have the same colour
	Durable bool   // a lock is on disk before it is granted
	Promise string // what it is, beside the table of docs/CHOOSING.md
	Missing func() string
	Open    func(ctx context.Context, dir string) (Cluster, error)

	// Member opens one of three members, with the addresses of all members. Nil means that the peer
	// has no members, or that they are not written in Go.
	Member func(ctx context.Context, dir string, addresses []string, i int) (Member, error)

	// Lacks contains the reason for each workload that the peer cannot run. The keys are names of
	// workloads.
	Lacks map[string]string
}

// A Cluster is a running Peer with the three instances of its user. If the members run inside the
// instances, the instance with the leader is the last.
type Cluster interface {
	Instances() []Instance
	Version() string
	Close() error
}

// An Instance stands for one process of a user. The peer treats the instance as a separate process.
type Instance interface {
	// Caller returns the Locker of one goroutine. shared means that other goroutines of this
	// instance lock the same keys at the same time. With some peers, two locks exclude each other
	// only if they belong to different connections or sessions.
	Caller(ctx context.Context, shared bool) (Locker, error)
}

type Locker interface {
	Lock(ctx context.Context, key string) (Hold, error)
}

type Hold interface {
	Unlock(ctx context.Context) error
}

// A Member is one of the three members of a replicated peer, with the instance that uses it.
type Member interface {
	Instance
	Ready(ctx context.Context) error
	Leads() bool
	Version() string
	Close() error
}

type members []Member

func openMembers(ctx context.Context, p Peer, dir string) (Cluster, error) {
	addresses, err := freeAddresses(membersOf * addressesEach)
	if err != nil {
		return nil, err
	}
	opened := make(members, membersOf)
	err = together(membersOf, func(i int) (err error) {
		opened[i], err = p.Member(ctx, memberDir(dir, i), addresses, i)
		return err
	})
	opened = slices.DeleteFunc(opened, func(m Member) bool { return m == nil })
	if err == nil {
		err = together(membersOf, func(i int) error { return opened[i].Ready(ctx) })
	}
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	slices.SortStableFunc(opened, func(a, b Member) int { return rank(a) - rank(b) })
	return opened, nil
}

func rank(m Member) int {
	if m.Leads() {
		return 1
	}
	return 0
}

func (m members) Version() string { return m[0].Version() }

func (m members) Instances() []Instance {
	list := make([]Instance, len(m))
	for i := range m {
		list[i] = m[i]
	}
	return list
}

func (m members) Close() error {
	return together(len(m), func(i int) error { return m[i].Close() })
}

const (
	membersOf     = 3
	addressesEach = 2 // etcd needs one for its peers and one for its clients
)
