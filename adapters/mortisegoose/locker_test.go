package mortisegoose

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
	"github.com/mortise-lock/mortise/mortisetest"
)

// goose's own suite, with five providers on three nodes.
func TestProvidersOfThreeNodes(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	for name, option := range map[string]func(*Locker) goose.ProviderOption{
		"Locker":        func(l *Locker) goose.ProviderOption { return goose.WithLocker(l) },
		"SessionLocker": func(l *Locker) goose.ProviderOption { return goose.WithSessionLocker(l) },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, db database) {
				next := 0
				locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
					next++
					return db.provider(t, option(New(cluster.Node(next%3), "migrate/"+t.Name())))
				})
			})
		})
	}
}

// The same with one Locker for all providers.
func TestProvidersShareALocker(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	locker := New(cluster.Node(0), "migrate/shared")
	onEach(t, func(t *testing.T, db database) {
		locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
			return db.provider(t, goose.WithLocker(locker))
		})
	})
	if locker.Token() != 0 {
		t.Error("the lock is still held")
	}
}

func TestOneLockerAtATime(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	next := 0
	locktesting.TestConcurrentLocking(t, nil, func(*testing.T) lock.Locker {
		next++
		return New(cluster.Node(next%3), "migrate/orders")
	}, time.Second)
}

// Three processes migrate one database. The one that has the lock is killed in its second
// migration, which is rolled back. The other two complete the migrations, each once.
func TestAProcessIsKilledInAMigration(t *testing.T) {
	dir := t.TempDir()
	file, bait := filepath.Join(dir, "db"), filepath.Join(dir, "bait")
	if err := os.WriteFile(bait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := trio.Start(t, "DATABASE="+file, "BAIT="+bait)
	first := f.Await(1, "inside")[0]
	f.Kill(first)
	f.Await(2, "done")
	if got := f.Await(1, "applied 1"); len(got) != 1 || got[0] == first {
		t.Errorf("the second migration was applied by %v", got)
	}
	f.Await(1, "applied 0")
	db, err := openSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM log").Scan(&n); err != nil || n != 1 {
		t.Errorf("the second migration has run %d times, %v", n, err)
	}
}

// A node loses its lock during a migration. No further migration of its provider begins, and the
// provider reports the loss.
func TestALostLockEndsTheSession(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	onEach(t, func(t *testing.T, db database) {
		locker := New(cluster.Node(0), "migrate/"+t.Name())
		ran := 0
		lose := func(context.Context, *sql.Tx) error {
			ran++
			held := locker.lock
			cluster.Lose(0)
			<-held.Done()
			cluster.Ready(0)
			return nil
		}
		count := func(context.Context, *sql.Tx) error { ran++; return nil }
		p, err := goose.NewProvider(db.dialect, db.DB, nil, goose.WithSessionLocker(locker), goose.WithGoMigrations(
			goose.NewGoMigration(1, &goose.GoFunc{RunTx: lose}, nil),
			goose.NewGoMigration(2, &goose.GoFunc{RunTx: count}, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Up(t.Context()); !errors.Is(err, mortise.ErrLost) {
			t.Errorf("Up: %v, want ErrLost", err)
		}
		if ran != 1 {
			t.Errorf("%d migrations have run, and the lock was lost in the first", ran)
		}
	})
}

func TestUnlockWithoutLock(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	locker := New(cluster.Node(0), "migrate/orders")
	if err := locker.Unlock(t.Context(), nil); err == nil {
		t.Error("no error")
	}
	if err := locker.Lock(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := locker.Lock(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a second Lock: %v", err)
	}
	if locker.Token() == 0 {
		t.Error("no token")
	}
	if err := locker.Unlock(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
