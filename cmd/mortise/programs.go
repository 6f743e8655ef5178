package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/guest"
)

// This file is the pool of guests of an agent. A program that shows a derived secret at the door
// acts through a guest that the agent opens for that secret, with its own key, link and session. So
// the leader enforces the rights of the secret, and the agent delegates nothing. All programs with
// one secret share one guest.
//
// The number of guests is limited: each takes a place from the beginning of its opening until it is
// closed. A failed opening is not remembered. A guest that no request and no lease uses is closed
// after a while. Secrets are kept as hashes only.

const (
	maxPrograms = 64
	programIdle = time.Minute            // without a request and a lease, until the guest is closed
	openWithin  = 10 * time.Second       // limit for opening a guest
	openAgain   = 100 * time.Millisecond // between two attempts to reach the cluster
	closeWithin = 3 * time.Second        // limit for ending a guest's session; after it the locks expire
)

var (
	errBadSecret   = errors.New("this derived secret is not accepted")
	errManySecrets = errors.New("this agent has reached its limit of derived secrets")
	errNoPrograms  = errors.New("this agent accepts no derived secrets: it has no -secret-file of a cluster that " +
		"could have " +
		"signed them; send the request without Authorization")
	errMemberSecret = errors.New("this derived secret was made with -member, to start an instance: " +
		"for requests to the agent use one that was made with -allow")
)

// programs are the guests of an agent. Safe for concurrent use.
type programs struct {
	config  mortise.Config // the configuration of the guests, except for the secret
	address string         // of the agent's own port; empty if it has none
	limit   int
	idle    time.Duration
	ctx     context.Context // its end cancels openings
	end     context.CancelFunc
	running sync.WaitGroup // openings and closings

	mu     sync.Mutex // guards the fields below, and using and timer of each program; never held while blocking
	all    map[[sha256.Size]byte]*program
	places int // taken by the programs in all and by those that are being closed
	closed bool
}

// program is the guest of one derived secret.
type program struct {
	pool    *programs
	sum     [sha256.Size]byte
	opened  chan struct{} // closed when the opening is over; the fields from here to using are set before
	err     error         // why the opening failed
	guest   *guest.Guest
	session *guest.Session

	using int         // number of requests under way and of leases
	timer *time.Timer // closes the idle guest; nil while it is in use
}

// newPrograms makes the pool. Without a secret in config, or without a way to reach the cluster, it
// rejects all secrets. The end of ctx cancels openings.
func newPrograms(ctx context.Context, config mortise.Config, address string) *programs {
	ps := &programs{address: address, limit: maxPrograms, idle: programIdle, all: map[[sha256.Size]byte]*program{}}
	ps.ctx, ps.end = context.WithCancel(ctx)
	if config.Secret == "" || address == "" && len(config.Join) == 0 {
		ps.limit = 0
		return ps
	}
	ps.config = mortise.Config{
		Name: config.Name, Cluster: cmp.Or(config.Cluster, "mortise"), Join: config.Join, SessionTTL: config.SessionTTL,
	}
	if address != "" {
		ps.config.Join = append([]string{address}, config.Join...)
	}
	return ps
}

// enter returns the guest of a derived secret. The first request opens it. If enter succeeds the
// caller must call leave. An error wraps errBadSecret, errMemberSecret, errNoPrograms,
// errManySecrets, mortise.ErrNotReady, mortise.ErrLeaving or the error of ctx.
func (ps *programs) enter(ctx context.Context, secret string) (*program, error) {
	if ps.limit == 0 {
		return nil, errNoPrograms
	}
	secret = strings.TrimSpace(secret)
	sum := sha256.Sum256([]byte(secret))
	p, err := ps.find(sum)
	if p == nil && err == nil {
		if err = ps.check(secret); err == nil {
			p, err = ps.place(sum, secret)
		}
	}
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

// check rejects an invalid secret before it takes a place.
func (ps *programs) check(secret string) error {
	source, err := credentials.FromSecret(credentials.SecretConfig{Secret: secret, Cluster: ps.config.Cluster})
	if err != nil {
		return fmt.Errorf("%w: %w", errBadSecret, err)
	}
	peer, err := source.Own()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errBadSecret, err)
	case peer.Tier == credentials.Member:
		return errMemberSecret
	case peer.Tier != credentials.Guest:
		return fmt.Errorf("%w: it is not derived", errBadSecret)
	}
	return nil
}

// find returns the guest of a secret and marks it as used, or returns nil.
func (ps *programs) find(sum [sha256.Size]byte) (*program, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.closed {
		return nil, mortise.ErrLeaving
	}
	p := ps.all[sum]
	if p != nil {
		p.use()
	}
	return p, nil
}

// place is find. If there is no guest, it begins to open one.
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

// use needs mu.
func (p *program) use() {
	p.using++
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// stay counts a lease that begins while the caller is between enter and leave. It must be followed
// by a leave.
func (ps *programs) stay(p *program) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.use()
}

// leave ends an enter or a stay.
func (ps *programs) leave(p *program) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.using--
	ps.rest(p)
}

// rest starts the idle timer of an open program that is not used any more. It needs mu.
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
		if p.timer == timer { // unused since the timer started
			ps.remove(p)
		}
	})
	p.timer = timer
}

// remove closes the guest of an open program in the background. It needs mu.
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

// close ends all guests and waits for them. All leases must have been dropped before.
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
		default: // its opening fails now
		}
	}
	ps.mu.Unlock()
	ps.running.Wait()
}
