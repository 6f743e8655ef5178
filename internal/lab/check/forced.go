package check

import "github.com/mortise-lock/mortise/lockfsm"

// Forced checks holds that end by force. A hold may end by force, and its holder may be notified
// of that, only after an order that named one of its keys and its token. A late order must not end
// a later hold of the key.
type Forced struct {
	rule
	asked map[grip]bool
	over  map[lockfsm.Token]bool
}

type grip struct {
	key   string
	token lockfsm.Token
}

// Asked records an order to end a hold. It must be called before the order can take effect.
func (f *Forced) Asked(key string, token lockfsm.Token) {
	if f.asked == nil {
		f.asked, f.over = map[grip]bool{}, map[lockfsm.Token]bool{}
	}
	f.asked[grip{key, token}] = true
}

// Ordered reports whether an order has named the key and the token.
func (f *Forced) Ordered(key string, token lockfsm.Token) bool { return f.asked[grip{key, token}] }

// Ended checks a hold that the state has ended by force. The hold has these keys and this token.
func (f *Forced) Ended(keys []string, token lockfsm.Token) error {
	if err := f.judge("is ended by force", keys, token); err != nil {
		return err
	}
	f.over[token] = true
	return nil
}

// Told checks a notice to a holder that its hold was ended by force.
func (f *Forced) Told(keys []string, token lockfsm.Token) error {
	return f.judge("is reported as ended by force", keys, token)
}

// Over reports whether the hold with that token was ended by force.
func (f *Forced) Over(token lockfsm.Token) bool { return f.over[token] }

func (f *Forced) judge(what string, keys []string, token lockfsm.Token) error {
	for _, key := range keys {
		if f.asked[grip{key, token}] {
			return f.err
		}
	}
	return f.broken("forced: the hold of %q with token %d %s, but there was no order for it", keys, token, what)
}
