package compare

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	theirs "github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	ours "github.com/mortise-lock/mortise/adapters/mortisedropin/redsync"
	"github.com/mortise-lock/mortise/mortisetest"
)

// redsyncMutex has all methods of a Mutex of redsync.
type redsyncMutex interface {
	Name() string
	Value() string
	Until() time.Time
	Lock() error
	LockContext(ctx context.Context) error
	TryLock() error
	TryLockContext(ctx context.Context) error
	Unlock() (bool, error)
	UnlockContext(ctx context.Context) (bool, error)
	Extend() (bool, error)
	ExtendContext(ctx context.Context) (bool, error)
	Valid() (bool, error)
	ValidContext(ctx context.Context) (bool, error)
}

// terms are the options of a test. Zero is the default.
type terms struct {
	expiry, delay time.Duration
	tries         int
}

// redsyncKind is one of the two libraries.
type redsyncKind struct {
	mutex           func(name string, o terms) redsyncMutex
	pass            func(d time.Duration) // lets time pass
	taken           func(err error) bool
	failed, expired error
}

func redsyncs(t *testing.T) map[string]redsyncKind {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	redises := theirs.New(pool.NewPool(client))
	node := ours.New(mortisetest.New(t, 1).Node(0))
	return map[string]redsyncKind{
		"redsync": {
			func(name string, o terms) redsyncMutex {
				options := []theirs.Option{theirs.WithDriftFactor(0.01), theirs.WithFailFast(true),
					theirs.WithTimeoutFactor(0.5), theirs.WithShufflePools(true)}
				if o.expiry > 0 {
					options = append(options, theirs.WithExpiry(o.expiry))
				}
				if o.tries > 0 {
					options = append(options, theirs.WithTries(o.tries), theirs.WithRetryDelay(o.delay))
				}
				return redises.NewMutex(name, options...)
			},
			func(d time.Duration) { time.Sleep(d); server.FastForward(d) },
			func(err error) bool { var taken *theirs.ErrTaken; return errors.As(err, &taken) },
			theirs.ErrFailed, theirs.ErrLockAlreadyExpired,
		},
		"mortise": {
			func(name string, o terms) redsyncMutex {
				options := []ours.Option{ours.WithDriftFactor(0.01), ours.WithFailFast(true),
					ours.WithTimeoutFactor(0.5), ours.WithShufflePools(true)}
				if o.expiry > 0 {
					options = append(options, ours.WithExpiry(o.expiry))
				}
				if o.tries > 0 {
					options = append(options, ours.WithTries(o.tries), ours.WithRetryDelay(o.delay))
				}
				return node.NewMutex(name, options...)
			},
			time.Sleep,
			func(err error) bool { var taken *ours.ErrTaken; return errors.As(err, &taken) },
			ours.ErrFailed, ours.ErrLockAlreadyExpired,
		},
	}
}

func onRedsyncs(t *testing.T, test func(t *testing.T, k redsyncKind)) {
	for name, kind := range redsyncs(t) {
		t.Run(name, func(t *testing.T) { test(t, kind) })
	}
}

func yes(t *testing.T, what string, ok bool, err error) {
	t.Helper()
	if !ok || err != nil {
		t.Errorf("%s: %v, %v", what, ok, err)
	}
}

// A report that one instance makes; another one skips it.
func TestRedsyncExcludes(t *testing.T) {
	onRedsyncs(t, func(t *testing.T, k redsyncKind) {
		one, two := k.mutex("report", terms{}), k.mutex("report", terms{tries: 2, delay: 10 * time.Millisecond})
		yes(t, "new", one.Name() == "report" && one.Value() == "" && one.Until().IsZero(), nil)
		yes(t, "lock", true, one.LockContext(t.Context()))
		yes(t, "value and until", one.Value() != "" && time.Until(one.Until()) > time.Second, nil)
		valid, err := one.Valid()
		yes(t, "valid", valid, err)
		if err := two.TryLock(); !k.taken(err) {
			t.Errorf("try: %v", err)
		}
		if err := two.Lock(); !k.taken(err) {
			t.Errorf("lock: %v", err)
		}
		ok, err := one.Extend()
		yes(t, "extend", ok, err)
		ok, err = one.Unlock()
		yes(t, "unlock", ok, err)
		if ok, err := one.UnlockContext(t.Context()); ok || !errors.Is(err, k.expired) {
			t.Errorf("unlock again: %v, %v", ok, err)
		}
		if valid, _ := one.ValidContext(t.Context()); valid { // redsync reports a key that does not exist as an error
			t.Error("it is valid after Unlock")
		}
		yes(t, "lock", true, two.TryLockContext(t.Context()))
		if one.Value() == two.Value() {
			t.Errorf("two locks have the value %q", one.Value())
		}
		ok, err = two.Unlock()
		yes(t, "unlock", ok, err)
	})
}

// A lock with an expiry is free when it is not extended.
func TestRedsyncExpires(t *testing.T) {
	onRedsyncs(t, func(t *testing.T, k redsyncKind) {
		const expiry = 400 * time.Millisecond
		one, two := k.mutex("job", terms{expiry: expiry}), k.mutex("job", terms{})
		yes(t, "lock", true, one.Lock())
		if left := time.Until(one.Until()); left > expiry {
			t.Errorf("until in %v", left)
		}
		for range 3 {
			k.pass(expiry / 2)
			ok, err := one.ExtendContext(t.Context())
			yes(t, "extend", ok, err)
		}
		if err := two.TryLock(); !k.taken(err) {
			t.Errorf("before the expiry: %v", err)
		}
		k.pass(expiry + expiry/4)
		yes(t, "lock after the expiry", true, two.TryLock())
		if ok, err := one.Extend(); ok || err == nil {
			t.Errorf("extend after the expiry: %v, %v", ok, err)
		}
		if ok, err := one.Unlock(); ok || err == nil {
			t.Errorf("unlock after the expiry: %v, %v", ok, err)
		}
		ok, err := two.Unlock()
		yes(t, "the other lock is left alone", ok, err)
	})
}

// A waiter gets the lock when the holder unlocks, and gives up with its context.
func TestRedsyncWaits(t *testing.T) {
	onRedsyncs(t, func(t *testing.T, k redsyncKind) {
		one, two := k.mutex("orders/42", terms{}), k.mutex("orders/42", terms{tries: 500, delay: 10 * time.Millisecond})
		yes(t, "lock", true, one.Lock())
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := two.LockContext(ctx); !errors.Is(err, k.failed) {
			t.Errorf("the context has ended: %v", err)
		}
		unlocked := make(chan error)
		time.AfterFunc(50*time.Millisecond, func() {
			_, err := one.Unlock()
			unlocked <- err
		})
		yes(t, "lock", true, two.Lock())
		yes(t, "unlock", true, <-unlocked)
		ok, err := two.Unlock()
		yes(t, "unlock", ok, err)
	})
}
