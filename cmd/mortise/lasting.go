package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/tofu"
)

// This file has the leases that neither requests nor a connection keep, and lends them to package
// tofu. Such a lease exists until finish or drop ends it, or for a longest time.

// lasting returns the lease with this id, or opens it. If most is not zero, the lease ends after
// that time. The caller calls acquire, and then the returned function, which ends the lease if it
// has no lock.
func (ls *leases) lasting(client any, id, name string, most time.Duration) (done func(), err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[id]
	if l == nil {
		l = newLease(client, id, name)
		if err = ls.add(l); err != nil {
			ls.sweep()
			err = ls.add(l)
		}
		if err != nil {
			return nil, err
		}
		l.lasts = true
		if most > 0 {
			l.timer = time.AfterFunc(most, func() { ls.drop(id, l.lost("held its lock for its longest time, "+most.String())) })
		}
	}
	l.asking++
	return func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		if l.asking--; l.asking == 0 && len(l.locks) == 0 && ls.all[id] == l {
			ls.remove(l, "")
		}
	}, nil
}

// sweep ends the lasting leases that have lost all their locks. They are kept until their places
// are needed, so that the unlock can report the loss. The caller must hold mu.
func (ls *leases) sweep() {
	for _, l := range ls.all {
		if l.lasts && l.asking == 0 && !l.holds() {
			ls.remove(l, "")
		}
	}
}

// holds reports whether the lease has a lock that is not lost. The caller must hold mu.
func (l *lease) holds() bool {
	for _, lock := range l.locks {
		if lock.Err() == nil {
			return true
		}
	}
	return false
}

func (ls *leases) holds(id string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[id]
	return l != nil && l.holds()
}

// finish unlocks a lasting lease and ends it. If no lock of it was held, it reports false with the
// error of the lock, and the lease stays.
func (ls *leases) finish(ctx context.Context, by *program, id string) (ended bool, err error) {
	l, err := ls.find(by, id)
	if err != nil {
		return false, nil
	}
	ls.mu.Lock()
	locks := slices.Collect(maps.Values(l.locks))
	ls.mu.Unlock()
	for _, lock := range locks {
		if err = lock.Unlock(ctx); err == nil {
			return ls.drop(id, ""), nil
		}
	}
	return false, err
}

// tofuLocks takes the locks of runs of OpenTofu, with the rights of the program by.
type tofuLocks struct {
	ls     *leases
	by     *program
	client any
}

func (d *door) tofu(w http.ResponseWriter, r *http.Request) {
	tofu.Serve(w, r, tofuLocks{d.leases, programOf(r), d.client(r)}, refuse)
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
