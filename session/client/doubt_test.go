package client

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

const benchGrace = time.Minute

func (b *bench) holdWith(terms Terms) *Request {
	b.t.Helper()
	terms.beats = &beats{}
	r := &Request{Key: "k", Terms: &terms}
	b.core.Acquire(b.now, r)
	b.turn()
	n := b.commands[len(b.commands)-1].Number
	b.reply(b.to.ID, b.state(n, lockfsm.Granted, lockfsm.Token(1000+n)))
	b.turn()
	b.outcome(r, OutcomeGranted, nil)
	return r
}

// doubted returns a hold in doubt. Its core has lost its leader, and asks voter 2.
func (b *bench) doubted(terms Terms) *Request {
	b.t.Helper()
	b.attach()
	r := b.holdWith(terms)
	b.core.Down(b.now, nodeidtest.ID(1))
	b.want("2: attach 2 live 1-1 next 2, renew 2")
	b.now = b.deadline
	b.core.begin(b.now)
	b.turn()
	b.outcome(r, OutcomeInDoubt, nil)
	if s := b.core.Status(b.now); s.Held != 1 || r.stage != stageDoubt {
		b.t.Fatalf("stage %d, %+v", r.stage, s)
	}
	if b.core.phase != Attaching {
		b.t.Fatalf("phase %v", b.core.phase)
	}
	return r
}

func TestAConfirmedHoldIsGoodAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.doubted(Terms{Grace: benchGrace})
	b.advance(time.Second)
	b.turn()
	n, token := r.entry.number, r.token()
	b.reply(b.to.ID, b.state(n, lockfsm.Granted, token), b.attached(lockfsm.Done), b.renewed())
	b.turn()
	b.outcome(r, OutcomeGood, nil)
	if r.stage != stageHeld || r.token() != token || !b.deadline.After(b.now) || b.core.counts.doubts != 0 {
		t.Fatalf("stage %d, token %d, %d doubts, deadline %v after now", r.stage, r.token(), b.core.counts.doubts,
			b.deadline.Sub(b.now))
	}
	b.core.Release(b.now, r)
	b.reply(b.to.ID, b.freed(n))
	b.turn()
	b.outcome(r, OutcomeReleased, nil)
	b.empty()
}

// TestNeitherHalfOfAConfirmationIsEnough checks that a hold in doubt is good only with both a
// statement of the group on the present attachment and a renewal that is still valid.
func TestNeitherHalfOfAConfirmationIsEnough(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]struct {
		replies func(*bench, *Request) []session.Reply
		lost    bool
	}{
		"a statement without a renewal": {func(b *bench, r *Request) []session.Reply {
			return []session.Reply{b.state(1, lockfsm.Granted, r.token()), b.attached(lockfsm.Done)}
		}, false},
		"a renewal before the end of Attach": {func(b *bench, r *Request) []session.Reply {
			return []session.Reply{b.state(1, lockfsm.Granted, r.token()), b.renewed()}
		}, false},
		"a session without the hold": {func(b *bench, _ *Request) []session.Reply {
			return []session.Reply{b.attached(lockfsm.Done), b.renewed()}
		}, true},
		"another token": {func(b *bench, r *Request) []session.Reply {
			return []session.Reply{b.state(1, lockfsm.Granted, r.token()+1), b.attached(lockfsm.Done), b.renewed()}
		}, true},
		"no session": {func(b *bench, r *Request) []session.Reply {
			return []session.Reply{b.state(1, lockfsm.Granted, r.token()), b.attached(lockfsm.NoSession)}
		}, true},
		"a finished hold": {func(b *bench, _ *Request) []session.Reply {
			return []session.Reply{b.state(1, lockfsm.Finished, 0), b.attached(lockfsm.Done), b.renewed()}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			r := b.doubted(Terms{Grace: benchGrace})
			b.reply(b.to.ID, after.replies(b, r)...)
			b.turn()
			if after.lost {
				b.outcome(r, OutcomeLost, ErrLost)
				return
			}
			b.quiet()
			if r.stage != stageDoubt {
				t.Errorf("stage %d", r.stage)
			}
		})
	}
}

