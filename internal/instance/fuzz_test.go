package instance

import (
	"encoding/json"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
)

// FuzzRecord checks that HolderName returns a name for every record, even for an unreadable one.
// Records come from other instances, which may run any version.
func FuzzRecord(f *testing.F) {
	good, err := json.Marshal(replica.Record{Instance: nodeidtest.ID(7).String(), Name: "n", Addr: "a:1", Zone: "z",
		Rules: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"name":"n","settings":{"replicas":1e99}}`))
	f.Add([]byte(`{"name":"a\u0000b\n\u202ec","later":[{}]}`))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if name := replica.HolderName(b, lockfsm.SessionID(5)); name == "" {
			t.Fatal("nobody")
		}
	})
}

func FuzzStoredRecords(f *testing.F) {
	f.Add([]byte(`{"identity":"AAEC","book":""}`))
	f.Add([]byte(`{"identity":null}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`{"a":"!"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		all := map[string][]byte{}
		if json.Unmarshal(b, &all) != nil {
			return
		}
		again, err := json.Marshal(copied(all))
		if err != nil {
			t.Fatal(err)
		}
		back := map[string][]byte{}
		if err := json.Unmarshal(again, &back); err != nil || len(back) != len(all) {
			t.Fatalf("%q came back as %q, %v", b, again, err)
		}
		size := 0
		for name, value := range copied(all) {
			if string(value) != string(all[name]) {
				t.Fatal(name)
			}
			size += len(value)
		}
		if size > len(b) {
			t.Fatalf("%d bytes out of %d", size, len(b))
		}
	})
}
