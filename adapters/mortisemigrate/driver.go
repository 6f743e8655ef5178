package mortisemigrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"

	"github.com/mortise-lock/mortise"
)

// releaseTime limits how long Unlock waits for the confirmation of the release.
const releaseTime = 5 * time.Second

var _ database.Driver = (*Driver)(nil)

// Options change the defaults of Wrap.
type Options struct {
	// Wait limits how long Lock waits for another instance. It must be shorter than
	// migrate.Migrate.LockTimeout, which is 15 s by default. For migrations that take long, set both.
	// Zero means 2 s less than migrate.DefaultLockTimeout.
	Wait time.Duration

	// Both also takes the lock of the wrapped driver, for the deployment in which some instances do
	// not use mortise yet.
	Both bool
}

// Driver is a database.Driver whose lock is a lock of mortise.
type Driver struct {
	database.Driver // the wrapped driver

	node    *mortise.Node
	key     string
	options Options

	mu    sync.Mutex    // never held across a wait
	taken bool          // from the beginning of Lock to the end of Unlock
	lock  *mortise.Lock // nil if the driver is not locked
}

// Wrap returns a Driver that locks the key. All instances that migrate one database use the same
// key, for example "migrate/" and the name of the database.
func Wrap(driver database.Driver, node *mortise.Node, key string, o Options) *Driver {
	if o.Wait <= 0 {
		o.Wait = migrate.DefaultLockTimeout - 2*time.Second
	}
	return &Driver{Driver: driver, node: node, key: key, options: o}
}

// Open opens the database with the wrapped driver, and wraps the driver that it returns.
func (d *Driver) Open(url string) (database.Driver, error) {
	opened, err := d.Driver.Open(url)
	if err != nil {
		return nil, err
	}
	return Wrap(opened, d.node, d.key, d.options), nil
}

// Lock waits until this instance holds the lock, at most for Options.Wait. It returns an error that
// wraps database.ErrLocked if another instance holds it, or if this Driver is locked.
func (d *Driver) Lock() error {
	d.mu.Lock()
	taken := d.taken
	d.taken = true
	d.mu.Unlock()
	if taken {
		return database.ErrLocked
	}
	lock, err := d.acquire()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lock, d.taken = lock, err == nil
	return err
}

func (d *Driver) acquire() (*mortise.Lock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.options.Wait)
	defer cancel()
	// The label prevents warnings about a long hold.
	lock, err := d.node.Acquire(ctx, mortise.Request{Key: d.key, Labels: map[string]string{"mortise.purpose": "job"}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", database.ErrLocked, err)
	}
	if d.options.Both {
		if err := d.Driver.Lock(); err != nil {
			return nil, errors.Join(err, lock.UnlockSoon())
		}
	}
	return lock, nil
}

// Unlock releases the lock. It returns database.ErrNotLocked if the driver is not locked, and an
// error that wraps mortise.ErrLost if the lock was lost before.
func (d *Driver) Unlock() error {
	d.mu.Lock()
	lock := d.lock
	d.lock = nil
	d.mu.Unlock()
	if lock == nil {
		return database.ErrNotLocked
	}
	var inner error
	if d.options.Both {
		inner = d.Driver.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	err := lock.Unlock(ctx)
	d.mu.Lock()
	d.taken = false
	d.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("mortisemigrate: unlock %q: %w", d.key, err)
	}
	return errors.Join(inner, err)
}

// Token returns the fencing token of the present hold, or 0 if the driver is not locked.
func (d *Driver) Token() mortise.Token {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return 0
	}
	return d.lock.Token()
}

// lost returns an error if the driver is locked and its lock was lost. Tools also call the methods
// of a driver that is not locked.
func (d *Driver) lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil
	}
	if err := d.lock.Err(); err != nil {
		return fmt.Errorf("mortisemigrate: nothing more is done without the lock %q: %w", d.key, err)
	}
	return nil
}

// Run runs a migration with the wrapped driver, unless the lock is lost.
func (d *Driver) Run(migration io.Reader) error {
	if err := d.lost(); err != nil {
		return err
	}
	return d.Driver.Run(migration)
}

// SetVersion writes the version with the wrapped driver, unless the lock is lost.
func (d *Driver) SetVersion(version int, dirty bool) error {
	if err := d.lost(); err != nil {
		return err
	}
	return d.Driver.SetVersion(version, dirty)
}

// Drop drops everything with the wrapped driver, unless the lock is lost.
func (d *Driver) Drop() error {
	if err := d.lost(); err != nil {
		return err
	}
	return d.Driver.Drop()
}
