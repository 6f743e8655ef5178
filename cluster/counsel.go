package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
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
	return c.consult(ctx, nil)
}

// ConsultFor is Consult about the replica with that raft ID: that of this instance may be in no configuration any more.
func (c *Cluster) ConsultFor(ctx context.Context, raft uint64) (Counsel, error) {
	return c.consult(ctx, &raft)
}

// consult asks about the replica with that raft ID; nil means that of this instance.
func (c *Cluster) consult(ctx context.Context, raft *uint64) (Counsel, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })()
	for try := 0; ; try++ {
		route := c.route(ctx, raft, try)
		c.follow(ctx, &route)
		if route.Counsel != nil {
			return *route.Counsel, nil
		}
		if !wait(ctx, max(route.Pause, consultEvery)) {
			return Counsel{}, fmt.Errorf("%w: %w", ErrNoLeader, context.Cause(ctx))
		}
	}
}

// route asks the owner what to do next. It returns an empty Route if ctx has ended.
func (c *Cluster) route(ctx context.Context, raft *uint64, try int) Route {
	reply := make(chan Route, 1)
	c.in.post(func() { reply <- c.own.core.Consult(c.now(), raft, try, c.id(), c.word()) })
	select {
	case r := <-reply:
		return r
	case <-ctx.Done():
		return Route{}
	}
}

// follow puts the question along a route, as far as that leads.
func (c *Cluster) follow(ctx context.Context, r *Route) {
	for again := r.Counsel == nil && r.Addr != ""; again; {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		answer, _, err := c.cfg.Net.Ask(asking, r.Addr, r.To, consultation(r.Question).append(nil))
		cancel()
		if outcomeOf(answer, err) != founding.Answered {
			return
		}
		again = r.Advised(adviceOf(answer))
	}
}

// adviceOf reads an answer; the zero Advice if it is none.
func adviceOf(answer []byte) Advice {
	if counsel, err := decodeCounsel(answer); err == nil {
		return Advice{Counsel: &counsel}
	}
	other, err := decodeElsewhere(answer)
	if err != nil {
		return Advice{}
	}
	return Advice{Leader: other.Instance, Addr: other.Addr}
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

// wait waits that long and reports true, or returns false as soon as ctx ends.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
