package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lapse"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// Lock is a lock that a guest holds. It has some of the methods of mortise.Lock.
type Lock struct {
	session *Session
	key     string
	parts   []modes.Part  // nil for a resumed or a sticky lock
	base    *Lock         // the lock that this one upgrades, or nil
	values  atomic.Uint64 // the calls of SetValue
	hold    client.Hold
}

// Acquire waits for a lock. If r.Try is set, it does not wait for other holders. It returns the
// errors of mortise.Node.Acquire: *mortise.HeldError, mortise.ErrNotReady, mortise.ErrBadKey and so
// on. If ctx ends, the error wraps the error of ctx, and names the holder at the time when the
// request was queued. The guest needs the right to lock every key, and every node above a key with
// Tree.
func (s *Session) Acquire(ctx context.Context, r mortise.Request) (*Lock, error) {
	if err := Check(r); err != nil {
		return nil, err
	}
	parts := partsOf(r)
	a := modes.Expand(parts)
	t := &client.Terms{Keys: a.Keys[1:], Modes: a.Modes, Permits: a.Permits, Of: a.Of, Most: uint32(r.MaxWaiting)}
	o := optionsOf(r)
	return s.acquire(ctx, &Lock{session: s, key: r.Key, parts: parts},
		&client.Request{Key: a.Keys[0], Try: r.Try, Terms: t}, &o)
}

// Check returns why Acquire refuses a request without asking the group, or nil. The keys themselves
// are not checked.
func Check(r mortise.Request) error {
	if err := modes.Check(partsOf(r), r.LockDelay); err != nil {
		return fmt.Errorf("%w: Request.%w", mortise.ErrBadRequest, err)
	}
	o := optionsOf(r)
	return checkOptions(&o)
}

func partsOf(r mortise.Request) []modes.Part {
	parts := []modes.Part{{Key: r.Key, Mode: modes.Mode(r.Mode), Tree: r.Tree}}
	for _, p := range r.Also {
		parts = append(parts, modes.Part{Key: p.Key, Mode: modes.Mode(p.Mode), Tree: p.Tree})
	}
	return parts
}

func optionsOf(r mortise.Request) mortise.ResumeOptions {
	return mortise.ResumeOptions{MaxHold: r.MaxHold, MaxIdle: r.MaxIdle, JeopardyGrace: r.JeopardyGrace,
		LockDelay: r.LockDelay, Notice: r.Notice, Value: r.Value, Labels: r.Labels}
}

// Resume takes over the hold of key that has this token: see mortise.Node.Resume.
func (s *Session) Resume(ctx context.Context, key string, token mortise.Token, o mortise.ResumeOptions) (*Lock, error) {
	if !queries.IsToken(uint64(token)) {
		return nil, fmt.Errorf("%w: Resume of %s: the token is %d, which no hold has", mortise.ErrBadRequest,
			plain.Text(key), token)
	}
	return s.acquire(ctx, &Lock{session: s, key: key},
		&client.Request{Key: key, Terms: &client.Terms{Resume: lockfsm.Token(token)}}, &o)
}

// LockSticky is like Acquire, but the session keeps the lock: see mortise.Node.LockSticky.
func (s *Session) LockSticky(ctx context.Context, key string, o mortise.StickyOptions) (*Lock, error) {
	l := &Lock{session: s, key: key}
	p := &client.Pass{}
	p.Key, p.Shared, p.Try, p.Notice = key, o.Shared, o.Try, o.Notice
	if err := s.client.AcquireKept(ctx, &l.hold, p); err != nil {
		return nil, s.explain(key, err)
	}
	return l, nil
}

func (s *Session) acquire(ctx context.Context, l *Lock, r *client.Request, o *mortise.ResumeOptions) (*Lock, error) {
	if err := checkOptions(o); err != nil {
		return nil, err
	}
	t := r.Terms
	t.Value, t.Delay, t.Notice = shown.Encode(o.Value, o.Labels, nil), client.WholeDelay(o.LockDelay), o.Notice
	t.Longest, t.Idle, t.Grace = o.MaxHold, o.MaxIdle, o.JeopardyGrace
	if err := s.client.AcquireInto(ctx, &l.hold, r); err != nil {
		return nil, s.explain(r.Key, err)
	}
	return l, nil
}

