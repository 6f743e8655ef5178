package replica

import (
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

func TestARecordIsVouchedForByItsConnection(t *testing.T) {
	guest, err := capability.For("cron", "lock jobs/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		record string
		rights *capability.Capability
		ok     bool
	}{
		{`{}`, nil, true},
		{`{"instance":"ME","addr":"a:1"}`, nil, true},
		{`{"instance":"ME"}`, nil, true},
		{`{"instance":"00000000000000000000000000000009"}`, nil, false},
		{`{"instance":"x"}`, nil, false},
		{`{"instance":"ME","addr":"b:1"}`, nil, false},
		{`{"addr":"b:1"}`, guest, false},
		{`{"addr":"a:1"}`, guest, true},
		{`{"instance":"ME"}`, guest, false},
		{`not JSON`, guest, true},
	} {
		proof := Proof{Instance: nodeidtest.ID(7), Addr: "a:1", Rights: c.rights}
		record := strings.ReplaceAll(c.record, "ME", proof.Instance.String())
		hash, ok := proof.Vouch([]byte(record))
		if ok != c.ok || hash != c.rights.Hash() {
			t.Errorf("%s, rights %v: %v, want %v", record, c.rights, ok, c.ok)
		}
	}
}
