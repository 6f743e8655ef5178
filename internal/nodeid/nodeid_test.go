package nodeid_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

func TestIDIsAFunctionOfThePublicKey(t *testing.T) {
	key := nodeidtest.Key(1)
	if key.ID() != nodeid.Of(key.Public()) || key.ID().IsZero() || key.ID() == nodeidtest.Key(2).ID() {
		t.Fatalf("ID %v of key %x", key.ID(), key.Public())
	}
	// This ID is fixed, because other builds must compute the same ID.
	if got := key.ID().String(); got != pinned {
		t.Errorf("ID %s, pinned is %s", got, pinned)
	}
	if again, err := nodeid.ParseKey(key.Seed()); err != nil || again.ID() != key.ID() {
		t.Errorf("after Seed and ParseKey: %v, %v", again.ID(), err)
	}
	if _, err := nodeid.ParseKey(make([]byte, 31)); err == nil {
		t.Error("a key of 31 bytes was accepted")
	}
	if !nodeid.Of(nil).IsZero() {
		t.Error("the ID of no key is not zero")
	}
}

const pinned = "b1297632fd6cbcf45aaf7eca6b54b028"

func TestTextOfAnID(t *testing.T) {
	id := nodeidtest.Key(7).ID()
	b, err := json.Marshal(map[string]nodeid.ID{"instance": id})
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]nodeid.ID
	if err := json.Unmarshal(b, &read); err != nil || read["instance"] != id {
		t.Errorf("%s read as %v, %v", b, read, err)
	}
	for _, bad := range []string{"", "7", strings.Repeat("g", 32), id.String()[1:], id.String() + "0"} {
		if _, err := nodeid.Parse(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if nodeid.Compare(nodeidtest.ID(255), nodeidtest.ID(256)) >= 0 {
		t.Error("test IDs are not in the order of their numbers")
	}
}

func TestASignatureIsOfOneKeyAndMessage(t *testing.T) {
	a, b := nodeidtest.Key(1), nodeidtest.Key(2)
	signature := a.Sign([]byte("hello"))
	if !nodeid.Verify(a.Public(), []byte("hello"), signature) {
		t.Error("a valid signature is rejected")
	}
	if nodeid.Verify(b.Public(), []byte("hello"), signature) || nodeid.Verify(a.Public(), []byte("hallo"), signature) ||
		nodeid.Verify(nil, []byte("hello"), signature) || nodeid.Verify(a.Public(), []byte("hello"), nil) {
		t.Error("an invalid signature is accepted")
	}
}

func TestAKeyPrintsWithoutItsSecret(t *testing.T) {
	key := nodeidtest.Key(0x5ec2e7)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		if got := fmt.Sprintf(verb, key); got != "key of instance "+key.ID().String() {
			t.Errorf("%s prints %q", verb, got)
		}
	}
}