func checkOptions(o *mortise.ResumeOptions) error {
	if o.MaxIdle != 0 && o.MaxIdle < client.MinIdle {
		return fmt.Errorf("%w: Request.MaxIdle is %v; want 0 (no limit), or %v or more", mortise.ErrBadRequest,
			o.MaxIdle, client.MinIdle)
	}
	if o.LockDelay < 0 || o.LockDelay > lockfsm.MaxDelay {
		return fmt.Errorf("%w: Request.LockDelay is %v; want 0 to %v", mortise.ErrBadRequest, o.LockDelay,
			lockfsm.MaxDelay)
	}
	value := len(shown.Encode(o.Value, o.Labels, nil))
	if value > lockfsm.MaxValueBytes || o.MaxHold < 0 || o.JeopardyGrace < 0 || o.JeopardyGrace > lockfsm.MaxDelay {
		return fmt.Errorf("%w: Request.Value and Labels (%d bytes, at most %d), MaxHold (%v) or JeopardyGrace (%v, at "+
			"most %v) is out of range", mortise.ErrBadRequest, value, lockfsm.MaxValueBytes, o.MaxHold, o.JeopardyGrace,
			lockfsm.MaxDelay)
	}
	return nil
}

// IdleError is the reason of a lock that was lost because its holder has not called Beat.
type IdleError = client.IdleError

// Key returns the key that is locked.
func (l *Lock) Key() string { return l.key }

// Token returns the fencing token of the grant.
func (l *Lock) Token() mortise.Token { return mortise.Token(l.hold.Token()) }

// Err returns nil while the lock is held, and otherwise the reason why it is not held. It reads the
// clock at each call.
func (l *Lock) Err() error {
	err := l.hold.Err()
	var forced *client.ForcedError
	if errors.As(err, &forced) {
		return &mortise.ForcedError{By: forced.By, Reason: forced.Reason}
	}
	return err
}

// Beat reports that the work under the lock moves: see mortise.Lock.Beat.
func (l *Lock) Beat() {
	if l.base != nil {
		l = l.base
	}
	l.hold.Beat()
}

// Done returns a channel that is closed when the lock is no longer held.
func (l *Lock) Done() <-chan struct{} { return l.hold.Done() }

// Unlock releases the lock, even if ctx has ended. ctx only limits the wait for the confirmation.
func (l *Lock) Unlock(ctx context.Context) error { return l.hold.Release(ctx) }

// UnlockSoon releases the lock without waiting for a confirmation. If the lock was lost before, it
// returns an error that matches mortise.ErrLost, and otherwise nil.
func (l *Lock) UnlockSoon() error { return l.hold.ReleaseSoon() }

// Downgrade makes an exclusive lock shared: see mortise.Lock.Downgrade.
func (l *Lock) Downgrade(ctx context.Context) error {
	permits := fmt.Errorf("%w: Downgrade of a semaphore", mortise.ErrBadRequest)
	g := l.hold.Grant()
	switch {
	case l.hold.Upgraded():
		return fmt.Errorf("%w: Downgrade of an upgraded lock: unlock it, and the lock is upgradable again",
			mortise.ErrBadRequest)
	case g.Semaphore():
		return permits
	case g.Reads() && !l.hold.Lowered():
		return l.Err()
	case l.hold.Passed():
		return fmt.Errorf("%w: Downgrade of a sticky lock, which the session keeps for its next exclusive callers: "+
			"request it as shared, or not sticky", mortise.ErrBadRequest)
	}
	to := g.Readers(true) // a resumed hold may be of a tree
	if l.parts != nil {
		to = modes.Readers(l.parts)
	}
	switch err := l.hold.Downgrade(ctx, to); {
	case errors.Is(err, client.ErrUnsupported):
		return fmt.Errorf("%w: Downgrade", err)
	case errors.Is(err, client.ErrNotHeld):
		return permits
	default:
		return err
	}
}

