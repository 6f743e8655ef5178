package keeper

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// office is a keeper with its goroutine in a synctest bubble. The log commits immediately, and
// function calls replace the transport.
type office struct {
	*Keeper
	t *testing.T

	mu      sync.Mutex // guards the following fields
	machine *lockfsm.Machine
	index   uint64
	rounds  int
	replies map[nodeid.ID][]session.Reply
	refuses func(what string) bool // whether a call is refused; nil means never
}

func newOffice(t *testing.T) *office {
	m, err := lockfsm.New(lockfsm.Charter{
		Group: 1, FoundedUnixMS: 1_700_000_000_000, Rules: 1, SessionTTL: benchTTL, Limits: lockfsm.DefaultLimits(),
	})
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t: t, machine: m, replies: make(map[nodeid.ID][]session.Reply)}
	o.Keeper = New(Config{
		Clock:   clock.Monotonic(),
		Outlets: Outlets{Propose: o.propose, Confirm: o.confirm, Reply: o.reply, WallUnixMS: wall},
	})
	return o
}

func wall() int64 { return 1234 }

func (o *office) refused(what string) bool { return o.refuses != nil && o.refuses(what) }

func (o *office) propose(term uint64, blob []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused("propose") {
		return false
	}
	o.index++
	o.machine.ApplyEntry(o.index, term, blob, o.Applied)
	return true
}

func (o *office) confirm(term, round uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rounds++
	o.Confirmed(term, round)
}

func (o *office) reply(to nodeid.ID, frame []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused("reply") {
		return errors.New("no link")
	}
	for len(frame) > 0 {
		one, rest, err := session.NextReply(frame)
		if err != nil {
			o.t.Error(err)
			return err
		}
		o.replies[to] = append(o.replies[to], one)
		frame = rest
	}
	return nil
}

func (o *office) lead(term uint64) {
	o.Role(Role{Term: term, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9)}})
	o.mu.Lock()
	l := Leadership{Term: term, Sessions: o.machine.Sessions(), Born: o.machine.Born(),
		GraceOver: o.machine.GraceOver(), Rules: o.machine.Charter().Rules}
	o.mu.Unlock()
	o.Leads(l)
	if !l.Born {
		o.AllBound()
	}
	synctest.Wait()
}

func (o *office) told(to nodeid.ID) (kinds []session.ReplyKind) {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.replies[to] {
		kinds = append(kinds, r.Kind)
	}
	o.replies[to] = nil
	return kinds
}

func (o *office) send(from nodeid.ID, c lockfsm.Command) {
	o.ReceiveFrom(Sender{ID: from}, nil, c.Append(nil))
	synctest.Wait()
}

func (o *office) enter(p nodeid.ID) lockfsm.SessionID {
	o.t.Helper()
	o.send(p, lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{7}, TTL: benchTTL, Record: []byte("r")})
	o.mu.Lock()
	all := o.machine.Sessions()
	o.mu.Unlock()
	if len(all) != 1 {
		o.t.Fatalf("sessions: %+v", all)
	}
	o.send(p, lockfsm.Command{Kind: lockfsm.Attach, Session: all[0].ID, Epoch: 1, Number: 1, Nonce: lockfsm.Nonce{7}})
	if s := o.Status(); s.Attachments != 1 {
		o.t.Fatalf("%+v; the peer was told %v", s, o.told(p))
	}
	return all[0].ID
}

// TestShellWhatAKeeperIsTold checks that each call of a Keeper's methods takes effect immediately,
// and not only at the next timer.
func TestShellWhatAKeeperIsTold(t *testing.T) {
	peer := nodeidtest.ID(1)
	for name, f := range map[string]func(o *office, id lockfsm.SessionID){
		"a renewal": func(o *office, id lockfsm.SessionID) {
			o.ReceiveFrom(Sender{ID: peer}, session.Renewal{Session: id, Epoch: 1, Seq: 1}.Append(nil), nil)
			if told := o.told(peer); !slices.Contains(told, session.ReplyRenewed) || o.rounds == 0 {
				o.t.Errorf("the peer was told %v, after %d rounds", told, o.rounds)
			}
		},
		"a command": func(o *office, id lockfsm.SessionID) {
			o.send(peer, acquireCmd(id, 1, 1, "x"))
			if told := o.told(peer); !slices.Contains(told, session.ReplyState) {
				o.t.Errorf("the peer was told %v", told)
			}
		},
		"the end of a stream": func(o *office, _ lockfsm.SessionID) {
			o.Down(peer)
			synctest.Wait()
			if s := o.Status(); s.Attachments != 0 || s.Sessions != 1 {
				o.t.Errorf("%+v", s)
			}
		},
		"another leader": func(o *office, _ lockfsm.SessionID) {
			o.Role(Role{Term: 6, Leader: nodeid.Endpoint{ID: nodeidtest.ID(3)}})
			if told, s := o.told(peer), o.Status(); !slices.Contains(told, session.ReplyRedirect) || s.Leading ||
				s.Term != 6 {
				o.t.Errorf("the peer was told %v, %+v", told, s)
			}
		},
		"new settings": func(o *office, _ lockfsm.SessionID) {
			o.ProposeAdopt(5, 2*benchTTL, []byte("settings"), session.Budgets{})
			synctest.Wait()
			if c := o.machine.Charter(); c.SessionTTL != 2*benchTTL || string(c.Settings) != "settings" {
				o.t.Errorf("%+v", c)
			}
		},
		"a version of the rules": func(o *office, _ lockfsm.SessionID) {
			o.ProposeRaise(5, lockfsm.RulesVersion+1) // the machine fails if this is proposed
			if synctest.Wait(); o.machine.Failed() == nil {
				o.t.Error("it was not proposed")
			}
		},
		"a question of how long sessions last": func(o *office, id lockfsm.SessionID) {
			left := o.Left(context.Background(), []lockfsm.SessionID{id, id + 1})
			if len(left) != 2 || left[0] <= 0 || left[0] > benchTTL+time.Second || left[1] != 0 {
				o.t.Errorf("%v", left)
			}
		},
		"a silent session": func(o *office, _ lockfsm.SessionID) {
			time.Sleep(2 * benchTTL)
			o.mu.Lock()
			defer o.mu.Unlock()
			if n := o.machine.Counts().Sessions; n != 0 {
				o.t.Errorf("%d sessions are left of one that fell silent", n)
			}
		},
		"the end": func(o *office, _ lockfsm.SessionID) {
			began := time.Now()
			o.Close()
			select {
			case <-o.ended:
			default:
				o.t.Error("Close has returned before the goroutine")
			}
			if left := o.Left(context.Background(), nil); left != nil || time.Since(began) > 0 {
				o.t.Errorf("after Close it says %v, after %v", left, time.Since(began))
			}
			o.ReceiveFrom(Sender{ID: peer}, nil, make([]byte, 100))
			o.Down(peer)
			if len(o.inbox.inputs) != 0 {
				o.t.Error("a closed keeper collects inputs")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t)
				defer o.Close()
				o.lead(5)
				id := o.enter(peer)
				began := time.Now()
				if f(o, id); time.Since(began) > 0 && name != "a silent session" {
					t.Errorf("it took %v", time.Since(began))
				}
			})
		})
	}
}

