package check

import "github.com/mortise-lock/mortise/lockfsm"

// Register checks the use of tokens by a resource that remembers the highest token and refuses
// lower tokens. The resource must not refuse a write of a caller that holds the lock, and two
// callers must not use the same token.
type Register struct {
	rule
	last    map[string]write
	refused int
}

type write struct {
	caller Caller
	token  lockfsm.Token
}

// Write performs a write to a resource that Register simulates and that the lock of key protects.
// It reports whether the resource accepts the write. The parameter believes must be true if the
// caller believes that it holds key when the write arrives (see [Beliefs.Believes]).
func (r *Register) Write(key string, who Caller, token lockfsm.Token, believes bool) (accepted bool, err error) {
	accepted = token >= r.last[key].token
	return accepted, r.Observed(key, who, token, believes, accepted)
}

// Observed checks a write to a resource outside this package, which must refuse lower tokens.
func (r *Register) Observed(key string, who Caller, token lockfsm.Token, believes, accepted bool) error {
	if r.err != nil {
		return r.err
	}
	last := r.last[key]
	switch {
	case !accepted && believes:
		return r.broken("register: %v holds %q with token %d and is refused, since %v has written with token %d", who,
			key, token, last.caller, last.token)
	case !accepted:
		r.refused++
		return nil
	case token < last.token:
		return r.broken("register: the resource of %q accepts token %d of %v after token %d of %v", key, token, who,
			last.token, last.caller)
	case token == last.token && who != last.caller:
		return r.broken("register: token %d of %q is used by %v and by %v", token, key, last.caller, who)
	}
	if r.last == nil {
		r.last = map[string]write{}
	}
	r.last[key] = write{who, token}
	return nil
}

// Read checks a read by the holder of a shared lock. No caller with a later grant can have written
// meanwhile, because a writer holds the lock exclusively. The reader itself may have written before
// its lock became shared.
func (r *Register) Read(key string, who Caller, token lockfsm.Token, believes bool) error {
	if last := r.last[key]; r.err == nil && believes &&
		(last.token > token || last.token == token && last.caller != who) {
		return r.broken("register: %v shares %q with token %d, and %v has written with token %d", who, key, token,
			last.caller, last.token)
	}
	return r.err
}

// Refused returns how many writes were refused without a violation. If it is 0, the run has not
// tested the protection by tokens.
func (r *Register) Refused() int { return r.refused }
