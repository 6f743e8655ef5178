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
	"github.com/mortise-lock/mortise/internal/lapse"
)

const (
	maxLeases   = 10_000 // divided among the clients, as identified by door.client
	leaseTTL    = 10 * time.Second
	leaseTTLMin = time.Second
	maxLeaseTTL = 10 * time.Minute
)

var errLeaseOver = errors.New("the lease has ended")

// leases contains the leases of an agent's clients. The locks of a client belong to its lease. When
// the client ends the lease, its locks are released. If the client is lost, its locks lapse,
// because the client's work may continue. leases is safe for concurrent use.
type leases struct {
	node *mortise.Node
	ctx  context.Context
	end  context.CancelFunc

	mu     sync.Mutex // guards the fields below and every lease; never held while blocking
	all    map[string]*lease
	places *shares
	closed bool
}

type lease struct {
	id, name string
	client   any
	by       *program      // nil means the agent's own rights
	ttl      time.Duration // 0 means that the lease ends with its connection
	timer    *time.Timer
	locks    map[mortise.Token]holding
	requests requests
	lasts    bool // see leases.lasting
	asking   int  // calls between lasting and the function that it returns
	ctx      context.Context
	end      context.CancelCauseFunc
}

func newLeases(node *mortise.Node) *leases {
	ls := &leases{node: node, all: map[string]*lease{}, places: newShares(maxLeases)}
	ls.ctx, ls.end = context.WithCancel(context.Background())
	return ls
}

// open creates a lease for a client. All programs with the same derived secret count as one
// client, a *program. If ttl is 0, the lease lasts until drop ends it.
func (ls *leases) open(client any, name string, ttl time.Duration) (*lease, error) {
	l := newLease(client, rand.Text(), name)
	l.ttl = ttl
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if err := ls.add(l); err != nil {
		return nil, err
	}
	if ttl > 0 {
		l.timer = time.AfterFunc(ttl, func() { ls.expire(l, "did not keep its lease alive for "+ttl.String()) })
	}
	return l, nil
}

// lasting returns the lease with this id, or opens it. Neither requests nor a connection keep it:
// it exists until finish or drop ends it, or for the time most, if that is not zero. The caller
// calls acquire, and then the returned function, which ends the lease if it has no lock.
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
			l.timer = time.AfterFunc(most, func() { ls.expire(l, "held its lock for its longest time, "+most.String()) })
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

func newLease(client any, id, name string) *lease {
	l := &lease{id: id, name: name, client: client, locks: map[mortise.Token]holding{},
		requests: requests{byID: map[string]*named{}, ids: map[mortise.Token]string{}}}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.by, _ = client.(*program)
	return l
}

// add counts a new lease. The caller must hold mu.
func (ls *leases) add(l *lease) error {
	if ls.closed {
		return mortise.ErrLeaving
	}
	if !ls.places.take(l.client, 1) {
		return errTooMuch
	}
	if l.by != nil {
		l.by.pool.stay(l.by)
	}
	ls.all[l.id] = l
	return nil
}

// find returns a lease of a program. It fails for a lease of another program, because the locks of
// that lease have other rights.
func (ls *leases) find(by *program, id string) (*lease, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.of(by, id)
}

// ls.of is like find, but the caller must hold mu.
func (ls *leases) of(by *program, id string) (*lease, error) {
	l := ls.all[id]
	if l == nil || l.by != by {
		return nil, errNoLease
	}
	return l, nil
}

// keep extends a lease by its ttl, and returns the locks that the lease still holds. A lock that is
// missing from the list is lost.
func (ls *leases) keep(by *program, id string) (*lease, []lockText, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l, err := ls.of(by, id)
	if err != nil || l.lasts || l.timer != nil && !l.timer.Stop() {
		return nil, nil, errNoLease // the lease is unknown, or has expired while drop waits for mu
	}
	if l.timer != nil {
		l.timer.Reset(l.ttl)
	}
	held, _ := l.sift()
	return l, held, nil
}

// sift removes the locks that the lease has lost. It returns the removed locks and the others,
// which are held or in doubt.
// The caller must hold mu.
func (l *lease) sift() (held, lost []lockText) {
	for token, lock := range l.locks {
		err := lock.Err()
		doubt := errors.Is(err, mortise.ErrInJeopardy)
		if err != nil && !doubt {
			l.forget(token)
			lost = append(lost, lockText{Key: lock.Key(), Token: token, Lost: sentence(err.Error(), toPrograms)})
			continue
		}
		held = append(held, lockText{Key: lock.Key(), Token: token, Wanted: isClosed(lock.Wanted()), Doubt: doubt})
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

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// news returns the locks that the lease has lost, those that another request has begun to wait for,
// and those that are in doubt or good again. It stores in told what it has returned of the locks
// that the lease still has.
func (ls *leases) news(l *lease, told map[mortise.Token]lockText) (news []lockText) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	held, news := l.sift()
	maps.DeleteFunc(told, func(token mortise.Token, _ lockText) bool { return l.locks[token] == nil })
	for _, lock := range held {
		before := told[lock.Token]
		if lock.Wanted == before.Wanted && lock.Doubt == before.Doubt {
			continue
		}
		told[lock.Token] = lock
		if lock.Doubt != before.Doubt {
			lock.Wanted = lock.Wanted && !before.Wanted // reported once
		}
		news = append(news, lock)
	}
	return news
}

func (ls *leases) acquire(ctx context.Context, by *program, id string, w wish) (holding, error) {
	return ls.take(ctx, by, id, func(ctx context.Context) (holding, error) { return ls.from(by).acquire(ctx, w) })
}

// take takes a lock for a lease, with the function acquire. If the lease or ctx ends before it
// returns, the lock is released.
func (ls *leases) take(ctx context.Context, by *program, id string,
	acquire func(context.Context) (holding, error)) (lock holding, err error) {
	l, err := ls.find(by, id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(errLeaseOver) })()
	if q := requestOf(ctx); q.id != "" {
		granted, n, err := ls.begin(ctx, l, q, cancel)
		if granted != nil || err != nil {
			return granted, err
		}
		defer func() { ls.answer(l, n, lock) }()
	}
	return ls.put(ctx, l, acquire)
}

