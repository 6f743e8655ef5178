package mortisekubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/mortise-lock/mortise/mortisetest"
)

// fast are the usual durations on a clock that is ten times too fast.
var fast = durations{lease: usual.lease / 10, renew: usual.renew / 10, retry: usual.retry / 10}

// fastClock is the Lock of a candidate for which the LeaseDuration of the leader passes ten times
// too fast. An elector has no setting for its clock.
type fastClock struct{ resourcelock.Interface }

func (f fastClock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := f.Interface.Get(ctx)
	if err == nil {
		record.LeaseDurationSeconds /= 10
	}
	return record, raw, err
}

// lease is a record that candidates compare and replace, as a Lease in an API server is.
type lease struct {
	identity string
	shared   *shared
	seen     int // the version that this candidate has read or written last
}

type shared struct {
	mu      sync.Mutex
	version int // zero means that there is no record
	record  resourcelock.LeaderElectionRecord
}

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	if l.shared.version == 0 {
		return nil, nil, apierrors.NewNotFound(resource, key)
	}
	record := l.shared.record
	raw, err := json.Marshal(record)
	l.seen = l.shared.version
	return &record, raw, err
}

func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	if l.seen != l.shared.version {
		return apierrors.NewConflict(resource, key, errors.New("it has changed"))
	}
	l.shared.version, l.shared.record = l.seen+1, record
	l.seen++
	return nil
}

func (*lease) RecordEvent(string) {}
func (l *lease) Identity() string { return l.identity }
func (*lease) Describe() string   { return key }

// contest runs two electors for a minute, the second with a fast clock and after the first leads.
// It reports which ones lead or have led.
func contest(t *testing.T, first, second resourcelock.Interface) (firstLeads, secondLed bool) {
	t.Helper()
	l, other := &leaders{t: t}, &leaders{t: t}
	l.run(first, usual, true)
	for l.leader() == "" {
		time.Sleep(time.Millisecond)
	}
	c := other.run(fastClock{second}, fast, true)
	defer c.stop()
	time.Sleep(time.Minute)
	return l.leader() != "", other.count() > 0
}

// A candidate for which time runs too fast does not take the lock from a leader that works. It
// takes a Lease.
func TestAFastClockTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := &shared{}
		_, taken := contest(t, &lease{identity: "pod-0", shared: record}, &lease{identity: "pod-1", shared: record})
		if !taken {
			t.Error("the candidate did not even take a Lease, so this test shows nothing")
		}
		cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		first, second := New(cluster.Node(0), key, "pod-0", Options{}), New(cluster.Node(1), key, "pod-1", Options{})
		leads, taken := contest(t, first, second)
		if err := first.Held().Err(); !leads || taken || err != nil {
			t.Errorf("the first leads: %v, the second led: %v, the lock of the first: %v", leads, taken, err)
		}
	})
}
