package replica

import (
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
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
		{`{"name":"build 7, Zürich","zone":"eu-1","version":"v1.2.3"}`, guest, true},
		{`{"name":"a\u001b[2J"}`, guest, false},
		{`{"name":"a\r\nb"}`, nil, false},
		{`{"name":"a\u202eb"}`, guest, false},
		{`{"name":"a\u2028b"}`, guest, false},
		{`{"zone":"\u001b"}`, guest, false},
		{`{"version":"\u2066"}`, nil, false},
		{`{"name":"` + strings.Repeat("n", 128) + `"}`, guest, true},
		{`{"name":"` + strings.Repeat("n", 129) + `"}`, guest, false},
		{`{"zone":"` + strings.Repeat("z", 65) + `"}`, nil, false},
		{`{"version":"` + strings.Repeat("v", 129) + `"}`, nil, false},
	} {
		proof := Proof{Instance: nodeidtest.ID(7), Addr: "a:1", Rights: c.rights}
		record := strings.ReplaceAll(c.record, "ME", proof.Instance.String())
		if ok := proof.Vouch([]byte(record)); ok != c.ok {
			t.Errorf("%s, rights %v: %v, want %v", record, c.rights, ok, c.ok)
		}
	}
}

// TestHolderNames checks the name of a holder for each combination of the fields of its record.
func TestHolderNames(t *testing.T) {
	for _, row := range []struct {
		record Record
		want   string
	}{
		{Record{}, "session 7"}, {Record{Instance: "i", Addr: "a", Zone: "z"}, "session 7"},
		{Record{Instance: "i", Name: "n"}, "n"}, {Record{Instance: "i", Name: "n", For: "f"}, "n (for f)"},
		{Record{Instance: "i", For: "f"}, " (for f)"}, {Record{Name: "n\x1b"}, `n\u{1b}`},
		{Record{Name: "n\x1b", For: "f\x1b"}, `n\u{1b} (for f\u{1b})`},
	} {
		if got := HolderName(row.record.Encode(), 7); got != row.want {
			t.Errorf("%+v is called %q, want %q", row.record, got, row.want)
		}
	}
}