// TestShellWhatIsRefusedOnce checks that a peer's attachment ends soon after a refused proposal or
// reply, and that the peer can attach again.
func TestShellWhatIsRefusedOnce(t *testing.T) {
	peer := nodeidtest.ID(1)
	for _, what := range []string{"propose", "reply"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t)
				defer o.Close()
				o.lead(5)
				id := o.enter(peer)
				for epoch := lockfsm.Epoch(1); epoch <= 5; epoch++ {
					o.told(peer)
					left := 1
					o.mu.Lock()
					o.refuses = func(which string) bool {
						if which == what {
							left--
						}
						return which == what && left == 0
					}
					o.mu.Unlock()
					o.send(peer, acquireCmd(id, epoch, lockfsm.Number(epoch), "x"))
					time.Sleep(2 * retryAfter)
					if told, s := o.told(peer), o.Status(); !slices.Contains(told, session.ReplyEnded) ||
						s.Attachments != 0 {
						t.Fatalf("the peer was told %v; %+v", told, s)
					}
					again := lockfsm.Command{Kind: lockfsm.Attach, Session: id, Epoch: epoch + 1, Number: 1}
					again.Nonce = lockfsm.Nonce{7}
					o.send(peer, again)
					if told, s := o.told(peer), o.Status(); !slices.Contains(told, session.ReplyAttached) ||
						s.Attachments != 1 {
						t.Fatalf("when it attached anew the peer was told %v; %+v", told, s)
					}
				}
			})
		})
	}
}

// behindClock is a clock that a test can set back.
type behindClock struct {
	clock.Clock
	by clock.Manual
}

func (c *behindClock) Now() clock.Time { return c.Clock.Now().Add(-c.by.Now().Sub(0)) }

// TestShellTimeGoesOn checks that a keeper expires a session even if a timer has fired early, as
// with a coarse clock.
func TestShellTimeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.Close()
		slow := &behindClock{Clock: clock.Monotonic()}
		o.Keeper = New(Config{
			Clock:   slow,
			Outlets: Outlets{Propose: o.propose, Confirm: o.confirm, Reply: o.reply, WallUnixMS: wall},
		})
		defer o.Close()
		o.lead(5)
		peer := nodeidtest.ID(1)
		id := o.enter(peer)
		for seq := range uint64(60) {
			o.ReceiveFrom(Sender{ID: peer}, session.Renewal{Session: id, Epoch: 1, Seq: seq + 1, Heard: seq}.Append(nil), nil)
			time.Sleep(benchTTL / 2)
			if s := o.Status(); s.Sessions != 1 || s.Attachments != 1 {
				t.Fatalf("a session that is renewed has ended after %d renewals: %+v", seq, s)
			}
		}
		slow.by.Advance(tickEvery / 2)
		time.Sleep(2 * benchTTL)
		o.mu.Lock()
		defer o.mu.Unlock()
		if n := o.machine.Counts().Sessions; n != 0 {
			t.Errorf("%d sessions are left of one that fell silent", n)
		}
	})
}

func TestShellVouchesAndStamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		o.Close()
		o.Keeper = New(Config{
			Clock:   clock.Monotonic(),
			Outlets: Outlets{Propose: o.propose, Confirm: o.confirm, Reply: o.reply, WallUnixMS: wall},
			Vouch:   func(_ nodeid.ID, _ *capability.Capability, record []byte) bool { return string(record) != "false" },
			Stamp:   func(_ *capability.Capability, record []byte) []byte { return append(record, " stamped"...) },
		})
		defer o.Close()
		o.lead(5)
		for i, record := range []string{"false", "true"} {
			c := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{byte(i + 1)}, TTL: benchTTL,
				Record: []byte(record)}
			o.ReceiveFrom(Sender{ID: nodeidtest.ID(uint64(i + 1)), Rights: &capability.Capability{}}, nil, c.Append(nil))
			synctest.Wait()
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if all := o.machine.Sessions(); len(all) != 1 || string(all[0].Record) != "true stamped" {
			t.Errorf("the sessions are %+v", all)
		}
	})
}
