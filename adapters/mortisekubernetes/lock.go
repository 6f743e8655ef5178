package mortisekubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/mortise-lock/mortise"
)

const (
	// stopped is the event that an elector records when it no longer leads.
	stopped = "stopped leading"

	// releaseTime limits how long a release waits for its confirmation.
	releaseTime = 5 * time.Second

	// What follows an identity that must not equal that of an elector; see Identity and Get.
	another = " (another process)"
	former  = " (its leadership has ended)"
)

var (
	_ resourcelock.Interface = (*Lock)(nil)

	// resource is the kind of the records in errors.
	resource = schema.GroupResource{Group: "mortise", Resource: "locks"}

	errNotHeld = errors.New("this candidate does not hold the lock")
)

// Options change the defaults of New.
type Options struct {
	// LockDelay is how long the lock stays taken when its holder is gone: its session has expired, or
	// its elector has stopped without a release. An elector does not notice a lost lock at once, but
	// stops when its RenewDeadline has passed. Zero means the LeaseDuration of the elector and up to a
	// second more, so that it has stopped by then. Negative means none: choose this if all work of the
	// leader ends with the context of [Lock.Held].
	LockDelay time.Duration

	// Event is called with each event that the elector records, such as "became leader". Nil means
	// that events are dropped.
	Event func(event string)
}

// Lock is a resourcelock.Interface. Each elector needs a Lock of its own.
type Lock struct {
	node          *mortise.Node
	key, identity string
	options       Options

	mu    sync.Mutex
	held  *mortise.Lock // the last hold; nil before the first
	leads bool          // the elector leads under held, which may be lost
	ended bool          // the elector has led, and has not begun anew
	idle  bool          // it has also recorded that it has stopped
}

// New returns the Lock of one candidate. All candidates of an election use the same key. identity
// names the candidate for the others, for example the name of the pod. It has at most about 300
// bytes. Two processes with one identity exclude each other, too.
func New(node *mortise.Node, key, identity string, o Options) *Lock {
	return &Lock{node: node, key: key, identity: identity, options: o}
}

// Held returns the hold under which this candidate leads or has led last, or nil if it has never
// led. Within OnStartedLeading it is never nil:
//
//	lock := l.Held()
//	work(lock.Context(ctx), lock.Token()) // ends when the lock is lost
func (l *Lock) Held() *mortise.Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// Get returns the record of the present holder. It returns an error that apierrors.IsNotFound
// matches if the lock is free. After a lost lock it fails at once until the elector has stopped: an
// elector that releases calls Get before it stops, and would wait for an answer if it is cut off.
//
// An elector takes itself for the leader if the record has its identity. If another process holds
// the lock under the same identity, such as the former one of a pod that has restarted, Get adds to
// that identity that it is another process.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.lost(); err != nil {
		return nil, nil, err
	}
	info, err := l.node.Peek(ctx, l.key)
	if err != nil {
		return nil, nil, fmt.Errorf("mortisekubernetes: %w", err)
	}
	if info.Held == 0 {
		return nil, nil, apierrors.NewNotFound(resource, l.key)
	}
	holder, record := info.Queue[0], &resourcelock.LeaderElectionRecord{}
	if err := json.Unmarshal([]byte(holder.Value), record); err != nil {
		return nil, nil, fmt.Errorf("mortisekubernetes: %q is held by %q, but not by an elector: %w", l.key,
			holder.Holder, err)
	}
	raw := []byte(holder.Value)
	if lock := l.leading(); record.HolderIdentity == l.identity && (lock == nil || lock.Token() != holder.Token) {
		record.HolderIdentity += another
		if raw, err = json.Marshal(record); err != nil { // the elector compares it with what it has seen before
			return nil, nil, fmt.Errorf("mortisekubernetes: %w", err)
		}
	}
	return record, raw, nil
}