// TestAnOldAcknowledgementRevivesNothing acknowledges a renewal so late that its own deadline has
// passed.
func TestAnOldAcknowledgementRevivesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	r := b.holdWith(Terms{Grace: benchGrace})
	b.advance(benchTTL / 3)
	b.want("1: renew 1")
	sent := b.now
	acknowledged := b.renewed()
	b.core.pulse.heardAt, b.core.finder.answerTimeout = b.now, time.Hour // so that the attachment does not break
	b.now = sent.Add(benchLease)
	b.reply(b.to.ID, acknowledged)
	b.turn()
	b.outcome(r, OutcomeInDoubt, nil)
	if got := b.frame(); got != "1: renew 1" {
		t.Fatalf("frame %q", got)
	}
	b.reply(b.to.ID, b.renewed())
	b.turn()
	b.outcome(r, OutcomeGood, nil) // the attachment never broke
}

// TestADoubtEnds checks that a hold in doubt keeps its place in the group until its grace is over,
// and is then freed.
func TestADoubtEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	r, short := b.holdWith(Terms{Grace: benchGrace}), b.holdWith(Terms{Grace: time.Second})
	plain := b.hold("plain")
	b.now = b.deadline
	began := b.now
	b.core.finder.answerTimeout = time.Hour
	b.core.begin(b.now)
	b.turn()
	if got := b.frame(); got != "1: cancel 3, renew 1" { // a doubt sends nothing
		t.Fatalf("frame %q", got)
	}
	if len(b.outcomes) != 3 || b.outcomes[0].Kind != OutcomeInDoubt || b.outcomes[1].Kind != OutcomeInDoubt ||
		b.outcomes[2].Kind != OutcomeLost || b.outcomes[2].Request != plain {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	if got := b.core.doubtEnds; got != began.Add(time.Second) || b.core.Next().After(got) {
		t.Fatalf("the first doubt ends after %v, the next turn is after %v", got.Sub(began), b.core.Next().Sub(began))
	}
	b.now = began.Add(time.Second)
	b.turn()
	b.outcome(short, OutcomeLost, ErrLost)
	if got := b.frame(); got != "1: cancel 2" {
		t.Fatalf("frame %q", got)
	}
	b.core.Down(b.now, nodeidtest.ID(1))
	b.want("2: attach 2 live 1-1 next 4, renew 2")
	b.now = began.Add(benchGrace)
	b.core.begin(b.now)
	b.turn()
	b.outcome(r, OutcomeLost, ErrLost)
}

func TestLossesInDoubt(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*bench, *Request){
		"forced": func(b *bench, _ *Request) {
			b.reply(b.to.ID, session.Reply{Kind: session.ReplyEvicted, Session: b.core.session, Epoch: b.core.epoch, Number: 1})
		},
		"resumed": func(b *bench, _ *Request) {
			b.reply(b.to.ID, session.Reply{Kind: session.ReplyTaken, Session: b.core.session, Epoch: b.core.epoch, Number: 1})
		},
		"overdue":   func(b *bench, r *Request) { b.now = r.Terms.limit.until },
		"idle":      func(b *bench, r *Request) { b.now = clock.Time(r.Terms.idle.until.Load()) },
		"restarted": func(b *bench, _ *Request) { b.core.Rebind(b.now, []byte("me"), b.core.finder.targets) },
		"stopped":   func(b *bench, _ *Request) { b.core.Stop() },
		"grace": func(b *bench, _ *Request) {
			b.advance(benchGrace)
			b.reply(b.to.ID, b.state(1, lockfsm.Granted, 1001), b.attached(lockfsm.Done), b.renewed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			r := b.doubted(Terms{Grace: benchGrace, Longest: 3 * benchTTL, Idle: 2 * benchTTL})
			end(b, r)
			b.turn()
			b.giveNonce()
			lost := 0
			for _, o := range b.outcomes {
				if o.Request != r || o.Kind != OutcomeLost || !errors.Is(o.Err, ErrLost) && o.Why != LossForced &&
					o.Why != LossTaken {
					t.Errorf("outcome %+v", o)
				}
				lost++
			}
			if lost != 1 || r.stage != stageOver || b.core.counts.doubts+b.core.counts.held != 0 {
				t.Errorf("stage %d, outcomes %+v", r.stage, b.outcomes)
			}
		})
	}
}

