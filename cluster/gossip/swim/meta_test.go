package swim

import (
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// TestTheMetaOfAttackersIsUnderstood decodes what the hostile peer sends about a member.
func TestTheMetaOfAttackersIsUnderstood(t *testing.T) {
	want := gossip.Meta{Instance: nodeidtest.ID(5), Group: 9, At: 12, Leader: true, Name: "n", Zone: "z", Addr: "a:1"}
	if got, err := decodeMeta(attack.Meta(want).Encode()); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMetaFitsAndReturns(t *testing.T) {
	m := gossip.Meta{
		Instance: nodeidtest.ID(1<<64 - 1), Group: 1<<64 - 1, At: maxAt, Leader: true,
		Name: strings.Repeat("n", gossip.MaxNameBytes), Zone: strings.Repeat("z", gossip.MaxZoneBytes),
		Addr: strings.Repeat("a", gossip.MaxAddrBytes),
	}
	b := appendMeta(nil, m)
	if len(b) > maxMetaBytes {
		t.Fatalf("the largest meta data has %d bytes, and memberlist panics above %d", len(b), maxMetaBytes)
	}
	for _, m := range []gossip.Meta{m, {Instance: nodeidtest.ID(1)}} {
		if got, err := decodeMeta(appendMeta(nil, m)); err != nil || got != m {
			t.Errorf("%+v came back as %+v, %v", m, got, err)
		}
	}
	for _, version := range []byte{0, metaVersion - 1, metaVersion + 1} {
		other := append([]byte{version}, b[1:]...)
		if _, err := decodeMeta(other); err == nil {
			t.Errorf("version %d was accepted", version)
		}
	}
	lengths := map[int]bool{}
	for turn := range uint64(16) {
		small := gossip.Meta{Instance: nodeidtest.ID(1 << 40), Name: "n", Addr: "a:1"}
		p := padded(small, turn)
		lengths[len(p)] = true
		if got, err := decodeMeta(p); err != nil || got != small || len(padded(m, turn)) > maxMetaBytes {
			t.Errorf("padded it came back as %+v, %v", got, err)
		}
	}
	if len(lengths) != 16 {
		t.Errorf("%d different lengths of one meta", len(lengths))
	}
	for n := range b {
		if _, err := decodeMeta(b[:n]); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", n, len(b))
		}
	}
}

func FuzzMeta(f *testing.F) {
	f.Add(appendMeta(nil, gossip.Meta{Instance: nodeidtest.ID(5), Group: 6, Name: "n", Addr: "a:1"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		if again, err := decodeMeta(appendMeta(nil, m)); err != nil || again != m {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
	})
}
