package keeper

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
)

// keyFields are the fields of commands that name keys, each with the rights that it needs. The
// commands Put and SetValue have no right of their own: internal/queries checks their questions.
var keyFields = map[string][]string{
	"acquire.Key": {"lock"}, "acquire.Keys": {"lock"}, "evict.Key": {"force", "read"},
	"put.Key": nil, "put.Lock": nil, "setvalue.Key": nil,
}

// otherFields are the texts and bytes of commands that name no key.
var otherFields = []string{"open.Record", "open.Rights", "attach.Former", "acquire.Value", "detach.Value",
	"lapse.Value", "evict.Value", "evict.Record", "evict.Rights", "put.Value", "setvalue.Value", "adopt.Settings",
	"lead.Record", "lead.Value"}

// clientKinds are the commands that a client may send, besides Open and Attach.
var clientKinds = []lockfsm.Kind{lockfsm.Leaving, lockfsm.Close, lockfsm.Acquire,
	lockfsm.Release, lockfsm.Cancel, lockfsm.Detach, lockfsm.InUse, lockfsm.Lapse, lockfsm.Downgrade}

// TestEachKeyOfACommandNeedsItsRight finds the texts of every command by encoding it with each
// field alone. A field that names a key needs its right; a field without a row fails.
func TestEachKeyOfACommandNeedsItsRight(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for k := lockfsm.Kind(1); k != 0; k++ {
		if k.String() == "unknown kind" {
			continue
		}
		core, command := leadingBench(t).core, withoutSize(t, lockfsm.Command{Kind: k}.Append(nil))
		_, admitted := core.admit(core.peers.peer(nodeidtest.ID(1)), lockfsm.Header{Rules: 1, Kind: k}, command)
		if admitted != slices.Contains(clientKinds, k) && k != lockfsm.Open && k != lockfsm.Attach {
			t.Errorf("a client may send %v: %v", k, admitted)
		}
		for i := range reflect.TypeFor[lockfsm.Command]().NumField() {
			c := lockfsm.Command{Kind: k, Key: "z"}
			f := reflect.ValueOf(&c).Elem().Field(i)
			switch {
			case !f.CanSet():
				continue
			case f.Kind() == reflect.String:
				f.SetString("zz")
			case f.Type() == reflect.TypeFor[[]string]():
				f.Set(reflect.ValueOf([]string{"zz"}))
			case f.Type() == reflect.TypeFor[[]byte]():
				f.SetBytes([]byte("zz"))
			default:
				continue
			}
			if bytes.Equal(c.Append(nil), lockfsm.Command{Kind: k, Key: "z"}.Append(nil)) {
				continue // not a field of this command
			}
			field := fmt.Sprint(k, ".", reflect.TypeFor[lockfsm.Command]().Field(i).Name)
			seen[field] = true
			rights, isKey := keyFields[field]
			if !isKey && !slices.Contains(otherFields, field) {
				t.Errorf("%s has no row: which right does it need?", field)
			}
			for _, right := range rights {
				mustNeed(t, c, field, rights, right)
			}
		}
	}
	for field := range keyFields {
		if !seen[field] {
			t.Errorf("no command has the field %s", field)
		}
	}
}

func withoutSize(t *testing.T, command []byte) []byte {
	t.Helper()
	c, _, err := lockfsm.Next(command)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mustNeed sends the command under all rights of its fields, and then without one of them.
func mustNeed(t *testing.T, c lockfsm.Command, field string, all []string, without string) {
	t.Helper()
	for _, lacks := range []bool{false, true} {
		words := []string{"read nothing"}
		for _, right := range []string{"lock", "force", "read", "write"} {
			words = append(words, right+" a")
			if !lacks || right != without {
				words = append(words, right+" z*")
			} else if field == "acquire.Keys" {
				words = append(words, right+" z") // of the first key alone
			}
		}
		if got := did(t, c, granted(t, words...)); got != !lacks {
			t.Errorf("%s under %q: done: %v, of the rights %q without %s: %v", field, words, got, all, without, lacks)
		}
	}
}

// did reports whether the command does what it is for.
func did(t *testing.T, c lockfsm.Command, rights *capability.Capability) bool {
	t.Helper()
	b, peer := leadingBench(t), nodeidtest.ID(1)
	switch c.Kind {
	case lockfsm.Acquire:
		c.Session, c.Epoch, c.Number = b.openUnder(peer, rights), 1, 1
		b.sendUnder(peer, rights, c)
		b.step()
		return len(b.machine.Entries()) > 0
	case lockfsm.Evict:
		holder := nodeidtest.ID(2)
		b.send(holder, acquireCmd(b.open(holder), 1, 1, c.Key))
		b.step()
		c.Token, c.Rights, c.Record = b.machine.Entries()[0].Token, rights.Text(), []byte("ops")
		b.index++
		b.machine.ApplyEntry(b.index, b.term, c.Append(nil), func(*lockfsm.Result) {})
		return len(b.machine.Entries()) == 0
	}
	t.Fatalf("add a trial of %v here", c.Kind)
	return false
}
