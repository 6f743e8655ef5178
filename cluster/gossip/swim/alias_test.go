package swim

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestAliasesLeadBack(t *testing.T) {
	var a aliases
	for _, addr := range []string{"10.1.2.3:80", "[fd00::1]:80", "pod-1.locks:7947", "pod-2.locks:7947",
		"pod-1.locks:7948"} {
		ip, port, err := a.ip(addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.addr(joinIP(ip, port)); got != addr {
			t.Errorf("%s became %v:%d, which leads back to %s", addr, ip, port, got)
		}
		if strings.HasPrefix(addr, "pod") &&
			!(&net.IPNet{IP: net.ParseIP("100::"), Mask: net.CIDRMask(64, 128)}).Contains(ip) {
			t.Errorf("%s stands for %v, which is not in the discard prefix", addr, ip)
		}
	}
	for i := range 2 * maxAliases {
		_, _, _ = a.ip(fmt.Sprintf("n%d:1", i))
	}
	if len(a.real) > maxAliases {
		t.Errorf("%d aliases are kept, want at most %d", len(a.real), maxAliases)
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
