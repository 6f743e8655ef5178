package client

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// bench is a client core for tests. The test is its clock, its shell and its group. Its targets are
// three voters. Voter 1 leads unless a test changes the leader.
type bench struct {
	t        *testing.T
	core     *Core
	now      clock.Time
	nonce    byte
	to       nodeid.Endpoint
	renewals []session.Renewal
	commands []lockfsm.Command
	outcomes []Outcome
	deadline clock.Time
	more     bool
}

const benchTTL = 6 * time.Second

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: clock.Time(time.Hour)}
	b.core = NewCore(b.now, benchTTL)
	b.giveNonce()
	b.core.Rebind(b.now, []byte("me"), []nodeid.Endpoint{{ID: nodeidtest.ID(1), Addr: "a"},
		{ID: nodeidtest.ID(2), Addr: "b"}, {ID: nodeidtest.ID(3), Addr: "c"}})
	return b
}

func (b *bench) giveNonce() {
	if b.core.WantsNonce() {
		b.nonce++
		b.core.GiveNonce(lockfsm.Nonce{b.nonce})
	}
}

func (b *bench) turn() string {
	b.t.Helper()
	b.giveNonce()
	b.core.Tick(b.now)
	out := b.core.Flush(b.now)
	b.to, b.renewals, b.commands, b.more = out.To, nil, nil, out.More
	b.outcomes = append([]Outcome(nil), out.Outcomes...)
	b.deadline = out.Deadline
	for rest := out.Renewals; len(rest) > 0; {
		r, next, err := session.NextRenewal(rest)
		if err != nil {
			b.t.Fatal(err)
		}
		b.renewals, rest = append(b.renewals, r), next
	}
	for rest := out.Commands; len(rest) > 0; {
		raw, next, err := lockfsm.Next(rest)
		if err != nil {
			b.t.Fatal(err)
		}
		c, err := lockfsm.Decode(raw)
		if err != nil {
			b.t.Fatal(err)
		}
		b.commands, rest = append(b.commands, c), next
	}
	if err := b.core.Check(); err != nil {
		b.t.Fatal(err)
	}
	return b.frame()
}

// frame formats the last frame, for example "1: attach 5 live 1-2 next 3, renew 7".
func (b *bench) frame() string {
	var parts []string
	for _, c := range b.commands {
		s := c.Kind.String()
		switch c.Kind {
		case lockfsm.Open:
			s += fmt.Sprint(" nonce ", c.Nonce[0])
		case lockfsm.Attach:
			s += fmt.Sprint(" ", c.Epoch, " live")
			for _, r := range c.Live {
				s += fmt.Sprintf(" %d-%d", r.First, r.Last)
			}
			s += fmt.Sprint(" next ", c.Number)
		case lockfsm.Acquire:
			s += fmt.Sprint(" ", c.Number, " ", c.Key)
			if c.Try {
				s += " try"
			}
		case lockfsm.Release, lockfsm.Cancel, lockfsm.Detach:
			s += fmt.Sprint(" ", c.Number)
		}
		parts = append(parts, s)
	}
	for _, r := range b.renewals {
		parts = append(parts, fmt.Sprint("renew ", r.Epoch))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%d: %s", nodeidtest.Number(b.to.ID), strings.Join(parts, ", "))
}

func (b *bench) want(frame string) {
	b.t.Helper()
	if got := b.turn(); got != frame {
		b.t.Fatalf("frame is %q, want %q", got, frame)
	}
}

func (b *bench) advance(d time.Duration) { b.now = b.now.Add(d) }

func (b *bench) reply(from nodeid.ID, replies ...session.Reply) {
	var frame []byte
	for i := range replies {
		frame = replies[i].Append(frame)
	}
	b.core.Receive(b.now, from, frame)
}

func (b *bench) opened(nonce byte, id lockfsm.SessionID) session.Reply {
	return session.Reply{Kind: session.ReplyOpened, Nonce: lockfsm.Nonce{nonce}, Code: lockfsm.Done, Session: id,
		TTL: benchTTL, Term: 3}
}

func (b *bench) attached(code lockfsm.Code) session.Reply {
	return session.Reply{Kind: session.ReplyAttached, Session: b.core.session, Epoch: b.core.epoch, Code: code, Term: 3}
}

func (b *bench) state(n lockfsm.Number, code lockfsm.Code, token lockfsm.Token) session.Reply {
	return session.Reply{Kind: session.ReplyState, Session: b.core.session, Epoch: b.core.epoch, Number: n,
		Code: code, Token: token}
}

func (b *bench) freed(n lockfsm.Number) session.Reply {
	return session.Reply{Kind: session.ReplyFreed, Session: b.core.session, Epoch: b.core.epoch, Number: n,
		Code: lockfsm.Done}
}

func (b *bench) ended(reason session.EndReason) session.Reply {
	return session.Reply{Kind: session.ReplyEnded, Session: b.core.session, Epoch: b.core.epoch, Reason: reason}
}

func (b *bench) renewed() session.Reply {
	return session.Reply{Kind: session.ReplyRenewed, Session: b.core.session, Epoch: b.core.epoch,
		Seq: b.core.pulse.renewals.seq}
}

func redirect(term uint64, leader nodeid.ID) session.Reply {
	return session.Reply{Kind: session.ReplyRedirect, Term: term, Leader: leader, Addr: []byte("there")}
}

// attach attaches the core to voter 1 with session 100.
func (b *bench) attach() {
	b.t.Helper()
	b.turn()
	b.reply(b.to.ID, b.opened(b.core.opening.nonce[0], 100))
	b.turn()
	b.reply(b.to.ID, b.attached(lockfsm.Done), b.renewed())
	b.turn()
	if b.core.phase != Attached {
		b.t.Fatalf("phase is %v", b.core.phase)
	}
}

func (b *bench) acquire(key string, try bool) *Request {
	r := &Request{Key: key, Try: try}
	b.core.Acquire(b.now, r)
	return r
}

func (b *bench) hold(key string) *Request {
	b.t.Helper()
	r := b.acquire(key, false)
	b.turn()
	n := b.commands[len(b.commands)-1].Number
	b.reply(b.to.ID, b.state(n, lockfsm.Granted, lockfsm.Token(1000+n)))
	b.turn()
	b.outcome(r, OutcomeGranted, nil)
	return r
}

func (b *bench) outcome(r *Request, kind OutcomeKind, err error) {
	b.t.Helper()
	if len(b.outcomes) != 1 || b.outcomes[0].Request != r || b.outcomes[0].Kind != kind || b.outcomes[0].Err != err {
		b.t.Fatalf("outcomes are %+v, want kind %d with error %v", b.outcomes, kind, err)
	}
}

func (b *bench) quiet() {
	b.t.Helper()
	if len(b.outcomes) != 0 {
		b.t.Fatalf("outcomes are %+v, want none", b.outcomes)
	}
}

func (b *bench) empty() {
	b.t.Helper()
	if s := b.core.Status(b.now); s.Requests != 0 ||
		b.core.sent.size+b.core.unsent.size+b.core.byNumber.Len()+b.core.counts.open != 0 {
		b.t.Fatalf("left behind: %+v", s)
	}
}
