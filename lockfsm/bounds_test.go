package lockfsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

// What a command may have at most comes back from the log, and one more does not.
func TestCommandsAtTheirBounds(t *testing.T) {
	nonce := Nonce{1}
	decodes := func(c Command) bool {
		got, err := Decode(encode(t, c))
		c.Rules = max(c.Rules, 1)
		return err == nil && fmt.Sprintf("%+v", got) == fmt.Sprintf("%+v", c)
	}
	value := func(c Command, n int) bool {
		c.Value = make([]byte, n)
		return decodes(c)
	}
	limits.AtMost(t, "MaxRecordBytes", MaxRecordBytes, func(n int) bool {
		return decodes(Command{Kind: Open, Nonce: nonce, Record: make([]byte, n)})
	})
	limits.AtMost(t, "MaxFormerBytes", MaxFormerBytes, func(n int) bool {
		return decodes(Command{Kind: Attach, Nonce: nonce, Former: make([]byte, n)})
	})
	limits.AtMost(t, "MaxSettingsBytes", MaxSettingsBytes, func(n int) bool {
		return decodes(Command{Kind: Adopt, Settings: make([]byte, n)})
	})
	for name, c := range map[string]Command{
		"an Acquire": {Kind: Acquire, Number: 1, Key: "a"},
		"a Lapse":    {Kind: Lapse, Session: 1, Number: 1, Token: 5},
		"a SetValue": {Kind: SetValue, Key: "a", Number: 1, Token: 1, Seq: 1},
		"an Evict":   {Kind: Evict, Key: "a", Token: 1},
		"a Lead":     {Kind: Lead, Record: []byte("r")},
	} {
		limits.AtMost(t, "MaxValueBytes of "+name, MaxValueBytes, func(n int) bool { return value(c, n) })
	}
	limits.AtMost(t, "MaxDataBytes", MaxDataBytes, func(n int) bool {
		return value(Command{Kind: Put, Key: "a", Nonce: nonce}, n)
	})
	limits.AtMost(t, "MaxKeys", MaxKeys, func(n int) bool {
		keys := manyKeys(n)
		return decodes(Command{Kind: Acquire, Number: 1, Key: keys[0], Keys: keys[1:]})
	})
	limits.AtMost(t, "MaxKeys of a Downgrade", MaxKeys, func(n int) bool {
		return decodes(Command{Kind: Downgrade, Number: 1, Modes: make([]Mode, n)})
	})
	limits.AtMost(t, "MaxProof", MaxProof, func(n int) bool {
		proof := make([]Place, n)
		for i := range proof {
			proof[i] = Place{Session: 1, Number: Number(i + 1)}
		}
		return decodes(Command{Kind: Refuse, Proof: proof})
	})
	limits.AtMost(t, "MaxReserved", MaxReserved, func(n int) bool {
		return decodes(Command{Kind: Reserve, Count: uint32(n)})
	})
	limits.AtMost(t, "MaxNumber", MaxNumber, func(n Number) bool { return decodes(Command{Kind: Release, Number: n}) })
	limits.AtMost(t, "MaxDelay, in milliseconds", MaxDelay.Milliseconds(), func(n int64) bool {
		return decodes(Command{Kind: Acquire, Number: 1, Key: "a", Delay: time.Duration(n) * time.Millisecond})
	})
}

func TestACharterAtItsBounds(t *testing.T) {
	for name, field := range map[string]func(*Limits) *uint64{
		"a session": func(l *Limits) *uint64 { return &l.SessionBytes },
		"the group": func(l *Limits) *uint64 { return &l.GroupBytes },
	} {
		charter := func(budget uint64) Charter {
			c := smallCharter()
			*field(&c.Limits) = budget
			return c
		}
		limits.AtMost(t, "maxBudget of "+name, uint64(maxBudget), func(n uint64) bool {
			return charter(n).validate(RulesVersion) == nil
		})
	}
	limits.AtMost(t, "maxBudget of a command", uint64(maxBudget), func(n uint64) bool {
		got, err := Decode(encode(t, Command{Kind: Adopt, SessionBytes: n, GroupBytes: n}))
		return err == nil && got.SessionBytes == n && got.GroupBytes == n
	})
}

// A stay has StayTokens tokens, or none if they would go beyond those that the wall stamp allows.
func TestTheTokensOfAStayAtTheirBounds(t *testing.T) {
	stay := func(room Revision) (*Machine, EntryInfo) {
		m, _, do := newGroup(t)
		session := do(Command{Kind: Open, Nonce: Nonce{1}}).Session
		do(Command{Kind: Attach, Session: session, Epoch: 1, Nonce: Nonce{1}, Number: 1})
		m.rev = m.ceiling() - room - 2 // the request and its grant take one each
		m.Apply(1, 1, encode(t, Command{Kind: Acquire, Session: session, Epoch: 1, Number: 1, Key: "k", Sticky: true}))
		return m, m.Entries()[0]
	}
	limits.AtLeast(t, "StayTokens left", Revision(StayTokens), func(n Revision) bool {
		_, e := stay(n)
		return e.Token != 0 && e.Last == e.Token+StayTokens
	})
	limits.AtMost(t, "StayTokens", Token(StayTokens), func(n Token) bool {
		m, e := stay(1 << 20)
		_, reserved := m.Reserver("k", e.Token+n)
		return reserved
	})
}
