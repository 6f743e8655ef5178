package check

import "github.com/mortise-lock/mortise/lockfsm"

// Register judges tokens by what they are for: a resource that remembers the highest token and
// refuses lower ones. Such a resource is written in the order of tokens whatever the locks do, so
// that alone proves nothing. What can fail, and is judged: a caller that believes rightly that it
// holds the lock must not be refused, which happens if its token is not the highest; one token must
// not be used by two; and, with Observed, that a resource of somebody else's really compares. The
// zero value is ready for use.
type Register struct {
	rule
	last    map[string]write
	refused int
}

type write struct {
	who   Who
	token lockfsm.Token
}

// Write lets who write to the resource that key protects, and reports whether the resource accepts.
// believes says that, at the moment at which the write arrives, who's belief has not ended (ask
// [Beliefs.Believes]); a write that arrives later may be refused.
func (r *Register) Write(key string, who Who, token lockfsm.Token, believes bool) (accepted bool, err error) {
	accepted = token >= r.last[key].token
	return accepted, r.Observed(key, who, token, believes, accepted)
}

// Observed is told of a write to a resource that compares by itself.
func (r *Register) Observed(key string, who Who, token lockfsm.Token, believes, accepted bool) error {
	if r.err != nil {
		return r.err
	}
	last := r.last[key]
	switch {
	case !accepted && believes:
		return r.broken("register: %v holds %q with token %d and is refused, since %v has written with token %d", who,
			key, token, last.who, last.token)
	case !accepted:
		r.refused++
		return nil
	case token < last.token:
		return r.broken("register: the resource of %q accepts token %d of %v after token %d of %v", key, token, who,
			last.token, last.who)
	case token == last.token && who != last.who:
		return r.broken("register: token %d of %q is used by %v and by %v", token, key, last.who, who)
	}
	if r.last == nil {
		r.last = map[string]write{}
	}
	r.last[key] = write{who, token}
	return nil
}

// Read is what whoever shares the lock does: it does not write. While it believes rightly, nobody
// can have written who was granted the lock after it, since whoever writes holds it alone.
func (r *Register) Read(key string, who Who, token lockfsm.Token, believes bool) error {
	if last := r.last[key]; r.err == nil && believes && last.token >= token {
		return r.broken("register: %v shares %q with token %d, and %v has written with token %d", who, key, token,
			last.who, last.token)
	}
	return r.err
}

// Refused returns how many writes were rightly refused: a run in which it stays 0 has not tried
// what tokens are for.
func (r *Register) Refused() int { return r.refused }
