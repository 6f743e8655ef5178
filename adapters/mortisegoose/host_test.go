package mortisegoose

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// A provider loses its lock in its first migration. Its next Up takes a new lock and completes the
// migrations.
func TestUpAfterALoss(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	onEach(t, func(t *testing.T, db database) {
		locker := New(cluster.Node(0), "migrate/"+t.Name())
		var tokens []mortise.Token
		lose := true
		note := func(context.Context, *sql.Tx) error {
			tokens = append(tokens, locker.Token())
			if lose {
				lose = false
				held := locker.lock
				cluster.Lose(0)
				<-held.Done()
				cluster.Ready(0)
			}
			return nil
		}
		p, err := goose.NewProvider(db.dialect, db.DB, nil, goose.WithLocker(locker), goose.WithGoMigrations(
			goose.NewGoMigration(1, &goose.GoFunc{RunTx: note}, nil)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Up(t.Context())
		if !errors.Is(err, mortise.ErrLost) || strings.Count(err.Error(), locker.key) != 1 {
			t.Errorf("Up: %v, want ErrLost", err)
		}
		if _, err := p.DownTo(t.Context(), 0); err != nil {
			t.Error(err)
		}
		if _, err := p.Up(t.Context()); err != nil {
			t.Error(err)
		}
		if len(tokens) != 2 || tokens[1] <= tokens[0] {
			t.Errorf("the tokens are %d", tokens)
		}
	})
}

// A provider whose context has ended holds nothing later. Each error names the key once.
func TestAProviderThatHasGivenUp(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	first, second := New(cluster.Node(0), "migrate/orders"), New(cluster.Node(1), "migrate/orders")
	if err := first.Lock(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for what, err := range map[string]error{"another instance": second.Lock(short, nil),
		"another provider": first.Lock(short, nil)} {
		if !errors.Is(err, context.DeadlineExceeded) || strings.Count(err.Error(), `"migrate/orders"`) != 1 ||
			strings.Count(err.Error(), "mortisegoose: ") != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := first.Unlock(t.Context(), nil); err != nil {
		t.Error(err)
	}
	cluster.Await("migrate/orders", 0, 0)
	if first.Token() != 0 || second.Token() != 0 {
		t.Errorf("tokens %d and %d", first.Token(), second.Token())
	}
}

// TestTheContextsOfCallsEnd checks that no context of a call to the node outlives the call, with
// its timer.
func TestTheContextsOfCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []context.Context
		c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true, Configure: func(_ int, c *mortise.Config) {
			c.Hooks = &mortise.Hooks{
				Acquired: func(ctx context.Context, _ mortise.LockEvent) any { all = append(all, ctx); return nil },
				Unlocked: func(ctx context.Context, _ mortise.LockEvent) { all = append(all, ctx) }}
		}})
		l := New(c.Node(0), "k")
		if err := errors.Join(l.Lock(t.Context(), nil), l.Unlock(t.Context(), nil)); err != nil {
			t.Fatal(err)
		}
		all = all[1:] // the context of Lock is that of the caller
		if len(all) != 1 {
			t.Errorf("%d calls", len(all))
		}
		for i, ctx := range all {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d goes on", i)
			}
		}
	})
}
