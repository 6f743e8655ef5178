package instance

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"syscall"
	"testing"
)

// Only the loopback address of IPv6 refuses, and only if this machine lacks it. Silence may be
// another machine, or a lack of local ports.
func TestAnAddressThatThisMachineLacksRefuses(t *testing.T) {
	with := []networkInterface{{"lo", []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}}}
	without := []networkInterface{{"lo", []netip.Addr{netip.MustParseAddr("127.0.0.1")}}}
	for name, c := range map[string]struct {
		address string
		number  syscall.Errno
		have    []networkInterface
		unknown error
		refused bool
	}{
		"IPv6 is off":                {"[::1]:7947", syscall.EADDRNOTAVAIL, without, nil, true},
		"there is no IPv6":           {"[::1]:7947", syscall.EAFNOSUPPORT, without, nil, true},
		"no route to it":             {"[::1]:7947", syscall.ENETUNREACH, without, nil, true},
		"no local port is free":      {"[::1]:7947", syscall.EADDRNOTAVAIL, with, nil, false},
		"the addresses are unknown":  {"[::1]:7947", syscall.EADDRNOTAVAIL, nil, errors.New("x"), false},
		"IPv4":                       {"127.0.0.1:7947", syscall.EADDRNOTAVAIL, without, nil, false},
		"another machine":            {"[2001:db8::1]:7947", syscall.ENETUNREACH, without, nil, false},
		"another machine, by a name": {"orders:7947", syscall.ENETUNREACH, without, nil, false},
		"a timeout":                  {"[::1]:7947", syscall.ETIMEDOUT, without, nil, false},
	} {
		dial := knowsItself(func(context.Context, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", c.number)}
		}, func() ([]networkInterface, error) { return c.have, c.unknown })
		_, err := dial(t.Context(), c.address)
		if errors.Is(err, syscall.ECONNREFUSED) != c.refused || !errors.Is(err, c.number) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The time of the commit orders builds. Without it, or with one that cannot be read, a build counts
// as the oldest.
func TestBuiltFrom(t *testing.T) {
	for value, want := range map[string]int64{"2026-11-30T05:06:58Z": 1796015218, "1970-01-01T01:00:07+01:00": 7,
		"1969-01-01T00:00:00Z": 0, "yesterday": 0, "": 0} {
		info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.time", Value: value}}}
		if got := builtFrom(info, true); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
		if got := builtFrom(info, false); got != 0 {
			t.Errorf("without information about the build: %d", got)
		}
	}
	if got := builtFrom(&debug.BuildInfo{}, true); got != 0 {
		t.Errorf("without a repository: %d", got)
	}
}
