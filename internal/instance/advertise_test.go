package instance

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

type fakeHost struct {
	name   string
	nics   map[string]string // from the name of an interface to its addresses, separated by spaces
	routes map[string]string // from a prefix to the source address; the longest prefix counts
	hosts  map[string]string
}

func (m fakeHost) env() env {
	return env{
		resolve: func(_ context.Context, host string) ([]string, error) {
			if ips := m.hosts[host]; ips != "" {
				return strings.Fields(ips), nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		network: networkInfo{
			hostname: func() (string, error) { return m.name, nil },
			interfaces: func() ([]networkInterface, error) {
				if m.nics == nil {
					return nil, errors.New("not allowed")
				}
				all := []networkInterface{{name: "lo", addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"),
					netip.MustParseAddr("::1")}}}
				for _, name := range [...]string{"docker0", "eth0", "eth1", "wlan0"} {
					n := networkInterface{name: name}
					for _, a := range strings.Fields(m.nics[name]) {
						n.addrs = append(n.addrs, netip.MustParseAddr(a))
					}
					all = append(all, n)
				}
				return all, nil
			},
			route: func(to netip.Addr) (netip.Addr, bool) {
				if to.IsLoopback() {
					return netip.MustParseAddr(map[bool]string{true: "127.0.0.1", false: "::1"}[to.Is4()]), true
				}
				best, from := -1, ""
				for prefix, via := range m.routes {
					if p := netip.MustParsePrefix(prefix); p.Contains(to) && p.Bits() > best {
						best, from = p.Bits(), via
					}
				}
				if best < 0 {
					return netip.Addr{}, false
				}
				return netip.MustParseAddr(from), true
			},
		},
	}
}

func TestTheAddressToAdvertise(t *testing.T) {
	laptop := fakeHost{
		name: "laptop", nics: map[string]string{"docker0": "172.17.0.1", "wlan0": "192.168.1.5 fe80::5 fd00::5"},
		routes: map[string]string{"0.0.0.0/0": "192.168.1.5", "172.17.0.0/16": "172.17.0.1"},
		hosts:  map[string]string{"laptop": "127.0.1.1", "localhost": "127.0.0.1"},
	}
	pod := fakeHost{
		name: "orders-0", nics: map[string]string{"eth0": "10.1.0.7 fe80::7"},
		routes: map[string]string{"0.0.0.0/0": "10.1.0.7"},
		hosts:  map[string]string{"orders-0": "10.1.0.7"},
	}
	pod6 := fakeHost{name: "orders-0", nics: map[string]string{"eth0": "fd00::7"},
		routes: map[string]string{"::/0": "fd00::7"}, hosts: map[string]string{"orders-0": "fd00::7"}}
	two := fakeHost{
		name: "vm", nics: map[string]string{"eth0": "203.0.113.5", "eth1": "10.0.0.5 10.0.0.100"},
		routes: map[string]string{"0.0.0.0/0": "203.0.113.5", "10.0.0.0/8": "10.0.0.5"},
		hosts:  map[string]string{"inside": "10.0.0.6", "outside": "203.0.113.9"},
	}
	named := two
	named.hosts = map[string]string{"vm": "10.0.0.5"}
	all := two // some resolvers return the addresses of all interfaces
	all.hosts = map[string]string{"vm": "203.0.113.5 10.0.0.5 10.0.0.100"}
	public := fakeHost{name: "vm", nics: map[string]string{"eth0": "203.0.113.5", "eth1": "203.0.113.77"},
		routes: map[string]string{"0.0.0.0/0": "203.0.113.77"}}
	offline := fakeHost{name: "laptop", nics: map[string]string{}}
	local := fakeHost{name: "vm", nics: map[string]string{"eth0": "fd00::5 fe80::5"},
		routes: map[string]string{"::/0": "fe80::5"}}
	lone := fakeHost{name: "vm", nics: map[string]string{"eth0": "10.0.0.5"}}

	for _, c := range []struct {
		what      string
		m         fakeHost
		join      string
		advertise string
		listening string
		want      string
	}{
		{"what is configured", two, "inside:1", "lock.example:5", "[::]:7947", "lock.example:5"},
		{"a bind address that names a host", two, "outside:1", "", "10.0.0.100:7947", "10.0.0.100:7947"},
		{"processes on a laptop", laptop, "localhost:7947 127.0.0.1:7948", "", "[::]:7947", "127.0.0.1:7947"},
		{"a laptop among others", laptop, "127.0.0.1:7947 192.168.1.9:7947", "", "[::]:7947", "192.168.1.5:7947"},
		{"its own name is loopback, as Debian has it", laptop, "laptop:7947 desktop:7947", "", "[::]:7947",
			"192.168.1.5:7947"},
		{"a laptop with Docker", laptop, "dns:///lock.example:7947", "", "[::]:7947", "192.168.1.5:7947"},
		{"containers of this laptop", laptop, "172.17.0.2:7947", "", "[::]:7947", "172.17.0.1:7947"},
		{"nothing but its own name, which is loopback", laptop, "laptop:7947", "", "[::]:7947", "127.0.0.1:7947"},
		{"a pod before any other is ready", pod, "dns:///orders:7947", "", "[::]:7947", "10.1.0.7:7947"},
		{"a pod with services", pod, "srv:///_lock._tcp.orders", "", "[::]:7947", "10.1.0.7:7947"},
		{"a pod with IPv6 alone", pod6, "dns:///orders:7947", "", "[::]:7947", "[fd00::7]:7947"},
		{"a pod with IPv6 that listens on IPv4", pod6, "dns:///orders:7947", "", "0.0.0.0:7947",
			"set Config.Advertise"},
		{"several interfaces, Join says which", two, "inside:7947", "", "[::]:7947", "10.0.0.5:7947"},
		{"several interfaces, Join says the other", two, "dns:///outside:7947", "", "[::]:7947", "203.0.113.5:7947"},
		{"several interfaces, the first known host counts", two, "unknown:1 outside:1 inside:1", "", "[::]:7947",
			"203.0.113.5:7947"},
		{"several interfaces, nothing says which", two, "unknown:1", "", "[::]:7947",
			"eth0 203.0.113.5, eth1 10.0.0.5, eth1 10.0.0.100"},
		{"several interfaces, a list", two, "file:///peers", "", "[::]:7947", "set Config.Advertise to the host:port"},
		{"several interfaces, the host name says which", named, "unknown:1", "", "[::]:7947", "10.0.0.5:7947"},
		{"several interfaces, the host name is all of them", all, "unknown:1", "", "[::]:7947", "set Config.Advertise"},
		{"public addresses alone", public, "unknown:1", "", "[::]:7947", "203.0.113.77:7947"},
		{"one address and no route", lone, "unknown:1", "", "[::]:7947", "10.0.0.5:7947"},
		{"loopback beside a host that cannot be reached yet", lone, "127.0.0.1:1 10.9.9.9:1", "", "[::]:7947",
			"10.0.0.5:7947"},
		{"a route from an address of one link", local, "[fd00::9]:7947", "", "[::]:7947", "[fd00::5]:7947"},
		{"a host of one link behind an address of all", pod6, "[fe80::9]:7947", "", "[::]:7947", "[fd00::7]:7947"},
		{"offline", offline, "unknown:1", "", "[::]:7947", "only loopback addresses: set Config.Advertise"},
		{"offline and alone", offline, "", "", "[::]:7947", "127.0.0.1:7947"},
		{"no look at the interfaces", fakeHost{}, "unknown:1", "", "[::]:7947", "not allowed): set Config.Advertise"},
	} {
		at, err := net.ResolveTCPAddr("tcp", c.listening)
		if err != nil {
			t.Fatal(err)
		}
		got, err := advertised(t.Context(), &Config{Bind: ":7947", Join: strings.Fields(c.join), Alone: c.join == "",
			Advertise: c.advertise}, at, c.m.env())
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	got, err := advertised(t.Context(), &Config{Bind: "socket"}, &net.UnixAddr{Name: "socket"}, two.env())
	if err == nil || !strings.Contains(err.Error(), "is not host:port: set Config.Advertise") {
		t.Errorf("a socket: %q, %v", got, err)
	}
}

func TestTheAddressOfThisMachine(t *testing.T) {
	at := &net.TCPAddr{Port: 7947}
	got, err := advertised(t.Context(), &Config{Bind: ":7947", Join: []string{"127.0.0.1:7947"}}, at, realEnv())
	if host, _, _ := net.SplitHostPort(got); err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf("%q, %v", got, err)
	}
	got, err = advertised(t.Context(), &Config{Bind: ":7947", Join: []string{"192.0.2.7:7947"}}, at, realEnv())
	if host, _, _ := net.SplitHostPort(got); err == nil && (net.ParseIP(host).IsLoopback() || isUnspecified(host)) {
		t.Errorf("%q is not reachable from another machine", got)
	}
}
