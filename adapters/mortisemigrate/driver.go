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

const (
	releaseTime = 5 * time.Second // limits how long Unlock waits for the confirmation of the release

	// firstUse is how long a lock is held before its first use. A Migrate uses it at once. Only one
	// that has given up does not, and it does not unlock either.
	firstUse = 5 * time.Second
)

var (
	errInUse = errors.New("this Driver is locked, or still waits for a Lock that its Migrate has given up")

	errClosed = errors.New("this Driver is closed")

	errUnused = fmt.Errorf("the lock was released, because the Driver was not used for %v after Lock: the Migrate "+
		"has given up (its LockTimeout is shorter than Options.Wait)", firstUse)
)

var _ database.Driver = (*Driver)(nil)

// Options change the defaults of Wrap.
type Options struct {
	// Wait limits how long Lock waits for another instance. It must be shorter than
	// migrate.Migrate.LockTimeout, which is 15 s by default. For migrations that take long, set both.
	// If it is longer, a Lock that the Migrate has given up may be granted for 5 s. Zero means 2 s
	// less than migrate.DefaultLockTimeout.
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

	mu     sync.Mutex    // never held across a wait
	taken  bool          // from the beginning of Lock to the end of Unlock
	lock   *mortise.Lock // nil if the driver is not locked
	unused *time.Timer   // releases a lock that is not used; nil if it was used
	gone   bool          // it has done so, and the Driver was not locked again
	closed bool
	timers sync.WaitGroup // of the functions of unused that may run
	last   error          // why the last Lock or Unlock has failed, or the lock was lost
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

// Lock waits until this instance holds the lock, at most for Options.Wait. It returns
// database.ErrLocked if another instance holds it, or if this Driver is locked, and another error
// if the group cannot answer. Err has the reason. Unless the Driver is used within 5 s, the lock is
// released.
func (d *Driver) Lock() error {
	d.mu.Lock()
	taken, closed := d.taken, d.closed
	d.taken = true
	d.mu.Unlock()
	switch {
	case closed:
		return errClosed
	case taken:
		d.note(errInUse)
		return database.ErrLocked
	}
	lock, err := d.acquire()
	if !d.keep(lock, err) {
		_ = d.release(lock)
		return errClosed
	}
	if errors.Is(err, database.ErrLocked) {
		return database.ErrLocked // itself, for code that compares with ==
	}
	return err
}

// keep ends a Lock. It reports false if the lock must be released, because the Driver was closed.
func (d *Driver) keep(lock *mortise.Lock, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.closed {
		d.last = errClosed
		return false
	}
	d.lock, d.taken, d.last, d.gone = lock, err == nil, err, false
	if err == nil {
		d.timers.Add(1)
		d.unused = time.AfterFunc(firstUse, func() {
			defer d.timers.Done()
			d.abandon(lock)
		})
	}
	return true
}

func (d *Driver) acquire() (*mortise.Lock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.options.Wait)
	defer cancel()
	// The label prevents warnings about a long hold.
	lock, err := d.node.Acquire(ctx, mortise.Request{Key: d.key, Labels: map[string]string{"mortise.purpose": "job"}})
	switch {
	case err != nil && ctx.Err() != nil && d.node.Status().Leader != "":
		return nil, fmt.Errorf("%w: %w", database.ErrLocked, err)
	case err != nil:
		return nil, fmt.Errorf("mortisemigrate: %w", err)
	}
	if d.options.Both {
		if err := d.Driver.Lock(); err != nil {
			return nil, errors.Join(err, lock.UnlockSoon())
		}
	}
	return lock, nil
}

// abandon releases a lock that was not used.
func (d *Driver) abandon(lock *mortise.Lock) {
	d.mu.Lock()
	abandoned := d.lock == lock && d.unused != nil
	if abandoned {
		d.lock, d.unused, d.gone, d.last = nil, nil, true, errUnused
	}
	d.mu.Unlock()
	if abandoned {
		_ = d.release(lock)
	}
}

// release releases a lock that is no longer that of the Driver. Its error is that of the wrapped
// driver: a Migrate whose Unlock fails counts as locked forever, and the lock is not held after it.
func (d *Driver) release(lock *mortise.Lock) (inner error) {
	if d.options.Both {
		inner = d.Driver.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	err := lock.Unlock(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken = false
	if err != nil {
		d.last = fmt.Errorf("mortisemigrate: unlock %q: %w", d.key, err)
	}
	return inner
}

// Unlock releases the lock, and waits for the confirmation for at most 5 s. It returns
// database.ErrNotLocked if the driver is not locked, and nil if the lock was lost before: the
// method that ran then has failed, and Err has the reason.
func (d *Driver) Unlock() error {
	d.mu.Lock()
	lock := d.lock
	d.lock = nil
	d.use()
	d.mu.Unlock()
	if lock == nil {
		return database.ErrNotLocked
	}
	return d.release(lock)
}

// use requires mu. It notes that the lock is used.
func (d *Driver) use() {
	if d.unused != nil {
		if d.unused.Stop() {
			d.timers.Done()
		}
		d.unused = nil
	}
}

// Close closes the wrapped driver, and releases the lock if the Driver is locked. If an unused lock
// is being released, Close waits for that. A Lock that still waits then returns an error.
func (d *Driver) Close() error {
	d.mu.Lock()
	lock := d.lock
	d.lock, d.closed = nil, true
	d.use()
	d.mu.Unlock()
	d.timers.Wait()
	if lock == nil {
		return d.Driver.Close()
	}
	inner := d.release(lock)
	return errors.Join(inner, d.Driver.Close())
}

func (d *Driver) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
}

// Err returns why the last Lock has failed or the lock was lost or released, with its cause, or
// nil.
func (d *Driver) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// Token returns the fencing token of the present hold, or 0 if the driver is not locked.
func (d *Driver) Token() mortise.Token {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.use()
	if d.lock == nil {
		return 0
	}
	return d.lock.Token()
}

// within calls do, and fails if the lock is lost before or meanwhile. Tools also call the methods
// of a driver that is not locked.
func (d *Driver) within(do func() error) error {
	if err := d.lost(); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, d.lost())
}

func (d *Driver) lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.use()
	cause := errUnused
	switch {
	case d.gone:
	case d.lock == nil || d.lock.Err() == nil:
		return nil
	default:
		cause = d.lock.Err()
	}
	d.last = fmt.Errorf("mortisemigrate: nothing more is done without the lock %q: %w", d.key, cause)
	return d.last
}

// Version returns the version from the wrapped driver. A Migrate calls it first of all.
func (d *Driver) Version() (version int, dirty bool, err error) {
	d.mu.Lock()
	d.use()
	d.mu.Unlock()
	return d.Driver.Version()
}

// Run runs a migration with the wrapped driver, unless the lock is lost.
func (d *Driver) Run(migration io.Reader) error {
	return d.within(func() error { return d.Driver.Run(migration) })
}

// SetVersion writes the version with the wrapped driver, unless the lock is lost.
func (d *Driver) SetVersion(version int, dirty bool) error {
	return d.within(func() error { return d.Driver.SetVersion(version, dirty) })
}

// Drop drops everything with the wrapped driver, unless the lock is lost.
func (d *Driver) Drop() error { return d.within(d.Driver.Drop) }
