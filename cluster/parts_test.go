package cluster

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"

	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

func TestMetaFitsAndReturns(t *testing.T) {
	m := meta{
		Instance: nodeidtest.ID(1<<64 - 1), Group: 1<<64 - 1, At: atMax, Leader: true,
		Name: strings.Repeat("n", nameBytesMax), Zone: strings.Repeat("z", zoneBytesMax), Addr: strings.Repeat("a", addrBytesMax),
	}
	b := m.append(nil)
	if len(b) > metaBytesMax {
		t.Fatalf("the largest meta data has %d bytes, and memberlist panics above %d", len(b), metaBytesMax)
	}
	for _, m := range []meta{m, {Instance: nodeidtest.ID(1)}} {
		if got, err := decodeMeta(m.append(nil)); err != nil || got != m {
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
		small := meta{Instance: nodeidtest.ID(1 << 40), Name: "n", Addr: "a:1"}
		p := small.padded(turn)
		lengths[len(p)] = true
		if got, err := decodeMeta(p); err != nil || got != small || len(m.padded(turn)) > metaBytesMax {
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
	f.Add(meta{Instance: nodeidtest.ID(5), Group: 6, Name: "n", Addr: "a:1"}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		if again, err := decodeMeta(m.append(nil)); err != nil || again != m {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
	})
}

func TestConfigNamesAllMistakes(t *testing.T) {
	_, err := Start(Config{
		Zone: strings.Repeat("z", 300), Advertise: "nowhere", Join: []string{"x", ":1"}, Settings: founding.Settings{Solo: true, Voters: 2, Grace: -1},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, field := range []string{"Name", "Label", "Zone", "Advertise", "Key", "Join", "Solo", "Voters", "SessionTTL", "Host"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s:\n%v", field, err)
		}
	}
}

func TestAliasesLeadBack(t *testing.T) {
	var a aliases
	for _, addr := range []string{"10.1.2.3:80", "[fd00::1]:80", "pod-1.locks:7947", "pod-2.locks:7947", "pod-1.locks:7948"} {
		ip, port, err := a.ip(addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.addr(joinIP(ip, port)); got != addr {
			t.Errorf("%s became %v:%d, which leads back to %s", addr, ip, port, got)
		}
		if strings.HasPrefix(addr, "pod") && !(&net.IPNet{IP: net.ParseIP("100::"), Mask: net.CIDRMask(64, 128)}).Contains(ip) {
			t.Errorf("%s stands for %v, which is not in the discard prefix", addr, ip)
		}
	}
	for i := range 2 * aliasesMax {
		_, _, _ = a.ip(fmt.Sprintf("n%d:1", i))
	}
	if len(a.real) > aliasesMax {
		t.Errorf("%d aliases are kept, want at most %d", len(a.real), aliasesMax)
	}
}

func TestProbesAreRecognised(t *testing.T) {
	for _, c := range []struct {
		packet string
		seq    uint32
		ok     bool
	}{
		{"\x00\x82\xa5SeqNo\x07\xa4Node", 7, true},
		{"\x00\x82\xa5SeqNo\xcc\xff", 255, true},
		{"\x00\x82\xa5SeqNo\xcd\x01\x00", 256, true},
		{"\x00\x82\xa5SeqNo\xce\x00\x01\x00\x00", 65536, true},
		{"\x00\x82\xa5SeqNo\xce\x00", 0, false},
		{"\x00\x82\xa5SeqNo", 0, false},
		{"hello", 0, false},
	} {
		if seq, ok := probeSequence([]byte(c.packet)); seq != c.seq || ok != c.ok {
			t.Errorf("%q: %d, %v; want %d, %v", c.packet, seq, ok, c.seq, c.ok)
		}
	}
}

func TestFinderTriesEverybodyInTurnAndForgetsNobodySoon(t *testing.T) {
	f := newFinder("self:1")
	for i := range 20 {
		f.remember(fmt.Sprintf("old-%d:1", i))
	}
	f.remember("self:1")
	tried := map[string]int{}
	now := time.Duration(0)
	for range 20 {
		got := f.due(now, []string{"join:1", "self:1"}, []string{"old-3:1"}, 0)
		if len(got) > rejoinMany {
			t.Fatalf("%d attempts in one round", len(got))
		}
		for _, addr := range got {
			tried[addr]++
			delete(f.busy, addr)
		}
		now += 2 * rejoinEvery
	}
	if len(tried) != 20 || tried["self:1"] != 0 || tried["old-3:1"] != 0 || tried["join:1"] == 0 {
		t.Errorf("tried %v, want all but itself and the one who is here", tried)
	}
	f.next = now + time.Hour
	f.met("new:1", now)
	f.met("new:1", now)
	if got := f.due(now, nil, nil, 0); !slices.Equal(got, []string{"new:1"}) {
		t.Errorf("after meeting somebody due is %v", got)
	}
	delete(f.busy, "new:1")
	f.met("new:1", now+rejoinPause/2)
	if got := f.due(now+rejoinPause/2, nil, nil, 0); len(got) != 0 {
		t.Errorf("tried again at once: %v", got)
	}
	for i := range 2 * addrsMax {
		f.remember(fmt.Sprintf("more-%d:1", i))
	}
	if len(f.known) != addrsMax {
		t.Errorf("%d addresses are remembered, want %d", len(f.known), addrsMax)
	}
}
