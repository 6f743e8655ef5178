package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/credentials"
)

// This file is the pool of guests of an agent. A program that sends a derived secret to the HTTP
// API acts through a guest. The agent opens the guest with that secret, and the guest has its own
// key, link and session. So the leader enforces the rights of the secret, and the agent delegates
// none of its own rights. All programs with the same secret share one guest.
//
// The number of guests is limited: each guest occupies a place from the time when the agent begins
// to open it until it is closed. A failed attempt to open a guest is not cached. A guest that no
// request and no lease uses is closed after a while. The pool stores only hashes of the secrets.

const (
	maxPrograms = 64
	programIdle = time.Minute // time after which an unused guest is closed
	openWithin  = 10 * time.Second
)

type programs struct {
	config  mortise.Config // configuration of the guests, without the secret
	source  *credentials.Source
	limit   int
	idle    time.Duration
	ctx     context.Context // when it ends, the opening of guests is cancelled
	end     context.CancelFunc
	running sync.WaitGroup // guests that are being opened or closed

	// mu guards the fields below, and the fields using and timer of each program. It is never held
	// while blocking.
	mu     sync.Mutex
	all    map[[sha256.Size]byte]*program
	places int // programs in the map, plus those that are being closed
	closed bool
}

type program struct {
	pool    *programs
	sum     [sha256.Size]byte
	opened  chan struct{} // closed when the attempt to open has ended; err and derived are set before
	err     error
	derived // of an open program
	puts    madePuts

	using int         // running requests and leases
	timer *time.Timer // closes the idle guest; nil while the guest is in use
}

// newPrograms returns a pool. Without a secret in config, or without a way to reach the cluster,
// the pool rejects all secrets. When ctx ends, the opening of guests is cancelled.
func newPrograms(ctx context.Context, config mortise.Config, address string) *programs {
	ps := &programs{limit: maxPrograms, idle: programIdle, all: map[[sha256.Size]byte]*program{}}
	ps.ctx, ps.end = context.WithCancel(ctx)
	if config.Secret == "" || address == "" && len(config.Join) == 0 {
		ps.limit = 0
		return ps
	}
	source, err := credentials.FromSecret(credentials.SecretConfig{Secret: config.Secret, Old: config.OldSecrets,
		Cluster: cmp.Or(config.Cluster, "mortise")})
	if err != nil { // not after Start has accepted the configuration
		ps.limit = 0
		return ps
	}
	ps.source = source
	ps.config = mortise.Config{
		Name: config.Name, Cluster: cmp.Or(config.Cluster, "mortise"), Join: config.Join, SessionTTL: config.SessionTTL,
	}
	if address != "" {
		ps.config.Join = append([]string{address}, config.Join...)
	}
	return ps
}

// enter returns the guest of a derived secret that check has accepted. The first request with the
// secret opens it. If enter succeeds, the caller must call leave. An error wraps errBadSecret,
// errManySecrets, mortise.ErrNotReady, mortise.ErrLeaving or the error of ctx.
func (ps *programs) enter(ctx context.Context, sum [sha256.Size]byte, secret string) (*program, error) {
	p, err := ps.place(sum, strings.TrimSpace(secret))
	if err != nil {
		return nil, err
	}
	select {
	case <-p.opened:
		err = p.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		ps.leave(p)
		return nil, err
	}
	return p, nil
}

// check returns the hash of a derived secret that the cluster accepts from a program. It takes no
// place, and compares the authority first, so a secret that was made up costs little. An error
// wraps errBadSecret, errMemberSecret or errNoPrograms.
func (ps *programs) check(secret string) (sum [sha256.Size]byte, err error) {
	if ps.limit == 0 {
		return sum, errNoPrograms
	}
	secret = strings.TrimSpace(secret)
	sum = sha256.Sum256([]byte(secret))
	if ps.has(sum) {
		return sum, nil
	}
	peer, err := ps.source.Derived(secret)
	switch {
	case err != nil:
		return sum, fmt.Errorf("%w: %w", errBadSecret, err)
	case peer.Tier != credentials.Guest:
		return sum, errMemberSecret
	}
	return sum, nil
}

func (ps *programs) has(sum [sha256.Size]byte) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.all[sum] != nil
}

// place returns a program and counts a use of it. It starts to open a guest if the secret has none.
func (ps *programs) place(sum [sha256.Size]byte, secret string) (*program, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[sum]
	switch {
	case ps.closed:
		return nil, mortise.ErrLeaving
	case p == nil && ps.places >= ps.limit:
		return nil, fmt.Errorf("%w, %d: try again when one has been unused for %v", errManySecrets, maxPrograms,
			programIdle)
	case p == nil:
		p = &program{pool: ps, sum: sum, opened: make(chan struct{})}
		ps.all[sum] = p
		ps.places++
		ps.running.Go(func() { ps.open(p, secret) })
	}
	p.use()
	return p, nil
}

func (ps *programs) open(p *program, secret string) {
	ctx, cancel := context.WithTimeout(ps.ctx, openWithin)
	defer cancel()
	config := ps.config
	config.Secret = secret
	err := p.begin(ctx, config)
	if err != nil && ps.ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", mortise.ErrLeaving, err)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.err = err
	close(p.opened)
	switch {
	case err != nil:
		ps.places--
		delete(ps.all, p.sum)
	case ps.closed:
		ps.remove(p)
	default:
		ps.rest(p)
	}
}

// use counts one use of the guest. The caller must hold mu.
func (p *program) use() {
	p.using++
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// stay counts a lease as a use of the guest. The caller must be between enter and leave. When the
// lease ends, leave must be called once more.
func (ps *programs) stay(p *program) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.use()
}

func (ps *programs) leave(p *program) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.using--
	ps.rest(p)
}

// rest starts the idle timer if p is open and not in use. The caller must hold mu.
func (ps *programs) rest(p *program) {
	select {
	case <-p.opened:
	default:
		return
	}
	if p.using > 0 || p.timer != nil || ps.all[p.sum] != p {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(ps.idle, func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		if p.timer == timer {
			ps.remove(p)
		}
	})
	p.timer = timer
}

// remove closes the guest of an open program in the background. The caller must hold mu.
func (ps *programs) remove(p *program) {
	delete(ps.all, p.sum)
	p.timer = nil
	ps.running.Go(func() {
		p.close()
		ps.mu.Lock()
		defer ps.mu.Unlock()
		ps.places--
	})
}

// close closes all guests and waits until they are closed. All leases must have been dropped
// before.
func (ps *programs) close() {
	ps.end()
	ps.mu.Lock()
	ps.closed = true
	for _, p := range ps.all {
		select {
		case <-p.opened:
			if p.timer != nil {
				p.timer.Stop()
			}
			ps.remove(p)
		default: // the end of ps.ctx cancels the opening
		}
	}
	ps.mu.Unlock()
	ps.running.Wait()
}
