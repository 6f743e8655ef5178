package check

import "github.com/mortise-lock/mortise/lockfsm"

// Reentry judges locks that their owner can enter repeatedly, like a mutex with a count. No other
// owner enters until the owner has left as often as it has entered. Within a hold every entry has
// the same token, and the next owner has a higher token. An owner is a thread or, in mortise, all
// code that runs with the context of one lock. The zero value is ready for use.
type Reentry struct {
	rule
	inside map[string]visit
	last   map[string]lockfsm.Token
}

type visit struct {
	owner Caller
	token lockfsm.Token
	count int
}

// Enter judges an entry. It must be called after the entry was granted.
func (r *Reentry) Enter(key string, owner Caller, token lockfsm.Token) error {
	if r.err != nil {
		return r.err
	}
	v := r.inside[key]
	switch {
	case v.count > 0 && v.owner != owner:
		return r.broken("reentry: %v enters %q, and %v is inside, %d times", owner, key, v.owner, v.count)
	case v.count > 0 && v.token != token:
		return r.broken("reentry: %v enters %q again with token %d, and is inside with token %d", owner, key, token,
			v.token)
	case v.count == 0 && token <= r.last[key]:
		return r.broken("reentry: %v enters %q with token %d after token %d", owner, key, token, r.last[key])
	}
	if r.inside == nil {
		r.inside, r.last = map[string]visit{}, map[string]lockfsm.Token{}
	}
	r.inside[key], r.last[key] = visit{owner, token, v.count + 1}, token
	return nil
}

// Leave judges an exit. It must be called before other owners can observe the exit.
func (r *Reentry) Leave(key string, owner Caller) error {
	v := r.inside[key]
	if r.err == nil && (v.count == 0 || v.owner != owner) {
		return r.broken("reentry: %v leaves %q, but is not inside", owner, key)
	}
	if v.count--; r.err == nil {
		r.inside[key] = v
	}
	return r.err
}

// Count returns the number of entries of the present owner of key that it has not left.
func (r *Reentry) Count(key string) int { return r.inside[key].count }
