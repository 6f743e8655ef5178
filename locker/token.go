package locker

import (
	"context"
	"strconv"
)

// Token is a fencing token: a later grant of a key has a higher token. A resource that remembers
// the highest token it has received and refuses lower ones is safe even against a holder that was
// stopped in the middle of its work. The JSON form is a string, because a Token does not fit into
// the numbers of JavaScript.
type Token uint64

// MarshalJSON returns the decimal number as a JSON string.
func (t Token) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(t), 10)), nil
}

// UnmarshalJSON parses the form of MarshalJSON.
func (t *Token) UnmarshalJSON(b []byte) error {
	text, err := strconv.Unquote(string(b))
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	*t = Token(n)
	return err
}

// Held is what a context of a lock has: the lock, or only its token.
type Held interface{ Token() Token }

// HeldKey is the key of the innermost [Held] in the context of a lock. It is for a Locker whose
// contexts have more than a token. All others use ContextWithToken and TokenFrom.
type HeldKey struct{}

// TokenFrom returns the fencing token of the innermost lock that ctx belongs to. It reports false
// if ctx does not come from the function of a Locker, from the Context of a Lock, or from
// ContextWithToken.
func TokenFrom(ctx context.Context) (Token, bool) {
	if held, ok := ctx.Value(HeldKey{}).(Held); ok {
		return held.Token(), true
	}
	return 0, false
}

// ContextWithToken returns a child of parent in which [TokenFrom] finds token. It is for
// implementations of Locker. It locks nothing. The returned context ends only when parent ends, and
// requests that use it are made under the locks of parent.
func ContextWithToken(parent context.Context, token Token) context.Context {
	return context.WithValue(parent, HeldKey{}, onlyToken(token))
}

type onlyToken Token

func (t onlyToken) Token() Token { return Token(t) }
