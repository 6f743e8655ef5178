package main

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise"
)

// stickyPeer is mortise with TLS, and its callers use LockSticky.
func stickyPeer(name string, durable bool) Peer {
	p := mortisePeer(name, durable, true)
	p.Promise = "as mortise-dir-tls, with `Node.LockSticky`"
	if !durable {
		p.Promise = "as mortise-tls, with `Node.LockSticky`"
	}
	return variant(p, func(m mortiseMember) Member { return stickyMember{m} })
}

type stickyMember struct{ mortiseMember }

func (m stickyMember) Caller(context.Context, bool) (Locker, error) { return m, nil }

func (m stickyMember) Lock(ctx context.Context, key string) (Hold, error) {
	lock, err := m.LockSticky(ctx, key, mortise.StickyOptions{})
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// Ready waits until this instance keeps sticky locks. It begins to do so shortly after all members
// are ready.
func (m stickyMember) Ready(ctx context.Context) error {
	err, kept := m.mortiseMember.Ready(ctx), false
	for err == nil && !kept {
		if kept, err = m.keeps(ctx, "ready-"+m.Status().Name); !kept {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return err
}

func (m stickyMember) keeps(ctx context.Context, key string) (bool, error) {
	hold, err := m.Lock(ctx, key)
	if err != nil {
		return false, err
	}
	unlocked := hold.Unlock(ctx)
	info, err := m.Peek(ctx, key)
	return info.Held > 0, errors.Join(unlocked, err)
}