// begin returns the lock that a lease has by an earlier call with the same ID. While that call
// runs, begin waits for it. Otherwise it enters the request, and the caller acquires the lock and
// calls answer.
func (ls *leases) begin(ctx context.Context, l *lease, q request, cancel context.CancelCauseFunc) (holding, *named,
	error) {
	for {
		granted, n, runs, err := ls.enter(l, q, cancel)
		if !runs || err != nil {
			return granted, n, err
		}
		select {
		case <-n.done:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (ls *leases) enter(l *lease, q request, cancel context.CancelCauseFunc) (granted holding, n *named, runs bool,
	err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n, err = l.requests.find(q)
	if err != nil || n != nil && n.token == 0 {
		return nil, n, true, err
	}
	if n != nil {
		lock := l.locks[n.token]
		if err := lock.Err(); err == nil || errors.Is(err, mortise.ErrInJeopardy) {
			return lock, n, false, nil
		}
		l.forget(n.token) // the client has never known of it, and asks for another one
	}
	return nil, l.requests.add(q, cancel), false, nil
}

// answer ends the call of a request with an ID. The lock is nil if the request has got none.
func (ls *leases) answer(l *lease, n *named, lock holding) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var token mortise.Token
	if lock != nil && l.locks[lock.Token()] != nil {
		token = lock.Token()
	}
	l.requests.end(n, token)
}

// forget removes a lock of the lease, with the request that has got it. The caller must hold mu.
func (l *lease) forget(token mortise.Token) {
	delete(l.locks, token)
	l.requests.forget(token)
}

// giveUp ends the request with an ID, and returns the token of the lock that it has got, or zero.
func (ls *leases) giveUp(ctx context.Context, by *program, id, request string) (mortise.Token, error) {
	l, err := ls.find(by, id)
	if err != nil {
		return 0, err
	}
	ls.mu.Lock()
	n := l.requests.giveUp(request)
	ls.mu.Unlock()
	if n == nil {
		return 0, nil
	}
	select {
	case <-n.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return n.token, nil
}

func (ls *leases) put(ctx context.Context, l *lease, acquire func(context.Context) (holding, error)) (holding, error) {
	lock, err := acquire(ctx)
	if err != nil {
		if l.ctx.Err() != nil {
			err = errNoLease
		}
		return nil, err
	}
	ls.mu.Lock()
	lives := ls.all[l.id] == l && ctx.Err() == nil
	if lives {
		l.locks[lock.Token()] = lock
	}
	ls.mu.Unlock()
	if !lives {
		_ = lock.UnlockSoon() // the client does not know about the grant
		return nil, errNoLease
	}
	return lock, nil
}

func (ls *leases) from(by *program) asks {
	if by != nil {
		return by
	}
	return own{ls.node}
}

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

// regain waits until a lock of a lease is not in doubt.
func (ls *leases) regain(ctx context.Context, by *program, id string, token mortise.Token) (lockText, error) {
	lock, err := ls.lock(by, id, token)
	if err != nil {
		return lockText{}, err
	}
	err = lock.Err()
	if doubtful, ok := lock.(interface{ Regain(context.Context) error }); ok && errors.Is(err, mortise.ErrInJeopardy) {
		if err = doubtful.Regain(ctx); err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", mortise.ErrInJeopardy, err)
		}
	}
	return lockText{Key: lock.Key(), Token: token}, err
}

// release ends a lock of a lease in the given way, which is holding.Unlock or holding.Detach.
func (ls *leases) release(ctx context.Context, by *program, id string, token mortise.Token,
	way func(holding, context.Context) error) error {
	lock, err := ls.lock(by, id, token)
	if err != nil {
		return err
	}
	err = way(lock, ctx)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.all[id]; l != nil {
		l.forget(token)
	}
	return err
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

func (l *lease) lost(how string) string {
	return fmt.Sprintf("client %q of the agent %s", l.name, how)
}

// drop ends a lease and cancels its requests. If lost is empty, the locks are released. Otherwise
// the locks lapse, and lost is the reason. drop reports whether the lease existed.
func (ls *leases) drop(id, lost string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[id]
	if l != nil {
		ls.remove(l, lost)
	}
	return l != nil
}

// expire drops a lease whose time is over, unless it has ended meanwhile. Its client may have
// opened another one with the same id.
func (ls *leases) expire(ending *lease, how string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.all[ending.id]; l == ending {
		ls.remove(l, l.lost(how))
	}
}

// remove is like drop, but the lease must exist and the caller must hold mu.
func (ls *leases) remove(l *lease, lost string) {
	delete(ls.all, l.id)
	ls.places.give(l.client, 1)
	if l.timer != nil {
		l.timer.Stop()
	}
	l.end(errLeaseOver)
	for _, lock := range l.locks {
		if lost == "" {
			_ = lock.UnlockSoon()
		} else {
			_ = lock.Detach(lapse.Because(ls.ctx, lost))
		}
	}
	if l.by != nil {
		l.by.pool.leave(l.by)
	}
}

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
