package keeper

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

const benchTTL = 6 * time.Second

// bench is a keeper core with a real machine. The test is its clock, its log and its peers. The
// keeper leads in term 5 unless a test changes its role.
type bench struct {
	t       *testing.T
	core    *Core
	machine *lockfsm.Machine
	now     clock.Time
	index   uint64
	term    uint64
	blob    []byte   // the batch that is proposed and not applied
	kinds   []string // the kinds of the commands in blob
	round   uint64   // the round that was requested in the last turn
	replies map[nodeid.ID][]session.Reply
	full    map[nodeid.ID]bool // peers whose frames the transport refuses
	deaf    bool               // no peer receives replies
	heard   map[lockfsm.SessionID]uint64
	refuse  bool // the log refuses proposals
}

func newBench(t *testing.T, grace time.Duration) *bench {
	m, err := lockfsm.New(lockfsm.Charter{
		Group: 1, FoundedUnixMS: 1_700_000_000_000, Rules: 1, SessionTTL: benchTTL, Grace: grace,
		Limits: lockfsm.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, core: NewCore(), machine: m, now: clock.Time(time.Hour), term: 5,
		full: make(map[nodeid.ID]bool), heard: make(map[lockfsm.SessionID]uint64)}
	return b
}

// leadingBench returns a bench whose keeper leads a founded group.
func leadingBench(t *testing.T) *bench {
	b := newBench(t, 0)
	b.core.Role(b.now, Role{Term: 5, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.leads()
	b.core.AllBound(b.now)
	b.step()
	if !b.core.group.serving() {
		t.Fatal("not serving")
	}
	return b
}

func (b *bench) leads() {
	b.core.Leads(b.now, Leadership{
		Group: benchGroup, Term: b.term, Sessions: b.machine.Sessions(), Born: b.machine.Born(),
		GraceOver: b.machine.GraceOver(), BornAt: b.now, Grace: b.machine.Charter().Grace, Rules: b.machine.Charter().Rules,
	})
}

// Receive is like ReceiveFrom for a full instance without a directory.
func (k *Core) Receive(now clock.Time, from nodeid.ID, renewals, commands []byte) {
	k.ReceiveFrom(now, Sender{ID: from}, renewals, commands)
}

func (b *bench) turn() {
	b.t.Helper()
	b.core.Tick(b.now)
	b.kinds, b.round = nil, 0
	if term, blob := b.core.Proposal(1234); blob != nil {
		if term != b.term {
			b.t.Fatalf("proposed in term %d", term)
		}
		for rest := blob; len(rest) > 0; {
			raw, next, err := lockfsm.Next(rest)
			if err != nil {
				b.t.Fatal(err)
			}
			h, _ := lockfsm.Peek(raw)
			b.kinds, rest = append(b.kinds, h.Kind.String()), next
		}
		if !b.refuse {
			b.blob = append(b.blob, blob...)
		}
		b.core.Proposed(!b.refuse)
	}
	if _, round, ok := b.core.Round(); ok {
		b.round = round
	}
	b.replies = make(map[nodeid.ID][]session.Reply)
	for _, r := range b.core.Replies() {
		for _, frame := range r.Frames {
			for len(frame) > 0 {
				one, rest, err := session.NextReply(frame)
				if err != nil {
					b.t.Fatal(err)
				}
				b.replies[r.Peer] = append(b.replies[r.Peer], one)
				if one.Kind == session.ReplyRenewed && !b.deaf {
					b.heard[one.Session] = one.Seq
				}
				frame = rest
			}
		}
		b.core.Replied(b.now, r.Peer, !b.full[r.Peer])
	}
	if err := b.core.Check(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) apply() {
	blob := b.blob
	b.blob = nil
	b.index++
	b.machine.ApplyEntry(b.index, b.term, blob, func(r *lockfsm.Result) { b.core.Applied(b.now, []lockfsm.Result{*r}) })
}

// step runs a turn, applies the proposal, confirms the round, and runs another turn.
func (b *bench) step() {
	b.t.Helper()
	b.turn()
	first := b.replies
	b.apply()
	round := b.round
	b.turn()
	if round != 0 {
		b.core.Confirmed(b.now, b.term, round)
	}
	second := b.replies
	b.apply()
	if b.round != 0 {
		b.core.Confirmed(b.now, b.term, b.round)
	}
	b.turn()
	for _, m := range []map[nodeid.ID][]session.Reply{b.replies, second, first} {
		for p, rs := range m {
			if len(rs) > 0 && len(m) > 0 && fmt.Sprintf("%p", m) != fmt.Sprintf("%p", b.replies) {
				b.replies[p] = append(append([]session.Reply(nil), rs...), b.replies[p]...)
			}
		}
	}
}

// pump runs a turn of the core without checks: it applies the proposal and confirms the round.
func (b *bench) pump() {
	b.core.Tick(b.now)
	if term, blob := b.core.Proposal(1); blob != nil {
		b.core.Proposed(true)
		b.index++
		b.machine.ApplyEntry(b.index, term, blob,
			func(r *lockfsm.Result) { b.core.Applied(b.now, []lockfsm.Result{*r}) })
	}
	if term, round, ok := b.core.Round(); ok {
		b.core.Confirmed(b.now, term, round)
	}
}

func (b *bench) advance(d time.Duration) { b.now = b.now.Add(d) }

// pass advances the time by d, with a turn whenever the core needs one.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	for end := b.now.Add(d); b.now.Before(end); {
		b.now = min(end, b.now.Add(tickEvery))
		b.turn()
	}
}

func (b *bench) send(from nodeid.ID, cmds ...lockfsm.Command) {
	var frame []byte
	for _, c := range cmds {
		frame = c.Append(frame)
	}
	b.core.Receive(b.now, from, nil, frame)
}

// attachAndRenew sends an Attach of instance 1 with a renewal in the same frame.
func (b *bench) attachAndRenew(id lockfsm.SessionID, epoch lockfsm.Epoch, seq uint64) {
	renewal := session.Renewal{Session: id, Epoch: epoch, Seq: seq, Heard: b.heard[id]}
	b.core.Receive(b.now, nodeidtest.ID(1), renewal.Append(nil), b.attachCmd(id, epoch).Append(nil))
}

func (b *bench) renew(from nodeid.ID, id lockfsm.SessionID, epoch lockfsm.Epoch, seq uint64) {
	b.core.Receive(b.now, from, session.Renewal{Session: id, Epoch: epoch, Seq: seq, Heard: b.heard[id]}.Append(nil),
		nil)
}

// said formats the replies to a peer in the last turn, for example "opened done, attached 1 done,
// state 3 granted".
func (b *bench) said(to nodeid.ID) string {
	var parts []string
	for _, r := range b.replies[to] {
		var s string
		switch r.Kind {
		case session.ReplyBehind: // omitted, because it always follows a state
			continue
		case session.ReplyGrace:
			s = fmt.Sprint("grace ", r.TTL)
		case session.ReplyOpened:
			s = fmt.Sprint("opened ", r.Code)
		case session.ReplyAttached:
			s = fmt.Sprint("attached ", r.Epoch, " ", r.Code)
		case session.ReplyState:
			s = fmt.Sprint("state ", r.Number, " ", r.Code)
		case session.ReplyHeld:
			s = fmt.Sprint("held ", r.Number)
		case session.ReplyFreed:
			s = fmt.Sprint("freed ", r.Number, " ", r.Code)
		case session.ReplyRenewed:
			s = fmt.Sprint("renewed ", r.Seq)
		case session.ReplyEnded:
			s = fmt.Sprint("ended ", r.Epoch, " ", [...]string{"", "unknown", "no session", "overloaded",
				"refused"}[r.Reason])
		case session.ReplyUnsupported:
			s = fmt.Sprint("unsupported ", r.Number)
		case session.ReplyRedirect:
			s = fmt.Sprint("redirect ", r.Term, " ", nodeidtest.Number(r.Leader))
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func (b *bench) want(to nodeid.ID, said string) {
	b.t.Helper()
	if got := b.said(to); got != said {
		b.t.Fatalf("peer %d was told %q, want %q: %+v", to, got, said, b.replies[to])
	}
}

func (b *bench) open(from nodeid.ID) lockfsm.SessionID {
	b.t.Helper()
	b.send(from, lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{from[nodeid.Size-1], byte(b.index)},
		TTL: benchTTL, Record: []byte("r")})
	b.step()
	b.want(from, "opened done")
	id := b.replies[from][0].Session
	b.attach(from, id, 1)
	return id
}

func (b *bench) attach(from nodeid.ID, id lockfsm.SessionID, epoch lockfsm.Epoch) {
	b.t.Helper()
	b.send(from, b.attachCmd(id, epoch))
	b.step()
	b.want(from, fmt.Sprint("attached ", epoch, " done"))
}

// attachCmd returns an Attach with the nonce of the session's Open, if this bench has opened the
// session.
func (b *bench) attachCmd(id lockfsm.SessionID, epoch lockfsm.Epoch) lockfsm.Command {
	c := lockfsm.Command{Kind: lockfsm.Attach, Session: id, Epoch: epoch, Number: 1, Nonce: lockfsm.Nonce{0xee}}
	for _, s := range b.machine.Sessions() {
		if s.ID == id {
			c.Nonce = s.Nonce
		}
	}
	return c
}

func acquireCmd(id lockfsm.SessionID, epoch lockfsm.Epoch, n lockfsm.Number, key string) lockfsm.Command {
	return lockfsm.Command{Kind: lockfsm.Acquire, Session: id, Epoch: epoch, Number: n, Key: key}
}

func releaseCmd(id lockfsm.SessionID, epoch lockfsm.Epoch, n lockfsm.Number) lockfsm.Command {
	return lockfsm.Command{Kind: lockfsm.Release, Session: id, Epoch: epoch, Number: n}
}
