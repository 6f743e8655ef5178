package check

import "github.com/mortise-lock/mortise/lockfsm"

// Reentry checks locks that their owner can enter again. No other owner can enter a lock until its
// owner has left it as often as it has entered it. The owner enters it again with the same token,
// and the next owner has a higher token.
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

// Enter records that owner enters key, and checks that it may. Enter must be called after the
// entry was granted.
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

// Leave records that owner leaves key, and checks that it has entered key. Leave must be called
// before another owner can enter.
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

// Count returns how many more times the owner of key must leave the key.
func (r *Reentry) Count(key string) int { return r.inside[key].count }
