package mortisemigrate

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/stub"
	databasetest "github.com/golang-migrate/migrate/v4/database/testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/trio"
	"github.com/mortise-lock/mortise/mortisetest"
)

// golang-migrate's own suites, with a Driver around two of its drivers.
func TestTheSuites(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	onEach(t, func(t *testing.T, open func() database.Driver) {
		options := Options{Wait: time.Second}
		databasetest.Test(t, Wrap(open(), cluster.Node(1), "migrate/"+t.Name(), options), []byte("SELECT 1"))
	})
	onEach(t, func(t *testing.T, open func() database.Driver) {
		databasetest.TestLockAndUnlock(t, Wrap(open(), cluster.Node(2), "migrate/"+t.Name(), Options{Both: true}))
		m, err := newMigrate(Wrap(open(), cluster.Node(0), "migrate/"+t.Name(), Options{}))
		if err != nil {
			t.Fatal(err)
		}
		databasetest.TestMigrate(t, m)
	})
}

// Three instances migrate at the same time. One of them applies all migrations.
func TestThreeNodesMigrate(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	onEach(t, func(t *testing.T, open func() database.Driver) {
		var all sync.WaitGroup
		results := make(chan error, 3)
		for i := range 3 {
			m, err := newMigrate(Wrap(open(), cluster.Node(i), "migrate/"+t.Name(), Options{}))
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() { results <- m.Up() })
		}
		all.Wait()
		migrated := 0
		for range 3 {
			switch err := <-results; {
			case err == nil:
				migrated++
			case !errors.Is(err, migrate.ErrNoChange):
				t.Error(err)
			}
		}
		if migrated != 1 {
			t.Errorf("%d instances have migrated", migrated)
		}
	})
}

// Three processes migrate one database. The one that has the lock is killed. One of the others
// migrates when the session of the killed process has expired.
func TestAProcessIsKilled(t *testing.T) {
	dir := t.TempDir()
	file, bait := filepath.Join(dir, "db"), filepath.Join(dir, "bait")
	if err := os.WriteFile(bait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := trio.Start(t, "DATABASE="+file, "BAIT="+bait)
	first := f.Await(1, "inside")[0]
	f.Kill(first)
	if got := f.Await(1, "migrated"); got[0] == first {
		t.Errorf("process %d is dead", first)
	}
	f.Await(1, "no change")
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM log").Scan(&n); err != nil || n != 1 {
		t.Errorf("the second migration has run %d times, %v", n, err)
	}
}

// losing is a driver whose node loses its locks while the first migration runs.
type losing struct {
	database.Driver
	lose func()
	runs int
}

func (l *losing) Run(migration io.Reader) error {
	l.runs++
	l.lose()
	return l.Driver.Run(migration)
}

func TestNothingIsDoneAfterALoss(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	onEach(t, func(t *testing.T, open func() database.Driver) {
		inner := &losing{Driver: open()}
		driver := Wrap(inner, cluster.Node(0), "migrate/"+t.Name(), Options{})
		inner.lose = func() {
			cluster.Lose(0)
			<-driver.lock.Done()
			cluster.Ready(0)
		}
		m, err := newMigrate(driver)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Up(); !errors.Is(err, mortise.ErrLost) {
			t.Errorf("Up: %v, want ErrLost", err)
		}
		if inner.runs != 1 {
			t.Errorf("%d migrations have run", inner.runs)
		}
		inner.lose = func() {}
		// The Migrate can be used again. The database is dirty, as after each migration that has failed.
		var dirty migrate.ErrDirty
		if err := m.Up(); !errors.As(err, &dirty) {
			t.Errorf("Up again: %v, want ErrDirty", err)
		}
		if err := m.Force(dirty.Version - 1); err != nil {
			t.Error(err)
		}
		if err := driver.Drop(); err != nil { // the driver is not locked any more
			t.Error(err)
		}
	})
}

func TestLock(t *testing.T) {
	cluster := mortisetest.New(t, 3)
	options := Options{Wait: 100 * time.Millisecond}
	first := Wrap(&stub.Stub{}, cluster.Node(0), "migrate/orders", options)
	second := Wrap(&stub.Stub{}, cluster.Node(1), "migrate/orders", options)
	if err := first.Unlock(); err != database.ErrNotLocked {
		t.Error(err)
	}
	if err := first.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := first.Lock(); err != database.ErrLocked || first.Err() != errInUse {
		t.Errorf("%v, because of %v", err, first.Err())
	}
	if err := second.Lock(); err != database.ErrLocked || !errors.Is(second.Err(), context.DeadlineExceeded) {
		t.Errorf("%v, because of %v", err, second.Err())
	}
	if first.Token() == 0 || second.Token() != 0 {
		t.Errorf("tokens %d and %d", first.Token(), second.Token())
	}
	if err := first.Unlock(); err != nil {
		t.Error(err)
	}
	cluster.Await("migrate/orders", 0, 0) // the second does not get the lock after it has given up
	if err := second.Lock(); err != nil {
		t.Error(err)
	}
	if err := second.Unlock(); err != nil {
		t.Error(err)
	}
	opened, err := first.Open("stub://")
	if err != nil {
		t.Fatal(err)
	}
	if _, is := opened.(*Driver); !is {
		t.Errorf("Open returned a %T", opened)
	}
}

// failing is a driver that cannot be locked.
type failing struct{ database.Driver }

func (failing) Lock() error { return database.ErrLocked }

func TestBothLocksOrNone(t *testing.T) {
	cluster := mortisetest.New(t, 1)
	driver := Wrap(failing{}, cluster.Node(0), "migrate/orders", Options{Both: true})
	if err := driver.Lock(); !errors.Is(err, database.ErrLocked) {
		t.Error(err)
	}
	cluster.Await("migrate/orders", 0, 0)
}
