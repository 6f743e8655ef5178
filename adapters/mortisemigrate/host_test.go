package mortisemigrate

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// memory is a database in memory, without locks of its own. A migration takes 3 s.
type memory struct{ version *int }

func (m memory) Open(string) (database.Driver, error) { return m, nil }
func (memory) Close() error                           { return nil }
func (memory) Lock() error                            { return nil }
func (memory) Unlock() error                          { return nil }
func (memory) Run(r io.Reader) error {
	time.Sleep(3 * time.Second)
	_, err := io.ReadAll(r)
	return err
}
func (m memory) SetVersion(v int, _ bool) error { *m.version = v; return nil }
func (m memory) Version() (int, bool, error)    { return *m.version, false, nil }
func (memory) Drop() error                      { return nil }

// hosts returns a Migrate on each node of a cluster, with one database.
func hosts(t *testing.T) (c *mortisetest.Cluster, all []*migrate.Migrate, drivers []*Driver) {
	t.Helper()
	c = mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
	version := database.NilVersion
	for i := range 3 {
		files, err := iofs.New(fstest.MapFS{"1_a.up.sql": {Data: []byte("x")}, "1_a.down.sql": {Data: []byte("x")}}, ".")
		if err != nil {
			t.Fatal(err)
		}
		driver := Wrap(memory{&version}, c.Node(i), "migrate/db", Options{})
		m, err := migrate.NewWithInstance("iofs", files, "db", driver)
		if err != nil {
			t.Fatal(err)
		}
		all, drivers = append(all, m), append(drivers, driver)
	}
	return c, all, drivers
}

// A program with a LockTimeout of a second gives up while another instance migrates. It gets the
// lock afterwards, does not use it, and a few seconds later all can migrate.
func TestAMigrateThatHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, all, drivers := hosts(t)
		all[1].LockTimeout = time.Second
		done := make(chan error)
		go func() { done <- all[0].Up() }()
		time.Sleep(100 * time.Millisecond)
		if err := all[1].Up(); err != migrate.ErrLockTimeout {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		time.Sleep(firstUse + time.Second)
		if info, err := c.Node(2).Peek(t.Context(), "migrate/db"); err != nil || info.Held > 0 {
			t.Errorf("%d hold the lock: %v", info.Held, err)
		}
		if err := drivers[1].Err(); err != errUnused {
			t.Errorf("the reason is %v", err)
		}
		// A Migrate that was paused between Lock and its first use does nothing without the lock.
		for what, err := range map[string]error{"Run": drivers[1].Run(strings.NewReader("x")),
			"SetVersion": drivers[1].SetVersion(2, false), "Drop": drivers[1].Drop()} {
			if !errors.Is(err, errUnused) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := drivers[1].Unlock(); err != database.ErrNotLocked {
			t.Error(err)
		}
		for i, m := range all {
			if err := m.Up(); err != migrate.ErrNoChange {
				t.Errorf("instance %d: %v", i, err)
			}
		}
	})
}

// slow is a driver whose Unlock takes a while, and counts what was called after Close.
type slow struct {
	database.Driver
	closed  bool
	unlocks int
	late    int
}

func (s *slow) Close() error { s.closed = true; return nil }

func (s *slow) Unlock() error {
	time.Sleep(2 * time.Second)
	if s.unlocks++; s.closed {
		s.late++
	}
	return nil
}

