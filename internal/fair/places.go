package fair

import (
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Identity is a user of a shared resource. A process with a secret can prove any number of
// instances, but only the one secret that it has.
type Identity struct {
	Instance nodeid.ID
	Secret   string // text of the capability of a derived secret; empty for the root secret
}

// Limits are the numbers of places that users can take.
type Limits struct {
	Each    int // for one instance
	Secret  int // for all instances with one derived secret
	Derived int // for all derived secrets together; the difference to All is the reserve of the root secret
	All     int
}

// Share returns limits with a reserve of a quarter, in which one derived secret gets a quarter, but
// at least as much as one instance.
func Share(each, all int) Limits {
	return Limits{Each: each, Secret: max(each, all/4), Derived: all - all/4, All: all}
}

// FullError reports which limit leaves no place.
type FullError struct {
	Limit string // in words
	Most  int
}

func (e *FullError) Error() string { return fmt.Sprintf("%s: at most %d", e.Limit, e.Most) }

// Places counts the places of one resource. It is safe for concurrent use.
type Places struct {
	limits Limits

	mu      sync.Mutex // guards all below
	of      map[nodeid.ID]int
	secrets map[string]int
	derived int
	all     int
}

// New returns Places of which none is taken.
func New(l Limits) *Places {
	return &Places{limits: l, of: map[nodeid.ID]int{}, secrets: map[string]int{}}
}

// Take takes n places, which the caller must later return with Give. If a limit does not allow
// this, Take takes nothing and returns a *FullError.
func (p *Places) Take(who Identity, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	derived := who.Secret != ""
	switch l := &p.limits; {
	case p.of[who.Instance]+n > l.Each:
		return &FullError{"the limit of one instance", l.Each}
	case derived && p.secrets[who.Secret]+n > l.Secret:
		return &FullError{"the limit of all instances with one derived secret", l.Secret}
	case derived && p.derived+n > l.Derived:
		return &FullError{"the limit of all derived secrets", l.Derived}
	case p.all+n > l.All:
		return &FullError{"the limit of all instances", l.All}
	}
	p.add(who, n)
	return nil
}

// Give returns n places that were taken for the same identity.
func (p *Places) Give(who Identity, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(who, -n)
}

// add forgets users without places. The caller holds mu.
func (p *Places) add(who Identity, n int) {
	p.all += n
	if p.of[who.Instance] += n; p.of[who.Instance] == 0 {
		delete(p.of, who.Instance)
	}
	if who.Secret == "" {
		return
	}
	p.derived += n
	if p.secrets[who.Secret] += n; p.secrets[who.Secret] == 0 {
		delete(p.secrets, who.Secret)
	}
}

// Total returns the number of places that are taken.
func (p *Places) Total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// Users returns the number of instances and of derived secrets that have places, for leak tests.
func (p *Places) Users() (instances, secrets int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.of), len(p.secrets)
}
