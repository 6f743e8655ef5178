package replica

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
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

// TestARecordIsStampedAndDerived sets each field of a record alone and together, and checks which
// of them a further session of the instance keeps, and which the leader overwrites.
func TestARecordIsStampedAndDerived(t *testing.T) {
	rights, err := capability.For("cron", "lock jobs/*")
	if err != nil {
		t.Fatal(err)
	}
	full := Record{Instance: "i", Name: "n", Addr: "a", Zone: "z", Version: "v", Rules: 3, Build: 4,
		Settings: groupOf(nil).Named(),
		For:      "f", Tier: "t", Own: true, Guest: true, Founders: []string{"a"}, Since: 4}
	for i := range reflect.TypeFor[Record]().NumField() {
		var r Record
		if !reflect.TypeFor[Record]().Field(i).IsExported() {
			continue
		}
		reflect.ValueOf(&r).Elem().Field(i).Set(reflect.ValueOf(full).Field(i))
		for _, r := range []Record{r, full} {
			own, stamped := r, r
			own.Instance, own.Own, own.Founders = "", true, nil
			stamped.Guest, stamped.For, stamped.Tier = true, "cron", capability.TierOf(rights).String()
			if got := DecodeRecord(r.Encode()); !reflect.DeepEqual(got, r) {
				t.Errorf("%+v is decoded as %+v", r, got)
			}
			if got := r.OwnSession(); !reflect.DeepEqual(got, own) {
				t.Errorf("a further session of %+v has the record %+v", r, got)
			}
			if got := DecodeRecord(Stamp(rights, r.Encode())); !reflect.DeepEqual(got, stamped) {
				t.Errorf("%+v is stamped as %+v", r, got)
			}
		}
	}
	bare := Record{Name: "n", Since: 7}
	bare.Founders = []string{""}
	room := lockfsm.MaxRecordBytes/2 - len(bare.Encode())
	for more := -1; more <= 1; more++ {
		r := bare
		r.Founders = []string{strings.Repeat("x", room+more)}
		got := DecodeRecord(r.Encode())
		if fits := more <= 0; fits != (len(got.Founders) == 1) || got.Name != "n" || got.Since != 7 {
			t.Errorf("%d bytes more than fit: %d founders, %q", more, len(got.Founders), got.Name)
		}
	}
}

// TestWhichBuildsAreOutdated checks each version of the rules against that in force. The record of
// a guest, and one without a version, are of no instance.
func TestWhichBuildsAreOutdated(t *testing.T) {
	for rules := range uint32(5) {
		for _, guest := range []bool{false, true} {
			want := session.Outdated{}
			if !guest && rules > 0 && rules < 3 {
				want = session.Outdated{Group: 3, Build: rules}
			}
			if got := Outdated(Record{Rules: rules, Guest: guest}.Encode(), 3); got != want {
				t.Errorf("rules %d, guest %v: %+v, want %+v", rules, guest, got, want)
			}
		}
	}
}
