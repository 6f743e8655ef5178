//go:build nextrules

package lockfsm

import "math/rand/v2"

// later appends a part with what version 2 adds, before and after its Raise.
func (g *golden) later(r *rand.Rand) {
	charter := charterFor(r)
	charter.Grace, charter.Limits = 0, DefaultLimits()
	g.start(charter)
	open := Command{Kind: Open, Nonce: Nonce{1}, TTL: charter.SessionTTL}
	g.entry(5, Command{Kind: Born}, open)
	s := g.m.sessions.first.id
	g.entry(5, Command{Kind: Attach, Session: s, Epoch: 1, Number: 1, Nonce: open.Nonce})
	mark := Command{Kind: Mark, Rules: 2, Session: s, Epoch: 1, Number: 1}
	noted := Command{Kind: Acquire, Rules: 2, Session: s, Epoch: 1, Number: 1, Key: "k"}
	noted.Note = "why"
	g.entry(5, mark, noted)
	g.entry(5, Command{Kind: Raise, Version: 2})
	g.entry(5, mark, noted, mark)
	g.end()
}
