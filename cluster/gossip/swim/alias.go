package swim

import (
	"encoding/binary"
	"hash/fnv"
	"net"
	"strconv"
	"sync"
)

// aliases assigns IP addresses to hosts that are reached by name, because memberlist supports only
// IP addresses. These addresses are in the prefix 100::/64, whose packets routers discard (RFC
// 6666). So a packet to such an address never reaches a wrong machine, even if the translation is
// missing.
type aliases struct {
	mu   sync.Mutex
	real map[string]string // ip:port → host:port, only for hosts given by name
}

const maxAliases = 4096

// ip returns the IP address and port that represent addr in memberlist, and stores the translation
// back to addr.
func (a *aliases) ip(addr string) (net.IP, int, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, 0, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, 0, err
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip, int(n), nil
	}
	h := fnv.New64a()
	h.Write([]byte(host))
	ip := make(net.IP, net.IPv6len)
	ip[0] = 1
	binary.BigEndian.PutUint64(ip[8:], h.Sum64())
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.real == nil {
		a.real = make(map[string]string)
	}
	if key := net.JoinHostPort(ip.String(), port); a.real[key] == "" && len(a.real) < maxAliases {
		a.real[key] = addr
	}
	return ip, int(n), nil
}

func (a *aliases) addr(ipPort string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if real, ok := a.real[ipPort]; ok {
		return real
	}
	return ipPort
}
