package main

import (
	"context"
	"slices"
)

// A Peer is one way to get a lock from three instances of a service, with one choice of what is
// kept where.
type Peer struct {
	Name    string // what tables and flags call it
	Kind    string // peers of one kind share a colour
	Durable bool   // a lock is on disk before it counts
	Promise string // what it survives, in which order it serves, how a loss is noticed
	Missing func() string
	Open    func(ctx context.Context, dir string) (Cluster, error)

	// Member opens one of three members in a process of its own, at addresses that all of them are
	// told. Nil: there are no members, or they are no Go.
	Member func(ctx context.Context, dir string, addresses []string, i int) (Member, error)

	// Lacks says why a workload cannot be run, by the workload's name.
	Lacks map[string]string
}

// A Cluster is a running service with three instances of a user. The instance whose member leads,
// if members are in the instances, is the last.
type Cluster interface {
	Instances() []Instance
	Version() string
	Close() error
}

// An Instance is one process of a user, as far as the peer can tell.
type Instance interface {
	// Caller returns what one goroutine locks by. If it is shared, the goroutine locks keys that
	// others of this instance lock too, at the same time; some peers exclude only whole connections
	// or sessions.
	Caller(ctx context.Context, shared bool) (Locker, error)
}

// A Locker waits its turn and returns the lock.
type Locker interface {
	Lock(ctx context.Context, key string) (Hold, error)
}

// A Hold is a lock that is held.
type Hold interface {
	Unlock(ctx context.Context) error
}

// A Member is one of the three of a replicated peer, with the instance that lives beside it.
type Member interface {
	Instance
	Ready(ctx context.Context) error
	Leads() bool
	Version() string
	Close() error
}

// members are three Members in one process.
type members []Member

// openMembers opens three in this process, over loopback TCP.
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
	addressesEach = 2 // of a member: etcd wants one for its peers and one for its clients
)
