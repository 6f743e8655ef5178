package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster/discovery"
)

const advertiseWithin = 2 * time.Second

// advertised returns the address at which other instances reach this instance. The argument
// listening is the address of the listener. advertised returns the first of these addresses that
// exists:
//
//   - the configured address
//   - a bind address that names a host
//   - the address from which this machine reaches the hosts of Join
//   - the address of the machine's own host name, as in containers
//   - the source address of the default route, unless that address is public and the machine has a
//     private one
//   - the only address of the machine
//
// Loopback is used only if all addresses of Join are loopback, or if the instance runs alone on a
// machine without another address. If no such address exists, the error names the setting to
// change. A wrong guess would be noticed only later, and on another machine.
func advertised(ctx context.Context, c *Config, listening net.Addr, e env) (string, error) {
	if c.Advertise != "" {
		return c.Advertise, nil
	}
	host, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return "", fmt.Errorf("mortise: listening at %q, which is not host:port: set Config.Advertise", listening)
	}
	if !isUnspecified(host) {
		return listening.String(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, advertiseWithin)
	defer cancel()
	f := addressFinder{env: e, only4: net.ParseIP(host).To4() != nil}
	ip, err := f.find(ctx, c)
	if err != nil {
		return "", fmt.Errorf("mortise: Config.Bind %q names no host, and %w"+
			": set Config.Advertise to the host:port at which the other instances reach this one", c.Bind, err)
	}
	return net.JoinHostPort(ip.String(), port), nil
}

type addressFinder struct {
	env   env
	only4 bool // the listener accepts IPv4 only
}

func (f *addressFinder) find(ctx context.Context, c *Config) (netip.Addr, error) {
	ip, loopback := f.towards(ctx, c)
	if ip.IsValid() {
		return ip, nil
	}
	all, err := f.env.network.interfaces()
	if err != nil {
		return ip, fmt.Errorf("the addresses of this machine cannot be read (%w)", err)
	}
	for i := range all {
		all[i].addrs = slices.DeleteFunc(slices.Clone(all[i].addrs), func(a netip.Addr) bool { return !f.usable(a) })
	}
	all = slices.DeleteFunc(all, func(n networkInterface) bool { return len(n.addrs) == 0 })
	switch {
	case loopback.IsValid():
		return loopback, nil
	case len(all) == 0 && c.Alone:
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	case len(all) == 0:
		return ip, errors.New("this machine has only loopback addresses")
	}
	if ip = f.named(ctx, all); ip.IsValid() {
		return ip, nil
	}
	return f.outward(all)
}

func (f *addressFinder) usable(a netip.Addr) bool {
	return a.IsGlobalUnicast() && (a.Is4() || !f.only4)
}

// towards returns the address from which this machine reaches the first host of Join that has a
// route. If all addresses of Join are loopback, it returns the loopback address instead. It ignores
// other loopback addresses, because they may mean this machine itself.
func (f *addressFinder) towards(ctx context.Context, c *Config) (ip, loopback netip.Addr) {
	local := len(c.Join) > 0 && c.JoinFunc == nil
	for _, entry := range c.Join {
		host, ok := discovery.Host(entry)
		if !ok {
			local = false
			continue
		}
		seeds := f.lookup(ctx, host)
		local = local && len(seeds) > 0
		for _, seed := range seeds {
			local = local && seed.IsLoopback()
			if seed.IsUnspecified() || f.only4 && !seed.Is4() {
				continue
			}
			switch from, ok := f.env.network.route(seed); {
			case !ok:
			case f.usable(from):
				return from, netip.Addr{}
			case from.IsLoopback() && !loopback.IsValid():
				loopback = from
			}
		}
	}
	if !local {
		loopback = netip.Addr{}
	}
	return ip, loopback
}

// lookup returns the IP addresses of a host. An unknown host is no error, because it may start
// later.
func (f *addressFinder) lookup(ctx context.Context, host string) []netip.Addr {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}
	}
	var ips []netip.Addr
	texts, _ := f.env.resolve(ctx, host)
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}

// named returns the address of the machine's host name if all addresses of this name belong to one
// interface. Some resolvers return the addresses of all interfaces.
func (f *addressFinder) named(ctx context.Context, all []networkInterface) (ip netip.Addr) {
	name, err := f.env.network.hostname()
	if err != nil {
		return ip
	}
	found := f.lookup(ctx, name)
	for _, n := range all {
		mine := slices.DeleteFunc(slices.Clone(n.addrs), func(a netip.Addr) bool { return !slices.Contains(found, a) })
		switch {
		case len(mine) == 0:
		case ip.IsValid():
			return netip.Addr{}
		default:
			ip = preferred(mine)
		}
	}
	return ip
}

func (f *addressFinder) outward(all []networkInterface) (netip.Addr, error) {
	var texts []string
	inside := false
	for _, n := range all {
		for _, a := range n.addrs {
			texts = append(texts, n.name+" "+a.String())
			inside = inside || private(a)
		}
	}
	// These addresses are reserved for documentation, so no host has them.
	for _, far := range [...]string{"192.0.2.1", "2001:db8::1"} {
		from, ok := f.env.network.route(netip.MustParseAddr(far))
		ours := ok && slices.ContainsFunc(all, func(n networkInterface) bool { return slices.Contains(n.addrs, from) })
		if ours && (private(from) || !inside) {
			return from, nil
		}
	}
	if len(all) == 1 && len(all[0].addrs) == 1 {
		return all[0].addrs[0], nil
	}
	return netip.Addr{}, fmt.Errorf("this machine has several addresses, and no resolvable host of "+
		"Join tells which of them to use (%s)", strings.Join(texts, ", "))
}

// private includes the shared addresses of carriers (RFC 6598).
func private(a netip.Addr) bool {
	return a.IsPrivate() || netip.MustParsePrefix("100.64.0.0/10").Contains(a)
}

// preferred returns an IPv4 address if there is one, because more hosts can reach it.
func preferred(addrs []netip.Addr) netip.Addr {
	if at := slices.IndexFunc(addrs, netip.Addr.Is4); at >= 0 {
		return addrs[at]
	}
	return addrs[0]
}

func isUnspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
