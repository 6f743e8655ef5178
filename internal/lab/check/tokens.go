package check

import "github.com/mortise-lock/mortise/lockfsm"

// Tokens checks that a later grant of a key has a higher token, even after a change of leader, a
// restart or the founding of a new group.
type Tokens struct {
	rule
	highest map[string]lockfsm.Token
}

// Grant checks a grant. It must be called once for every grant, in order: when the first replica
// applies the grant (see [Front]), or when successful calls return.
func (t *Tokens) Grant(key string, token lockfsm.Token) error {
	if t.err != nil {
		return t.err
	}
	if before, seen := t.highest[key]; token == 0 || seen && token <= before {
		return t.broken("tokens: key %q is granted with token %d after token %d", key, token, before)
	}
	if t.highest == nil {
		t.highest = map[string]lockfsm.Token{}
	}
	t.highest[key] = token
	return nil
}
