package instance

import (
	"net"
	"net/netip"
	"os"
)

// networkInfo reads the addresses and routes of the machine, without sending a packet.
type networkInfo struct {
	hostname   func() (string, error)
	interfaces func() ([]networkInterface, error) // the interfaces that are up
	route      func(to netip.Addr) (from netip.Addr, ok bool)
}

type networkInterface struct {
	name  string
	addrs []netip.Addr
}

func realNetworkInfo() networkInfo {
	return networkInfo{hostname: os.Hostname, interfaces: realInterfaces, route: realRoute}
}

func realInterfaces() ([]networkInterface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var up []networkInterface
	for _, i := range all {
		addrs, err := i.Addrs()
		// The interface may have been removed since net.Interfaces returned it.
		if i.Flags&net.FlagUp == 0 || err != nil {
			continue
		}
		n := networkInterface{name: i.Name}
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				n.addrs = append(n.addrs, prefix.Addr().Unmap())
			}
		}
		up = append(up, n)
	}
	return up, nil
}

// realRoute connects a UDP socket, which sets the socket's local address and sends nothing.
func realRoute(to netip.Addr) (netip.Addr, bool) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9)))
	if err != nil {
		return netip.Addr{}, false
	}
	defer conn.Close()
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	from := local.AddrPort().Addr().Unmap().WithZone("")
	return from, from.IsValid() && !from.IsUnspecified()
}
