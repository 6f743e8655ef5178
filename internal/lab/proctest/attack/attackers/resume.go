//go:build linux

package attackers

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/plan"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// The attacks in this file take over or end holds of an instance, see [plan.Held]. Each uses an
// honest client with a derived secret that does not allow it. The campaign checks that the holds
// are alive.

const resumeWithin = 3 * time.Second

// guest returns an honest guest with the derived secret of the given name, and its session. Both
// remain until the attacker ends.
func (a *attacker) guest(ctx context.Context, name string) (*honest, error) {
	a.mu.Lock()
	h := a.honest[name]
	if h == nil {
		h = &honest{}
		a.honest[name] = h
	}
	a.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Session != nil {
		return h, nil
	}
	var err error
	h.Guest, h.Session, err = plan.Enter(ctx, a.plan.Derived[name], a.plan.Addrs)
	return h, err
}

// resume learns the token of the hold of key, as any program can that may lock the key, and resumes
// the hold.
func (a *attacker) resume(ctx context.Context, name, key string) (t Tally) {
	ctx, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	h, err := a.guest(ctx, name)
	if err != nil {
		return refused(err)
	}
	token, err := h.tokenOf(ctx, key)
	switch {
	case errors.Is(err, errFree):
		return Tally{} // the instance locks it anew after an attack that was believed
	case err != nil:
		return refused(err)
	}
	lock, err := h.Session.Resume(ctx, key, token, mortise.ResumeOptions{})
	t = refused(err)
	if err == nil {
		t.Believed++
		_ = lock.Unlock(ctx)
	}
	return t
}

func (h *honest) tokenOf(ctx context.Context, key string) (mortise.Token, error) {
	lock, err := h.Session.Acquire(ctx, mortise.Request{Key: key, Try: true})
	if err == nil {
		_ = lock.Unlock(ctx)
		return 0, errFree
	}
	var taken *mortise.HeldError
	if !errors.As(err, &taken) {
		return 0, err
	}
	return taken.Token, nil
}

var errFree = errors.New("the key is free")

func (a *attacker) resumePart(ctx context.Context, _ known) Tally {
	return a.resume(ctx, "part", "held/part/a")
}

func (a *attacker) resumeAbove(ctx context.Context, _ known) Tally {
	return a.resume(ctx, "above", "held/above")
}

func (a *attacker) resumeLive(ctx context.Context, _ known) Tally {
	return a.resume(ctx, "live", "held/live")
}

// resumeMember tries to end the hold first. A member without the right force is refused, and then
// tries to resume the hold.
func (a *attacker) resumeMember(ctx context.Context, _ known) Tally {
	t := a.evict(ctx, "member", "held/member")
	if t.Believed > 0 {
		return t
	}
	return a.resume(ctx, "member", "held/member")
}

func (a *attacker) forcePart(ctx context.Context, _ known) Tally {
	return a.evict(ctx, "forcer", "held/force/a")
}

// evict ends a hold by force.
func (a *attacker) evict(ctx context.Context, name, key string) Tally {
	ctx, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	h, err := a.guest(ctx, name)
	if err != nil {
		return refused(err)
	}
	token, err := h.tokenOf(ctx, key)
	switch {
	case errors.Is(err, errFree):
		return Tally{} // the instance locks it anew after an attack that was believed
	case err != nil:
		return refused(err)
	}
	ended, err := guest.Put(ctx, h.Guest, query.AdminClient.Evict, &query.EvictRequest{
		Key: []byte(key), Token: uint64(token), By: []byte("an attacker"), Reason: []byte("to take it"),
	})
	t := refused(err)
	if ended.GetHeld() {
		t.Believed++
	}
	return t
}
