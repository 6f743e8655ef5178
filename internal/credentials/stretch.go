package credentials

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
)

const (
	stretchRounds = 200_000 // rounds of PBKDF2 with SHA-256, about 40 ms; part of the protocol
	stretchSalt   = "mortise stretch v1\x00"
	stretchKept   = 64 // cached results
)

// stretched caches the stretched secrets of this process, so that a thousand nodes in one process
// do not compute them again. It contains no secret data beyond what the nodes' authorities contain.
var stretched stretcher

// stretcher caches stretched secrets by the hash of the secret and the label. It is safe for
// concurrent use.
type stretcher struct {
	mu    sync.Mutex // guards the fields below; not held while a secret is stretched
	kept  map[[sha256.Size]byte]*stretching
	order [][sha256.Size]byte // the oldest first
}

type stretching struct {
	once  sync.Once
	value []byte
	err   error
}

// keying returns a generated secret itself, or the stretched form of any other secret.
func keying(secret, cluster string) ([]byte, error) {
	if strings.HasPrefix(secret, rootPrefix) {
		return []byte(secret), nil
	}
	return stretched.get(secret, cluster)
}

func (s *stretcher) get(secret, cluster string) ([]byte, error) {
	e := s.entry(sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(secret), secret, cluster)))
	e.once.Do(func() {
		e.value, e.err = pbkdf2.Key(sha256.New, secret, []byte(stretchSalt+cluster), stretchRounds, 32)
	})
	return e.value, e.err
}

func (s *stretcher) entry(key [sha256.Size]byte) *stretching {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.kept[key]; e != nil {
		return e
	}
	if s.kept == nil {
		s.kept = map[[sha256.Size]byte]*stretching{}
	}
	if len(s.order) == stretchKept {
		delete(s.kept, s.order[0])
		s.order = s.order[1:]
	}
	e := &stretching{}
	s.kept[key], s.order = e, append(s.order, key)
	return e
}