// Close waits for the function of the timer that releases an unused lock, and stops the timer. It
// releases a held lock, and a Lock that waits does not get the lock afterwards.
func TestCloseLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		version := 0
		for at, before := range map[string]func(d *Driver){
			"before the timer":             func(*Driver) {},
			"while it is released, unused": func(*Driver) { time.Sleep(firstUse + time.Second) },
			"in use":                       func(d *Driver) { d.Token(); time.Sleep(time.Minute) },
		} {
			inner := &slow{Driver: memory{&version}}
			d := Wrap(inner, c.Node(0), "migrate/db", Options{Both: true})
			if err := d.Lock(); err != nil {
				t.Fatal(err)
			}
			before(d)
			if err := d.Close(); err != nil || inner.unlocks != 1 || !inner.closed {
				t.Errorf("%s: Close: %v, %d unlocks, closed: %v", at, err, inner.unlocks, inner.closed)
			}
			if info, err := c.Node(2).Peek(t.Context(), "migrate/db"); err != nil || info.Held > 0 {
				t.Errorf("%s: %d hold the lock: %v", at, info.Held, err)
			}
			if err := d.Lock(); err != errClosed {
				t.Errorf("%s: Lock after Close: %v", at, err)
			}
			time.Sleep(time.Minute)
			if inner.late != 0 || inner.unlocks != 1 {
				t.Errorf("%s: the wrapped driver was unlocked %d times, %d times after Close", at, inner.unlocks, inner.late)
			}
		}
		holder := Wrap(memory{&version}, c.Node(1), "migrate/db", Options{})
		if err := holder.Lock(); err != nil {
			t.Fatal(err)
		}
		holder.Token()
		waiter := Wrap(memory{&version}, c.Node(0), "migrate/db", Options{})
		locked := make(chan error)
		go func() { locked <- waiter.Lock() }()
		time.Sleep(time.Second)
		if err := errors.Join(waiter.Close(), holder.Unlock()); err != nil {
			t.Error(err)
		}
		if err := <-locked; err != errClosed {
			t.Errorf("a Lock that waited during Close: %v", err)
		}
		if info, err := c.Node(2).Peek(t.Context(), "migrate/db"); err != nil || info.Held > 0 {
			t.Errorf("%d hold the lock: %v", info.Held, err)
		}
	})
}

// A lock that is used is held for as long as the migration takes, and longer.
func TestALockInUseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, drivers := hosts(t)
		for name, use := range map[string]func(d *Driver){
			"Version": func(d *Driver) { _, _, _ = d.Version() }, "Token": func(d *Driver) { d.Token() },
			"SetVersion": func(d *Driver) { _ = d.SetVersion(1, false) }, "Drop": func(d *Driver) { _ = d.Drop() },
		} {
			if err := drivers[0].Lock(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(firstUse - time.Second)
			use(drivers[0])
			time.Sleep(time.Minute)
			if err := drivers[0].Unlock(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Errors are one sentence with one cause. An instance without a leader does not say that another
// instance holds the lock.
func TestWordsOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, drivers := hosts(t)
		if err := drivers[0].Lock(); err != nil {
			t.Fatal(err)
		}
		drivers[0].Token() // so that it is used
		if err := drivers[1].Lock(); err != database.ErrLocked {
			t.Errorf("%v, want ErrLocked itself", err)
		}
		c.Lose(0)
		c.Ready(0)
		lost := drivers[0].SetVersion(1, false)
		if !errors.Is(lost, mortise.ErrLost) || drivers[0].Err() != lost {
			t.Errorf("%v, because of %v", lost, drivers[0].Err())
		}
		if err := drivers[0].Unlock(); err != nil || !errors.Is(drivers[0].Err(), mortise.ErrLost) {
			t.Errorf("unlock: %v, because of %v", err, drivers[0].Err())
		}
		c.Isolate(1)
		time.Sleep(20 * time.Second)
		away := drivers[1].Lock()
		if away == nil || errors.Is(away, database.ErrLocked) || !strings.Contains(away.Error(), "has no leader") {
			t.Errorf("without a leader: %v", away)
		}
		for _, err := range []error{lost, away} {
			if text := err.Error(); strings.Count(text, `"migrate/db"`) != 1 || strings.Count(text, "mortisemigrate: ") != 1 {
				t.Error(err)
			}
		}
		c.Heal()
		c.Ready(1)
	})
}
