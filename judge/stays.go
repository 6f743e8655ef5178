package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file converts stays. A stay is a grant that reserves tokens, and a pass is a grant of one of
// these tokens to a caller, see internal/history.
//
// For its key, a stay is an ordinary owner without a caller. The passes are ordinary operations in
// a part of their own. Porcupine therefore searches for the order of the passes separately. Both
// orders fit together, because the times of the stay depend on its passes:
//
//   - The stay is granted before any of its passes was returned.
//   - It ends after each of its passes was requested, and after the caller of each pass has stopped
//     believing that it holds the lock.
//   - It is an owner while a call with Try sees one of its passes.
//
// So each operation of a pass that the order has before the stay is granted can be moved to the
// grant. It then still lies in its own times. The same holds for the end of the stay.
//
// An end by force is the exception. The holder may have passes until it is notified, so the end of
// the stay does not depend on them.

// part identifies the operations that Porcupine searches together. These are all operations of a
// key if stay is zero, and the passes of one stay otherwise.
type part struct {
	key  string
	stay lockfsm.Token
}

func (p part) String() string {
	if p.stay != 0 {
		return fmt.Sprintf("%q in stay %d", p.key, p.stay)
	}
	return fmt.Sprintf("%q", p.key)
}

// listStays lists all stays and their passes, in the order of tokens. It returns an error if a
// reserved token is also granted.
func (g *gathered) listStays() error {
	for _, a := range g.accounts {
		if a.last != 0 {
			g.stays = append(g.stays, a)
		}
	}
	slices.SortFunc(g.stays, func(a, b *account) int { return cmp.Compare(a.token, b.token) })
	for t := range g.accounts {
		if s := g.stay(t); s != nil && s.token != t {
			return fmt.Errorf("porcupine: token %d is granted, and stay %d has reserved it", t, s.token)
		}
	}
	g.listPasses()
	return nil
}

// listPasses lists the passes of all stays, in the order of tokens. If no call has returned a
// token, but calls with Try were told of it, listPasses adds a call that was not told.
func (g *gathered) listPasses() {
	for _, c := range g.calls {
		if s := g.stay(c.token); s != nil && c.outcome == history.Granted {
			s.passes = append(s.passes, c)
		}
	}
	for _, c := range g.calls {
		s := g.seesPass(c)
		if s == nil || g.owners[c.token] != nil {
			continue
		}
		i := slices.IndexFunc(s.passes, func(p *call) bool { return p.token == c.token })
		if i < 0 {
			i = len(s.passes)
			s.passes = append(s.passes, &call{token: c.token, begun: g.asked(s), returned: math.MaxInt64,
				believe: math.MaxInt64, confirmed: math.MaxInt64})
		}
		s.passes[i].returned = min(s.passes[i].returned, c.returned)
	}
	for _, s := range g.stays {
		slices.SortStableFunc(s.passes, func(a, b *call) int { return cmp.Compare(a.token, b.token) })
	}
}

// stay returns the stay that gives a token to a caller, or nil. A stay gives its own token only if
// it has reserved none.
func (g *gathered) stay(token lockfsm.Token) *account {
	i, own := slices.BinarySearchFunc(g.stays, token,
		func(s *account, token lockfsm.Token) int { return cmp.Compare(s.token, token) })
	if own && g.stays[i].last == token {
		return g.stays[i]
	}
	if i == 0 || g.stays[i-1].last < token {
		return nil
	}
	return g.stays[i-1]
}

// seesPass returns the stay of the pass that made the call c fail, or nil.
func (g *gathered) seesPass(c *call) *account {
	s := g.stay(c.token)
	if s == nil || s.token == c.token || c.outcome != history.Held || !slices.Contains(c.keys, s.keys[0]) {
		return nil
	}
	return s
}

// addStay adds the operations of a stay and of its passes. Without a pass, the stay was not granted
// before the time from.
func (b *builder) addStay(s *account, from int64) {
	granted, until := s.by, int64(math.MinInt64)
	for i, c := range s.passes {
		by := c.confirmed
		if i+1 < len(s.passes) && s.shares[0].of == 1 {
			by = min(by, s.passes[i+1].returned)
		}
		b.addPass(s, c, by)
		from, granted, until = min(from, c.begun), min(granted, c.returned), max(until, c.needed())
	}
	if s.how == history.ByForce {
		until = from
	}
	b.add(s.keys, operation{kind: grant, token: s.token, share: s.shares[0], by: "as a stay"}, from, granted)
	if s.endedBy != math.MaxInt64 {
		b.add(s.keys, operation{kind: end, token: s.token, by: s.how.String()}, max(from, until), s.endedBy)
	}
}

// addPass adds the operations of a pass, which has ended at the time by at the latest. Only passes
// of a shared stay may overlap.
func (b *builder) addPass(s *account, c *call, by int64) {
	at := part{s.keys[0], s.token}
	b.addOne(at, operation{kind: grant, token: c.token, share: s.shares[0], by: "to " + c.String()}, c.begun, c.returned)
	if by != math.MaxInt64 {
		b.addOne(at, operation{kind: end, token: c.token, by: "of the pass"}, c.needed(), by)
	}
}

// addSeen adds the operations of a call that a pass of the stay s made fail.
func (b *builder) addSeen(s *account, c *call) {
	by := "in " + c.String()
	b.addOne(part{s.keys[0], s.token}, operation{kind: seen, token: c.token, by: by}, c.begun, c.returned)
	if s.how != history.ByForce {
		b.add(s.keys, operation{kind: seen, token: s.token, by: by}, c.begun, c.returned)
	}
}
