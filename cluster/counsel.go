package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// ErrNoLeader is what Consult returns if nobody leads, or nobody who leads has answered.
var ErrNoLeader = errors.New("cluster: no leader has answered")

// Counsel is what the leader of a group says.
type Counsel = lead.Counsel

// Consult asks the leader, or this instance itself if it leads, how the voters stand and whether the replica here may stop. It asks until
// somebody who leads has answered, one question at a time; when ctx ends before, the error wraps ErrNoLeader and its cause.
func (c *Cluster) Consult(ctx context.Context) (Counsel, error) {
	return c.consult(ctx, Inquiry{Own: true})
}

// ConsultFor is Consult about the replica with that raft ID: that of this instance may be in no configuration any more.
func (c *Cluster) ConsultFor(ctx context.Context, raft uint64) (Counsel, error) {
	return c.consult(ctx, Inquiry{Raft: raft})
}

// consult asks until a leader has answered or ctx has ended.
func (c *Cluster) consult(ctx context.Context, q Inquiry) (Counsel, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })()
	told := make(chan Counsel, 1)
	q.Caller = told
	c.in.post(func() { c.own.core.Inquire(&q) })
	select {
	case counsel := <-told:
		return counsel, nil
	case <-ctx.Done():
		c.in.post(func() { c.own.core.GiveUp(&q) })
		return Counsel{}, fmt.Errorf("%w: %w", ErrNoLeader, context.Cause(ctx))
	}
}

// adviceOf reads an answer, and reports whether it is one.
func adviceOf(answer []byte) (Advice, bool) {
	if counsel, err := decodeCounsel(answer); err == nil {
		return Advice{Counsel: &counsel}, true
	}
	other, err := decodeElsewhere(answer)
	return Advice{Leader: other.Instance, Addr: other.Addr}, err == nil
}

// advise answers what other instances ask for the sake of the voters, and reports whether the question is of that kind.
func (c *Cluster) advise(from nodeid.ID, question []byte) ([]byte, bool) {
	q, err := decodeConsultation(question)
	q.Instance = from
	probe := isProbe(question)
	switch {
	case err != nil && !probe:
		return nil, false
	case c.own.core.Founding.Refusal() != "":
		return nil, true
	case probe:
		return appendHere(nil), true
	}
	advice := c.own.core.Advise(c.now(), Consultation(q), c.id())
	if advice.Counsel != nil {
		return appendCounsel(nil, advice.Counsel), true
	}
	if len(advice.Addr) > gossip.AddrBytesMax {
		advice = Advice{}
	}
	return elsewhere{Instance: advice.Leader, Addr: advice.Addr}.append(nil), true
}
