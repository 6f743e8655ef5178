package main

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise"
)

// stickyPeer is mortise with TLS, whose callers set Request.Sticky.
func stickyPeer(name string, durable bool) Peer {
	p := mortisePeer(name, durable, true)
	p.Promise += "; sticky: a free lock of an instance that dies stays taken until its session ends, and Unlock is " +
		"confirmed by the lease"
	member := p.Member
	p.Member = func(ctx context.Context, dir string, addresses []string, i int) (Member, error) {
		m, err := member(ctx, dir, addresses, i)
		if err != nil {
			return nil, err
		}
		return stickyMember{m.(mortiseMember)}, nil
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

type stickyMember struct{ mortiseMember }

func (m stickyMember) Caller(context.Context, bool) (Locker, error) { return m, nil }

func (m stickyMember) Lock(ctx context.Context, key string) (Hold, error) {
	lock, err := m.Acquire(ctx, mortise.Request{Key: key, Sticky: true})
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// Ready waits until sticky locks are kept, which begins shortly after all members are ready.
func (m stickyMember) Ready(ctx context.Context) error {
	err := m.mortiseMember.Ready(ctx)
	for err == nil {
		var kept bool
		if kept, err = m.keeps(ctx, "ready-"+m.Status().Name); kept {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

func (m stickyMember) keeps(ctx context.Context, key string) (bool, error) {
	hold, err := m.Lock(ctx, key)
	if err != nil {
		return false, err
	}
	err = hold.Unlock(ctx)
	info, peeked := m.Peek(ctx, key)
	return info.Held > 0, errors.Join(err, peeked)
}
