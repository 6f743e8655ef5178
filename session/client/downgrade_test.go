package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
)

// downgraded is the answer to a downgrade.
func (b *bench) downgraded(n lockfsm.Number, code lockfsm.Code) {
	answer := b.freed(n)
	answer.Code = code
	b.reply(b.to.ID, answer)
	b.turn()
}

func TestDowngradeIsSentUntilItIsAnswered(t *testing.T) {
	b := newBench(t)
	b.attach()
	r := b.hold("k")
	n := r.entry.number
	b.core.Downgrade(b.now, r, toReader())
	b.core.Downgrade(b.now, r, toReader())
	b.want("1: downgrade")
	if c := b.commands[0]; c.Kind != lockfsm.Downgrade || !slices.Equal(c.Modes, toReader()) {
		t.Fatalf("it sends %+v", c)
	}
	b.want("")
	b.core.Down(b.now, b.to.ID) // the answer is lost with the leader
	b.turn()
	b.reply(b.to.ID, b.state(n, lockfsm.Granted, r.token()), b.attached(lockfsm.Done), b.renewed())
	b.turn()
	if len(b.commands) != 1 || !slices.Equal(b.commands[0].Modes, toReader()) {
		t.Fatalf("after a new attachment it sends %+v", b.commands)
	}
	b.downgraded(n, lockfsm.Downgraded)
	b.outcome(r, OutcomeDowngraded, nil)
	if b.core.counts.open != 0 || len(b.core.lowering) != 0 {
		t.Errorf("%d bytes and %d downgrades are open", b.core.counts.open, len(b.core.lowering))
	}
	b.downgraded(n, lockfsm.Downgraded)
	b.quiet()
}

// The answer to a downgrade does not confirm the release that was sent after it.
func TestReleaseAfterADowngrade(t *testing.T) {
	b := newBench(t)
	b.attach()
	r := b.hold("k")
	n := r.entry.number
	b.core.Downgrade(b.now, r, toReader())
	b.turn()
	b.core.Release(b.now, r)
	b.want("1: release 1")
	b.downgraded(n, lockfsm.Downgraded)
	b.quiet()
	b.downgraded(n, lockfsm.Done)
	b.outcome(r, OutcomeReleased, nil)
}

func TestRefusedDowngrade(t *testing.T) {
	b := newBench(t)
	b.attach()
	r := b.hold("k")
	b.core.Downgrade(b.now, r, toReader())
	b.turn()
	b.downgraded(r.entry.number, lockfsm.Unsupported)
	if len(b.outcomes) != 1 || b.outcomes[0].Kind != OutcomeDowngraded || !errors.Is(b.outcomes[0].Err, ErrUnsupported) {
		t.Fatalf("the outcomes are %+v", b.outcomes)
	}
	if r.stage != stageHeld {
		t.Error("the hold has ended")
	}
}

func TestDowngradeOfAnEndedHold(t *testing.T) {
	b := newBench(t)
	b.attach()
	r := b.hold("k")
	b.core.Downgrade(b.now, r, toReader())
	b.turn()
	b.downgraded(r.entry.number, lockfsm.Finished)
	b.outcome(r, OutcomeLost, ErrLost)
	b.core.Downgrade(b.now, r, toReader())
	b.want("")
}

func TestDowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		writer := w.lock(nodeidtest.ID(100), "x")
		granted := make(chan *Hold)
		go func() {
			h, _ := w.take(nodeidtest.ID(101), Terms{Permits: 1})
			granted <- h
		}()
		synctest.Wait()
		for range 2 {
			if err := writer.Downgrade(t.Context(), toReader()); err != nil || !writer.Lowered() || writer.Err() != nil {
				t.Fatalf("downgraded: %v, lowered %v, held %v", err, writer.Lowered(), writer.Err())
			}
		}
		reader := <-granted
		if err := reader.Downgrade(t.Context(), toReader()); err != nil {
			t.Errorf("the downgrade of a shared hold: %v", err)
		}
		_ = reader.Release(t.Context())
		_ = writer.Release(t.Context())
		if err := writer.Downgrade(t.Context(), toReader()); !errors.Is(err, ErrReleased) {
			t.Errorf("after the release: %v", err)
		}
		w.empty()
	})
}

// A hold may end by its own clock after the group has answered, and before the caller of Downgrade
// runs. The caller is then told of the end.
func TestTheAnswerToADowngradeComesAfterTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		h := w.lock(nodeidtest.ID(100), "x")
		if _, err := h.startDowngrade(toReader()); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); h.answer() != nil {
			t.Errorf("before the end of the lease: %v", h.answer())
		}
		leaping.leap.Advance(worldTTL)
		if err := h.answer(); !errors.Is(err, ErrLost) {
			t.Errorf("after the end of the lease: %v", err)
		}
	})
}

// TestDowngradeThatIsNotConfirmed checks each way in which the wait of Downgrade ends without an
// answer of the group.
func TestDowngradeThatIsNotConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(*Hold, context.CancelFunc)
		want error
	}{
		"the context ends": {func(_ *Hold, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"it is released": {func(h *Hold, _ context.CancelFunc) {
			soon, cancel := context.WithCancel(context.Background())
			cancel()
			_ = h.Release(soon)
		}, ErrReleased},
		"the lease ends": {func(*Hold, context.CancelFunc) { time.Sleep(worldTTL) }, ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, nodeidtest.ID(1))
				defer w.close()
				w.elect(nodeidtest.ID(1))
				h := w.lock(nodeidtest.ID(100), "k")
				w.isolate(nodeidtest.ID(100), true)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				result := make(chan error)
				go func() { result <- h.Downgrade(ctx, toReader()) }()
				synctest.Wait()
				c.ends(h, cancel)
				if err := <-result; !errors.Is(err, c.want) {
					t.Errorf("Downgrade returns %v, want %v", err, c.want)
				}
				if !h.Lowered() {
					t.Error("it is exclusive again, though the group may have made it shared")
				}
			})
		})
	}
}

// toReader returns the modes of a hold of one key after it was made shared.
func toReader() []lockfsm.Mode { return []lockfsm.Mode{lockfsm.ModeIS} }
