package concurrency

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
)

var (
	// ErrElectionNotLeader means that this Election does not lead.
	ErrElectionNotLeader = errors.New("election: this candidate does not lead")

	// ErrElectionNoLeader means that no candidate leads.
	ErrElectionNoLeader = errors.New("election: no candidate leads")
)

// GetResponse describes the leader: Kvs has one element.
type GetResponse struct{ Kvs []*KeyValue }

// KeyValue is the part of etcd's type that describes a leader.
type KeyValue struct {
	Key            []byte // the prefix of the election
	Value          []byte // the value of the leader
	CreateRevision int64  // the token of the leadership: a later one has a higher token
}

// labelledValue is the length of the longest value beside which there is room for a label.
const labelledValue = 700

// Election is a candidate and an observer. It can be used together with package election of
// mortise, with the same name.
type Election struct {
	s      *Session
	pfx    string
	report *election.Election

	mu   sync.Mutex
	lock *mortise.Lock // nil unless it leads
	last error         // of the last Campaign, Proclaim or Resign, with its cause
}

// NewElection returns an Election with the key pfx.
func NewElection(s *Session, pfx string) *Election {
	return &Election{s: s, pfx: pfx, report: election.New(s.node, pfx, election.Options{})}
}

// Campaign waits until this candidate leads, with val as its value, at most 1,024 bytes. If it
// leads already, Campaign is Proclaim.
func (e *Election) Campaign(ctx context.Context, val string) error {
	e.mu.Lock()
	leads := e.lock != nil && e.lock.Err() == nil
	e.mu.Unlock()
	if leads {
		return e.Proclaim(ctx, val)
	}
	r := mortise.Request{Key: e.pfx, Value: val}
	if len(val) <= labelledValue {
		r.Labels = labels("election")
	}
	lock, err := e.s.acquire(ctx, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.lock = lock
	}
	e.last = err
	return bare(err)
}

// Proclaim changes the value of the leader. It returns ErrElectionNotLeader if this candidate does
// not lead.
func (e *Election) Proclaim(ctx context.Context, val string) error {
	e.mu.Lock()
	lock := e.lock
	e.mu.Unlock()
	if lock == nil {
		return ErrElectionNotLeader
	}
	err := lock.SetValue(ctx, val)
	if errors.Is(err, mortise.ErrLost) || errors.Is(err, mortise.ErrUnlocked) {
		err = fmt.Errorf("%w: %w", ErrElectionNotLeader, err)
	}
	return e.fails(err)
}

// fails notes the error of a call with its cause, and returns it as code for etcd expects it.
func (e *Election) fails(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = err
	return bare(err)
}

// Resign ends the leadership, even if ctx has ended. It returns nil if this candidate does not
// lead, and ErrSessionExpired if the leadership was lost before.
func (e *Election) Resign(ctx context.Context) error {
	e.mu.Lock()
	lock := e.lock
	e.lock = nil
	e.mu.Unlock()
	if lock == nil {
		return nil
	}
	return e.fails(e.s.release(ctx, lock))
}

// Leader returns the present leader, or ErrElectionNoLeader.
func (e *Election) Leader(ctx context.Context) (*GetResponse, error) {
	leader, err := e.report.Leader(ctx)
	if err != nil {
		return nil, err
	}
	if leader.Token == 0 {
		return nil, ErrElectionNoLeader
	}
	return e.response(leader), nil
}

func (e *Election) response(leader election.Leader) *GetResponse {
	return &GetResponse{Kvs: []*KeyValue{{Key: []byte(e.pfx), Value: []byte(leader.Value),
		CreateRevision: int64(leader.Token)}}}
}

// Observe sends the present leader, each later one, and each new value of a leader. The channel is
// closed when ctx or the session ends. A leader that is not received in time may be skipped, except
// the present one.
func (e *Election) Observe(ctx context.Context) <-chan *GetResponse {
	leaders := make(chan *GetResponse)
	within, end, err := e.s.begin(ctx)
	if err != nil {
		close(leaders)
		return leaders
	}
	go func() {
		defer end()
		defer close(leaders)
		for leader, err := range e.report.Observe(within) {
			if err != nil {
				return
			}
			if leader.Token == 0 {
				continue
			}
			select {
			case leaders <- e.response(leader):
			case <-within.Done():
				return
			}
		}
	}()
	return leaders
}

// Key returns the prefix.
func (e *Election) Key() string { return e.pfx }

// Rev returns the token of the leadership as etcd's revision, or 0 if this candidate does not lead.
func (e *Election) Rev() int64 { return int64(e.Token()) }

// Err returns nil while this candidate leads. Otherwise it returns the reason of the loss, or the
// error of the last Campaign, Proclaim or Resign with its cause, such as mortise.ErrLost, or
// ErrElectionNotLeader.
func (e *Election) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.lock != nil:
		return e.lock.Err()
	case e.last != nil:
		return e.last
	}
	return ErrElectionNotLeader
}

// Token returns the fencing token of the leadership, or 0 if this candidate does not lead.
func (e *Election) Token() mortise.Token {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lock == nil {
		return 0
	}
	return e.lock.Token()
}

// Context returns a child of parent that ends when the leadership ends.
func (e *Election) Context(parent context.Context) context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return contextOf(e.lock, parent)
}
