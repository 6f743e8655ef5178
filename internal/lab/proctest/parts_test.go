//go:build linux

package proctest

import (
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLongestGap(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		times []int64 // in milliseconds; the period is from 1000 to 2000
		want  int64
	}{
		{[]int64{1020, 1200, 1990}, 790},
		{[]int64{1010, 1020}, 980},        // no event follows
		{[]int64{1010, 1020, 5000}, 3980}, // the gap ends with the first event after the period
		{[]int64{1010, 1950, 5000}, 940},  // the gap after 1950 belongs to the next departure
		{nil, 1000},
		{[]int64{10, 20, 3000, 3100, 9000}, 2000}, // events before the period do not count
	} {
		times := slices.Clone(c.times)
		for i := range times {
			times[i] *= ms
		}
		if got := longestGap(between(times, 1000*ms, 2000*ms), 1000*ms, 2000*ms); got != time.Duration(c.want*ms) {
			t.Errorf("the longest gap in %v from 1000 to 2000: %v, want %d ms", c.times, got, c.want)
		}
	}
}

func TestKindOf(t *testing.T) {
	call := func(text string) string {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + string(b) + "rest"
	}
	for then, want := range map[string]kind{
		"\x00\x00\x00\x05frame":                        links,
		call(snapshotMethod):                           links,
		call("6293d89320aba6c1d48acf6257ee15f594b631"): gossip, // /mortise.transport.v1.Peer/
		call("6293d89320abf6b4b67a5fb857bd45a8496c63"): gossip, // /mortise.query.v1.Cluster/
		call(""): unknown,
		"":       unknown,
		"PR":     unknown,
	} {
		if got := kindOf([]byte(preface + strings.Repeat("r", randomBytes) + "\x00\x00\x00\x05hello" + then)); got != want {
			t.Errorf("a connection that goes on with %q is of kind %d, want %d", then, got, want)
		}
	}
}

func TestRespond(t *testing.T) {
	ask := func(name string, kind byte) []byte {
		packet := []byte{7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1}
		packet = append(append(packet, name...), 0, 0, kind, 0, 1)
		// Resolvers append this OPT record to their queries. The reply must not contain it.
		return append(packet, 0, 0, 41, 2, 0, 0, 0, 0, 0, 0, 0)
	}
	here := netip.MustParseAddr("10.77.0.9")
	answer := func(asker netip.Addr) []netip.Addr { return []netip.Addr{asker} }
	if got := respond(ask("\x06orders\x04test", typeA), here, answer); len(got) != 12+17+16 || got[3] != 0 ||
		got[7] != 1 || !slices.Equal(got[len(got)-4:], here.AsSlice()) {
		t.Errorf("the answer to a question for the service: %v", got)
	}
	if got := respond(ask("\x06orders\x04test", 28), here, answer); len(got) != 12+17 || got[3] != 0 || got[7] != 0 {
		t.Errorf("the answer to a question for other addresses of the service: %v", got)
	}
	if got := respond(ask("\x05other\x04test", typeA), here, answer); len(got) != 12+16 || got[3] != noSuchName {
		t.Errorf("the answer to a question for another name: %v", got)
	}
	for _, broken := range [][]byte{nil, ask("\x06ord", typeA)[:16], {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 200}} {
		if got := respond(broken, here, answer); got != nil {
			t.Errorf("the answer to %v: %v", broken, got)
		}
	}
}

func TestAbandoned(t *testing.T) {
	mine := runName()
	for space, want := range map[string]bool{
		mine + "-1-2": false, mine + "-probe": false, "mt1-1-1-bridge": startOf(1) != "1", "mt999999999-5-1-1": true,
		"mt": false, "mtx-1-1": false, "other": false,
	} {
		if abandoned(space) != want {
			t.Errorf("%s (this process is %d): abandoned %v, want %v", space, os.Getpid(), !want, want)
		}
	}
}
