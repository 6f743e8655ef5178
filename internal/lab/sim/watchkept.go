package sim

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/stay"
)

// stayWatch observes stays and passes, and counts the faults that meet them.
type stayWatch struct {
	*sight
	steps    *leaseWatch
	reserved map[lockfsm.Token]lockfsm.Token // the first and the last token of each stay
	recalled func(*machine)                  // called when a recall of a stay begins; may be nil
	// lost has the requests that the stays have cancelled, or whose loss was told. Their grant may
	// still be told in the same turn, and the stays do not keep them.
	lost map[*stay.Request]bool
}

// stay observes an outcome of the core for a request of the stays.
func (o *stayWatch) stay(s *lease, out *client.Outcome) {
	r := out.Request
	q := r.Caller.(*stay.Request)
	k := s.kept[q]
	switch out.Kind {
	case client.OutcomeGranted:
		if o.lost[q] {
			delete(o.lost, q)
			return
		}
		k = &keptStay{key: r.Key, group: s.p.group, first: out.Token, last: out.Last}
		k.begun, k.leader = o.w.now, o.leader()
		if r.Shared() {
			k.terms.Permits = 1
			o.w.stats.SharedStays++
		}
		s.kept[q] = k
		o.steps.stayStep(s, k, check.Keeps)
		o.w.stats.Stays++
		o.w.note("%v keeps %q with %d to %d", s, r.Key, k.first, k.last)
		if g := o.groups[k.group]; g != nil {
			g.acks.Granted(g.front, k.key, k.terms, k.first)
		}
	case client.OutcomeWanted, client.OutcomeAsked:
		if k != nil && !k.recalled {
			k.recalled = true
			o.steps.stayStep(s, k, check.RecallHeard)
			o.hears(s, k)
		}
	case client.OutcomeYield:
		if k != nil {
			k.yields = true
		}
	case client.OutcomeLost:
		if out.Why == client.LossLease {
			o.w.stats.StaysLost++
		}
		o.w.note("%v has lost the stay of %q: %v", s, r.Key, out.Err)
		if k == nil {
			o.lost[q] = true
			return
		}
		o.steps.stayStep(s, k, check.Forgets)
		delete(s.kept, q)
	case client.OutcomeReleased:
		if k != nil && out.Err == nil {
			o.gone = gone{k.group, k.key, k.first}
			if g := o.groups[k.group]; g != nil {
				o.w.must(g.acks.Released(g.front, k.key, k.first))
			}
		}
		delete(s.kept, q)
	}
}

// commands observes a command of the stays.
func (o *stayWatch) commands(s *lease, c *stay.Command) {
	k := s.kept[c.Request]
	switch {
	case c.Kind == stay.InUse:
		o.w.stats.InUse++
		o.w.note("%v says that %q is in use with %d", s, c.Request.Key, c.Token)
	case c.Kind == stay.Cancel:
		o.lost[c.Request] = true // its grant may be told later in this turn, and the stays ignore it
	case c.Kind == stay.Release && k != nil:
		k.released = true
		o.steps.stayStep(s, k, check.Forgets)
		o.givesBack(s, k)
		o.w.note("%v gives %q back after %d passes, recalled %v", s, c.Request.Key, k.passes, k.recalled)
	}
}

// pass checks the grant of a pass. Calls of one process get the passes of a stay in the order in
// which they were made.
func (o *stayWatch) pass(c *call) {
	s := c.stay
	o.steps.stayStep(c.s, s, check.Passes)
	if o.w.stats.Kept++; s.passes > 1 {
		o.w.stats.Passes++
	}
	if c.token <= s.newest {
		o.w.broken("%v call %d gets %q with token %d after %d", c.p, c.id, s.key, c.token, s.newest)
	}
	s.newest = c.token
	if inside := s.first < c.token && c.token <= s.last; !inside && (s.last != 0 || c.token != s.first) {
		o.w.broken("%v call %d gets %q with token %d, and the stay has reserved those after %d to %d", c.p, c.id, s.key,
			c.token, s.first, s.last)
	}
	if last, known := o.reserved[s.first]; s.last != 0 && (!known || last != s.last) {
		o.w.broken("%v keeps %q with tokens after %d to %d, and the state has reserved those to %d", c.p, s.key, s.first,
			s.last, last)
	}
	for _, other := range c.s.calls {
		if other.kept && other.stage == waits && !other.req.Try && !c.req.Try && other.id < c.id &&
			other.req.Key == c.req.Key && other.req.Shared() == c.req.Shared() {
			o.w.broken("%v call %d gets %q before call %d", c.p, c.id, s.key, other.id)
		}
	}
}

// mayReserve observes the tokens that the state reserves for stays.
func (o *stayWatch) mayReserve(r *lockfsm.Result) {
	note := func(first, last lockfsm.Token) {
		if first != 0 && last != 0 {
			o.reserved[first] = last
		}
	}
	note(r.Token, r.Last)
	for i := range r.Fired {
		note(r.Fired[i].Token, r.Fired[i].Last)
	}
	if r.Kind == lockfsm.Evict && r.Code == lockfsm.Kept {
		o.w.stats.NotForced++
	}
}

// leader returns the process that leads, or nil.
func (o *stayWatch) leader() *life {
	var best *voter
	for r := range o.replicas() {
		if role := r.Role(); role.Leading && (best == nil || role.Term > best.Role().Term) {
			best = r
		}
	}
	if best == nil {
		return nil
	}
	return best.p
}

// recalls observes that a request with these terms joins the queue of a key.
func (o *stayWatch) recalls(group uint64, key string, terms check.Terms) {
	for p := range o.procs() {
		asked := false
		for _, s := range p.leases {
			for _, k := range s.kept {
				if k.key != key || k.group != group || k.asked != 0 || k.terms.Beside(terms) {
					continue
				}
				asked = true
				k.asked, k.breaks = o.w.now, s.breaks
				if k.released {
					o.w.stats.Crossed++
				}
			}
		}
		if asked && o.recalled != nil {
			o.recalled(p.m)
		}
	}
}

// hears observes that a process hears the recall of a stay.
func (o *stayWatch) hears(s *lease, k *keptStay) {
	if k.asked == 0 {
		return
	}
	if s.breaks != k.breaks {
		o.w.stats.RecallsLost++
	}
	if o.w.now-k.asked > o.w.cfg.TTL/6 {
		o.w.stats.RecallsLate++
	}
}

// givesBack observes the release of a stay.
func (o *stayWatch) givesBack(s *lease, k *keptStay) {
	anyWaits := slices.ContainsFunc(s.calls, func(c *call) bool {
		return c.kept && c.stage == waits && c.req.Key == k.key && c.req.Shared() == (k.terms.Permits > 0)
	})
	if leader := o.leader(); leader != nil && leader != k.leader {
		o.w.stats.Moved++
	}
	tokens := k.last - k.first
	if n := o.w.cfg.StayTokens; n > 0 {
		tokens = min(tokens, n)
	}
	switch {
	case k.recalled:
		o.w.stats.Recalled++
	case k.yields:
		o.w.stats.Yielded++
	case k.last != 0 && k.passes > 0 && k.newest >= k.first+tokens:
		o.w.stats.UsedUp++
	case anyWaits && o.w.now-k.begun >= o.w.cfg.TTL:
		o.w.stats.Aged++
	}
}

// diedKept observes that a process ends with its stays.
func (o *stayWatch) diedKept(p *life) {
	for _, s := range p.leases {
		for q, k := range s.kept {
			if !k.released && s.stays.IsFree(q) {
				o.w.stats.Died++
			}
		}
	}
}