// Create takes the lock, with the record as its value. It returns an error that
// apierrors.IsAlreadyExists matches if the lock is taken. After a lost lock it fails until the
// elector has stopped, because the elector would otherwise not notice that its leadership has
// ended.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("mortisekubernetes: %w", err)
	}
	if err := l.lost(); err != nil {
		return err
	}
	lock, err := l.node.Acquire(ctx, mortise.Request{
		Key: l.key, Try: true, Value: string(value), LockDelay: l.delay(record),
		Labels: map[string]string{"mortise.purpose": "election"}, // prevents warnings about a long hold
	})
	if errors.Is(err, mortise.ErrHeld) {
		return apierrors.NewAlreadyExists(resource, l.key)
	}
	if err != nil {
		return fmt.Errorf("mortisekubernetes: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.leads, l.ended, l.idle = lock, true, false, false
	return nil
}

func (l *Lock) delay(record resourcelock.LeaderElectionRecord) time.Duration {
	if l.options.LockDelay == 0 {
		return time.Duration(record.LeaseDurationSeconds+1) * time.Second // the record has whole seconds
	}
	return max(0, l.options.LockDelay)
}

// Update replaces the record if this candidate holds the lock, and returns an error that
// apierrors.IsConflict matches if it does not. With a record that names no holder it releases the
// lock, and returns nil if the lock was lost before.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		return l.release(ctx)
	}
	value, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("mortisekubernetes: %w", err)
	}
	lock := l.leading()
	if lock == nil {
		return apierrors.NewConflict(resource, l.key, errNotHeld)
	}
	err = lock.SetValue(ctx, string(value))
	if lost := lock.Err(); lost != nil { // also if the value was set and the answer was late
		return apierrors.NewConflict(resource, l.key, lost)
	}
	if err != nil {
		return fmt.Errorf("mortisekubernetes: %w", err)
	}
	return nil
}

func (l *Lock) release(ctx context.Context) error {
	lock := l.stop()
	if lock == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	if err := lock.Unlock(ctx); err != nil && !errors.Is(err, mortise.ErrLost) {
		return fmt.Errorf("mortisekubernetes: release %q: %w", l.key, err)
	}
	return nil
}

// RecordEvent passes the event on. When the elector has stopped without a release, the lock stays
// taken for the LockDelay, like the lock of a candidate that is gone.
func (l *Lock) RecordEvent(event string) {
	if event == stopped {
		if lock := l.stop(); lock != nil {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			_ = lock.Detach(ended) // takes effect without a wait for the confirmation
		}
		l.mu.Lock()
		l.idle = l.ended
		l.mu.Unlock()
	}
	if l.options.Event != nil {
		l.options.Event(event)
	}
}

// Identity returns the identity of this candidate, and something is added to it while the elector
// could take itself for the leader without the lock: from the end of its leadership, for example
// because the lock is lost, until an elector begins to acquire the lock. LeaderElector.IsLeader
// compares the identity with the last record that it has seen.
func (l *Lock) Identity() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.leads && l.held.Err() != nil {
		return l.identity + former
	}
	return l.identity
}

// Describe returns the key. An elector calls it when it begins to acquire the lock.
func (l *Lock) Describe() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle {
		l.ended, l.idle = false, false
	}
	return l.key
}

// leading returns the hold under which the elector leads, or nil.
func (l *Lock) leading() *mortise.Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leads {
		return nil
	}
	return l.held
}

// lost returns an error if the elector leads under a hold that is lost.
func (l *Lock) lost() error {
	lock := l.leading()
	if lock == nil || lock.Err() == nil {
		return nil
	}
	return fmt.Errorf("mortisekubernetes: %q cannot be taken again before the elector has stopped: %w", l.key,
		lock.Err())
}

// stop ends the leadership, and returns its hold, or nil if there is none.
func (l *Lock) stop() *mortise.Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leads {
		return nil
	}
	l.leads, l.ended = false, true
	return l.held
}
