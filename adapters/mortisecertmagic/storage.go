package mortisecertmagic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	// held has the locks of each name. There are several if a lock was lost, another caller of this
	// instance was granted the next one, and the first caller has not unlocked yet.
	held map[string][]*mortise.Lock
}

// Wrap returns a Storage with the files of the given storage.
func Wrap(files certmagic.Storage, node *mortise.Node, o Options) *Storage {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	return &Storage{Storage: files, node: node, prefix: o.Prefix, held: map[string][]*mortise.Lock{}}
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
	r.Key = s.key(name)
	r.Labels = map[string]string{"mortise.purpose": "job"} // prevents warnings about a long hold
	lock, err := s.node.Acquire(ctx, r)
	if err != nil {
		return fmt.Errorf("mortisecertmagic: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], lock)
	return nil
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

// pop removes the oldest lock of the name. If there are several, the older ones are lost, so a held
// lock is never released too early.
func (s *Storage) pop(name string) *mortise.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	locks := s.held[name]
	if len(locks) == 0 {
		return nil
	}
	if len(locks) == 1 {
		delete(s.held, name)
	} else {
		s.held[name] = locks[1:]
	}
	return locks[0]
}

// RenewLockLease returns nil if the lock of the name is held. The node renews all its locks by
// itself, so the duration is ignored.
func (s *Storage) RenewLockLease(_ context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	locks := s.held[name]
	if len(locks) == 0 {
		return fmt.Errorf("mortisecertmagic: renew %q, which is not locked", name)
	}
	if err := locks[0].Err(); err != nil {
		return fmt.Errorf("mortisecertmagic: renew %q: %w", name, err)
	}
	return nil
}

func (s *Storage) key(name string) string {
	key := s.prefix + name
	if len(key) <= maxKey && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) {
		return key
	}
	sum := sha256.Sum256([]byte(name))
	return s.prefix + "sha256/" + hex.EncodeToString(sum[:])
}
