package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// Bounds of the leases of an agent.
const (
	leasesMost  = 10_000
	leasesEach  = 1_000 // of one client: a derived secret, a token, or else a connection
	leaseTTL    = 10 * time.Second
	leaseTTLMin = time.Second
	leaseTTLMax = 10 * time.Minute
)

var (
	errNoLease   = errors.New("there is no such lease: it was not kept alive in time, its connection has ended, or it was ended; what it held has ended")
	errNoLock    = errors.New("the lease has no lock with that token: it was released, or lost")
	errTooMany   = errors.New("this agent has as many leases as it may")
	errTooMuch   = errors.New("this client has as many leases as it may: end some, or let them run out")
	errLeaseOver = errors.New("the lease has ended")
)

// leases are the clients of an agent. What a client holds belongs to its lease and ends with it: it
// is released if the client ends the lease, and lapses if the client is lost, since its work may go
// on. Safe for concurrent use.
type leases struct {
	node *mortise.Node
	ctx  context.Context // ends with all leases
	end  context.CancelFunc

	mu     sync.Mutex // guards what follows, and every lease; never held across a wait
	all    map[string]*lease
	each   map[any]int // leases of each client that has any
	closed bool
}

// lease is one client.
type lease struct {
	id, name string
	client   any
	by       *program      // whose lease it is; nil: the agent's own
	ttl      time.Duration // 0: it lives as long as its connection
	timer    *time.Timer   // nil without a ttl
	locks    map[mortise.Token]holding
	ctx      context.Context // ends with the lease
	end      context.CancelCauseFunc
}

func newLeases(node *mortise.Node) *leases {
	ls := &leases{node: node, all: map[string]*lease{}, each: map[any]int{}}
	ls.ctx, ls.end = context.WithCancel(context.Background())
	return ls
}

// open begins a lease of a client, for which a *program stands for itself. Without a ttl it has to
// be ended.
func (ls *leases) open(client any, name string, ttl time.Duration) (*lease, error) {
	l := &lease{id: rand.Text(), name: name, client: client, ttl: ttl, locks: map[mortise.Token]holding{}}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return nil, mortise.ErrLeaving
	}
	if len(ls.all) >= leasesMost {
		return nil, errTooMany
	}
	if ls.each[client] >= leasesEach {
		return nil, errTooMuch
	}
	if l.by, _ = client.(*program); l.by != nil {
		l.by.pool.stay(l.by)
	}
	ls.each[client]++
	ls.all[l.id] = l
	if ttl > 0 {
		l.timer = time.AfterFunc(ttl, func() {
			ls.drop(l.id,
				l.lost("did not keep its lease alive for "+ttl.String()))
		})
	}
	return l, nil
}

// find returns a lease of a program that lives. A lease of one program is none for another one:
// its locks stand under other rights.
func (ls *leases) find(by *program, id string) (*lease, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.of(by, id)
}

// of is find for callers that hold mu.
func (ls *leases) of(by *program, id string) (*lease, error) {
	l := ls.all[id]
	if l == nil || l.by != by {
		return nil, errNoLease
	}
	return l, nil
}

// keep prolongs a lease by its ttl, and lists what it still holds: what is not in the list is lost.
func (ls *leases) keep(by *program, id string) (*lease, []lockText, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l, err := ls.of(by, id)
	if err != nil || l.timer != nil && !l.timer.Stop() {
		return nil, nil, errNoLease // or its time is over, and drop waits for mu
	}
	if l.timer != nil {
		l.timer.Reset(l.ttl)
	}
	held, _ := l.sift()
	return l, held, nil
}

// sift drops what the lease has lost, and returns the rest and what it has dropped. The caller
// holds mu.
func (l *lease) sift() (held, lost []lockText) {
	for token, lock := range l.locks {
		if err := lock.Err(); err != nil {
			delete(l.locks, token)
			lost = append(lost, lockText{Key: lock.Key(), Token: token, Lost: err.Error()})
			continue
		}
		held = append(held, lockText{Key: lock.Key(), Token: token})
	}
	byToken := func(a, b lockText) int {
		if a.Token < b.Token {
			return -1
		}
		return 1
	}
	slices.SortFunc(held, byToken)
	slices.SortFunc(lost, byToken)
	return held, lost
}

// lost returns what the lease has lost since it was asked last.
func (ls *leases) lost(l *lease) []lockText {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	_, lost := l.sift()
	return lost
}

// acquire takes a lock for a lease. It is given back if the lease ends meanwhile, or ctx does.
func (ls *leases) acquire(ctx context.Context, by *program, id string, r mortise.Request) (holding, error) {
	l, err := ls.find(by, id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(errLeaseOver) })()
	lock, err := ls.from(by).acquire(ctx, r)
	if err != nil {
		if l.ctx.Err() != nil {
			err = errNoLease
		}
		return nil, err
	}
	ls.mu.Lock()
	lives := ls.all[id] == l && ctx.Err() == nil
	if lives {
		l.locks[lock.Token()] = lock
	}
	ls.mu.Unlock()
	if !lives {
		_ = lock.UnlockSoon() // nobody was told that he has it
		return nil, errNoLease
	}
	return lock, nil
}

// from is where locks for a program come from.
func (ls *leases) from(by *program) asks {
	if by != nil {
		return by
	}
	return own{ls.node}
}

// lock finds a lock of a lease.
func (ls *leases) lock(by *program, id string, token mortise.Token) (holding, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l, err := ls.of(by, id)
	if err != nil {
		return nil, err
	}
	lock := l.locks[token]
	if lock == nil {
		return nil, errNoLock
	}
	return lock, nil
}

// release gives a lock back and waits for the confirmation.
func (ls *leases) release(ctx context.Context, by *program, id string, token mortise.Token) error {
	lock, err := ls.lock(by, id, token)
	if err != nil {
		return err
	}
	err = lock.Unlock(ctx)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.all[id]; l != nil {
		delete(l.locks, token)
	}
	return err
}

// lost says how the client of a lease was lost, for people.
func (l *lease) lost(how string) string {
	return fmt.Sprintf("client %q of the agent %s", l.name, how)
}

// drop ends a lease, and its requests are given up. Its locks are released if lost is empty, and
// otherwise lapse for that reason. It reports whether there was one.
func (ls *leases) drop(id, lost string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[id]
	if l == nil {
		return false
	}
	delete(ls.all, id)
	if ls.each[l.client]--; ls.each[l.client] == 0 {
		delete(ls.each, l.client)
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.end(errLeaseOver)
	for _, lock := range l.locks {
		if lost == "" {
			_ = lock.UnlockSoon()
		} else {
			_ = lock.Lapse(lost)
		}
	}
	if l.by != nil {
		l.by.pool.leave(l.by)
	}
	return true
}

// close ends all leases, and refuses new ones.
func (ls *leases) close() {
	ls.end()
	ls.mu.Lock()
	ls.closed = true
	all := slices.Collect(maps.Values(ls.all))
	ls.mu.Unlock()
	for _, l := range all {
		ls.drop(l.id, l.lost("was cut off when the agent stopped"))
	}
}
