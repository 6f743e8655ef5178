package history

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Version is the version of the format that this build writes, and the newest that it reads.
const Version = 1

// Kind is the kind of an event.
type Kind uint8

// These are the kinds of events. The package comment shows the fields of each kind.
const (
	Header Kind = 1 + iota
	Call
	Return
	Unlock
	Unlocked
	Lost
	Begin
	Mark
	Grant
	End
	Dropped
	Downgrade
	Shared
	Enter
)

const kindNames = "history call return unlock unlocked lost begin mark grant end dropped downgrade shared enter"

// Outcome is the result of a call for a lock.
type Outcome uint8

// The outcomes of calls.
const (
	Granted Outcome = 1 + iota
	Held
	Failed
)

const outcomeNames = "granted held failed"

// How is the cause of the end of a granted lock.
type How uint8

// The causes of an end.
const (
	ByRelease How = 1 + iota
	ByCancel
	ByExpire
	ByClose
	ByAttach
	ByForce
)

const howNames = "release cancel expire close attach force"

func (k Kind) String() string    { return nameOf(kindNames, uint8(k)) }
func (o Outcome) String() string { return nameOf(outcomeNames, uint8(o)) }
func (h How) String() string     { return nameOf(howNames, uint8(h)) }

// Event is one line of a history. Each kind uses the fields that the package comment shows. All
// other fields are zero.
type Event struct {
	Kind    Kind   `json:"k"`
	At      int64  `json:"at"` // nanoseconds
	Version int    `json:"v,omitempty"`
	Node    string `json:"node,omitempty"` // written in headers only; Read sets it in every event
	// Stream is the number of the header before the event, from 1, set by Read. Each incarnation of
	// a node has its own stream.
	Stream int    `json:"-"`
	Op     uint64 `json:"op,omitempty"`
	Key    string `json:"key,omitempty"`
	// further keys of the request, ascending, all greater than Key
	Keys    []string          `json:"keys,omitempty"`
	Permits uint32            `json:"permits,omitempty"`
	Of      uint32            `json:"of,omitempty"`
	Modes   string            `json:"modes,omitempty"` // see Modes
	Try     bool              `json:"try,omitempty"`
	Outcome Outcome           `json:"out,omitempty"`
	Err     string            `json:"err,omitempty"`
	Token   lockfsm.Token     `json:"token,omitempty,string"`
	Last    lockfsm.Token     `json:"last,omitempty,string"` // the last token that a stay has reserved
	Until   int64             `json:"until,omitempty"`
	Group   Group             `json:"group,omitempty"`
	Index   uint64            `json:"index,omitempty"`
	Seq     uint32            `json:"seq,omitempty"`
	Rev     lockfsm.Revision  `json:"rev,omitempty,string"`
	Place   lockfsm.Revision  `json:"place,omitempty,string"`
	Session lockfsm.SessionID `json:"session,omitempty,string"`
	Number  lockfsm.Number    `json:"number,omitempty"`
	How     How               `json:"how,omitempty"`
	// Resumes is the token of the hold that the request resumes.
	Resumes lockfsm.Token `json:"resumes,omitempty,string"`
	// Upgrades is the token of the upgradable hold to which the exclusive request belongs.
	Upgrades lockfsm.Token `json:"upgrades,omitempty,string"`
	Count    uint64        `json:"count,omitempty"`
}

// Terms returns the number of permits that the request of an event takes, and the total number of
// permits.
func (e *Event) Terms() (permits, of int64) {
	switch {
	case e.Of != 0:
		return int64(e.Permits), int64(e.Of)
	case e.Permits != 0:
		return 1, math.MaxInt64
	}
	return 1, 1
}

// reserved returns the last token that the grant gives to a caller. A voter that began its account
// while a sticky request waited records no Last if no tokens were reserved.
func (e *Event) reserved() lockfsm.Token { return max(e.Last, e.Token) }

// Modes returns the form of modes in an event: the digit of each mode, in the order of the keys.
func Modes(modes []lockfsm.Mode) string {
	b := make([]byte, len(modes))
	for i, mode := range modes {
		b[i] = '0' + byte(mode)
	}
	return string(b)
}

// TermsOf is like Terms, for the key with the index i. The first key is Key.
func (e *Event) TermsOf(i int) (permits, of int64) {
	if i >= len(e.Modes) {
		return e.Terms()
	}
	one := Event{}
	one.Permits, one.Of = lockfsm.Mode(e.Modes[i] - '0').Terms()
	return one.Terms()
}

func (e *Event) alone() bool { return e.Permits == 0 && e.Modes == "" }

func (e *Event) aloneAt(i int) bool {
	permits, of := e.TermsOf(i)
	return permits == 1 && of == 1
}

func (e *Event) alike(o *Event) bool {
	return e.Key == o.Key && e.Upgrades == o.Upgrades && e.Permits == o.Permits && e.Of == o.Of && e.Modes == o.Modes &&
		slices.Equal(e.Keys, o.Keys)
}

func (e *Event) asked() string {
	name := fmt.Sprintf("%q", e.Key)
	if len(e.Keys) > 0 {
		name = fmt.Sprintf("%q", append([]string{e.Key}, e.Keys...))
	}
	switch {
	case e.Upgrades != 0:
		return fmt.Sprintf("the upgrade of token %d of %s", e.Upgrades, name)
	case e.Modes != "":
		return fmt.Sprintf("the modes %s of %s", e.Modes, name)
	case e.Of != 0:
		return fmt.Sprintf("%d permits of %d of %s", e.Permits, e.Of, name)
	case e.Permits != 0:
		return "a share of " + name
	}
	return name
}

// Group is the ID of a group, written as a hexadecimal string.
type Group uint64

// MarshalText implements encoding.TextMarshaler.
func (g Group) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%x", uint64(g)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (g *Group) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%x", (*uint64)(g))
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(b []byte) error { return named(kindNames, b, (*uint8)(k)) }

// MarshalText implements encoding.TextMarshaler.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Outcome) UnmarshalText(b []byte) error { return named(outcomeNames, b, (*uint8)(o)) }

// MarshalText implements encoding.TextMarshaler.
func (h How) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *How) UnmarshalText(b []byte) error { return named(howNames, b, (*uint8)(h)) }

func nameOf(list string, n uint8) string {
	for word := range strings.FieldsSeq(list) {
		if n--; n == 0 {
			return word
		}
	}
	return "unknown"
}

func named(list string, name []byte, n *uint8) error {
	*n = 0
	for word := range strings.FieldsSeq(list) {
		*n++
		if word == string(name) {
			return nil
		}
	}
	return fmt.Errorf("history: %q is not one of: %s", name, list)
}

// sheds reports whether e is of a lock that can become shared.
func (e *Event) sheds() bool { return e.Permits == 0 && e.Of == 0 && e.Upgrades == 0 }

// grant returns what a request like e would include.
func (e *Event) grant() *lockfsm.Grant {
	g := &lockfsm.Grant{Key: e.Key, Keys: e.Keys, Permits: e.Permits, Of: e.Of}
	for _, mode := range e.Modes {
		g.Modes = append(g.Modes, lockfsm.Mode(mode-'0'))
	}
	return g
}

// reads reports whether a holder with the modes of e only reads.
func (e *Event) reads() bool { return e.Of == 0 && e.grant().Reads() }
