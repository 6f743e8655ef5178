package compare

import (
	"context"
	"testing"

	v3 "go.etcd.io/etcd/client/v3"
	theirs "go.etcd.io/etcd/client/v3/concurrency"

	"github.com/mortise-lock/mortise"
	ours "github.com/mortise-lock/mortise/adapters/mortisedropin/concurrency"
)

// The compiler checks that both packages have these methods and functions. N is the client or the
// node, ID the type of a lease, R and O the descriptions of a leader.
type etcdSession[ID ~int64] interface {
	Lease() ID
	Ctx() context.Context
	Done() <-chan struct{}
	Close() error
}

type etcdMutex interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) error
	Unlock(ctx context.Context) error
	Key() string
}

type etcdElection[R, O any] interface {
	Campaign(ctx context.Context, val string) error
	Proclaim(ctx context.Context, val string) error
	Resign(ctx context.Context) error
	Leader(ctx context.Context) (R, error)
	Observe(ctx context.Context) <-chan O
	Key() string
	Rev() int64
}

var (
	_ etcdSession[v3.LeaseID] = (*theirs.Session)(nil)
	_ etcdSession[int64]      = (*ours.Session)(nil)

	_, _ etcdMutex = (*theirs.Mutex)(nil), (*ours.Mutex)(nil)

	_, _ = elects((*theirs.Election)(nil)), elects((*ours.Election)(nil))
)

// elects infers R and O, which differ between versions of etcd.
func elects[R, O any](e etcdElection[R, O]) etcdElection[R, O] { return e }

type etcdPackage[N, S, O, M, E any] struct {
	session  func(N, ...O) (S, error)
	ttl      func(int) O
	context  func(context.Context) O
	mutex    func(S, string) M
	election func(S, string) E
	errors   []error
}

var (
	etcds = etcdPackage[*v3.Client, *theirs.Session, theirs.SessionOption, *theirs.Mutex, *theirs.Election]{
		theirs.NewSession, theirs.WithTTL, theirs.WithContext, theirs.NewMutex, theirs.NewElection,
		[]error{theirs.ErrLocked, theirs.ErrSessionExpired, theirs.ErrLockReleased, theirs.ErrElectionNotLeader,
			theirs.ErrElectionNoLeader},
	}
	mortises = etcdPackage[*mortise.Node, *ours.Session, ours.SessionOption, *ours.Mutex, *ours.Election]{
		ours.NewSession, ours.WithTTL, ours.WithContext, ours.NewMutex, ours.NewElection,
		[]error{ours.ErrLocked, ours.ErrSessionExpired, ours.ErrLockReleased, ours.ErrElectionNotLeader,
			ours.ErrElectionNoLeader},
	}
)

// Code for etcd that reads the value of a leader.
func TestALeaderIsReadAsInEtcd(t *testing.T) {
	response := &ours.GetResponse{Kvs: []*ours.KeyValue{{Value: []byte("a"), Key: []byte("e"), CreateRevision: 7}}}
	for _, kv := range response.Kvs {
		if string(kv.Key)+string(kv.Value) != "ea" || kv.CreateRevision != 7 {
			t.Errorf("%+v", kv)
		}
	}
	if len(etcds.errors) != len(mortises.errors) {
		t.Errorf("%d and %d errors", len(etcds.errors), len(mortises.errors))
	}
}
