package main

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"

	"github.com/mortise-lock/mortise"
)

// benchSecret protects nothing but this benchmark, on loopback addresses.
const benchSecret = "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c"

func mortisePeer(name string, durable, encrypted bool) Peer {
	p := Peer{
		Name: name, Kind: "mortise", Durable: durable,
		Promise: "three voters in the instances, with `Dir`",
		Missing: func() string { return "" },
	}
	if !durable {
		p.Promise = "as mortise-dir, in memory"
	}
	p.Member = func(ctx context.Context, dir string, addresses []string, i int) (Member, error) {
		c := mortiseConfig(encrypted, addresses, i)
		c.Replicas = membersOf
		if durable {
			c.Dir = dir
		}
		return startMortise(ctx, c)
	}
	p.Open = func(ctx context.Context, dir string) (Cluster, error) { return openMembers(ctx, p, dir) }
	return p
}

func soonPeer() Peer {
	p := mortisePeer("mortise-soon", false, false)
	p.Promise = "as mortise, with `Lock.UnlockSoon`"
	return variant(p, func(m mortiseMember) Member { return soonMember{m} })
}

// variant returns a peer like p, with other members. It does not run the workloads whose results
// would be the same.
func variant(p Peer, as func(mortiseMember) Member) Peer {
	member := p.Member
	p.Member = func(ctx context.Context, dir string, addresses []string, i int) (Member, error) {
		m, err := member(ctx, dir, addresses, i)
		if err != nil {
			return nil, err
		}
		return as(m.(mortiseMember)), nil
	}
	p.Open = func(ctx context.Context, dir string) (Cluster, error) { return openMembers(ctx, p, dir) }
	same := "as mortise"
	p.Lacks = map[string]string{"held": same, "kill": same}
	for _, w := range workloads() {
		if w.Fleet {
			p.Lacks[w.Name] = same
		}
	}
	return p
}

type soonMember struct{ mortiseMember }

type soonHold struct{ *mortise.Lock }

func (m soonMember) Caller(context.Context, bool) (Locker, error) { return m, nil }

func (m soonMember) Lock(ctx context.Context, key string) (Hold, error) {
	lock, err := m.Node.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return soonHold{lock}, nil
}

func (h soonHold) Unlock(context.Context) error { return h.UnlockSoon() }

func mortiseConfig(encrypted bool, addresses []string, i int) mortise.Config {
	c := mortise.Config{
		Name: fmt.Sprintf("node-%d", i), Bind: addresses[i*addressesEach], Grace: -1,
		Logger:        slog.New(slog.DiscardHandler),
		MaxGroupBytes: 1 << 30, // a million waiters need more than the default
	}
	for m := range membersOf {
		c.Join = append(c.Join, addresses[m*addressesEach])
	}
	if encrypted {
		c.Secret = benchSecret
	}
	return c
}

type mortiseMember struct{ *mortise.Node }

func startMortise(ctx context.Context, c mortise.Config) (Member, error) {
	node, err := mortise.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return mortiseMember{node}, nil
}

func (m mortiseMember) Leads() bool { return m.Status().Leading }

func (m mortiseMember) Caller(context.Context, bool) (Locker, error) { return m, nil }

func (m mortiseMember) Lock(ctx context.Context, key string) (Hold, error) {
	lock, err := m.Node.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// Version returns the commit of this work tree.
func (m mortiseMember) Version() string {
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "of this tree"
	}
	version := strings.TrimSpace(string(commit))
	if changes, err := exec.Command("git", "status", "--porcelain", "--", ":/*.go",
		":!/bench").Output(); err == nil && len(changes) > 0 {
		version += " with changes"
	}
	return version
}