// Upgrade makes an upgradable lock exclusive: see mortise.Lock.Upgrade.
func (l *Lock) Upgrade(ctx context.Context) (*Lock, error) {
	if err := l.Err(); err != nil {
		return nil, err
	}
	if !l.hold.Upgradable() {
		return nil, fmt.Errorf("%w: Upgrade of a lock that is not upgradable", mortise.ErrBadRequest)
	}
	up, r := &Lock{session: l.session, key: l.key, base: l}, l.hold.UpgradeRequest()
	switch err := l.hold.Upgrade(ctx, &up.hold, &r); {
	case err == nil:
		return up, nil
	case errors.Is(err, client.ErrUpgraded):
		return nil, fmt.Errorf("%w: %w", mortise.ErrBadRequest, err)
	case l.Err() != nil:
		return nil, l.Err()
	default:
		return nil, l.session.explain(l.Key(), err)
	}
}

// Detach gives up the lock, which stays taken for its LockDelay: see mortise.Lock.Detach.
// With a reason of package lapse it does not wait.
func (l *Lock) Detach(ctx context.Context) error {
	if why := lapse.Reason(ctx); why != "" {
		return l.hold.Lapse(why)
	}
	return l.hold.Detach(ctx)
}

// Regain waits until a lock in doubt is good again or lost: see mortise.Lock.Regain.
func (l *Lock) Regain(ctx context.Context) error {
	for {
		if err := l.Err(); !errors.Is(err, mortise.ErrInJeopardy) {
			return err
		}
		if err := l.hold.Regain(ctx); err != nil {
			return err
		}
	}
}

// Wanted returns a channel that is closed when another request has to wait for the lock. It needs
// Request.Notice.
func (l *Lock) Wanted() <-chan struct{} { return l.hold.Wanted() }

func (s *Session) explain(key string, err error) error {
	var held *client.HeldError
	var wait *client.WaitError
	var denied *session.NotAllowedError
	switch {
	case errors.Is(err, client.ErrBadKey):
		return fmt.Errorf("%w: %.64q: want 1 to %d bytes of UTF-8 without control characters", err, key,
			lockfsm.DefaultLimits().KeyBytes)
	case errors.As(err, &denied):
		return (*mortise.NotAllowedError)(denied)
	case errors.As(err, &held):
		return heldError(held)
	case errors.Is(err, client.ErrInGrace), errors.Is(err, client.ErrNoLeader), errors.Is(err, client.ErrKept):
		return fmt.Errorf("%w: lock %q: %w", ErrNotReady, key, err)
	case errors.As(err, &wait) && !s.attached():
		return fmt.Errorf("%w: lock %q: no leader answers: %w", ErrNotReady, key, wait.Err)
	case errors.As(err, &wait) && wait.Behind != nil:
		held := heldError(wait.Behind)
		held.Waiters = max(held.Waiters-1, 0) // the count includes this request
		return fmt.Errorf("%w: when the request was queued: %w", wait.Err, held)
	case errors.As(err, &wait) && s.client.Status().GraceUntil != 0:
		return fmt.Errorf("%w: lock %q: the group is in its grace, nothing is granted yet: %w", ErrNotReady, key,
			wait.Err)
	case errors.As(err, &wait): // the lock may be free
		return fmt.Errorf("%w: lock %q: the leader has not answered yet, so no holder is known: %w", ErrNotReady, key,
			wait.Err)
	}
	return err
}

func heldError(e *client.HeldError) *mortise.HeldError {
	var r struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(e.Record, &r) != nil || r.Name == "" {
		r.Name = fmt.Sprintf("session %d", e.Session)
	}
	h := &mortise.HeldError{
		Key: e.Key, Hold: mortise.Hold{Holder: r.Name, Token: mortise.Token(e.Token),
			Session: fmt.Sprint(uint64(e.Session)), Since: time.UnixMilli(e.SinceUnixMS), Kept: e.Kept},
		Waiters: e.Waiters,
	}
	h.Value, h.Labels = shown.Decode(e.Value)
	return h
}
