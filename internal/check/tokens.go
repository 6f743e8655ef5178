package check

import "github.com/mortise-lock/mortise/lockfsm"

// Tokens judges fencing: a later grant of a key has a higher token, even after changes of leader,
// restarts and new groups. The zero value is ready for use.
type Tokens struct {
	rule
	highest map[string]lockfsm.Token
}

// Grant judges a grant. Report each grant once, in the order of the grants: when the first replica
// applies it (see [Front]), or from successful calls in the order in which they returned.
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
