package mortisecertmagic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caddyserver/certmagic"

	"github.com/mortise-lock/mortise"
)

const (
	defaultPrefix = "certmagic/"
	maxKey        = 512

	// releaseTime limits how long Unlock waits for the confirmation of the release.
	releaseTime = 5 * time.Second
)

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// Options change the defaults of Wrap.
type Options struct {
	// Prefix is the beginning of all keys of locks, at most 256 bytes. All instances that share their
	// files use the same Prefix. Empty means "certmagic/".
	Prefix string
}

// Storage is a certmagic.Storage with locks of mortise.
type Storage struct {
	certmagic.Storage // the wrapped storage, for the files

	node   *mortise.Node
	prefix string

	mu sync.Mutex
	// held has an entry for each caller that has locked a name and has not unlocked it. There are
	// several if a lock was lost, and another caller of this instance was granted the next one.
	held map[string][]*entry
}

// entry is the lock of one caller. Storage.mu protects it.
type entry struct {
	lock     *mortise.Lock // may be lost
	loop     any           // identifies the retries of CertMagic that renew it; nil before the first renewal
	renewing bool          // RenewLockLease waits for the lock, so its caller does not unlock now
}

// Wrap returns a Storage with the files of the given storage.
func Wrap(files certmagic.Storage, node *mortise.Node, o Options) *Storage {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	return &Storage{Storage: files, node: node, prefix: o.Prefix, held: map[string][]*entry{}}
}

// Lock waits until the caller holds the lock of the name.
func (s *Storage) Lock(ctx context.Context, name string) error {
	return s.acquire(ctx, mortise.Request{}, name)
}

// TryLock reports whether the caller holds the lock of the name, without waiting for a holder.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	err := s.acquire(ctx, mortise.Request{Try: true}, name)
	if errors.Is(err, mortise.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

func (s *Storage) acquire(ctx context.Context, r mortise.Request, name string) error {
	lock, err := s.ask(ctx, r, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], &entry{lock: lock})
	return nil
}

func (s *Storage) ask(ctx context.Context, r mortise.Request, name string) (*mortise.Lock, error) {
	r.Key = s.key(name)
	r.Labels = map[string]string{"mortise.purpose": "job"} // prevents warnings about a long hold
	lock, err := s.node.Acquire(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("mortisecertmagic: lock %q: %w", name, err)
	}
	return lock, nil
}

// Unlock releases the lock of the name, even if ctx has ended: it waits for the confirmation for at
// most 5 s. It returns nil if the lock was lost, because CertMagic expects an error only if the
// lock may still be taken.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	lock := s.pop(name)
	if lock == nil {
		return fmt.Errorf("mortisecertmagic: unlock %q, which is not locked", name)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if err := lock.Unlock(ctx); err != nil && !errors.Is(err, mortise.ErrLost) {
		return fmt.Errorf("mortisecertmagic: unlock %q: %w", name, err)
	}
	return nil
}

// pop removes the oldest lock of the name whose caller does not renew it at this moment. If there
// are several, the older ones are lost, so a held lock is never released too early.
func (s *Storage) pop(name string) *mortise.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.held[name]
	i := slices.IndexFunc(entries, func(e *entry) bool { return !e.renewing })
	if i < 0 {
		return nil
	}
	popped := entries[i].lock
	if len(entries) == 1 {
		delete(s.held, name)
	} else {
		s.held[name] = slices.Delete(entries, i, i+1)
	}
	return popped
}

// RenewLockLease returns nil if the caller holds the lock of the name. The node renews all its
// locks by itself, so the duration is ignored. If the lock was lost, RenewLockLease waits in the
// queue for the next one: CertMagic calls it before each retry, and retries for 30 days under the
// lock that it took at the beginning. If ctx ends, the lock is still to be unlocked.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	e, lost := s.renews(ctx.Value(certmagic.AttemptsCtxKey), name)
	if e == nil {
		return fmt.Errorf("mortisecertmagic: renew %q, which is not locked", name)
	}
	if !lost {
		return nil
	}
	lock, err := s.ask(ctx, mortise.Request{}, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.renewing = false
	if err == nil {
		e.lock = lock
	}
	return err
}

// renews finds the entry of the caller that renews, and reports whether its lock is lost. It then
// marks the entry as renewing. The first renewal of a loop of retries follows the lock at once, so
// the entry is one that no other loop renews, and not a lost one if there is another.
func (s *Storage) renews(loop any, name string) (e *entry, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := -1
	for _, other := range s.held[name] {
		rank := 0
		switch {
		case other.renewing:
			continue
		case loop != nil && other.loop == loop:
			rank = 3
		case other.loop == nil && other.lock.Err() == nil:
			rank = 2
		case other.loop == nil:
			rank = 1
		}
		if rank > best {
			e, best = other, rank
		}
	}
	if e == nil {
		return nil, false
	}
	e.loop, e.renewing = loop, e.lock.Err() != nil
	return e, e.renewing
}

func (s *Storage) key(name string) string {
	key := s.prefix + name
	if len(key) <= maxKey && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) {
		return key
	}
	sum := sha256.Sum256([]byte(name))
	return s.prefix + "sha256/" + hex.EncodeToString(sum[:])
}
