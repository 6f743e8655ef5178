//go:build linux

package attackers

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	linksKept   = 6_000 // links that the attacker wants to keep open to one instance
	linksFor    = time.Minute
	linksInTurn = 20
)

// linkPool contains the links of fresh identities of one guest, to one instance at a time.
type linkPool struct {
	mu   sync.Mutex // guards the fields below
	to   known
	till time.Time
	open map[*attack.Conn]bool // links that the instance has not ended
}

// fill opens links and keeps them. A link that the instance ends no longer counts.
func (p *linkPool) fill(a *attacker, ctx context.Context, target known) (t Tally) {
	target, full := p.turn(target)
	if full {
		wait(ctx, 100*time.Millisecond)
		return Tally{Open: p.settled()}
	}
	for range linksInTurn {
		c, err := joinAs(ctx, a.guests["linker"], target, nodeid.NewKey(random), 0)
		one := refused(err)
		t.Tried, t.Refused = t.Tried+one.Tried, t.Refused+one.Refused
		if err != nil {
			continue
		}
		p.keep(c)
	}
	wait(ctx, 10*time.Millisecond) // for the instance to end links that exceed a limit
	t.Open = p.settled()
	return t
}

// turn returns the instance to which links are opened now. After linksFor it closes all links and
// begins with another instance.
func (p *linkPool) turn(next known) (to known, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().After(p.till) {
		for c := range p.open {
			c.Close()
		}
		p.open, p.to, p.till = map[*attack.Conn]bool{}, next, time.Now().Add(linksFor)
	}
	return p.to, len(p.open) >= linksKept
}

// keep counts a link until the instance ends it.
func (p *linkPool) keep(c *attack.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	go func() {
		c.Drain()
		c.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, c)
	}()
}

// settled returns the number of links that the instance has not ended.
func (p *linkPool) settled() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.open))
}
