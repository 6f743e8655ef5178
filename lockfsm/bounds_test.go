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
	limits.AtMost(t, "MaxSettingsBytes", MaxSettingsBytes, func(n int) bool {
		return decodes(Command{Kind: Adopt, Settings: make([]byte, n)})
	})
	for name, c := range map[string]Command{
		"an Acquire": {Kind: Acquire, Number: 1, Key: "a"},
		"a Lapse":    {Kind: Lapse, Session: 1, Number: 1, Token: 5},
		"a SetValue": {Kind: SetValue, Key: "a", Number: 1, Token: 1, Seq: 1},
		"an Evict":   {Kind: Evict, Key: "a", Token: 1},
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
