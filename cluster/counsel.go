package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// Consultation is the question of Consult: how do the voters of a group stand, and may one of its replicas stop?
type Consultation struct {
	Group uint64
	Raft  uint64 // the replica
}

// Advice is the answer to a Consultation.
type Advice struct {
	Counsel *Counsel  // nil if the asked instance does not lead
	Leader  nodeid.ID // the instance that leads then, zero if that is not known
	Addr    string    // and where it is
}

const (
	consultEvery = 100 * time.Millisecond // between two attempts, plus up to half of it at random
	consultHops  = 3                      // how often an attempt follows "not me, ask ..."
)

// Consult asks the leader, or this instance itself if it leads, how the voters stand and whether the replica here may stop. It asks until
// somebody who leads has answered, one question at a time; when ctx ends before, the error wraps ErrNoLeader and its cause.
func (c *Cluster) Consult(ctx context.Context) (Counsel, error) {
	return c.consult(ctx, func() uint64 { return c.own.raft })
}

// ConsultFor is Consult about the replica with that raft ID: that of this instance may be in no configuration any more.
func (c *Cluster) ConsultFor(ctx context.Context, raft uint64) (Counsel, error) {
	return c.consult(ctx, func() uint64 { return raft })
}

// consult asks about the replica that whose names, which is called on the owner goroutine.
func (c *Cluster) consult(ctx context.Context, whose func() uint64) (Counsel, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })()
	for try := 0; ; try++ {
		r, ok := c.route(ctx, whose, try)
		if ok && r.done {
			return r.counsel, nil
		}
		if ok {
			if counsel, ok := c.follow(ctx, r); ok {
				return counsel, nil
			}
		}
		if !wait(ctx, consultEvery+r.spread) {
			return Counsel{}, fmt.Errorf("%w: %w", ErrNoLeader, context.Cause(ctx))
		}
	}
}

// route is what the owner says about a consultation: the counsel itself if this instance leads, else what to ask, and whom.
type route struct {
	done    bool
	counsel Counsel
	q       Consultation
	to      nodeid.ID
	addr    string
	spread  time.Duration // how much longer to wait until the next attempt
}

// route asks the owner. It reports false if there is nobody to ask, or ctx has ended.
func (c *Cluster) route(ctx context.Context, whose func() uint64, try int) (route, bool) {
	reply := make(chan route, 1)
	c.in.post(func() {
		r := route{spread: time.Duration(c.word() % uint64(consultEvery/2)), q: Consultation{Group: c.own.core.Group(), Raft: whose()}}
		if r.counsel, r.done = c.counsel(c.own.core.Instance(), r.q); !r.done {
			r.to, r.addr = c.whom(try)
		}
		reply <- r
	})
	select {
	case r := <-reply:
		return r, r.done || r.addr != ""
	case <-ctx.Done():
		return route{}, false
	}
}

// whom returns whom to ask: who leads as far as is known here, and by turns some voter, since that may be out of date.
func (c *Cluster) whom(try int) (instance nodeid.ID, addr string) {
	self := c.own.core.Instance()
	if c.cfg.Net == nil || c.own.core.Phase() != founding.Member {
		return nodeid.ID{}, ""
	}
	if instance, addr = c.cfg.Host.Leader(); instance == self {
		instance, addr = nodeid.ID{}, ""
	}
	others := slices.DeleteFunc(c.own.book.Voters(), func(v Voter) bool { return v.Learner || v.Instance == self })
	if len(others) == 0 || !instance.IsZero() && try%2 == 0 {
		return instance, addr
	}
	v := others[c.word()%uint64(len(others))]
	return v.Instance, v.Addr
}

// follow puts the question, and again to whom the asked names instead, a few times.
func (c *Cluster) follow(ctx context.Context, r route) (Counsel, bool) {
	for range 1 + consultHops {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		a, err := c.cfg.Net.Consult(asking, r.addr, r.to, r.q)
		cancel()
		if err == nil && a.Counsel != nil {
			return *a.Counsel, true
		}
		if err != nil || a.Leader.IsZero() || a.Leader == r.to {
			break
		}
		r.to, r.addr = a.Leader, a.Addr
	}
	return Counsel{}, false
}

// counsel is what this instance says if it leads. It looks anew if it has not looked for a while: a leader that has lost its lead must not
// go on as if it had not.
func (c *Cluster) counsel(from nodeid.ID, q Consultation) (Counsel, bool) {
	o := &c.own
	if o.core.Phase() != founding.Member || o.core.Settling() || o.core.Refusal() != "" || q.Group != o.core.Group() {
		return Counsel{}, false
	}
	if now := c.now(); !o.lead.Fresh(now) {
		c.observe(now)
	}
	counsel, leads := o.lead.Counsel(q.Raft, from)
	counsel.Leader = o.core.Instance()
	return counsel, leads
}

// Advise answers a consultation of another instance. It reports false where silence is the answer.
func (c *Cluster) Advise(from nodeid.ID, q Consultation) (Advice, bool) {
	a := asked(c, func() *Advice { return c.advise(from, q) })
	if a == nil {
		return Advice{}, false
	}
	return *a, true
}

// advise returns nil where silence is the answer.
func (c *Cluster) advise(from nodeid.ID, q Consultation) *Advice {
	if c.own.core.Refusal() != "" {
		return nil
	}
	if counsel, leads := c.counsel(from, q); leads {
		return &Advice{Counsel: &counsel}
	}
	a := &Advice{}
	if q.Group == c.own.core.Group() && c.own.core.Phase() == founding.Member {
		if instance, addr := c.cfg.Host.Leader(); instance != c.own.core.Instance() && instance != from && len(addr) <= gossip.AddrBytesMax {
			a.Leader, a.Addr = instance, addr
		}
	}
	return a
}

// Present reports whether this instance is there for others: it goes on, and may.
func (c *Cluster) Present() bool {
	return asked(c, func() bool { return c.own.core.Refusal() == "" })
}
