package concurrency

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

const (
	maxTTL      = 1 << 30          // seconds, which fit into a time.Duration; the TTL of the group
	closingTime = 10 * time.Second // for the confirmation of the releases
	ownKeys     = "concurrency/session/"
)

// ErrSessionExpired means that the session has ended, or that a lock was lost with it.
var ErrSessionExpired = errors.New("mutex: the session has ended")

// Session is a lease of this process, for its mutexes and elections. They end with it.
type Session struct {
	node    *mortise.Node
	session *mortise.Session
	own     *mortise.Lock // lost together with all other locks of the session
	ctx     context.Context
	cancel  context.CancelFunc

	calls sync.WaitGroup // calls that wait for a lock, and observers
	ended chan struct{}  // closed when the session is closed or given back
	err   error          // the result of Close; set before ended is closed

	mu     sync.Mutex
	held   map[*mortise.Lock]bool
	closed bool
}

type options struct {
	ttl int
	ctx context.Context
}

// SessionOption configures NewSession.
type SessionOption func(*options)

// WithTTL sets the TTL in seconds. The default is that of the group, mortise.Config.SessionTTL. The
// group reduces a longer one to its own, with a warning in the log. Zero or less is ignored.
func WithTTL(ttl int) SessionOption {
	return func(o *options) {
		if ttl > 0 {
			o.ttl = ttl
		}
	}
}

// WithContext limits the time of NewSession. When ctx ends later, the session counts as ended.
func WithContext(ctx context.Context) SessionOption { return func(o *options) { o.ctx = ctx } }

// NewSession opens a session. It waits for a leader until the context of WithContext ends. The
// caller must close the session, unless its Done was closed because its locks were lost: then it
// gives itself back.
func NewSession(node *mortise.Node, opts ...SessionOption) (*Session, error) {
	o := options{ttl: maxTTL, ctx: context.Background()}
	for _, option := range opts {
		option(&o)
	}
	session, err := node.NewSession(o.ctx, time.Duration(min(o.ttl, maxTTL))*time.Second)
	if err != nil {
		return nil, fmt.Errorf("concurrency: %w", err)
	}
	own, err := session.Acquire(o.ctx, mortise.Request{Key: ownKeys + rand.Text(), Labels: labels("job")})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("concurrency: %w", err), session.Close(context.WithoutCancel(o.ctx)))
	}
	ctx, cancel := context.WithCancel(own.Context(o.ctx))
	s := &Session{node: node, session: session, own: own, ctx: ctx, cancel: cancel, held: map[*mortise.Lock]bool{},
		ended: make(chan struct{})}
	go func() {
		select {
		case <-own.Done(): // lost, or unlocked by Close
			_ = s.Close()
		case <-s.ended:
		}
	}()
	return s, nil
}

// labels marks a hold as long by design: the console and the alerts do not warn about it.
func labels(purpose string) map[string]string { return map[string]string{"mortise.purpose": purpose} }

// Lease returns a number that no other session of the group has or had.
func (s *Session) Lease() int64 { return int64(s.own.Token()) }

// Ctx returns a context that ends when the session ends: because its locks are lost, its node
// leaves, the context of WithContext has ended, or it was closed.
func (s *Session) Ctx() context.Context { return s.ctx }

// Done returns the channel of Ctx.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Close unlocks everything that is held in the session, and ends it. Waiting calls return
// ErrSessionExpired. It takes 10 s at most. If it returns an error, the session expires by itself.
// A repeated call returns the same.
func (s *Session) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		<-s.ended
		return s.err
	}
	defer close(s.ended)
	s.cancel()
	s.calls.Wait()

	ctx, cancel := context.WithTimeout(context.Background(), closingTime)
	defer cancel()
	for lock := range s.held { // no call adds or removes any more
		_ = lock.Unlock(ctx)
	}
	_ = s.own.Unlock(ctx)
	s.err = s.session.Close(ctx)
	return s.err
}

// begin returns a child of ctx that also ends with the session, and a function to call at the end
// of the call. It fails if the session has ended.
func (s *Session) begin(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ctx.Err() != nil {
		return nil, nil, ErrSessionExpired
	}
	s.calls.Add(1)
	within, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return within, func() { stop(); cancel(); s.calls.Done() }, nil
}

func (s *Session) acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error) {
	within, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	lock, err := s.session.Acquire(within, r)
	if err != nil && s.ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrSessionExpired, err)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.held[lock] = true // Close waits for this call
	s.mu.Unlock()
	return lock, nil
}

// bare returns the error of this package or of a context that err wraps, or else err, because code
// for etcd compares with the operator ==. The methods Err have the cause.
func bare(err error) error {
	for _, sentinel := range [...]error{ErrLocked, ErrSessionExpired, ErrElectionNotLeader,
		context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, sentinel) {
			return sentinel
		}
	}
	return err
}

// release unlocks a lock of acquire, even if ctx has ended.
func (s *Session) release(ctx context.Context, lock *mortise.Lock) error {
	s.mu.Lock()
	if !s.closed {
		delete(s.held, lock)
	}
	s.mu.Unlock()
	if err := lock.Unlock(ctx); errors.Is(err, mortise.ErrLost) {
		return fmt.Errorf("%w: %w", ErrSessionExpired, err)
	} else if err != nil {
		return err
	}
	return nil
}