// TestReleaseInDoubt checks that a release in doubt is confirmed only by the answer to itself.
func TestReleaseInDoubt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replies func(*bench, *Request) []session.Reply
		want    error
	}{
		"answered": {func(b *bench, r *Request) []session.Reply {
			b.reply(b.to.ID, b.state(1, lockfsm.Granted, r.token()), b.attached(lockfsm.Done), b.renewed())
			if b.turn(); len(b.commands) != 1 || b.commands[0].Kind != lockfsm.Release {
				b.t.Fatalf("frame %q", b.frame())
			}
			return []session.Reply{b.freed(1)}
		}, nil},
		"finished before": {func(b *bench, r *Request) []session.Reply {
			b.reply(b.to.ID, b.state(1, lockfsm.Granted, r.token()), b.attached(lockfsm.Done), b.renewed())
			if b.turn(); len(b.commands) != 1 || b.commands[0].Kind != lockfsm.Release {
				b.t.Fatalf("frame %q", b.frame())
			}
			answer := b.freed(1)
			answer.Code = lockfsm.Finished
			return []session.Reply{answer}
		}, ErrLost},
		"not stated": {func(b *bench, _ *Request) []session.Reply {
			return []session.Reply{b.attached(lockfsm.Done), b.renewed()}
		}, ErrLost},
		"no session": {func(b *bench, _ *Request) []session.Reply {
			return []session.Reply{b.attached(lockfsm.NoSession)}
		}, ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			r := b.doubted(Terms{Grace: benchGrace})
			b.core.Down(b.now, b.to.ID)
			if !b.core.Release(b.now, r) {
				t.Fatal("not held and not in doubt")
			}
			for i := 0; b.core.phase != Attaching && i < 10; i++ {
				b.advance(waitLongest)
				b.turn()
			}
			for nodeidtest.Number(b.to.ID) != 2 {
				b.core.Down(b.now, b.to.ID)
				b.advance(waitLongest)
				b.turn()
			}
			b.reply(b.to.ID, c.replies(b, r)...)
			b.turn()
			b.outcome(r, OutcomeReleased, c.want)
			if r.stage != stageOver {
				t.Errorf("stage %d", r.stage)
			}
		})
	}
}

func TestNoRequestUnderADoubt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := b.doubted(Terms{Grace: benchGrace})
	inner := &Request{Key: "inner", Terms: &Terms{Under: r}}
	b.core.Acquire(b.now, inner)
	b.turn()
	b.outcome(inner, OutcomeFailed, ErrInJeopardy)
	if err := b.core.CloseSession(b.now); err != ErrStillHeld {
		t.Errorf("CloseSession: %v", err)
	}
}

// TestADowngradeGoesOnInDoubt checks that a downgrade that began before the doubt is sent again.
func TestADowngradeGoesOnInDoubt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	r := b.holdWith(Terms{Grace: benchGrace})
	b.core.Downgrade(b.now, r, toReader())
	b.want("1: downgrade")
	b.core.Down(b.now, b.to.ID)
	b.turn()
	b.now = b.deadline
	b.core.begin(b.now)
	b.turn()
	b.outcome(r, OutcomeInDoubt, nil)
	b.reply(b.to.ID, b.state(1, lockfsm.Granted, r.token()), b.attached(lockfsm.Done), b.renewed())
	b.turn()
	if len(b.commands) != 1 || !slices.Equal(b.commands[0].Modes, toReader()) {
		t.Fatalf("it sends %+v", b.commands)
	}
	b.downgraded(1, lockfsm.Downgraded)
	b.outcome(r, OutcomeDowngraded, nil)
}
