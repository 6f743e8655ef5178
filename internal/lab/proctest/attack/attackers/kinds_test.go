//go:build linux

package attackers

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

func TestKindsAreChosenByTexts(t *testing.T) {
	if all := len(Kinds("")); all != len(attacks()) {
		t.Errorf("%d of %d kinds", all, len(attacks()))
	}
	some := Kinds("resume:,agent: idle")
	if len(some) != 6 || some[5] != "agent: idle connections" {
		t.Errorf("%+v", some)
	}
}

func TestEachKindIsTried(t *testing.T) {
	for _, c := range []struct {
		what  string
		slow  int // how many attempts of the second kind end without a result
		takes time.Duration
	}{
		{"a fast machine", 0, 10 * time.Second},
		{"a slow machine", 2, 30 * time.Second},
		{"no result", 1000, 50 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			each := func(_ *attacker, ctx context.Context, _ known) Tally {
				wait(ctx, time.Second)
				return Tally{Tried: 1}
			}
			late := func(_ *attacker, ctx context.Context, _ known) Tally {
				if attempts++; attempts <= c.slow {
					wait(ctx, time.Hour)
					return Tally{}
				}
				return each(nil, ctx, known{})
			}
			kinds := []kind{{"one", 2, time.Second, each}, {"late", 1, time.Second, late}}
			a := &attacker{length: 10 * time.Second, targets: make([]known, 1)}
			r := runner{attacker: a, all: map[string]Tally{}}
			began := time.Now()
			r.runAll(t.Context(), io.Discard, kinds)
			if took := time.Since(began); took != c.takes {
				t.Errorf("%s: %v instead of %v", c.what, took, c.takes)
			}
			if tried := r.all["one"].Tried; tried > 12 {
				t.Errorf("%s: the kind that had been tried made %d attempts", c.what, tried)
			}
		})
	}
}
