package client

import (
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
)

// IdleHold describes a hold with Terms.Idle.
type IdleHold struct {
	Key     string
	Token   lockfsm.Token
	Longest time.Duration // Terms.Idle
	// Idle is the time since a check has found a new beat. It is zero if there was one since the last
	// check. The hold ends when it reaches Longest.
	Idle time.Duration
}

// idleHolds are the holds with Terms.Idle. The client's goroutine adds and removes them.
type idleHolds struct {
	mu  sync.Mutex // guards all; never held while waiting
	all map[*idle]IdleHold
}

// add adds the hold of a request that was granted, unless it has ended in the same turn.
func (i *idleHolds) add(r *Request) {
	if r.idle() == nil || !r.stage.holds() {
		return
	}
	g := r.Grant()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.all == nil {
		i.all = map[*idle]IdleHold{}
	}
	i.all[r.idle()] = IdleHold{Key: g.Key, Token: r.token(), Longest: r.Terms.Idle}
}

func (i *idleHolds) remove(r *Request) {
	if r.idle() == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.all, r.idle())
}

// list describes the holds at the time now, also those in doubt, in no order.
func (i *idleHolds) list(now clock.Time) (list []IdleHold) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for idle, h := range i.all {
		if idle.ended.Load() == 0 {
			h.Idle = idle.since(now)
			list = append(list, h)
		}
	}
	return list
}
