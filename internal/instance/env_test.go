package instance

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
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
