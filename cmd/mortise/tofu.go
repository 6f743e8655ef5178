package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

// tofuLocks takes the locks of runs of OpenTofu, with the rights of the program by. Neither
// requests nor a connection keep their leases.
type tofuLocks struct {
	ls     *leases
	by     *program
	client any
}

// id is the ID of a lease. Programs with different derived secrets have different leases.
func (t tofuLocks) id(lease string) string {
	if t.by == nil {
		return "tofu " + lease
	}
	return fmt.Sprintf("tofu of %x %s", t.by.sum, lease)
}

func (t tofuLocks) Open(lease, name string, most time.Duration) (done func(), err error) {
	return t.ls.lasting(t.client, t.id(lease), name, most)
}

func (t tofuLocks) Holds(lease string) bool { return t.ls.holds(t.id(lease)) }

func (t tofuLocks) Acquire(ctx context.Context, lease string, r mortise.Request) error {
	_, err := t.ls.acquire(ctx, t.by, t.id(lease), wish{Request: r})
	return err
}

func (t tofuLocks) Resume(ctx context.Context, lease, key string, token mortise.Token) error {
	_, err := t.ls.acquire(ctx, t.by, t.id(lease), wish{Request: mortise.Request{Key: key}, resume: token})
	return err
}

func (t tofuLocks) Finish(ctx context.Context, lease string) (ended bool, err error) {
	return t.ls.finish(ctx, t.by, t.id(lease))
}

func (t tofuLocks) Drop(lease string) { t.ls.drop(t.id(lease), "") }

func (t tofuLocks) Key(ctx context.Context, key string) (mortise.KeyInfo, error) {
	return t.ls.from(t.by).key(ctx, key)
}

func (t tofuLocks) End(ctx context.Context, key string, token mortise.Token) error {
	lock, err := t.ls.from(t.by).acquire(ctx, wish{Request: mortise.Request{Key: key}, resume: token})
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}
