package mortisegocron

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/mortise-lock/mortise/election"
)

// ErrNotLeader means that another instance leads, or that none does.
var ErrNotLeader = errors.New("mortisegocron: this instance is not the leader")

// Elector is a gocron.Elector. Only the scheduler of the leader runs jobs.
type Elector struct {
	election *election.Election
	leads    atomic.Pointer[election.Leadership]
}

// NewElector returns an Elector. name is the name of the election, and the key of its lock. The
// instance becomes a candidate when Run is called.
func NewElector(node election.Node, name string, o election.Options) *Elector {
	return &Elector{election: election.New(node, name, o)}
}

// Run campaigns, and leads, until ctx ends or the node leaves. It returns the cause of ctx, or
// another error of election.Run. value is for other instances, for example this instance's address.
// Stop the scheduler before ctx ends: when Run returns, another instance leads.
//
//	go elector.Run(ctx, address)
func (e *Elector) Run(ctx context.Context, value string) error {
	return e.election.Run(ctx, value, func(ctx context.Context, l *election.Leadership) error {
		e.leads.Store(l)
		defer e.leads.Store(nil)
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

// IsLeader returns nil if this instance leads. It waits for nothing, and reads the clock at each
// call: it returns an error before another instance can lead.
func (e *Elector) IsLeader(context.Context) error {
	if l := e.leads.Load(); l != nil {
		return l.Err()
	}
	return ErrNotLeader
}

// Leadership returns the present leadership of this instance, or nil. A job uses its token to fence
// what it writes.
func (e *Elector) Leadership() *election.Leadership { return e.leads.Load() }

// Election returns the election, which reports the leader on every instance.
func (e *Elector) Election() *election.Election { return e.election }
